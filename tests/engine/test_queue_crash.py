"""Whatever the moment at which the daemon dies: no told ticket is lost, and none runs twice."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from aj.base import crash as points
from aj.base.errors import AjError
from aj.model.ticket import Mode, Outcome
from aj.store import tickets
from tests.conftest import Home, MovedClock
from tests.engine import crash, host
from tests.engine.crash import Hosted
from tests.engine.histories import Queue
from tests.engine.stand import BARE, FAR, NEAR, Stand
from tests.store import nouns

NOBODY = 65534
KEY = "_none"
FIRST = "q-00000001"


def restarted(home: Home) -> Stand:
    return Stand(home, MovedClock())


# Killed at a named point

# What the ticket in work is found as, and what a look at the place then makes of it.
AFTER: dict[str, tuple[Outcome | None, Outcome]] = {
    "worker.before-running": (None, Outcome.SUBMITTED),
    "worker.after-running": (Outcome.UNKNOWN, Outcome.NEVER_ARRIVED),
    "worker.after-intended": (Outcome.UNKNOWN, Outcome.NEVER_ARRIVED),
    "worker.after-submit": (Outcome.UNKNOWN, Outcome.SUBMITTED),
    "worker.after-submitted": (Outcome.SUBMITTED, Outcome.SUBMITTED),
    "worker.after-completed": (Outcome.SUBMITTED, Outcome.SUBMITTED),
}
DRIVEN = ("worker.after-intended", "worker.after-submit")  # where a job of our own differs from another's
ACCEPT = [name for name in points.POINTS if name.startswith("accept.")]


def test_every_point_of_the_submit_side_is_tried() -> None:
    assert {*AFTER, *ACCEPT} == {name for name in points.POINTS if name.startswith(("accept.", "worker."))}


@pytest.mark.rule("C-278", "C-245", "C-240", "C-249", "C-251", "T44", "T45")
@pytest.mark.parametrize(
    ("service", "point"),
    [*((FAR, point) for point in AFTER), (NEAR, "worker.after-intended"), (NEAR, "worker.after-submit")],
)
def test_a_daemon_killed_while_it_submits_loses_nothing_and_sends_nothing_twice(
    home: Home, programs: None, real_clock: None, point: str, service: str
) -> None:
    hosted = Hosted(home, {**os.environ}, crash=point)
    crash.submit_some(hosted, service, 3)
    assert hosted.end() == -9
    seen = {ticket.ticket: ticket for ticket in tickets.scan(home.layout, KEY).tickets}
    stand = restarted(home)
    found = crash.work_off(stand)
    crash.check(stand, hosted.told, found)
    known = {ticket.ticket: ticket for ticket in found}
    due, settled_due = AFTER[point]
    assert seen[FIRST].outcome is due  # a look before the restart says the same
    assert known[FIRST].outcome is (due or Outcome.SUBMITTED)
    assert {known[name].outcome for name in hosted.told if name != FIRST} <= {Outcome.SUBMITTED}
    assert [name[-1] for name in stand.far.sent] == sorted(name[-1] for name in stand.far.sent)
    settled = {ticket.ticket: ticket for ticket in crash.settle(stand, found)}
    assert settled[FIRST].outcome is settled_due
    crash.check(stand, hosted.told, list(settled.values()))
    stand.engine.stop()


@pytest.mark.rule("C-236", "C-209", "T45")
@pytest.mark.parametrize(
    ("point", "mode"), [*((point, Mode.QUEUED) for point in ACCEPT), ("accept.after-ticket", Mode.DIRECT)]
)
def test_a_daemon_killed_while_it_accepts_has_told_nothing_and_the_same_call_goes_through_once(
    home: Home, programs: None, real_clock: None, point: str, mode: Mode
) -> None:
    hosted = Hosted(home, {**os.environ}, crash=point)
    assert hosted.ask(number=1, service=FAR, mode=mode.value) == ""
    assert hosted.end() == -9
    stored = point == "accept.after-ticket"
    assert home.layout.ticket(KEY, FIRST).exists() is stored
    stand = restarted(home)
    asked = stand.submission(1, mode=mode)
    answer = stand.engine.submit(None, asked).ticket
    end = stand.engine.submission(None, nouns.aj_id(1), 20).ticket
    assert answer.ticket == FIRST
    if stored and mode is Mode.DIRECT:  # its caller is gone: it does not start by itself
        assert end.outcome is Outcome.NEVER_ARRIVED
        assert stand.far.sent == []
    else:
        assert end.outcome is Outcome.SUBMITTED
        assert len(stand.far.sent) == 1
    crash.check(stand, [], [end])
    stand.engine.stop()


@pytest.mark.rule("C-278", "C-229", "C-231")
@pytest.mark.parametrize("seed", range(2))
def test_killed_at_any_moment(
    home: Home, programs: None, real_clock: None, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    said = crash.random_run(seed, host.home(home.root), {**os.environ}, crash.Hurrying)
    with capsys.disabled():
        print(f"\n  {said}", end="")


# A disk that is really full, or may not be written


@pytest.fixture
def small_disk(home: Home, programs: None) -> Iterator[Callable[[int], None]]:
    """A state folder on a file system of 160 KiB; call it to leave so many bytes free."""
    state = home.layout.state
    state.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", state], check=True, timeout=20)
    filler = state / "filler"

    def leave(free: int) -> None:
        filler.unlink(missing_ok=True)
        status = os.statvfs(state)
        if free < status.f_bavail * status.f_frsize:
            filler.write_bytes(b"x" * (status.f_bavail * status.f_frsize - free))

    try:
        yield leave
    finally:
        subprocess.run(["umount", "-l", state], check=True, timeout=20)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root; the next test is for the rest")
@pytest.mark.rule("C-275", "C-276", "C-234")
def test_a_full_disk_gives_no_ticket_and_no_half_file(home: Home, small_disk: Callable[[int], None]) -> None:
    stand = restarted(home)
    stand.engine.submit(None, stand.submission(1))
    stand.engine.submission(None, nouns.aj_id(1), 20)
    before = sorted(path.name for path in home.layout.tickets(KEY).iterdir())
    (stand.tree / "train.py").write_text("print('another')\n")
    small_disk(0)
    for number, service in ((2, FAR), (3, BARE)):
        with pytest.raises(AjError) as caught:
            stand.engine.submit(None, stand.submission(number, service=service))
        assert caught.value.exit_code == 1
        assert "No space left on device" in caught.value.message
        assert str(home.layout.state) in caught.value.message
    assert sorted(path.name for path in home.layout.tickets(KEY).iterdir()) == before
    assert not [path for path in home.layout.code.iterdir() if path.name.endswith(".part")]
    assert [ticket.ticket for ticket in stand.engine.queue_list(None, False, (), 0).tickets] == [FIRST]
    small_disk(100_000)

    def fill(_: str) -> None:
        """Full just after the job was created, to the last byte of the page in which the journal ends."""
        path = home.layout.journal(KEY)
        line = b'{"id":"ffffffff","pad":"%s"}\n'
        room = -(path.stat().st_size + len(line) - 2) % 4096
        with path.open("ab") as out:
            out.write(line % (b"x" * room))
        small_disk(0)

    stand.far.after = fill
    stand.engine.submit(None, stand.submission(4, mode=Mode.DIRECT))
    end = stand.engine.submission(None, nouns.aj_id(4), 20).ticket
    assert end.outcome is Outcome.UNKNOWN
    assert end.result is not None
    assert end.result.azure_name == f"far-work_{nouns.aj_id(4)}"
    small_disk(100_000)
    assert stand.engine.queue_reconcile(None, end.ticket).ticket.outcome is Outcome.SUBMITTED
    assert stand.far.sent.count(f"far-work_{nouns.aj_id(4)}") == 1
    stand.engine.stop()


LIMITED = """
import resource, sys
from pathlib import Path
from aj.base import clock
from aj.base.errors import AjError
from aj.model.ticket import Mode
from tests.engine import host
from tests.engine.stand import BARE, Stand
from tests.store import nouns

