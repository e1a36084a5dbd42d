"""Build the program as one file, `dist/aj.pyz`: `python3 zipapp.py`.

    --all      for every platform and also for Python 3.14, not only for this platform and 3.11 to 3.13
    --each     beside it one small file for each Python and platform, such as dist/aj-311-linux-x86_64.pyz
    --relock   ask the package index for the newest versions that pyproject.toml allows, and write zipapp.lock

It needs this checkout, Python 3.11 or newer and pip. Wheels come from the package index once, checked against
the hashes in `zipapp.lock`, and are kept in build/wheels: the next build needs no network.

The file is a zip with few members, since Python reads its whole table at every start: the front, the door and
what a first run needs (`boot/`), an index for each Python and platform, and packs. Files used by the same
Pythons and platforms stand in one pack, equal ones once. A pack is named by the digest of its bytes, an
unpacked part by the digest of its files. Nothing depends on the time, the machine or the order of a folder:
the same commit gives the same bytes, as long as zlib is the same.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

if sys.version_info < (3, 11):  # noqa: UP036 (the system's own Python may be older than this program)
    sys.exit(f"zipapp: Python 3.11 or newer is needed, and {sys.executable} is {sys.version.split()[0]}")
import tomllib

HERE = Path(__file__).resolve().parent
SHEBANG = b"#!/usr/bin/env -S python3 -IS\n"
GROUPS = ("core", "cloud")
PYTHONS = ("311", "312", "313")
ALL_PYTHONS = (*PYTHONS, "314")
# What pip calls the platforms, the oldest system first: a wheel for it runs on the newer ones too.
PLATFORMS: Mapping[str, tuple[str, ...]] = {
    "linux-x86_64": ("manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux_2_28_x86_64"),
    "linux-aarch64": ("manylinux_2_17_aarch64", "manylinux2014_aarch64", "manylinux_2_28_aarch64"),
    "macos-arm64": ("macosx_11_0_arm64",),
    "macos-x86_64": ("macosx_10_13_x86_64", "macosx_11_0_x86_64"),
}
# What only a daemon that speaks to a cloud imports. All that these need, and the core does not, is with them.
CLOUD = {"urllib3", "certifi", "azure-identity", "azure-storage-blob", "kubernetes"}
LEFT_OUT = {
    "rich-rst": "cyclopts imports it for help pages in reStructuredText only; we write our own",
    "markdown-it-py": "rich imports it for Markdown only, which we never draw",
    "mdurl": "needed by markdown-it-py",
    "pycparser": "cffi imports it to read C sources; cryptography uses cffi's compiled half only",
    "tzdata": "dateutil looks time zones up in it by name; what it reads for us is in UTC",
    "pygments": "rich imports it for coloured source code only, in listings and tracebacks, which we never draw",
}
DROPPED = re.compile(
    r"""
      \.pyi$ | (^|/)py\.typed$                              # for type checkers
    | (^|/)tests?/                                          # tests of libraries
    | ^azure/.*/aio/                                        # the same again for asyncio, which needs aiohttp
    | \.dist-info/(RECORD|WHEEL|INSTALLER|REQUESTED|top_level\.txt|entry_points\.txt)$   # for installers
    """,
    re.VERBOSE,
)
DATE = (1980, 1, 1, 0, 0, 0)  # the oldest a zip can say

Files = dict[str, bytes]  # path -> content
Parts = dict[tuple[str, str], Files]  # tag, group -> files
Index = dict[str, dict[str, dict[str, list[tuple[str, int, int]]]]]  # tag, group, pack -> path, start, size


class Stop(Exception):
    """The file cannot be built. Says why, and what to do."""


def normal(name: str) -> str:
    """Return a distribution's name as the index writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass(frozen=True)
class Wheel:
    """One wheel of the lock. Empty `tags` means every Python and platform."""

    file: str
    sha256: str
    tags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return normal(self.file.split("-")[0])

    @property
    def version(self) -> str:
        return self.file.split("-")[1]

    def serves(self, tag: str) -> bool:
        return not self.tags or tag in self.tags


Lock = dict[str, list[Wheel]]  # group -> wheels


