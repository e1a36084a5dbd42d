"""The builder of the single file: the same bytes from the same checkout, and the real file on every Python."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from aj.version import VERSION
from tests import standin
from tests.standin import HOUSE, builder, door, environment, find_python

pytestmark = pytest.mark.usefixtures("programs")

WHEELS = HOUSE / "build" / "wheels"


# --- what goes in -------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path) -> standin.StandIn:
    return standin.make(tmp_path / "standin")


def test_the_same_checkout_gives_the_same_bytes(checkout: standin.StandIn, tmp_path: Path) -> None:
    first = checkout.build(tmp_path / "first.pyz")
    elsewhere = standin.StandIn(tmp_path / "elsewhere")
    for path in sorted((one for one in checkout.root.rglob("*") if one.is_file()), reverse=True):
        target = elsewhere.root / path.relative_to(checkout.root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        target.chmod(0o700)
        os.utime(target, (1, 1))
    (elsewhere.root / "aj" / "__pycache__").mkdir()
    (elsewhere.root / "aj" / "__pycache__" / "main.cpython-311.pyc").write_bytes(b"stale")
    second = elsewhere.build(tmp_path / "second.pyz")
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_mode & 0o777 == 0o755


def test_equal_files_are_kept_once_and_few_members_stand_in_the_table(
    checkout: standin.StandIn, tmp_path: Path
) -> None:
    with zipfile.ZipFile(checkout.build(tmp_path / "aj.pyz")) as members:
        names = members.namelist()
        packs = b"".join(members.read(name) for name in names if name.endswith(".pack"))
    assert packs.count(b"SAME = 1") == 1, "the core and the cloud part both hold it"
    # front, door, first run; an index for each of 3; packs: shared core, cloud, shared by both, one for each Python
    assert len(names) == 3 + 3 + 6
    assert b"RECORD" not in packs


def test_one_file_for_one_python_has_the_same_parts(checkout: standin.StandIn, tmp_path: Path) -> None:
    words = [sys.executable, str(HOUSE / "zipapp.py"), "--each", "--source", str(checkout.root)]
    done = subprocess.run([*words, "--dist", str(tmp_path)], capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
    names = [f"aj-{tag}.pyz" for tag in checkout.tags()]
    assert sorted(path.name for path in tmp_path.glob("*.pyz")) == [*names, "aj.pyz"]
    cache = tmp_path / "cache"
    tag = door.tag()
    big = standin.facts(standin.run(tmp_path / "aj.pyz", cache=cache))
    small = standin.facts(standin.run(tmp_path / f"aj-{tag}.pyz", cache=cache))
    assert big["main"] == small["main"], "both run from one unpacked folder"


def test_a_change_of_one_byte_is_another_folder(checkout: standin.StandIn) -> None:
    files = {"a": b"1", "b": b"2"}
    same = builder.identity(dict(reversed(files.items())))
    assert builder.identity(files) == same
    assert len({same, builder.identity({**files, "a": b"2"}), builder.identity({"a": b"1", "c": b"2"})}) == 3


def test_two_wheels_with_one_path_are_refused(checkout: standin.StandIn) -> None:
    rival = checkout.wheel("rival", {"corelib/__init__.py": "other"})
    corelib = builder.read_lock(checkout.root / "zipapp.lock")["core"][-1]
    with pytest.raises(builder.Stop, match=r"another wheel both hold corelib/__init__\.py"):
        builder.files_of([corelib, rival], checkout.wheels)


def test_a_wheel_that_reaches_out_is_refused(checkout: standin.StandIn) -> None:
    with pytest.raises(builder.Stop, match=r"a path out of its folder: \.\./evil\.py"):
        builder.files_of([checkout.wheel("evil", {"../evil.py": ""})], checkout.wheels)


def test_only_what_an_installation_imports_is_taken(checkout: standin.StandIn) -> None:
    files = {
        "lib/__init__.py": "",
        "lib/stub.pyi": "",
        "lib/tests/test_it.py": "",
        "lib-1.0.data/purelib/lib/inner.py": "",
        "lib-1.0.data/scripts/lib": "",
    }
    taken = builder.files_of([checkout.wheel("lib", files)], checkout.wheels)
    assert sorted(taken) == ["lib-1.0.dist-info/METADATA", "lib/__init__.py", "lib/inner.py"]


# --- the lock -----------------------------------------------------------------


def test_a_lock_reads_as_it_was_written(tmp_path: Path) -> None:
    lock = {
        "core": [
            builder.Wheel("a_b-1.0-py3-none-any.whl", "00"),
            builder.Wheel("c-2.0-cp311-none-any.whl", "11", ("311-linux-x86_64", "311-macos-arm64")),
        ],
        "cloud": [],
    }
    builder.write_lock(tmp_path / "lock", lock)
    assert builder.read_lock(tmp_path / "lock") == lock


def test_the_lock_holds_what_pyproject_asks_for_on_every_platform() -> None:
    lock = builder.read_lock(HOUSE / "zipapp.lock")
    for tag in builder.tags_for(builder.ALL_PYTHONS, builder.PLATFORMS):
        for group in builder.GROUPS:
            locked = {wheel.name: wheel.version for wheel in lock[group] if wheel.serves(tag)}
            unmet = [
                line
                for line in builder.Checkout(HOUSE).requirements(group)
                if not (need := Requirement(line)).specifier.contains(locked.get(canonicalize_name(need.name), "0"))
            ]
            assert unmet == [], f"{group} on {tag}: run `python3 zipapp.py --relock`"


def test_what_is_left_out_is_nothing_we_ask_for() -> None:
    lock = builder.read_lock(HOUSE / "zipapp.lock")
    for group in builder.GROUPS:
        asked = {canonicalize_name(Requirement(line).name) for line in builder.Checkout(HOUSE).requirements(group)}
        assert (asked | {wheel.name for wheel in lock[group]}).isdisjoint(builder.LEFT_OUT)


def test_a_dependency_is_in_one_group() -> None:
    lock = builder.read_lock(HOUSE / "zipapp.lock")
    assert {wheel.name for wheel in lock["core"]}.isdisjoint({wheel.name for wheel in lock["cloud"]})
    asked = {group: builder.Checkout(HOUSE).requirements(group) for group in builder.GROUPS}
    assert "filelock" in " ".join(asked["core"])
    assert "urllib3" in " ".join(asked["cloud"])


def test_wheels_that_are_here_are_not_asked_for(
    checkout: standin.StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def offline(words: object) -> str:
        raise builder.Stop(f"asked the index: {words}")

    monkeypatch.setattr(builder, "pip", offline)
    lock = builder.read_lock(checkout.root / "zipapp.lock")
    builder.fetch(lock, checkout.tags(), checkout.wheels)
    next(checkout.wheels.glob("corelib*")).write_bytes(b"damaged")
    with pytest.raises(builder.Stop, match="asked the index"):
        builder.fetch(lock, checkout.tags(), checkout.wheels)


def test_groups_are_told_apart_when_the_lock_is_made(
    checkout: standin.StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip is asked for both groups and for the core alone; what only the cloud needs is the cloud's."""
    base, shared, sky, plain = (builder.Wheel(f"{name}-1.0-py3-none-any.whl", name) for name in "abcd")
    seen: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    monkeypatch.setattr(builder, "CLOUD", {"c"})

    def resolve(tag: str, requirements: list[str], pins: tuple[str, ...] = ()) -> list[object]:
        seen.append((tuple(requirements), tuple(pins)))
        found = [base, shared, sky] if "c>=1" in requirements else [base, shared]
        return [*found, plain] if tag.startswith("311-linux") else found

    monkeypatch.setattr(builder, "resolve", resolve)
    checkout.write("pyproject.toml", '[project]\ndependencies=["a", "c>=1"]\n')
    lock = builder.relock(builder.Checkout(checkout.root))
    assert lock["cloud"] == [sky]
    assert lock["core"][:2] == [base, shared]
    assert lock["core"][2].tags == ("311-linux-x86_64", "311-linux-aarch64")
    assert seen[1] == (("a",), ("a==1.0", "b==1.0", "c==1.0", "d==1.0"))


