"""Deployments and their replicas without processes: back-off, upgrades, tokens, owners, sizes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from aj.backend.local.replica import Program
from aj.backend.protocol import Fate, Observation, SetupFailed
from aj.base import clock as clocks
from aj.base.errors import AuthError, NotFound, Refused, UserError
from aj.engine import tokens
from aj.engine.crew import FIRST_PAUSE_S
from aj.engine.deployments import Deployments
from aj.model.claim import Bearer
from aj.model.deployment import Replica, ReplicaState
from aj.store import deployments as store
from aj.wire.deployment import Create, Targeting, Upgrade
from tests.conftest import Home, MovedClock
from tests.engine.claim_proof import Still

LIMIT_S = 30.0


@dataclass
class Stage:
    """Replicas that run until a test ends them."""

    programs: dict[Path, Program] = field(default_factory=dict)
    over: dict[Path, threading.Event] = field(default_factory=dict)
    ends: list[tuple[Path, float]] = field(default_factory=list)
    code: int = 1
    refuses: bool = False

    def start(self, place: Path, number: int, program: Program) -> None:
        if self.refuses:
            raise SetupFailed("no more processes")
        self.programs.setdefault(place, program)
        self.over.setdefault(place, threading.Event())

    def was_started(self, place: Path) -> bool:
        return place in self.programs

    def pid(self, place: Path) -> int | None:
        return 1 if place in self.over and not self.over[place].is_set() else None

    def wait(self, place: Path, work: Path, stop: threading.Event) -> Observation:
        while not self.over[place].wait(0.01):
            if stop.is_set():
                return Observation(Fate.RUNNING)
        return Observation(Fate.EXITED, exit_code=self.code, message="exit code 1")

    def end(self, place: Path, grace_s: float) -> None:
        self.ends.append((place, grace_s))
        self.over[place].set()


@dataclass
class Site:
    home: Home
    clock: MovedClock
    stage: Stage = field(default_factory=Stage)
    all: list[Deployments] = field(default_factory=list)

    def daemon(self) -> Deployments:
        jobs = Still(self.home.layout, {}, self.clock, lambda *_: None)
        self.all.append(Deployments(self.home.layout, self.clock, jobs, self.stage))
        jobs.targets = self.all[-1]
        return self.all[-1]

    def until(self, is_so: Callable[[], object]) -> None:
        limit = clocks.SYSTEM.monotonic() + LIMIT_S
        while not is_so():
            assert clocks.SYSTEM.monotonic() < limit, self.replicas()
            clocks.SYSTEM.sleep(0.005)

    def replicas(self) -> tuple[Replica, ...]:
        return self.all[-1].show("models").deployment.members

    def running(self, count: int) -> Callable[[], bool]:
        return lambda: sum(1 for place in self.stage.over if not self.stage.over[place].is_set()) == count

    def place(self, slot: int, attempt: int) -> Path:
        return store.replica(self.home.layout, "models", slot) / "attempts" / str(attempt)


class ShortWaits(MovedClock):
    """A clock that a test moves; the thread of the replicas really waits for its event."""

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        return event.wait(min(timeout_s, 0.005))


@pytest.fixture
def site(home: Home, real_clock: None) -> Iterator[Site]:
    home.layout.prepare()
    found = Site(home, ShortWaits())
    yield found
    for one in found.all:
        one.stop()


def asked(replicas: int = 1, **more: object) -> Create:
    return Create("models", ("serve",), replicas, "/", **more)  # type: ignore[arg-type]


@pytest.mark.rule("C-173", "TD-01", "TD-05", "TD-25")
def test_a_replica_that_ends_is_started_again_ever_more_rarely(site: Site) -> None:
    daemon = site.daemon()
    daemon.create(asked(env={"MODEL": "small", "AJ_DEPLOYMENT_ID": "mine"}, inherited={"PATH": "/bin"}))
    site.until(site.running(1))
    program = site.stage.programs[site.place(0, 1)]
    assert (program.env["MODEL"], program.env["PATH"]) == ("small", "/bin")
    assert program.env["AJ_DEPLOYMENT_ID"] == "models", "what `aj` says holds"
    assert program.env["AJ_API_URL"].startswith("unix:///")
    token = Path(program.env["AJ_WORKLOAD_TOKEN_FILE"])
    assert token.stat().st_mode & 0o777 == 0o600
    first = token.read_text()
    assert daemon.bearer(first).slot == 0
    pauses = []
    for attempt in range(1, 4):
        site.stage.over[site.place(0, attempt)].set()
        site.until(lambda: site.replicas()[0].state is ReplicaState.WAITING)
        due = site.replicas()[0].due_at
        assert due is not None
        pauses.append(clocks.from_rfc3339(due) - site.clock.now())
        site.clock.move(pauses[-1] + 0.01)  # the time that is told has whole microseconds
        site.until(site.running(1))
    assert pauses == pytest.approx([FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S], abs=0.001)
    site.clock.move(100)
    site.stage.over[site.place(0, 4)].set()
    site.until(lambda: site.replicas()[0].attempt == 5)  # at once: no time passes here
    site.until(site.running(1))
    with pytest.raises((Refused, AuthError)):
        daemon.bearer(first)


@pytest.mark.rule("TD-01")
def test_another_daemon_takes_over_what_runs_and_waits_while_one_lives(site: Site) -> None:
    first = site.daemon()
    first.create(asked(2))
    site.until(site.running(2))
    second = site.daemon()
    second.start()
    assert any("another daemon" in words for words in second.list().warnings)
    assert second.show("models").deployment.members == ()
    with pytest.raises(Refused, match="held by process"):
        second.create(asked())
    with pytest.raises(NotFound):
        second.show("others")
    first.stop()
    second.start()
    site.until(lambda: [one.pid for one in site.replicas()] == [1, 1])
    assert len(site.stage.programs) == 2, "nothing was started twice"


@pytest.mark.rule("TD-05")
def test_what_is_wanted_is_checked(site: Site) -> None:
    daemon = site.daemon()
    daemon.create(asked(0))
    assert daemon.show("models").deployment.state == "ready"
    with pytest.raises(Refused, match="there is a deployment"):
        daemon.create(asked())
    for wrong in (Create("m", (), 1, "/"), Create("m", ("x",), -1, "/"), Create("m", ("x",), 1, "/", 0)):
        with pytest.raises(UserError):
            daemon.create(wrong)
    with pytest.raises(Refused, match="48 are free"):
        daemon.create(Create("m", ("x",), 25, "/"))
    with pytest.raises(NotFound):
        daemon.upgrade("others", Upgrade(replicas=1))
    with pytest.raises(UserError):
        daemon.submit("models", None, Targeting("a", timeout_s=-1))
    with pytest.raises(UserError):
        daemon.submit("models", None, Targeting("../a"))
    assert daemon.submit("models", None, Targeting("a", "mine")).workload.id == "a"
    assert daemon.submit("models", None, Targeting("a", "mine")).workload.submission_revision == 0
    with pytest.raises(Refused, match="there is a job a already"):
        daemon.submit("models", None, Targeting("a", "other"))


def test_a_start_that_the_machine_refuses_is_tried_again(site: Site) -> None:
    site.stage.refuses = True
    site.daemon().create(asked())
    site.until(lambda: site.replicas()[0].message == "no more processes")
    site.stage.refuses = False
    site.clock.move(1)
    site.until(site.running(1))


def test_damaged_files_hide_no_other_deployment(site: Site) -> None:
    first = site.daemon()
    first.create(asked())
    first.create(Create("broken", ("serve",), 0, "/"))
    site.until(site.running(1))
    first.stop()
    (site.home.layout.deployments / "broken" / "record.json").write_text("{")
    (store.replica(site.home.layout, "models", 0) / "start.json").write_text("{")
    (site.home.layout.deployments / ".new-x-1").mkdir()
    again = site.daemon()
    again.start()
    listed = again.list()
    assert [one.name for one in listed.deployments] == ["models"]
    assert any("record.json is damaged" in words for words in listed.warnings)
    assert not (site.home.layout.deployments / ".new-x-1").exists()
    site.until(lambda: site.replicas()[0].attempt == 1 and site.replicas()[0].pid == 1)


def test_a_token_is_good_for_one_start_and_an_hour() -> None:
    key, who = b"k" * 32, Bearer("models", "u", 3, 7)
    token = tokens.sign(key, who, 1000.0)
    assert tokens.read(key, f"{token}\n", 1000.0 + tokens.LIFE_S - 1) == who
    head, _, mark = token.rpartition(".")
    forged = head.replace(".3.7.", ".2.7.")
    for bad, now in ((token, 1000.0 + tokens.LIFE_S), (f"{forged}.{mark}", 1.0), ("", 1.0), ("é.é", 1.0), (head, 1.0)):
        with pytest.raises(AuthError):
            tokens.read(key, bad, now)
    with pytest.raises(AuthError):
        tokens.read(b"other" * 7, token, 1000.0)
