"""Eight hours on spot, with lost hosts, a killed daemon, a bucket out of reach, a full disk; then, short, for real."""

from __future__ import annotations

import errno
import itertools
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from aj.backend.protocol import Fate, Observation
from aj.base.errors import Unavailable
from aj.bucket.folder import Folder
from aj.engine import artifacts
from aj.engine.artifacts import EVERY_S
from aj.model.bucket import Purpose
from aj.model.json import Json
from aj.model.state import JobState
from aj.model.workload import Workload
from tests.conftest import Home
from tests.engine.play import Box, HandClock, Play, Told
from tests.yard import PROJECT, Yard

S = JobState
JOB = "aaaaaaaa"
HOUR_S = 3600.0


@dataclass
class Training:
    """A program that works on by the second: from the host's own disk, or from what was saved where that is gone."""

    clock: HandClock
    base: float = 0.0
    begun: float = 0.0
    saved: float = 0.0
    losses: list[float] = field(default_factory=list)

    @property
    def done_s(self) -> float:
        return self.base + self.clock.at - self.begun

    def start(self) -> None:
        self.begun = self.clock.at

    def interrupt(self, *, disk_is_lost: bool) -> None:
        """Stop as a lost host does."""
        self.losses.append(self.done_s - self.saved if disk_is_lost else 0.0)
        self.base = self.saved if disk_is_lost else self.done_s
        self.begun = self.clock.at


@dataclass
class Host(Told):
    """A driver whose starts begin the training."""

    training: Training | None = None

    def step(self, state: JobState, job: Workload, folder: Path) -> Mapping[str, Json]:
        found = super().step(state, job, folder)
        if state is S.STARTING and self.training is not None:
            self.training.start()
        return found


@dataclass
class Saves(Box):
    """Buckets that keep how far the training is."""

    training: Training | None = None

    def save(self, job: Workload, folder: Path, *, last: bool, stop: threading.Event) -> None:
        super().save(job, folder, last=last, stop=stop)
        if self.training is not None:
            self.training.saved = self.training.done_s


@pytest.fixture
def play(home: Home) -> Iterator[Play]:
    clock = HandClock()
    training = Training(clock)
    box = Saves(purposes=(Purpose.CHECKPOINT,), training=training)
    found = Play(home, driver=Host(training=training), clock=clock, box=box)
    try:
        yield found
    finally:
        found.engine.stop()


def run_for(play: Play, seconds: float) -> None:
    """Let the job run so long; the last save is a minute old at most."""
    for step_s in (max(0.0, seconds - EVERY_S), EVERY_S):
        before = len(play.box.done)
        play.that(lambda: play.clock.is_awaited(EVERY_S))
        play.clock.at += max(step_s, EVERY_S)
        play.that(lambda before=before: len(play.box.done) > before)  # type: ignore[misc]


def lose(play: Play, training: Training, *, comes_back: bool) -> None:
    """Half a minute after the last save the host is taken away."""
    play.clock.at += 30
    training.interrupt(disk_is_lost=not comes_back)
    recoveries = play.engine.show(JOB).workload.recoveries
    play.engine.preempt(JOB, comes_back)
    play.that(lambda: play.engine.show(JOB).workload.recoveries == recoveries + 1)


def back(play: Play) -> Workload:
    play.that(lambda: play.engine.show(JOB).workload.state is S.RUNNING)
    return play.engine.show(JOB).workload