def test_pip_itself_resolves_and_fetches(
    checkout: standin.StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checkout.wheel("upper", {"upper.py": ""}, needs="corelib>=1")
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(checkout.wheels), "CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    tag = "312-macos-arm64"
    found = builder.resolve(tag, ["upper"], ["corelib==1.0"])
    assert sorted(wheel.name for wheel in found) == ["corelib", "upper"]
    builder.fetch({"core": found, "cloud": []}, [tag], tmp_path / "fetched")
    assert {path.name for path in (tmp_path / "fetched").iterdir()} == {wheel.file for wheel in found}
    wrong = builder.Wheel(found[0].file, "0" * 64)
    with pytest.raises(builder.Stop, match="pip ended with"):
        builder.fetch({"core": [wrong], "cloud": []}, [tag], tmp_path / "wrong")


# --- the real file ------------------------------------------------------------


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real program in one file, built once by the command of the README from a copy of the checkout."""
    shared = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        shared = shared.parent
    copy = shared / "checkout"
    with FileLock(shared / "checkout.lock", timeout=300):
        if not (copy / "dist" / "aj.pyz").exists():
            build_copy(copy)
    return copy / "dist" / "aj.pyz"


def build_copy(copy: Path) -> None:
    shutil.rmtree(copy, ignore_errors=True)
    for name in ("aj", "boot"):
        shutil.copytree(HOUSE / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "LICENSE", "zipapp.py", "zipapp.lock"):
        shutil.copy(HOUSE / name, copy)
    command = [outside_of_any_venv(), "zipapp.py", "--wheels", str(WHEELS)]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("AJ_", "PYTHON", "VIRTUAL_"))}
    done = subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def outside_of_any_venv() -> str:
    """Return the Python below this virtual environment, which knows no `aj`; this one if that has no pip."""
    below = str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}")
    has_pip = subprocess.run([below, "-m", "pip", "--version"], capture_output=True).returncode == 0
    return below if has_pip else sys.executable


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for all tests of the real file that only look into it."""
    return tmp_path_factory.mktemp("unpacked")


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_the_real_file_runs_on_each_python(real: Path, tmp_path: Path, unpacked: Path, version: str) -> None:
    python = find_python(version)
    told = standin.run(real, "--version", python=python, cache=tmp_path)
    assert (told.returncode, told.stdout) == (0, f"aj {VERSION}\n")
    assert list(tmp_path.iterdir()) == []
    roots = [unpack_with(python, real, unpacked, group) for group in builder.GROUPS]
    # the modules that are compiled for each Python or platform
    code = (
        f"import sys; sys.path[:0] = {roots}; import aj.base.packs, yaml; assert yaml.__with_libyaml__; "
        "import _cffi_backend, charset_normalizer.md, cryptography.hazmat.bindings._rust"
    )
    done = subprocess.run([python, "-ISc", code], capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr


def unpack_with(python: str, pyz: Path, cache: Path, group: str = "core") -> str:
    """Unpack a part by the door's own steps, without running a command."""
    code = (
        f"import sys; sys.path.insert(0, {str(pyz)!r}); import door; "
        f"print(door.Parts({str(pyz)!r}, door.tag(), {str(cache)!r}).open({group!r}))"
    )
    done = subprocess.run([python, "-ISc", code], capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_whatever_the_program_imports_from_others_was_kept(real: Path, unpacked: Path) -> None:
    roots = [unpack_with(sys.executable, real, unpacked, group) for group in builder.GROUPS]
    sources = [ast.parse(path.read_text()) for path in Path(roots[0], "aj").rglob("*.py")]
    # of Python's own there are some that another release has under another name, and the rooms try both
    wanted = sorted({name for tree in sources for name in imported(tree)} - {"_sha2", "_sha256"})
    assert {"cyclopts", "urllib3"} <= set(wanted)
    code = f"import importlib, sys; sys.path[:0] = {roots}; [importlib.import_module(name) for name in {wanted}]"
    done = subprocess.run([sys.executable, "-ISc", code], capture_output=True, text=True, env=environment())
    assert done.returncode == 0, f"if it is a library of LEFT_OUT in zipapp.py, take it in: {done.stderr}"


def imported(tree: ast.Module) -> Iterator[str]:
    """Name the modules of others that a file imports anywhere."""
    for node in ast.walk(tree):
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        yield from (name for name in names if name.partition(".")[0] not in {"aj", *sys.stdlib_module_names})


def test_an_error_of_cyclopts_can_be_told(real: Path, unpacked: Path) -> None:
    """cyclopts writes its messages with rich; rich must not miss what was left out."""
    root = unpack_with(sys.executable, real, unpacked)
    code = f"""
import sys
sys.path.insert(0, {root!r})
import cyclopts
app = cyclopts.App(exit_on_error=False, print_error=False, help_format="plaintext", result_action="return_value")
@app.default
def command(number: int): ...
for words in (["x"], [], ["1", "2"], ["--nope"]):
    try:
        app(words)
    except cyclopts.CycloptsError as error:
        print(error)
app(["--help"])
import rich.console, rich.live, rich.panel, rich.progress, rich.prompt, rich.table, rich.tree
"""
    done = subprocess.run([sys.executable, "-ISc", code], capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout


def test_the_real_build_twice_is_the_same_and_offline(real: Path, tmp_path: Path) -> None:
    again = [outside_of_any_venv(), "zipapp.py", "--wheels", str(WHEELS), "--dist", str(tmp_path)]
    env = {"PATH": "/usr/bin:/bin", "PIP_NO_INDEX": "1"}
    done = subprocess.run(again, cwd=real.parents[1], capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "aj.pyz").read_bytes() == real.read_bytes()


def test_the_real_program_is_packed_whole(real: Path, unpacked: Path) -> None:
    """What an installation would have beside Python files is there, and nothing of the checkout's rest."""
    root = Path(unpack_with(sys.executable, real, unpacked))
    patterns = tomllib.loads((real.parents[1] / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    source = real.parents[1] / "aj"
    wanted = {path for pattern in ["**/*.py", *patterns["aj"]] for path in source.glob(pattern)}
    found = {
        path.relative_to(root / "aj") for path in (root / "aj").rglob("*") if path.suffix != ".pyc" and path.is_file()
    }
    assert found == {path.relative_to(source) for path in wanted}


# --- the installed package ----------------------------------------------------


@pytest.mark.rule("C-001")
@pytest.mark.parametrize("word", ["-V", "--version"])
def test_the_installed_command_tells_its_version_without_importing(word: str) -> None:
    code = (
        "import sys; from aj import main; before = set(sys.modules); code = main.main(sys.argv[1:]); "
        "print(code, sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code, word], capture_output=True, text=True)
    assert done.stdout == f"aj {VERSION}\n0 ['aj.version']\n"


@pytest.mark.rule("T98")
@pytest.mark.parametrize("version", ["3.11", "3.13"])
def test_one_copied_file_runs_a_job_without_network_and_without_uv(real: Path, tmp_path: Path, version: str) -> None:
    """The main job of the README: four real processes with their ranks, from one file in an empty folder."""
    python = find_python(version)
    alone = tmp_path / "an empty folder"
    alone.mkdir()
    shutil.copy(real, alone / "aj.pyz")
    env = {"PATH": bare_path(tmp_path, python), "HOME": str(tmp_path / "home"), "LC_ALL": "C.UTF-8"}
    cut_off = [shutil.which("unshare"), "-n"] if os.geteuid() == 0 and shutil.which("unshare") else []
    aj = [*map(str, cut_off), python, "-IS", str(alone / "aj.pyz")]

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*aj, *words], cwd=alone, env=env, capture_output=True, text=True, timeout=100)

    try:
        made = call("init", "local", "--yes")
        assert made.returncode == 0, made.stderr
        (alone / "ranks.py").write_text(
            "import os, sys\nprint(*(os.environ[name] for name in "
            "('RANK', 'LOCAL_RANK', 'NODE_RANK', 'WORLD_SIZE', 'AJ_NODES')))\n"
            "sys.exit(5 if os.environ['RANK'] == '3' and sys.argv[1:] == ['fail'] else 0)\n"
        )
        words = ("run", "-t", "local", "-n", "2", "--ppn", "2", "-o", "name", "--wait", "--exit-status", "ranks.py")
        ran = call(*words)
        assert ran.returncode == 0, ran.stderr
        log = call("logs", ran.stdout.split()[0])
        assert sorted(log.stdout.splitlines()) == ["0 0 0 4 2", "1 1 0 4 2", "2 0 1 4 2", "3 1 1 4 2"]
        assert call(*words, "fail").returncode == 5
    finally:
        ended = call("daemon", "stop")
    assert ended.returncode == 0, ended.stderr


def bare_path(folder: Path, python: str) -> str:
    """A PATH with a shell, its small tools and this Python, and nothing else: no `uv`."""
    programs = folder / "bin"
    programs.mkdir()
    (programs / "python3").symlink_to(python)
    for name in ("sh", "bash", "env", "cat", "true"):
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    return str(programs)
