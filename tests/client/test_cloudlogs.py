"""Following log files of a workspace: new bytes, new files, replaced files, slower when idle, and an end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from aj.base.errors import NotFound, TimedOut
from aj.client.cloudjobs import LOOK_S, SLOWEST_S, CloudJobs
from aj.client.cloudlogs import CloudLogs, Wanted, rank_of
from aj.model.cloudjob import CloudJob
from aj.model.state import JobState
from aj.wire.azure import CloudJobAnswer, FilePage, LogFile, LogFiles
from tests.conftest import MovedClock

FIRST, SECOND = "user_logs/std_log_process_0.txt", "user_logs/std_log_process_1.txt"
RUNNING = CloudJob("j", "s/g/w", "aml", "Running", JobState.RUNNING)
ENDED = CloudJob("j", "s/g/w", "aml", "Completed", JobState.COMPLETED)


@dataclass
class Far:
    """A job whose files are what a test makes of them before each look."""

    looks: list[Callable[[Far], None]]
    content: dict[str, bytes] = field(default_factory=dict)
    job: CloudJob = RUNNING
    tails: list[int | None] = field(default_factory=list)

    def files(self, workspace: str, name: str, *, sizes: bool = False) -> LogFiles:
        if self.looks:
            self.looks.pop(0)(self)
        return LogFiles(tuple(LogFile(path) for path in sorted(self.content)), self.job)

    def page(self, workspace: str, name: str, file: str, *, cursor: str | None, tail: int | None) -> FilePage:
        self.tails.append(tail)
        data = self.content[file]
        start = int(cursor or 0)
        if start > len(data):
            return FilePage(b"", "0", was_reset=True)
        return FilePage(data[start : start + 4], str(min(len(data), start + 4)))


def writes(file: str, data: bytes) -> Callable[[Far], None]:
    def write(far: Far) -> None:
        far.content[file] = far.content.get(file, b"") + data

    return write


def idle(far: Far) -> None:
    """Nothing happens."""


def ends(far: Far) -> None:
    far.job = ENDED


def followed(far: Far, clock: MovedClock, wanted: Wanted) -> list[tuple[str, bytes]]:
    logs = CloudLogs(far, "-", "j", clock)  # type: ignore[arg-type]
    return [(piece.file[-5:-4], piece.data) for piece in logs.follow(wanted)]


@pytest.mark.rule("A-169", "C-023")
def test_it_goes_on_until_the_job_has_ended_and_nothing_more_came(clock: MovedClock) -> None:
    far = Far([idle, writes(FIRST, b"abcdef"), idle, writes(FIRST, b"g"), ends, writes(FIRST, b"last")])
    assert followed(far, clock, Wanted()) == [("0", b"abcd"), ("0", b"ef"), ("0", b"g"), ("0", b"last")]
    assert clock.slept == [4.5, LOOK_S, 4.5, LOOK_S, 4.5, LOOK_S, 4.5]
    assert far.looks == []


@pytest.mark.rule("A-169")
def test_it_looks_less_often_when_nothing_happens(clock: MovedClock) -> None:
    far = Far([idle] * 9 + [ends])
    assert followed(far, clock, Wanted()) == []
    assert clock.slept[:3] == [4.5, 6.75, 10.125]
    assert set(clock.slept[3:]) == {SLOWEST_S}


@pytest.mark.rule("A-168", "C-023")
def test_files_that_appear_come_along_and_a_replaced_one_begins_anew(clock: MovedClock) -> None:
    def replaces(far: Far) -> None:
        far.content[FIRST] = b"n"

    far = Far([writes(FIRST, b"abcd"), writes(SECOND, b"x"), replaces, ends])
    logs = CloudLogs(far, "-", "j", clock)  # type: ignore[arg-type]
    pieces = [(piece.file, piece.data, piece.was_reset) for piece in logs.follow(Wanted(every=True), tail=7)]
    assert pieces == [(FIRST, b"abcd", False), (SECOND, b"x", False), (FIRST, b"n", True)]
    assert far.tails[0] == 7


@pytest.mark.rule("C-076", "C-014")
def test_a_limit_ends_the_following_and_nothing_else(clock: MovedClock) -> None:
    far = Far([writes(FIRST, b"ab")])
    logs = CloudLogs(far, "-", "j", clock)  # type: ignore[arg-type]
    pieces = logs.follow(Wanted(), timeout_s=8)
    assert next(pieces).data == b"ab"
    with pytest.raises(TimedOut, match="j is running after 8 s; nothing was stopped"):
        next(pieces)
    assert sum(clock.slept) == 8


@pytest.mark.rule("A-167")
@pytest.mark.parametrize(
    ("path", "rank"),
    [
        (FIRST, 0),
        ("user_logs/std_log_process_07.txt", 7),
        ("user_logs/std_log_process_12.txt", 12),
        ("user_logs/std_log.txt", 0),
        ("user_logs/other.txt", None),
        ("logs/azureml/std_log_process_0.txt", None),
        ("user_logs/std_log_process_x.txt", None),
    ],
)
def test_the_process_of_a_file(path: str, rank: int | None) -> None:
    assert rank_of(path) == rank


@pytest.mark.rule("A-167", "C-023")
def test_which_files_are_wanted() -> None:
    found = LogFiles((LogFile(FIRST), LogFile(SECOND), LogFile("system_logs/x.log")), RUNNING)
    assert Wanted().of(found) == (FIRST,)
    assert Wanted(every=True).of(found) == (FIRST, SECOND, "system_logs/x.log")
    assert Wanted(rank=1).of(found) == (SECOND,)
    assert Wanted("x.log").of(found) == ("system_logs/x.log",)
    assert Wanted(SECOND).of(found) == (SECOND,)
    for wanted, words in ((Wanted(rank=5), "of rank 5"), (Wanted("nope"), "called nope")):
        with pytest.raises(NotFound, match=f"there is no log file {words}"):
            wanted.of(found)
        assert wanted.of(LogFiles((), RUNNING)) == ()  # it may still come


@pytest.mark.rule("C-022", "A-164", "C-076")
def test_waiting_tells_each_change_and_ends_with_the_job_or_the_time(clock: MovedClock) -> None:
    jobs = CloudJobs(None, clock)  # type: ignore[arg-type]
    states = [RUNNING, RUNNING, RUNNING, ENDED]
    jobs.show = lambda workspace, name: CloudJobAnswer(states.pop(0))  # type: ignore[method-assign]
    assert [job.status for job in jobs.wait("-", "j")] == ["Running", "Completed"]
    assert clock.slept == [3.0, 4.5, 6.75]
    jobs.show = lambda workspace, name: CloudJobAnswer(RUNNING)  # type: ignore[method-assign]
    waiting = jobs.wait("-", "j", timeout_s=4)
    assert next(waiting).status == "Running"
    with pytest.raises(TimedOut, match="j is running after 4 s; nothing was stopped"):
        next(waiting)
    assert sum(clock.slept[3:]) == 4