@pytest.mark.rule("SP-01", "SP-02", "SP-03", "SP-04", "LC-05", "LC-09", "LC-10", "T76")
def test_eight_hours_on_spot_cost_a_minute_for_each_lost_host(play: Play) -> None:
    training = play.driver.training  # type: ignore[attr-defined]
    play.admit(JOB, spot=True)
    back(play)
    run_for(play, 2 * HOUR_S)
    lose(play, training, comes_back=True)
    assert back(play).attempt == 2
    run_for(play, HOUR_S)

    play.driver.fails[S.PROVISIONING] = [OSError(errno.ENOSPC, "No space left on device")]
    lose(play, training, comes_back=False)
    play.that(lambda: play.engine.show(JOB).workload.retry is not None)
    assert "No space left" in (play.engine.show(JOB).workload.message or "")
    play.that(lambda: play.driver.done.count((JOB, "release")) == 2)  # the lost one, and the full one
    play.clock.at += 15
    job = back(play)
    assert (job.attempt, job.recoveries, len(job.hosts)) == (3, 2, 3)
    run_for(play, HOUR_S)

    play.box.fails = [Unavailable("the bucket cannot be reached") for _ in range(3)]
    run_for(play, 3 * EVERY_S)
    play.that(lambda: play.clock.is_awaited(EVERY_S))
    play.clock.at += EVERY_S
    play.that(lambda: not play.box.fails)
    assert play.engine.show(JOB).workload.state is S.RUNNING, "an outage stops no job"
    run_for(play, HOUR_S)

    play.engine.stop()  # and nobody is there for twenty minutes
    play.clock.at += 1200
    play.again().adopt(PROJECT)
    back(play)
    run_for(play, HOUR_S)

    lose(play, training, comes_back=False)
    job = back(play)
    assert (job.recoveries, len(job.hosts)) == (3, 4)
    run_for(play, 2 * HOUR_S)
    assert training.done_s >= 8 * HOUR_S
    play.driver.ends[JOB] = Observation(Fate.EXITED, exit_code=0)
    job = play.until(JOB, S.COMPLETED, cleaned=True)
    assert (job.recoveries, job.data_error, job.exit_code) == (3, None, 0)
    assert training.losses[0] == 0 and all(loss <= EVERY_S for loss in training.losses), training.losses
    assert all(host.released_at for host in job.hosts)
    assert play.states(JOB).count("recovering") == 3


# The same with real processes, real folders and a bucket on disk, in seconds


@pytest.fixture
def yard(home: Home, tmp_path: Path, programs: None, real_clock: None) -> Iterator[Yard]:
    found = Yard(home, tmp_path / "project")
    try:
        yield found
    finally:
        found.close()


LINE = """
cd $AJ_CHECKPOINT_DIR; n=$(cat n 2>/dev/null || echo 0)
while [ $n -lt 40 ]; do
  while [ $n -ge $(cat $GATE) ]; do sleep 0.02; done
  n=$((n+1)); echo $n > .n; mv .n n; echo $n >> $ALL
done
"""


@pytest.mark.rule("SP-03", "DA-03", "DA-05")
def test_a_program_counts_on_through_all_of_it(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "EVERY_S", 0.05)
    every, gate = yard.root / "all", yard.root / "gate"
    yard.root.mkdir()
    gate.write_text("0\n")
    job_id = yard.shell(LINE, spot=True, env={"ALL": str(every), "GATE": str(gate)})

    def reaches(count: int) -> None:
        beside = gate.with_name("gate.new")
        beside.write_text(f"{count}\n")
        beside.rename(gate)
        while not every.exists() or every.read_text().split()[-1:] == [] or int(every.read_text().split()[-1]) < count:
            assert not yard.show(job_id).workload.state.is_final
            yard.engine.wait(job_id, 10**6, 0.02)

    def saved() -> bool:
        told = yard.show(job_id).checkpoints
        return yard.show(job_id).workload.state is S.RUNNING and told is not None and told.health.objects > 0

    for count, comes_back in ((8, True), (18, False)):
        reaches(count)
        while not saved():
            yard.engine.wait(job_id, 10**6, 0.02)
        yard.engine.preempt(job_id, comes_back)
    reaches(24)
    yard.engine.stop()  # as a killed daemon: the processes go on
    yard.again().adopt(PROJECT)
    with monkeypatch.context() as outage:
        outage.setattr(Folder, "put", _unreachable)
        reaches(30)
    reaches(34)
    yard.engine.preempt(job_id, False)
    gate.write_text("40\n")
    end = yard.done(job_id)
    assert (end.state, end.recoveries, end.data_error) == (S.COMPLETED, 3, None)
    counted = [int(word) for word in every.read_text().split()]
    assert counted[-1] == 40 and set(counted) == set(range(1, 41)), "nothing was left out"
    begun_at = [later for earlier, later in itertools.pairwise(counted) if later <= earlier]
    assert len(begun_at) <= 3, "it went back at most once for each lost host"
    assert all(first > 1 for first in begun_at), "and never to the beginning"


def _unreachable(*_: object, **__: object) -> None:
    raise Unavailable("the bucket cannot be reached")