stand = Stand(host.home(Path(sys.argv[1])), clock.SYSTEM)
stand.engine.queue_list(None, False, (), 0)
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))  # every file ends there: a ticket is longer
try:
    stand.engine.submit(None, stand.submission(1, service=BARE))
except AjError as error:
    print(error.exit_code, error.message)
print([ticket.ticket for ticket in stand.engine.queue_list(None, False, (), 0).tickets])
"""


@pytest.mark.rule("C-275")
def test_a_file_that_may_not_grow_gives_no_ticket_and_no_half_file(home: Home, programs: None) -> None:
    env = {**os.environ, "PYTHONPATH": str(crash.HOUSE)}
    found = subprocess.run(
        [sys.executable, "-c", LIMITED, str(home.root)], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    refusal, listed = found.stdout.splitlines()
    assert refusal.startswith("1 cannot write")
    assert refusal.endswith("File too large")
    assert listed == "[]"
    assert sorted(path.name for path in home.layout.tickets(KEY).iterdir()) == ["project.json"]


READ_ONLY = """
import os, sys
from pathlib import Path
from aj.base import clock
from aj.base.errors import AjError
from tests.engine import host
from tests.engine.stand import Stand
from tests.store import nouns

root, uid = Path(sys.argv[1]), int(sys.argv[2])
home = host.home(root, host.variables(root))
stand = Stand(home, clock.SYSTEM)
stand.engine.submit(None, stand.submission(1))
stand.engine.submission(None, nouns.aj_id(1), 30)
stand.engine.stop()
for path in [root, *root.rglob("*")]:
    path.chmod(0o555 if path.is_dir() else 0o444)
if uid:  # root may write everywhere, so somebody else tries
    os.setgid(uid)
    os.setuid(uid)
stand = Stand(home, clock.SYSTEM)
try:
    stand.engine.submit(None, stand.submission(2))
except AjError as error:
    print(error.exit_code, error.message)
listed = stand.engine.queue_list(None, False, (), 0)
print([ticket.ticket for ticket in listed.tickets], listed.warnings)
"""


@pytest.mark.rule("C-275", "C-246")
def test_a_folder_that_may_not_be_written_can_still_be_read(programs: None) -> None:
    stranger = NOBODY if os.geteuid() == 0 else 0
    with tempfile.TemporaryDirectory() as folder:
        found = subprocess.run(
            [sys.executable, "-c", READ_ONLY, folder, str(stranger)],
            env={**os.environ, "PYTHONPATH": str(crash.HOUSE)},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        for path in [Path(folder), *Path(folder).rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert found.returncode == 0, found.stderr
    refusal, listed = found.stdout.splitlines()
    assert refusal.startswith("1 cannot write")
    assert "Permission denied" in refusal
    assert listed.startswith(f"['{FIRST}'] ('the queue is only looked at: cannot write")


# Killed at every write, in any history

TestQueue = pytest.mark.rule("C-229", "C-231", "C-233", "C-234", "C-244", "C-251", "T47", "T48")(Queue.TestCase)
TestQueue.settings = settings(
    max_examples=8,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