@dataclass(frozen=True)
class Checkout:
    """Where the sources are."""

    root: Path

    @property
    def version(self) -> str:
        tree = ast.parse((self.root / "aj/version.py").read_text())
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "VERSION":
                return str(ast.literal_eval(node.value))
        raise Stop("aj/version.py names no VERSION")

    def requirements(self, group: str) -> list[str]:
        """Return the dependencies that pyproject.toml names for a group."""
        found = tomllib.loads((self.root / "pyproject.toml").read_text())["project"]["dependencies"]
        return [line for line in found if (normal(re.split(r"[^\w.-]", line)[0]) in CLOUD) == (group == "cloud")]

    def program(self) -> Files:
        """Return the files that an installed package has too: code and the data that pyproject.toml names."""
        setuptools = tomllib.loads((self.root / "pyproject.toml").read_text())["tool"]["setuptools"]
        patterns = ["**/*.py", *setuptools["package-data"]["aj"]]
        package = self.root / "aj"
        found = {path for pattern in patterns for path in package.glob(pattern) if path.is_file()}
        files = {path.relative_to(self.root).as_posix(): path.read_bytes() for path in found}
        about = f"aj_jobs-{self.version}.dist-info"
        files[f"{about}/METADATA"] = f"Metadata-Version: 2.1\nName: aj-jobs\nVersion: {self.version}\n".encode()
        files[f"{about}/licenses/LICENSE"] = (self.root / "LICENSE").read_bytes()
        return files

    def boot(self, parts: Mapping[str, Mapping[str, str]]) -> Files:
        """Return the files of `boot/` with the version and the content ids filled in."""
        ids = {tag: dict(parts[tag]) for tag in sorted(parts)}
        return {
            "__main__.py": self._filled("__main__.py", 'VERSION = ""', f"VERSION = {self.version!r}"),
            "door.py": self._filled("door.py", "PARTS: Mapping[str, Mapping[str, str]] = {}", f"PARTS = {ids!r}"),
            "unpack.py": (self.root / "boot/unpack.py").read_bytes(),
        }

    def _filled(self, name: str, empty: str, full: str) -> bytes:
        source = (self.root / "boot" / name).read_text()
        if source.count(f"\n{empty}") != 1:
            raise Stop(f"boot/{name} has no line `{empty}`")
        return source.replace(f"\n{empty}", f"\n{full}").encode()


# --- the lock -----------------------------------------------------------------


def read_lock(path: Path) -> Lock:
    """Read the wheels of each group."""
    document = tomllib.loads(path.read_text())
    return {
        group: [
            Wheel(row["file"], row["sha256"], tuple(row.get("tags", ())))
            for rows in document.get(group, {}).values()
            for row in rows
        ]
        for group in GROUPS
    }


def write_lock(path: Path, lock: Lock) -> None:
    """Write the wheels of each group, a line each, in the order of their names."""
    lines = ["# Written by `python3 zipapp.py --relock`: the wheels in the single-file build, beside aj itself."]
    for group in GROUPS:
        lines += ["", f"[{group}]"]
        names = sorted({wheel.name for wheel in lock[group]})
        for name in names:
            lines.append(f"{name} = [")
            lines += [_line(wheel) for wheel in sorted(lock[group], key=_order) if wheel.name == name]
            lines.append("]")
    path.write_text("\n".join(lines) + "\n")


def _order(wheel: Wheel) -> tuple[tuple[str, ...], str]:
    return wheel.tags, wheel.file


def _line(wheel: Wheel) -> str:
    tags = f", tags = {json.dumps(wheel.tags)}" if wheel.tags else ""
    return f'    {{ file = "{wheel.file}", sha256 = "{wheel.sha256}"{tags} }},'


def relock(checkout: Checkout) -> Lock:
    """Resolve pyproject.toml for every Python and platform, and return the wheels to use."""
    core, cloud = checkout.requirements("core"), checkout.requirements("cloud")
    users: dict[str, dict[Wheel, list[str]]] = {group: {} for group in GROUPS}
    for tag in tags_for(ALL_PYTHONS, PLATFORMS):
        everything = resolve(tag, core + cloud)
        pins = [f"{wheel.name}=={wheel.version}" for wheel in everything]
        names = {wheel.name for wheel in (resolve(tag, core, pins) if cloud else everything)}
        for wheel in everything:
            if wheel.name not in LEFT_OUT:
                group = "core" if wheel.name in names else "cloud"
                users[group].setdefault(wheel, []).append(tag)
        print(f"{tag}: {len(everything)} wheels")
    everywhere = len(tags_for(ALL_PYTHONS, PLATFORMS))
    return {
        group: [
            Wheel(wheel.file, wheel.sha256, () if len(tags) == everywhere else tuple(tags))
            for wheel, tags in users[group].items()
        ]
        for group in GROUPS
    }


