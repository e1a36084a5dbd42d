"""A file into a pod: the receiving program under three shells, and the sender against every kind of broken line."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aj.backend.volcano import transfer
from aj.backend.volcano.transfer import MIB, Limits, Sent, Source
from aj.base.errors import RemoteError, Unavailable
from aj.kube.exec import Ended, Heard
from tests.backend.volcano.shells import SHELLS, Local, receiver, small_disk, tools
from tests.conftest import MovedClock
from tests.house.test_pages import need

pytestmark = pytest.mark.usefixtures("programs")
SCRIPTS = Path(transfer.__file__).parent / "scripts"
ID = "0a1b2c3d"
SMALL = Limits(part=3 * MIB // 2)


def source(data: bytes) -> Source:
    return Source(len(data), hashlib.sha256(data).hexdigest(), lambda at, size: data[at : at + size])


def bringing(
    tmp: Path,
    data: bytes,
    clock: MovedClock,
    *,
    shell: str = "sh",
    limits: Limits = SMALL,
    heard: list[tuple[int, int, int]] | None = None,
    faults: Callable[[int], dict[str, int]] = lambda number: {},
) -> Sent:
    """Send data to the receiving program; the line number N (from 0) has the faults that are given for it."""
    what = source(data)
    numbers = count()
    words = [str(tmp / "aj_code" / ID), "code.tar.gz", str(what.size), what.sha256]

    def line() -> Local:
        argv, path = receiver(shell, tmp.parent, words)
        return Local(argv, path, **faults(next(numbers)))

    tell = None if heard is None else lambda *numbers_: heard.append(numbers_)
    return transfer.send(what, line, where="helper x on node n", clock=clock, progress=tell, limits=limits)


def brought(tmp: Path) -> Path:
    return tmp / "aj_code" / ID / "code.tar.gz"


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    folder = tmp_path / "volume"
    folder.mkdir()
    return folder


# The programs


@pytest.mark.rule("V-061")
def test_programs_of_pods_are_clean_to_the_linter() -> None:
    scripts = [str(SCRIPTS / name) for name in ("receive.sh", "keep.sh", "tidy.sh", "aj_blob.sh", "aj_storage.sh")]
    found = subprocess.run([need("shellcheck"), *scripts], capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout) == (0, "")


@pytest.mark.rule("V-061", "V-065", "V-067")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_file_arrives_whole_under_its_name_and_for_its_owner_alone(
    volume: Path, clock: MovedClock, shell: str
) -> None:
    data, heard = os.urandom(4 * MIB + 12345), list[tuple[int, int, int]]()
    sent = bringing(volume, data, clock, shell=shell, heard=heard)
    assert sent == Sent(len(data), len(data), 0)
    assert brought(volume).read_bytes() == data
    assert [path.name for path in brought(volume).parent.iterdir()] == ["code.tar.gz"]
    assert (brought(volume).parent.stat().st_mode & 0o7777, brought(volume).stat().st_mode & 0o7777) == (0o700, 0o600)
    assert (volume / "aj_code").stat().st_mode & 0o7777 == 0o1777
    assert [done for done, _, _ in heard] == sorted(done for done, _, _ in heard)
    assert {total for _, total, _ in heard} == {len(data)}


@pytest.mark.rule("V-067")
@pytest.mark.parametrize("shell", SHELLS)
def test_an_equal_file_is_reused_and_another_one_replaced(volume: Path, clock: MovedClock, shell: str) -> None:
    data = os.urandom(MIB)
    bringing(volume, b"another file", clock, shell=shell)
    assert bringing(volume, data, clock, shell=shell).sent_bytes == MIB
    again = bringing(volume, data, clock, shell=shell)
    assert (again, again.is_reused) == (Sent(MIB, 0, MIB), True)
    assert brought(volume).read_bytes() == data
    damaged = data[:-1] + bytes([data[-1] ^ 1])
    brought(volume).write_bytes(damaged)
    assert bringing(volume, data, clock, shell=shell).sent_bytes == MIB
    assert brought(volume).read_bytes() == data


def test_an_empty_file_is_a_file(volume: Path, clock: MovedClock) -> None:
    assert bringing(volume, b"", clock) == Sent(0, 0, 0)
    assert brought(volume).read_bytes() == b""


@pytest.mark.rule("V-065")
@pytest.mark.parametrize("shell", SHELLS)
def test_exactly_the_bytes_of_a_part_are_read(volume: Path, shell: str, tmp_path: Path) -> None:
    data = os.urandom(100_001)
    what = source(data)
    argv, path = receiver(shell, tmp_path, [str(volume / "a/b"), "x", str(what.size), what.sha256])
    said = subprocess.run(
        argv,
        input=b"put 70000\n" + data[:70000] + b"put 1\n" + data[70000:70001] + b"put 30000\n" + data[70001:] + b"end\n",
        env={"PATH": path},
        capture_output=True,
        timeout=60,
    )
    sums = [hashlib.sha256(data[at:end]).hexdigest() for at, end in ((0, 70000), (70000, 70001), (70001, 100_001))]
    expected = f"at 0\npart 70000 {sums[0]}\npart 70001 {sums[1]}\npart 100001 {sums[2]}\ndone\n"
    assert (said.returncode, said.stdout.decode(), said.stderr) == (0, expected, b"")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_volume_says_why_it_does_not_take_it(volume: Path, clock: MovedClock, shell: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    with small_disk(volume / "small", "1m") as disk, pytest.raises(RemoteError) as caught:
        bringing(disk, os.urandom(3 * MIB), clock, shell=shell)
    assert "could not be brought there: the volume does not take it" in str(caught.value)
    assert "No space left on device" in str(caught.value)


@pytest.mark.rule("V-061")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_folder_of_somebody_else_is_not_used(volume: Path, clock: MovedClock, shell: str) -> None:
    (volume / "aj_code").mkdir()
    (volume / "elsewhere").mkdir()
    (volume / "aj_code" / ID).symlink_to(volume / "elsewhere")
    with pytest.raises(RemoteError, match="cannot be made on the volume"):
        bringing(volume, b"secret code", clock, shell=shell)
    assert list((volume / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("shell", SHELLS)
def test_a_helper_ends_itself_when_nothing_comes(tmp_path: Path, shell: str) -> None:
    start, path = tools(shell, tmp_path)
    idle = tmp_path / "idle"
    idle.mkdir()
    beat = idle / ".beat"
    beat.touch()
    # Each sleep is over at once here; a beat that was found keeps it for two more rounds.
    text = (SCRIPTS / "keep.sh").read_text().replace("sleep 5 &", f"echo round >>{tmp_path}/rounds &")
    done = subprocess.run(
        [*start, text, "keep"],
        env={"PATH": path, "AJ_IDLE": "10", "AJ_FOLDER": str(idle)},
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (1, b"nothing has come for 10 s\n")
    assert (tmp_path / "rounds").read_text() == "round\n" * 3
    assert not beat.exists()


@pytest.mark.rule("V-069")
@pytest.mark.parametrize("shell", SHELLS)
def test_only_folders_named_by_an_id_are_listed_or_removed(tmp_path: Path, shell: str) -> None:
    start, path = tools(shell, tmp_path)
    top = tmp_path / "aj_code"
    for name in ("0a1b2c3d", "deadbeef", "DEADBEEF", "notes", "12345678x"):
        (top / name).mkdir(parents=True)
        (top / name / "code.tar.gz").write_text("x")
    (top / "00000000").symlink_to(tmp_path)
    os.utime(top / "deadbeef", (1, 1))

    def tidy(*words: str) -> subprocess.CompletedProcess[bytes]:
        argv = [*start, (SCRIPTS / "tidy.sh").read_text(), "aj", words[0], str(top), *words[1:]]
        return subprocess.run(argv, env={"PATH": path}, capture_output=True, timeout=60)

    listed = dict(line.split() for line in tidy("list").stdout.decode().splitlines())
    assert set(listed) == {"0a1b2c3d", "deadbeef"}
    assert int(listed["0a1b2c3d"]) < 600 < 86400 < int(listed["deadbeef"])
    assert tidy("remove", "deadbeef", "ffffffff").returncode == 0
    for wrong in ("../aj_code", "notes", "00000000", "", "DEADBEEF"):
        assert tidy("remove", wrong).returncode == 1
    left = {entry.name for entry in top.iterdir()}
    assert left == {"0a1b2c3d", "DEADBEEF", "notes", "12345678x", "00000000"}


# The line


@pytest.mark.rule("V-066")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_broken_line_goes_on_where_the_other_side_stands(volume: Path, clock: MovedClock, shell: str) -> None:
    data = os.urandom(4 * MIB)
    breaks = {0: {"cut_in": 2 * MIB + 777}, 1: {"cut_in": 3}, 2: {"cut_out": 20}, 3: {"cut_in": MIB}}
    sent = bringing(volume, data, clock, shell=shell, faults=lambda number: breaks.get(number, {}))
    assert brought(volume).read_bytes() == data
    assert sent == Sent(len(data), len(data), 0)
    assert [path.name for path in brought(volume).parent.iterdir()] == ["code.tar.gz"]


@pytest.mark.rule("V-066")
def test_a_new_daemon_goes_on_too(volume: Path, clock: MovedClock) -> None:
    data = os.urandom(4 * MIB)
    breaks = {0: {"cut_in": 2 * MIB + 60}}
    with pytest.raises(Unavailable):
        bringing(
            volume, data, clock, limits=Limits(MIB, tries=0), faults=lambda number: breaks.get(number, {"cut_in": 2})
        )
    again = bringing(volume, data, clock)
    assert again.sent_bytes + again.skipped_bytes == len(data)
    assert again.skipped_bytes >= 2 * MIB
    assert brought(volume).read_bytes() == data


@pytest.mark.rule("V-066", "V-125")
def test_a_line_that_brings_nothing_is_given_up(volume: Path, clock: MovedClock) -> None:
    lines = list[int]()

    def always(number: int) -> dict[str, int]:
        lines.append(number)
        return {"cut_in": MIB} if number == 0 else {"cut_in": 2}

    with pytest.raises(Unavailable) as caught:
        bringing(volume, os.urandom(3 * MIB), clock, limits=Limits(part=MIB // 2), faults=always)
    # One brought something, the next told how much of it arrived, and that one and five more brought nothing.
    assert len(lines) == 8
    words = r"the upload broke at [0-9.]+ [KM]iB of 3.0 MiB, and 5 more tries brought nothing \(helper x on node n\): "
    assert re.match(words, str(caught.value))
    assert (caught.value.code, caught.value.hint) == ("line-broke", "run again: it resumes")
    assert sum(clock.slept) > 20, "it waits longer and longer"


@pytest.mark.rule("V-065")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_part_that_is_not_what_was_sent_is_cut_off_and_sent_again(
    volume: Path, clock: MovedClock, shell: str
) -> None:
    data = os.urandom(4 * MIB)
    bringing(volume, data, clock, shell=shell, faults=lambda number: {"damaged": 2 * MIB})
    assert brought(volume).read_bytes() == data


@pytest.mark.rule("V-065")
def test_a_line_that_damages_every_part_is_given_up(volume: Path, clock: MovedClock) -> None:
    class Bad(Local):
        def write(self, data: bytes) -> None:
            self.damaged = None if len(data) < 1000 else 0
            super().write(data)

    what = source(os.urandom(5000))
    argv, path = receiver("sh", volume, [str(volume / "a/b"), "x", str(what.size), what.sha256])
    with pytest.raises(RemoteError, match="got another part than was sent, 6 times"):
        transfer.send(what, lambda: Bad(argv, path), where="helper x", clock=clock)
    assert not (volume / "a/b/x").exists()


@pytest.mark.rule("V-067")
def test_a_file_with_another_sum_at_the_end_is_removed(volume: Path, clock: MovedClock) -> None:
    data = os.urandom(1000)
    wrong = Source(len(data), "0" * 64, lambda at, size: data[at : at + size])
    argv, path = receiver("sh", volume, [str(volume / "a/b"), "x", "1000", "0" * 64])
    with pytest.raises(RemoteError, match=r"where 0{64} was sent") as caught:
        transfer.send(wrong, lambda: Local(argv, path), where="helper x", clock=clock)
    assert caught.value.code == "damaged"
    assert list((volume / "a/b").iterdir()) == []


class Silent:
    """A line on which nothing comes; each look at it takes some seconds."""

    ended: Ended | None = None
    unsent = 0

    def __init__(self, clock: MovedClock, *words: str, step_s: float = 5.0) -> None:
        self.clock = clock
        self.words = list(words)
        self.step_s = step_s
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.unsent += len(data)

    def poll(self, wait_s: float) -> Heard:
        self.clock.move(self.step_s)
        return Heard(self.words.pop(0).encode() + b"\n") if self.words else Heard()

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.rule("V-066", "V-125")
def test_standing_still_for_a_minute_ends_it_and_nothing_else_does(clock: MovedClock) -> None:
    total = 3482 * MIB
    words = [f"at {size * MIB}" for size in range(0, 1230, 2)]
    line = Silent(clock, *words, step_s=59)
    what = Source(total, "0" * 64, lambda at, size: bytes(size))
    began = clock.monotonic()
    with pytest.raises(Unavailable) as caught:
        transfer.send(what, lambda: line, where="helper aj-0a1b2c3d-upload on node n1", clock=clock)
    words_ = "the upload stood still for 60 s at 1.2 of 3.4 GiB (helper aj-0a1b2c3d-upload on node n1)"
    assert str(caught.value) == words_
    assert (caught.value.code, caught.value.hint) == ("stalled", "run again: it resumes")
    assert clock.monotonic() - began > 10 * 3600, "ten hours of slow progress were no reason to stop"
    assert line.is_closed


def test_a_sum_that_takes_minutes_is_waited_for(clock: MovedClock) -> None:
    line = Silent(clock, *["busy"] * 30, "have", step_s=50)
    sent = transfer.send(Source(5, "0" * 64, lambda at, size: b""), lambda: line, where="x", clock=clock)
    assert sent.is_reused


def test_words_that_nobody_understands_are_an_error(clock: MovedClock) -> None:
    with pytest.raises(RemoteError, match="the pod said what nobody understands: at"):
        transfer.send(Source(5, "0" * 64, lambda at, size: b""), lambda: Silent(clock, "at"), where="x", clock=clock)


@pytest.mark.rule("V-065", "V-066", "V-067")
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    size=st.integers(0, 3 * MIB),
    part=st.integers(1, 2 * MIB),
    cuts=st.lists(st.tuples(st.sampled_from(["cut_in", "cut_out", "damaged"]), st.integers(0, 2 * MIB)), max_size=4),
)
def test_whatever_breaks_the_file_is_whole_or_not_there(
    tmp_path_factory: pytest.TempPathFactory, size: int, part: int, cuts: list[tuple[str, int]]
) -> None:
    volume = tmp_path_factory.mktemp("volume")
    data = os.urandom(size)
    limits = Limits(part=max(part, size // 20 or 1), tries=5)
    sent = bringing(
        volume,
        data,
        MovedClock(),
        limits=limits,
        faults=lambda number: dict([cuts[number]]) if number < len(cuts) else {},
    )
    assert brought(volume).read_bytes() == data
    assert sent.size_bytes == size
    assert [path.name for path in brought(volume).parent.iterdir()] == ["code.tar.gz"]


@pytest.mark.rule("V-067")
def test_a_small_file_never_waits_for_the_one_who_says_busy(tmp_path: Path) -> None:
    """A sum that is there at once ends its ticker before that has begun: one in ten never ended."""
    sha256 = hashlib.sha256(b"abc").hexdigest()
    for number in range(60):
        argv, path = receiver("sh", tmp_path, [str(tmp_path / f"{number}/b"), "x", "3", sha256])
        (tmp_path / str(number)).mkdir()
        done = subprocess.run(argv, input=b"put 3\nabcend\n", stdout=subprocess.PIPE, env={"PATH": path}, timeout=30)
        assert done.stdout.splitlines()[-1] == b"done"
