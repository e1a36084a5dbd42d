"""The door of the single file: first runs, later runs, and everything that can be in their way."""

from __future__ import annotations

import fcntl
import json
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import platformdirs.macos
import pytest

from aj.base import packs, paths
from aj.base.settings import Settings
from tests import standin
from tests.standin import door, environment, facts, find_python, run, unpack

pytestmark = pytest.mark.usefixtures("programs")

DAY_S = 24 * 3600


@pytest.fixture(scope="session")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small program in one file."""
    root = tmp_path_factory.mktemp("standin")
    return standin.make(root).build(root / "dist" / "aj.pyz")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def unpacked(cache: Path) -> list[str]:
    """Name what lies in a cache, but for the lock."""
    return sorted(entry.name for entry in cache.iterdir() if entry.name != unpack.LOCK) if cache.exists() else []


# --- the straight way ---------------------------------------------------------


def test_the_first_run_unpacks_and_the_next_one_finds(pyz: Path, cache: Path) -> None:
    first = facts(run(pyz, "a", "-b", cache=cache))
    root = cache / unpacked(cache)[0]
    born = root.stat().st_ino
    again = run(pyz, "fail", cache=cache)
    assert (first["argv"], first["pyz"], first["main"]) == (["a", "-b"], str(pyz), str(root / "aj/main.py"))
    assert (again.returncode, again.stderr) == (7, "")
    assert [root.name] == unpacked(cache)
    assert root.stat().st_ino == born
    assert re.fullmatch(rf"[0-9a-f]{{16}}-{door.tag()}", root.name)


def test_a_warm_start_loads_nothing_of_the_first_run(pyz: Path, cache: Path) -> None:
    run(pyz, cache=cache)
    loaded = set(facts(run(pyz, cache=cache))["at_start"])
    assert loaded.isdisjoint({"unpack", "zipfile", "json", "tempfile", "pathlib", "re", "typing", "zlib", "corelib"})


def test_what_is_unpacked_belongs_to_the_user_alone(pyz: Path, cache: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-IS", str(pyz)], env=environment(cache), capture_output=True, preexec_fn=lambda: os.umask(0)
    )
    assert done.returncode == 0
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in cache.rglob("*") if "__pycache__" not in path.parts}
    assert {path for path, mode in modes.items() if mode & 0o077} == set()


def test_each_python_gets_its_own_parts(pyz: Path, cache: Path, python: str) -> None:
    told = facts(run(pyz, cache=cache, python=python))
    number = "".join(str(part) for part in told["python"])
    assert str(told["by_python"]) == number
    assert unpacked(cache)[0].endswith(f"{number}-{door.platform()}")


def test_the_file_is_a_program_by_its_first_line(pyz: Path, cache: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    env = environment(cache, PATH=f"{tmp_path / 'bin'}:/usr/bin:/bin")
    done = subprocess.run([str(pyz), "x"], env=env, capture_output=True, text=True)
    assert facts(done)["argv"] == ["x"]


@pytest.mark.parametrize("flags", [["-IS"], []], ids=["isolated", "plain"])
def test_modules_of_the_users_python_are_not_seen(pyz: Path, cache: Path, tmp_path: Path, flags: list[str]) -> None:
    for name in ("aj", "corelib", "json"):
        (tmp_path / "evil" / name).mkdir(parents=True)
        (tmp_path / "evil" / name / "__init__.py").write_text("raise SystemExit('the wrong module')")
    env = environment(cache, PYTHONPATH=str(tmp_path / "evil"), HOME=str(tmp_path))
    done = subprocess.run([sys.executable, *flags, str(pyz)], env=env, capture_output=True, text=True, cwd=tmp_path)
    told = facts(done)
    library = Path(os.__file__).parent
    assert told["path"][0] == str(cache / unpacked(cache)[0])
    assert all(str(library) in at or at.endswith(".zip") for at in told["path"][1:])
    assert not any("site-packages" in at for at in told["path"])


# --- the version, and Pythons that will not do --------------------------------


@pytest.mark.rule("C-001")
@pytest.mark.parametrize("word", ["-V", "--version"])
def test_the_version_alone_unpacks_nothing(pyz: Path, cache: Path, word: str) -> None:
    done = run(pyz, word, cache=cache)
    assert (done.returncode, done.stdout, done.stderr) == (0, "aj 9.8.7\n", "")
    assert not cache.exists()
    assert facts(run(pyz, word, "more", cache=cache))["argv"] == [word, "more"]


def test_the_version_into_a_closed_pipe_and_a_full_disk(pyz: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    into_pipe = subprocess.run([sys.executable, "-IS", str(pyz), "-V"], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    with Path("/dev/full").open("wb") as full:
        into_full = subprocess.run([sys.executable, "-IS", str(pyz), "-V"], stdout=full, stderr=subprocess.PIPE)
    assert (into_pipe.returncode, into_pipe.stderr) == (0, b"")
    assert (into_full.returncode, into_full.stderr.count(b"\n")) == (1, 1)


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7", "3.8", "3.9", "3.10"])
def test_an_old_python_says_one_line(pyz: Path, cache: Path, version: str) -> None:
    python = find_python(version)
    env = environment(cache)
    for words in ([], ["--version"], ["run", "x"]):
        done = subprocess.run([python, str(pyz), *words], env=env, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("aj: Python 3.11 or newer is needed")
        assert done.stderr.count("\n") == 1


def test_a_python_without_parts_is_told_which_have_some(cache: Path, tmp_path: Path) -> None:
    other = standin.make(tmp_path / "other")
    pyz = other.build(tmp_path / "aj.pyz", ["311-linux-s390x", "312-linux-s390x"])
    done = run(pyz, cache=cache)
    assert done.returncode == 2
    assert f"no program for Python {door.tag()}, only for 311-linux-s390x, 312-linux-s390x\nhint: " in done.stderr


# --- many at once, and killed -------------------------------------------------


def test_six_first_runs_at_once_make_one_folder(pyz: Path, cache: Path) -> None:
    command = [sys.executable, "-IS", str(pyz), "x"]
    started = [
        subprocess.Popen(command, env=environment(cache), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(6)
    ]
    ended = [(*child.communicate(timeout=60), child.returncode) for child in started]
    assert [(err, code) for _, err, code in ended] == [(b"", 0)] * 6
    assert len({json.loads(out)["corelib"] for out, _, _ in ended}) == 1
    assert len(unpacked(cache)) == 1


def test_a_killed_first_run_leaves_nothing_for_long(pyz: Path, cache: Path) -> None:
    assert any(killed_half_way(pyz, cache) for _ in range(20)), "never caught in the middle"
    assert [name for name in unpacked(cache) if name.startswith(unpack.HALF)]
    assert run(pyz, cache=cache).returncode == 0
    assert len(unpacked(cache)) == 1


def killed_half_way(pyz: Path, cache: Path) -> bool:
    """Kill a first run between its first file and its last step; False when it was too quick."""
    shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir(mode=0o700)
    with subprocess.Popen([sys.executable, "-IS", str(pyz)], env=environment(cache), stdout=subprocess.DEVNULL) as one:
        while one.poll() is None and not list(cache.glob(f"{unpack.HALF}*/*")):
            pass
        one.kill()
    return not list(cache.glob("*/.use"))


def test_a_holder_of_the_lock_that_hangs_stops_nobody(pyz: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "LOCK_WAIT_S", 0.05)
    cache.mkdir(mode=0o700)
    with (cache / unpack.LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (cache / f"{unpack.HALF}alive").mkdir()
        folder = unpack.first_use(source(pyz), str(cache), door.hold, door.distrust)
    assert Path(folder).parent == cache
    assert (cache / f"{unpack.HALF}alive").exists(), "without the lock nothing may be swept"


def test_the_slower_of_two_without_a_lock_uses_the_faster_ones_folder(pyz: Path, cache: Path) -> None:
    first = Path(unpack.first_use(source(pyz), str(cache), door.hold, door.distrust))
    half = Path(tempfile.mkdtemp(prefix=unpack.HALF, dir=cache))
    unpack.write(source(pyz), str(half))
    born = first.stat().st_ino
    unpack.publish(str(half), str(first))
    assert (first.stat().st_ino, half.exists()) == (born, False)


def test_a_folder_that_lost_its_mark_is_made_anew(pyz: Path, cache: Path) -> None:
    root = cache / Path(facts(run(pyz, cache=cache))["path"][0]).name
    (root / ".use").unlink()
    (root / "corelib" / "__init__.py").unlink()
    assert run(pyz, cache=cache).returncode == 0
    assert unpacked(cache) == [root.name]


def source(pyz: Path, group: str = "core") -> unpack.Source:
    return unpack.Source(str(pyz), door.tag(), group, f"{'0' * 16}-{door.tag()}")


# --- pruning ------------------------------------------------------------------


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """Another build of the small program."""
    other = standin.make(tmp_path / "newer")
    other.write("aj/data/part0.txt", "newer")
    return other.build(tmp_path / "newer.pyz")


def age(folder: Path, days: float) -> None:
    then = time.time() - days * DAY_S
    os.utime(folder / ".use", (then, then))


def test_a_build_that_nobody_ran_for_a_month_goes(pyz: Path, newer: Path, cache: Path) -> None:
    old = Path(facts(run(pyz, cache=cache))["path"][0])
    for foreign in ("code", "0123456789abcdef-notes.txt"):
        (cache / foreign).mkdir()
    age(old, 29)
    run(newer, cache=cache)
    assert old.exists()
    shutil.rmtree(Path(facts(run(newer, cache=cache))["path"][0]))
    age(old, 31)
    run(newer, cache=cache)
    assert not old.exists()
    assert len(unpacked(cache)) == 3, "only the new build and what is not ours to remove"


def test_a_build_that_still_runs_stays_however_old(pyz: Path, newer: Path, cache: Path) -> None:
    command = [sys.executable, "-IS", str(pyz), "wait"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment(cache), **pipes) as daemon:
        assert daemon.stdout is not None
        assert daemon.stdout.readline() == "ready\n"
        (old,) = cache.glob("*-*-*")
        age(old, 400)
        run(newer, cache=cache)
        assert old.exists()
        out, _ = daemon.communicate("go on")
        assert '"corelib"' in out, "a module that was not loaded yet could be loaded"
    shutil.rmtree(Path(facts(run(newer, cache=cache))["path"][0]))
    run(newer, cache=cache)
    assert not old.exists()


def test_a_start_notes_its_day(pyz: Path, cache: Path) -> None:
    root = Path(facts(run(pyz, cache=cache))["path"][0])
    age(root, 20)
    run(pyz, cache=cache)
    assert (root / ".use").stat().st_mtime > time.time() - DAY_S


def test_nobody_enters_a_folder_that_is_being_removed(pyz: Path, cache: Path) -> None:
    root = Path(facts(run(pyz, cache=cache))["path"][0])
    with unpack.sole_use(str(root), -1) as is_mine:
        assert is_mine
        assert not door.hold(str(root))
    assert door.hold(str(root))


# --- caches that cannot be used -----------------------------------------------


def private_folders(tmp: Path) -> list[Path]:
    return list(tmp.glob("aj-unpacked-*"))


@pytest.fixture
def tmp(tmp_path: Path) -> Path:
    (tmp_path / "tmp").mkdir()
    return tmp_path / "tmp"


def nowhere(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "cache"


def open_to_all(tmp_path: Path) -> Path:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    return tmp_path / "shared"


def below_an_open_folder(tmp_path: Path) -> Path:
    return open_to_all(tmp_path) / "cache"


def of_another_user(tmp_path: Path) -> Path:
    if os.geteuid() != 0:
        pytest.skip("only root can make a folder of another user")
    (tmp_path / "theirs").mkdir(mode=0o700)
    os.chown(tmp_path / "theirs", 12345, 12345)
    return tmp_path / "theirs"


@pytest.mark.rule("C-096")
@pytest.mark.parametrize(
    ("place", "says"),
    [
        (nowhere, "cannot be used (Not a directory"),
        (open_to_all, "can be written by other users (mode 777)"),
        (below_an_open_folder, "which everybody can write"),
        (of_another_user, "belongs to another user (uid 12345)"),
    ],
)
def test_without_a_cache_it_runs_from_a_private_folder(
    pyz: Path, tmp: Path, tmp_path: Path, place: Callable[[Path], Path], says: str
) -> None:
    cache = place(tmp_path)
    before = unpacked(cache)
    done = run(pyz, "x", cache=cache, TMPDIR=str(tmp))
    told = facts(done)
    assert done.returncode == 0
    assert done.stderr.startswith(f"aj: the cache {cache} ")
    assert says in done.stderr
    assert done.stderr.count("\n") == 2
    assert Path(told["path"][0]).parent.parent == tmp
    assert private_folders(tmp) == []
    assert unpacked(cache) == before


def test_the_cloud_part_goes_where_the_core_is(pyz: Path, tmp: Path, tmp_path: Path) -> None:
    done = run(pyz, "cloud", cache=nowhere(tmp_path), TMPDIR=str(tmp))
    assert Path(done.stdout.strip()).is_relative_to(tmp)
    assert done.stderr.count("aj: the cache") == 1
    assert private_folders(tmp) == []


def test_a_read_only_home(pyz: Path, tmp: Path) -> None:
    script = f"mount -t tmpfs -o ro none /mnt && exec {sys.executable} -IS {pyz} x"
    done = in_namespace(["-m"], script, HOME="/mnt", TMPDIR=str(tmp))
    assert facts(done)["argv"] == ["x"]
    assert "cannot be used (Read-only file system" in done.stderr


def test_a_private_folder_of_a_killed_process_goes_with_the_next_run(pyz: Path, tmp: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-IS", str(pyz), "wait"]
    env = environment(nowhere(tmp_path), TMPDIR=str(tmp))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=env, **pipes) as one:
        assert one.stdout is not None
        one.stdout.readline()
        (left,) = private_folders(tmp)
        age(left, 2)
        run(pyz, cache=tmp_path / "file" / "cache", TMPDIR=str(tmp))
        assert private_folders(tmp) == [left], "its process still runs"
        one.kill()
    run(pyz, cache=tmp_path / "file" / "cache", TMPDIR=str(tmp))
    assert private_folders(tmp) == []


def test_a_full_disk_says_so_and_leaves_nothing(pyz: Path, cache: Path, tmp: Path) -> None:
    def no_room() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    env = environment(cache, TMPDIR=str(tmp))
    done = subprocess.run(
        [sys.executable, "-IS", str(pyz)], env=env, capture_output=True, text=True, preexec_fn=no_room
    )
    assert done.returncode == 1
    assert f"aj: cannot unpack {pyz}: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert unpacked(cache) == []
    assert private_folders(tmp) == []


def test_a_really_full_disk(pyz: Path) -> None:
    script = f"mount -t tmpfs -o size=100k none /mnt && mkdir /mnt/t; {sys.executable} -IS {pyz}; echo $?; find /mnt"
    done = in_namespace(["-m"], script, HOME="/mnt", TMPDIR="/mnt/t")
    assert done.stdout.split("\n")[0] == "1"
    assert "No space left on device" in done.stderr
    assert "aj.pyz: No" in done.stderr
    assert not any("aj/" in line and "lock" not in line for line in done.stdout.split("\n"))


def test_a_damaged_file_is_not_unpacked(pyz: Path, cache: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.pyz"
    data = bytearray(pyz.read_bytes())
    with zipfile.ZipFile(pyz) as members:
        for pack in (one for one in members.infolist() if one.filename.endswith(".pack")):
            data[pack.header_offset + 80] ^= 0xFF
    bad.write_bytes(data)
    done = run(bad, cache=cache)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"aj: cannot unpack {bad}: the file is damaged (" in done.stderr
    assert "hint: get the file again" in done.stderr
    assert unpacked(cache) == []


@pytest.mark.rule("C-088")
def test_a_relative_cache_folder_is_refused(pyz: Path) -> None:
    done = run(pyz, AJ_CACHE_DIR="here")
    assert (done.returncode, done.stderr.split("\n")[0]) == (2, "aj: AJ_CACHE_DIR='here' is not an absolute path")


def in_namespace(kinds: list[str], script: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in namespaces of its own, or skip where the machine does not allow it."""
    words = ["unshare", "-r", *kinds]
    if shutil.which("unshare") is None or subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip(f"this machine does not allow `{' '.join(words)}`")
    return subprocess.run([*words, "sh", "-c", script], env=environment(**env), capture_output=True, text=True)


