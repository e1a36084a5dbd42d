"""When the daemon leaves: idle, asked, told twice, unreachable; and that nothing falls into the gap."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from aj.base.clock import SYSTEM
from aj.base.errors import DaemonError
from aj.daemon import serve
from aj.daemon.lifecycle import DRAINED, Gate, Lifecycle
from aj.daemon.log import Log
from aj.model.ticket import Mode
from aj.store import lock
from aj.store.runtime import Place
from aj.wire.messages import Submission
from tests.conftest import Home, MovedClock
from tests.daemon.small import SmallEngine, spec

LIMIT_S = 10


@pytest.fixture
def engine(home: Home) -> SmallEngine:
    engine = SmallEngine(home.settings, home.folders, SYSTEM)
    engine.start()
    return engine


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "log", SYSTEM)


def running(engine: SmallEngine, until: Path) -> None:
    engine.submit(None, Submission("0" * 8, Mode.DIRECT, spec("0" * 8, "until", str(until))))


@pytest.mark.rule("C-221")
def test_the_idle_clock_starts_anew_with_every_request(engine: SmallEngine, clock: MovedClock) -> None:
    gate = Gate(clock)
    engine._touched = clock.monotonic()
    clock.move(30)
    assert gate.quiet_s(engine) == 30
    with gate.inside():
        clock.move(5)
        assert gate.quiet_s(engine) == 0
        assert gate.oldest_s() == 5
    assert gate.quiet_s(engine) == 0
    clock.move(7)
    assert gate.quiet_s(engine) == 7
    engine._touched = clock.monotonic()
    assert gate.quiet_s(engine) == 0


@pytest.mark.rule("C-221")
def test_work_keeps_the_daemon(engine: SmallEngine, clock: MovedClock, tmp_path: Path) -> None:
    gate = Gate(clock)
    running(engine, tmp_path / "go")
    clock.move(1000)
    assert gate.quiet_s(engine) == 0
    assert not gate.shut_if_idle(engine)
    (tmp_path / "go").touch()
    engine.queue_wait(None, "q-00000000", LIMIT_S)
    assert gate.shut_if_idle(engine)


@pytest.mark.rule("C-221")
def test_a_request_after_the_decision_is_told_and_nothing_of_it_is_done(engine: SmallEngine, clock: MovedClock) -> None:
    gate = Gate(clock)
    with gate.inside():
        assert not gate.shut_if_idle(engine)
    assert gate.shut_if_idle(engine)
    with pytest.raises(DaemonError) as error, gate.inside():
        pytest.fail("it was let in")
    assert error.value.code == "leaving"


def test_changes_are_counted_apart(clock: MovedClock) -> None:
    gate = Gate(clock)
    with gate.inside(), gate.inside(mutates=True):
        assert (gate.requests, gate.changes) == (2, 1)
    assert (gate.requests, gate.changes, gate.oldest_s()) == (0, 0, None)


@pytest.mark.rule("C-221")
def test_it_leaves_when_idle_long_enough(engine: SmallEngine, log: Log) -> None:
    gate = Gate(SYSTEM)
    assert Lifecycle(engine, gate, log, idle_s=0.05).wait() == "idle for 0.05 s"
    with pytest.raises(DaemonError), gate.inside():
        pytest.fail("it was let in")


@pytest.mark.rule("C-222")
def test_it_finishes_what_runs_before_it_leaves(engine: SmallEngine, log: Log, tmp_path: Path) -> None:
    gate, why = Gate(SYSTEM), list[str]()
    life = Lifecycle(engine, gate, log, idle_s=0)
    running(engine, tmp_path / "go")
    life.retire(force=False)
    main = threading.Thread(target=lambda: why.append(life.wait()))
    main.start()
    assert gate.retiring.wait(LIMIT_S)
    with gate.inside():  # a read is answered meanwhile
        pass
    with pytest.raises(DaemonError) as error:
        gate.refuse_when_retiring()
    assert error.value.code == "retiring"
    assert not why
    (tmp_path / "go").touch()
    main.join(LIMIT_S)
    assert why == ["stopped"] and not life.is_forced


@pytest.mark.rule("C-223", "C-226")
def test_a_second_wish_is_at_once(engine: SmallEngine, log: Log, tmp_path: Path) -> None:
    gate = Gate(SYSTEM)
    life = Lifecycle(engine, gate, log, idle_s=0)
    running(engine, tmp_path / "go")
    life._ring(signal.SIGTERM)
    life._ring(signal.SIGTERM)
    assert life.wait() == "told to stop at once"
    assert life.is_forced
    (tmp_path / "go").touch()


def test_asking_twice_is_not_forcing(engine: SmallEngine, log: Log) -> None:
    life = Lifecycle(engine, Gate(SYSTEM), log, idle_s=0)
    life.retire(force=False)
    life.retire(force=False)
    assert life.wait() == "stopped"
    assert not life.is_forced


def test_it_does_not_stay_where_nobody_can_reach_it(engine: SmallEngine, log: Log) -> None:
    life = Lifecycle(engine, Gate(SYSTEM), log, idle_s=0.05 * 4, is_reachable=lambda: False)
    assert life.wait() == "stopped"


class Hanging(SmallEngine):
    """An engine that never stops."""

    def stop(self) -> None:
        threading.Event().wait()


@pytest.mark.rule("WA-05")
@pytest.mark.usefixtures("real_clock")
def test_an_engine_that_hangs_does_not_keep_the_process(
    home: Home, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert serve.LAST_WORK_S <= 30
    monkeypatch.setattr(serve, "LAST_WORK_S", 0.05)
    place = Place(home.layout)
    engine = Hanging(home.settings, home.folders, SYSTEM)
    daemon = serve.Daemon(place, engine, log, SYSTEM, home.settings, lock.own(place.instance_lock, "daemon"))  # type: ignore[arg-type]
    daemon._lifecycle.drained.set()
    daemon._lifecycle._ring(DRAINED)
    assert daemon.run() == 0
    assert "not everything ended within 0.05 s" in (tmp_path / "log").read_text()
    assert lock.living_holder(place.instance_lock) is None