def resolve(tag: str, requirements: Sequence[str], pins: Sequence[str] = ()) -> list[Wheel]:
    """Ask pip which wheels an installation for a tag would take."""
    with tempfile.NamedTemporaryFile("w", prefix="pins-", suffix=".txt") as constraints:
        constraints.write("\n".join(pins))
        constraints.flush()
        words = ["install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-", "--target", "unused"]
        report = json.loads(pip([*words, *for_tag(tag), "--constraint", constraints.name, *requirements]))
    found = [row["download_info"] for row in report["install"]]
    return [Wheel(row["url"].rpartition("/")[2], row["archive_info"]["hashes"]["sha256"]) for row in found]


# --- wheels -------------------------------------------------------------------


def for_tag(tag: str) -> list[str]:
    """Return the words by which pip chooses wheels for another Python and platform than its own."""
    python, _, platform = tag.partition("-")
    words = ["--only-binary=:all:", "--implementation=cp", f"--python-version={python[0]}.{python[1:]}"]
    return words + [f"--platform={name}" for name in PLATFORMS[platform]]


def pip(words: Sequence[str]) -> str:
    """Run this Python's pip and return what it printed. Raises Stop."""
    # -P, since a folder on the module path that holds this very file would hide the standard library's zipapp.
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "--no-input", *words],
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        raise Stop(f"pip ended with {done.returncode}; it needs pip 22.2 or newer (`{sys.executable} -m ensurepip`)")
    return done.stdout


def fetch(lock: Lock, tags: Sequence[str], folder: Path) -> None:
    """Bring the wheels for these tags into a folder, asking the index only for missing ones. Raises Stop."""
    folder.mkdir(parents=True, exist_ok=True)
    for tag in tags:
        missing = [
            wheel for group in GROUPS for wheel in lock[group] if wheel.serves(tag) and not is_here(wheel, folder)
        ]
        if not missing:
            continue
        wanted = folder / "wanted.txt"
        wanted.write_text("".join(f"{w.name}=={w.version} --hash=sha256:{w.sha256}\n" for w in missing))
        print(f"{tag}: fetching {len(missing)} wheels")
        pip(
            [
                "download",
                "--quiet",
                "--no-deps",
                "--require-hashes",
                *for_tag(tag),
                "-d",
                str(folder),
                "-r",
                str(wanted),
            ]
        )
        wanted.unlink()
        if lost := [wheel.file for wheel in missing if not is_here(wheel, folder)]:
            raise Stop(f"the index gave other wheels for {tag} than {', '.join(lost)}: `python3 zipapp.py --relock`")


def is_here(wheel: Wheel, folder: Path) -> bool:
    path = folder / wheel.file
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == wheel.sha256


def files_of(wheels: Iterable[Wheel], folder: Path) -> Files:
    """Return what an installation of these wheels would put on the module path, without the dropped rest."""
    files: Files = {}
    for wheel in wheels:
        for path, content in installed(folder / wheel.file):
            if DROPPED.search(path):
                continue
            if files.setdefault(path, content) != content:
                raise Stop(f"{wheel.file} and another wheel both hold {path}")
    return files


def installed(wheel: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as members:
        for name in members.namelist():
            head, _, rest = name.partition("/")
            if head.endswith(".data"):
                kind, _, name = rest.partition("/")
                if kind not in ("purelib", "platlib"):
                    continue  # scripts, headers and data never come onto the module path
            if name.endswith("/"):
                continue
            if name.startswith("/") or ".." in name.split("/"):
                raise Stop(f"{wheel.name} holds a path out of its folder: {name}")
            yield name, members.read(name if not head.endswith(".data") else f"{head}/{rest}")


# --- the file -----------------------------------------------------------------


def tags_for(pythons: Iterable[str], platforms: Iterable[str]) -> list[str]:
    return [f"{python}-{platform}" for python in pythons for platform in platforms]


def this_platform(checkout: Checkout) -> str:
    """Ask the door itself what it calls this machine."""
    spec = importlib.util.spec_from_file_location("door", checkout.root / "boot/door.py")
    assert spec is not None and spec.loader is not None
    door: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(door)
    return str(door.platform())


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]  # 64 bits: enough against chance, and all of it is our own


def gather(checkout: Checkout, lock: Lock, tags: Sequence[str], wheels: Path) -> Parts:
    """Return the files of every part, by tag and group. A group without wheels has no part."""
    program = checkout.program()
    parts: Parts = {}
    for tag in tags:
        for group in GROUPS:
            files = files_of((wheel for wheel in lock[group] if wheel.serves(tag)), wheels)
            if group == "core":
                files |= program
            if files:
                parts[tag, group] = files
    return parts