# --- odd surroundings ---------------------------------------------------------


@pytest.mark.rule("C-096")
def test_without_a_home(pyz: Path, tmp: Path) -> None:
    done = run(pyz, TMPDIR=str(tmp))
    assert done.stderr == ""
    assert Path(facts(done)["path"][0]).parent == tmp / f"aj-{os.getuid()}" / "cache"


@pytest.mark.rule("C-096")
def test_in_a_folder_that_is_gone(pyz: Path, cache: Path, tmp_path: Path) -> None:
    script = f"mkdir {tmp_path}/gone && cd {tmp_path}/gone && rmdir ../gone && exec {sys.executable} -IS {pyz} x"
    done = subprocess.run(["sh", "-c", script], env=environment(cache), capture_output=True, text=True)
    assert facts(done)["argv"] == ["x"]


@pytest.mark.rule("C-096")
@pytest.mark.parametrize("locale", ["C", "POSIX", "en_US.ISO-8859-1", "nowhere.KOI8-R"])
def test_in_any_locale_and_below_any_name(pyz: Path, tmp_path: Path, locale: str) -> None:
    odd = tmp_path / "a 'b\" ü\n\u20ac"
    odd.mkdir()
    copy = shutil.copy(pyz, odd / "aj ü.pyz")
    done = run(copy, "ü", cache=odd / "cache", LC_ALL=locale, PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert len(unpacked(odd / "cache")) == 1


def test_under_a_strict_umask(pyz: Path, cache: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-IS", str(pyz)],
        env=environment(cache),
        capture_output=True,
        text=True,
        preexec_fn=lambda: os.umask(0o077),
    )
    assert facts(done)["argv"] == []


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- 2>&-"])
def test_with_a_standard_stream_closed(pyz: Path, cache: Path, closed: str) -> None:
    script = f"{sys.executable} -IS {pyz} fail {closed}"
    done = subprocess.run(["sh", "-c", script], env=environment(cache), capture_output=True, text=True)
    assert done.returncode == 7, done.stderr
    assert len(unpacked(cache)) == 1


def test_network_off_in_an_empty_folder(pyz: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    copy = shutil.copy(pyz, tmp_path / "empty")
    done = in_namespace(["-n"], f"exec {sys.executable} -IS {copy} x", HOME=str(tmp_path / "empty"))
    assert facts(done)["argv"] == ["x"]


# --- parts that come later ----------------------------------------------------


def test_the_cloud_part_is_unpacked_at_its_first_use(pyz: Path, cache: Path) -> None:
    run(pyz, cache=cache)
    assert len(unpacked(cache)) == 1
    done = run(pyz, "cloud", cache=cache)
    folder = Path(done.stdout.strip()).parent
    assert (done.returncode, folder.parent, folder.name.endswith("-cloud")) == (0, cache, True)
    born = folder.stat().st_ino
    assert run(pyz, "cloud", cache=cache).stdout == done.stdout
    assert (folder.stat().st_ino, len(unpacked(cache))) == (born, 2)


def test_a_new_build_with_the_same_cloud_part_uses_the_same_folder(pyz: Path, newer: Path, cache: Path) -> None:
    assert run(pyz, "cloud", cache=cache).stdout == run(newer, "cloud", cache=cache).stdout
    assert len(unpacked(cache)) == 3


def test_a_file_replaced_while_it_runs_is_not_mixed_with_the_new_one(pyz: Path, newer: Path, cache: Path) -> None:
    own = Path(shutil.copy(pyz, cache.parent / "own.pyz"))
    parts = door.Parts(str(own), "none", str(cache))
    newer.replace(own)
    door_parts = {"none": {"cloud": "0" * 16}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(door, "PARTS", door_parts)
        with pytest.raises(OSError, match="was replaced while this process ran"):
            parts.open("cloud")


def test_an_installed_package_has_all_parts() -> None:
    before = list(sys.path)
    packs.need("cloud")
    assert sys.path == before
    with pytest.raises(ValueError, match="no part is called"):
        packs.need("clouds")


def test_trouble_with_a_part_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def opener(group: str) -> str:
        raise unpack.Unusable("no room", "make room")

    monkeypatch.setattr(sys, "_aj_open", opener, raising=False)
    with pytest.raises(packs.AjError, match="cannot unpack the cloud part: no room") as caught:
        packs.need("cloud")
    assert caught.value.hint == "make room"


# --- the same answers in two places -------------------------------------------


@pytest.mark.parametrize(
    "env",
    [
        {"HOME": "/home/u"},
        {"HOME": "/home/u", "XDG_CACHE_HOME": "/x"},
        {"HOME": "/home/u", "XDG_CACHE_HOME": "relative"},
        {"HOME": "/home/u", "AJ_CACHE_DIR": "/own", "XDG_CACHE_HOME": "/x"},
        {"HOME": "/home/u", "AJ_CACHE_DIR": ""},
        {"HOME": "relative"},
        {},
        {"TMPDIR": "/var/tmp"},
    ],
)
def test_the_cache_is_where_the_program_says(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert door.cache_folder(env) == str(paths.folders(Settings(env)).cache)


@pytest.mark.parametrize("env", [{"HOME": "/Users/u"}, {"HOME": "/Users/u", "XDG_CACHE_HOME": "/x"}])
def test_the_cache_on_a_mac(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert door.cache_folder(env) == platformdirs.macos.MacOS("aj", appauthor=False).user_cache_dir


# --- other Pythons of this machine --------------------------------------------


@pytest.fixture(params=["3.11", "3.12", "3.13"])
def python(request: pytest.FixtureRequest) -> Iterator[str]:
    yield find_python(request.param)
