"""Figures of code selection and archive: `python -m tests.bench.pack [--folder DIR] [--big MIB]`.

Everything is a ratio within one run on one machine: the walk to a bare scandir with stat, the archive to a tar
written without compression but with its SHA-256, the unchanged tree to a walk with stat. The big tree shows
peak memory next to that of a small one. `--big 0` leaves it out.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aj.model.code import CodePlan, IgnoreLine
from aj.pack import archive, digest, tar, walk
from aj.pack.deflate import processors

PATTERNS = """
    data/ *.log build/ *.egg-info/ /dist *.py[cod] outputs/ **/checkpoints/*.pt docs/_build *.swp !keep.log
    wandb/ *.ckpt /x/**/y tmp* *~ core.[0-9]* *.so .cache/ .DS_Store
"""
RUNS = 5


@dataclass(frozen=True)
class Taken:
    """The least of several runs, in seconds: by the clock, and of all processors."""

    wall_s: float
    cpu_s: float


def fill(root: Path, files: int, size: int) -> Path:
    """Plant text files, a hundred to a folder, of pseudo-random words."""
    chance = random.Random(7)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(2000)]
    for number in range(files):
        folder = root / "src" / f"d{number // 10_000:03}" / f"d{number // 100 % 100:03}"
        if number % 100 == 0:
            folder.mkdir(parents=True)
        (folder / f"f{number:06}.py").write_bytes(" ".join(chance.choices(words, k=size // 6 + 1)).encode()[:size])
    return root


def best(*acts: Callable[[], object]) -> list[Taken]:
    """Measure several things in turn, so that a busy moment of the machine hits all of them."""
    runs = [[once(act) for act in acts] for _ in range(RUNS)]
    return [Taken(min(one.wall_s for one in of), min(one.cpu_s for one in of)) for of in zip(*runs)]


def once(act: Callable[[], object]) -> Taken:
    wall, cpu = time.perf_counter(), spent()
    act()
    return Taken(time.perf_counter() - wall, spent() - cpu)


def spent() -> float:
    """CPU seconds of this process and of those it waited for."""
    used = os.times()
    return sum(used[:4])


def row(name: str, taken: Taken, base: Taken | None = None, budget: float | None = None) -> None:
    words = f"{name:52s} wall {taken.wall_s * 1000:8.1f} ms  cpu {taken.cpu_s * 1000:8.1f} ms"
    if base is not None:
        ratio = taken.wall_s / base.wall_s
        words += f"   wall {ratio:5.2f} x  cpu {taken.cpu_s / base.cpu_s:5.2f} x"
        words += f"  (budget {budget:g} x, {'met' if ratio <= budget else 'NOT met'})" if budget else ""
    print(words, flush=True)


def bare(root: Path) -> int:
    """The least a walk can do: list every folder, stat every file."""
    count = 0
    pending = [os.fsencode(root)]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
                    count += 1
    return count


def plain(root: Path, path: Path) -> str:
    """A tar of our own without compression, with its SHA-256."""
    total = hashlib.sha256()
    base = os.fsencode(root)
    with path.open("wb") as out:
        for folder, folders, files in os.walk(base):
            folders.sort()
            for name in sorted(files):
                place = folder + b"/" + name
                handle = os.open(place, os.O_RDONLY)
                data = os.read(handle, os.fstat(handle).st_size)
                os.close(handle)
                head = tar.header(place[len(base) + 1 :], tar.FILE, size=len(data), mode=0o644)
                piece = b"".join((head, data, tar.filling(len(data))))
                total.update(piece)
                out.write(piece)
        out.write(tar.ending(out.tell()))
    return total.hexdigest()


def usual(root: Path, path: Path) -> None:
    """What the standard library gives: tarfile and gzip at level 6."""
    with tarfile.open(path, "w:gz", compresslevel=6) as out:
        out.add(root, arcname=".")


def walks(root: Path, cache: Path) -> None:
    patterns = tuple(IgnoreLine(pattern, "t.yaml:1") for pattern in PATTERNS.split())
    plan = CodePlan(str(root), patterns)
    print(f"-- a tree of {bare(root):,} files, {len(patterns)} patterns")
    known = digest.of(walk.select(plan, cache))
    time.sleep(2.1)  # what was planted this moment is read once more, so that it counts as known
    assert digest.of(walk.select(plan, cache)) == known
    opened: list[bytes] = []

    def note(event: str, words: tuple[object, ...]) -> None:
        if event == "open" and isinstance(words[0], str | bytes):
            opened.append(os.fsencode(words[0]))

    sys.addaudithook(note)
    assert digest.of(walk.select(plan, cache)) == known
    files = [path for path in opened if os.fsencode(root) in path and not os.path.isdir(path)]
    base, selected, again = best(
        lambda: bare(root), lambda: walk.select(plan), lambda: digest.of(walk.select(plan, cache))
    )
    row("scandir and stat", base)
    row("selection", selected, base, 1.5)
    row(f"unchanged tree, its digest ({len(files)} files opened)", again, base, 1.5)


def archives(root: Path, folder: Path) -> None:
    plan = CodePlan(str(root))
    print(f"-- an archive of {bare(root):,} files, {walk.select(plan).bytes / 1e6:.0f} MB, {processors()} processors")

    def ours(threads: int) -> None:
        shutil.rmtree(folder / "store", ignore_errors=True)
        archive.pack(walk.select(plan), folder=folder / "store", threads=threads)

    acts: dict[str, Callable[[], object]] = {
        "own tar, no compression, SHA-256": lambda: plain(root, folder / "plain.tar"),
        "selection and archive": lambda: ours(processors()),
        "  the same with one thread": lambda: ours(1),
        "tarfile and gzip 6": lambda: usual(root, folder / "usual.tar.gz"),
    }
    if shutil.which("pigz"):
        command = f"tar cf - -C {root} . | pigz > {folder}/pigz.tar.gz"
        acts["tar | pigz"] = lambda: subprocess.run(["sh", "-c", command], check=True)
    taken = dict(zip(acts, best(*acts.values())))
    base = taken["own tar, no compression, SHA-256"]
    for name, one in taken.items():
        row(name, one, base, 2.5 if name == "selection and archive" else None)
    if "tar | pigz" not in taken:
        print("tar | pigz: pigz is not installed")
    sizes = {path.name: path.stat().st_size for path in (*folder.glob("*.tar*"), *folder.glob("store/*.gz"))}
    print("sizes: " + ", ".join(f"{name[:20]} {size / 1e6:.1f} MB" for name, size in sizes.items()))


PACK = """
import resource, sys, time
from pathlib import Path
from aj.model.code import CodePlan
from aj.pack import archive, walk
started = time.perf_counter()
ref = archive.pack(walk.select(CodePlan(sys.argv[1])), folder=Path(sys.argv[2]))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
taken = time.perf_counter() - started
print(f"{ref.bytes / 1e6:8.0f} MB to {ref.archive_bytes / 1e6:8.1f} MB in {taken:6.2f} s, peak {peak:.1f} MiB")
"""


def memory(folder: Path, mib: int) -> None:
    print("-- memory: half text, half noise, in files of 64 MiB")
    noise = random.Random(1).randbytes(1 << 20)
    text = (b"the quick brown fox %d " * 50_000 % tuple(range(50_000)))[: 1 << 20]
    for name, size in (("a tenth", mib // 10), ("whole", mib)):
        root = folder / name.replace(" ", "-")
        root.mkdir()
        for number in range(0, size, 64):
            with (root / f"f{number}").open("wb") as out:
                for _ in range(min(64, size - number)):
                    out.write(noise if number // 64 % 2 else text)
        store = folder / f"store-{root.name}"
        done = subprocess.run([sys.executable, "-c", PACK, root, store], capture_output=True, text=True, check=True)
        print(f"{name:10s}{done.stdout}", end="", flush=True)
        shutil.rmtree(root)
        shutil.rmtree(store)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder)")
    parser.add_argument("--big", type=int, default=2048, help="size of the big tree in MiB")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder, prefix="aj-bench-") as name:
        folder = Path(name)
        walks(fill(folder / "many", 100_000, 200), folder / "cache")
        shutil.rmtree(folder / "many")
        archives(fill(folder / "code", 10_000, 5200), folder)
        shutil.rmtree(folder / "code")
        if chosen.big:
            memory(folder, chosen.big)
    print(f"(this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB at its peak)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