def shelves(parts: Parts) -> list[list[bytes]]:
    """Return each content once, those used by the same set of parts together."""
    users: dict[bytes, set[tuple[str, str]]] = {}
    for key in sorted(parts):
        for path in sorted(parts[key]):  # neighbours in a folder are alike: side by side they pack better
            users.setdefault(parts[key][path], set()).add(key)
    found: dict[tuple[tuple[str, str], ...], list[bytes]] = {}
    for content, keys in users.items():
        found.setdefault(tuple(sorted(keys)), []).append(content)
    return list(found.values())


def packed(parts: Parts) -> tuple[Files, Index]:
    """Put the files into packs. Returns the packs by name, and where each file of each part stands."""
    packs: Files = {}
    place: dict[bytes, tuple[str, int]] = {}
    for contents in shelves(parts):
        pack = b"".join(contents)
        name = f"{digest(pack)}.pack"
        packs[name] = pack
        start = 0
        for content in contents:
            place[content] = (name, start)
            start += len(content)
    index: Index = {}
    for (tag, group), files in parts.items():
        by_pack = index.setdefault(tag, {}).setdefault(group, {})
        for path in sorted(files):
            name, start = place[files[path]]
            by_pack.setdefault(name, []).append((path, start, len(files[path])))
    return packs, index


def identity(files: Files) -> str:
    """Return the content id of a part: the same files have the same id in every build."""
    lines = (f"{path} {hashlib.sha256(files[path]).hexdigest()}\n" for path in sorted(files))
    return digest("".join(lines).encode())


def assemble(checkout: Checkout, parts: Parts) -> bytes:
    """Return the bytes of one single file that holds these parts."""
    ids: dict[str, dict[str, str]] = {}
    for (tag, group), files in parts.items():
        ids.setdefault(tag, {})[group] = identity(files)
    packs, index = packed(parts)
    buffer = io.BytesIO()
    buffer.write(SHEBANG)
    with zipfile.ZipFile(buffer, "w") as members:
        for name, source in checkout.boot(ids).items():
            add(members, name, source, zipfile.ZIP_STORED)  # so that a start needs no zlib
        for tag in sorted(index):
            add(members, f"{tag}.json", json.dumps(index[tag], separators=(",", ":"), sort_keys=True).encode())
        for name in sorted(packs):
            add(members, name, packs[name])
    return buffer.getvalue()


def add(members: zipfile.ZipFile, name: str, content: bytes, method: int = zipfile.ZIP_DEFLATED) -> None:
    about = zipfile.ZipInfo(name, DATE)
    about.create_system = 3
    about.external_attr = 0o644 << 16
    members.writestr(about, content, compress_type=method, compresslevel=6)  # 9 takes 3 times as long for 1 % less


def save(path: Path, data: bytes) -> None:
    """Put the file in its place in one step: an older one may be running."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_bytes(data)
    fresh.chmod(0o755)
    fresh.replace(path)
    print(f"{path}: {len(data) / 1e6:.1f} MB, sha256 {hashlib.sha256(data).hexdigest()}")


# --- the command --------------------------------------------------------------


def asked_for() -> argparse.Namespace:
    summary, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(description=summary, epilog=rest, allow_abbrev=False)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--all", action="store_true", help="every platform, and Python 3.14 too")
    parser.add_argument("--each", action="store_true", help="also one file for each Python and platform")
    parser.add_argument("--relock", action="store_true", help="refresh zipapp.lock from pyproject.toml")
    parser.add_argument("--source", type=Path, default=HERE, metavar="DIR", help="the checkout (default: %(default)s)")
    parser.add_argument("--dist", type=Path, metavar="DIR", help="where the file goes (default: dist in the checkout)")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="where wheels are kept (default: build/wheels)")
    return parser.parse_args()


def build(asked: argparse.Namespace) -> None:
    checkout = Checkout(asked.source.resolve())
    lock_file = checkout.root / "zipapp.lock"
    if asked.relock:
        write_lock(lock_file, relock(checkout))
        return
    wheels = (asked.wheels or checkout.root / "build" / "wheels").resolve()
    dist = asked.dist or checkout.root / "dist"
    tags = tags_for(ALL_PYTHONS, PLATFORMS) if asked.all else tags_for(PYTHONS, [this_platform(checkout)])
    lock = read_lock(lock_file)
    fetch(lock, tags, wheels)
    parts = gather(checkout, lock, tags, wheels)
    save(dist / "aj.pyz", assemble(checkout, parts))
    for tag in tags if asked.each else ():
        own = {key: files for key, files in parts.items() if key[0] == tag}
        save(dist / f"aj-{tag}.pyz", assemble(checkout, own))


def main() -> int:
    try:
        build(asked_for())
    except Stop as stop:
        print(f"zipapp: {stop}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
