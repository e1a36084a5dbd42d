"""Who gets a job of a deployment, case by case; the histories are in `claim_proof`."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from aj.base.errors import AjError, NotFound, Refused, UserError
from aj.base.paths import NO_PROJECT
from aj.engine import claims
from aj.engine.claims import Claims
from aj.engine.deployments import _outcome
from aj.model.claim import Bearer, Candidate, ClaimState, Ending, Execution, Targeted
from aj.model.state import JobState, Mover
from aj.model.workload import Workload
from aj.store import claims as ledger
from aj.wire.spend import CostQuery, SetCap
from tests.conftest import Home, MovedClock
from tests.engine.claim_proof import Still
from tests.jobs import workload

NAME = "models"
ONE, TWO = Bearer(NAME, "u", 0, 1), Bearer(NAME, "u", 1, 1)
S = JobState


@dataclass
class Crew:
    """Replicas as a test wants them."""

    gone: set[int] = field(default_factory=set)
    idle: bool = True
    most: int = 1
    fenced: list[int] = field(default_factory=list)

    def is_current(self, deployment: str, slot: int, attempt: int) -> bool:
        return slot not in self.gone

    def may_claim(self, who: Bearer) -> bool:
        return self.idle and who.slot not in self.gone

    def places(self, deployment: str) -> int:
        return self.most

    def fence(self, deployment: str, slot: int, attempt: int) -> None:
        self.fenced.append(slot)


@dataclass
class Rig:
    home: Home
    clock: MovedClock
    crew: Crew = field(default_factory=Crew)

    def __post_init__(self) -> None:
        self.home.layout.prepare()
        self.again()

    def again(self) -> None:
        """Another daemon, which knows only what is on disk."""
        self.jobs = Still(self.home.layout, {}, self.clock, lambda *_: None)
        self.claims = Claims(self.jobs.lifecycle, self.home.layout, self.clock, self.crew, released=self.jobs.tidy_now)
        self.jobs.adopt(NO_PROJECT)

    def admit(self, job_id: str, deployment: str = NAME, timeout_s: float | None = None, **more: object) -> None:
        self.clock.move(1)
        from aj.base.clock import rfc3339

        at = rfc3339(self.clock.now())
        deadline = None if timeout_s is None else self.clock.now() + timeout_s
        job = workload(
            job_id, service="deployment", targeted=Targeted(deployment), deadline_at=deadline, submitted_at=at, **more
        )
        self.jobs.lifecycle.admit(job)

    def job(self, job_id: str = "a") -> Workload:
        return self.jobs.lifecycle.get(job_id)

    def take(self, who: Bearer, execution: str) -> Candidate:
        found = self.claims.candidate(who, 0)
        assert found is not None
        self.claims.claim(who, found.job_id, execution, found.submission_revision, found.previous_execution_id)
        return found


@pytest.fixture
def rig(home: Home, clock: MovedClock) -> Rig:
    return Rig(home, clock)


@pytest.mark.rule("TD-04", "TD-07", "TD-13")
def test_the_oldest_is_first_and_a_full_replica_gets_none(rig: Rig) -> None:
    rig.admit("b")
    rig.admit("a")
    rig.admit("elsewhere", "others")
    assert [rig.jobs.show(name).jobs_ahead for name in ("b", "a", "elsewhere")] == [0, 1, 0]
    assert rig.take(ONE, "x1").job_id == "b"
    assert rig.claims.candidate(ONE, 0) is None, "it holds as many as it may"
    assert rig.take(TWO, "x2").job_id == "a"
    rig.crew.idle = False
    rig.crew.most = 2
    assert rig.claims.candidate(ONE, 0) is None


@pytest.mark.rule("TD-06", "TD-07", "TD-12", "TD-14")
def test_a_claim_again_is_the_same_and_another_one_is_late(rig: Rig) -> None:
    rig.admit("a")
    rig.take(ONE, "x1")
    rig.again()
    assert rig.claims.claim(ONE, "a", "x1", 0, None).execution_id == "x1"
    for who, execution, revision, previous in ((TWO, "x2", 0, None), (TWO, "x2", 1, None), (TWO, "x2", 0, "x1")):
        with pytest.raises(Refused) as error:
            rig.claims.claim(who, "a", execution, revision, previous)
        assert error.value.code == "candidate-stale"
    assert rig.job().claimed and rig.job().attempt == 1
    rig.claims.outcome(ONE, "a", "x1", Ending.COMPLETED, None)
    with pytest.raises(Refused) as error:
        rig.claims.claim(ONE, "a", "x1", 0, None)
    assert error.value.code == "execution-used"
    for job_id in ("a", "missing"):
        with pytest.raises(NotFound):
            rig.claims.claim(Bearer("others", "u", 0, 1), job_id, "x9", 0, None)


@pytest.mark.rule("TD-12", "TD-13")
@pytest.mark.parametrize("why", ["full", "leaving", "not due", "capped"])
def test_a_claim_that_was_refused_never_comes_true_when_it_arrives_once_more(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    rig.admit("a")
    rig.admit("b")
    if why == "full":
        rig.take(ONE, "x0")
    if why == "leaving":
        rig.crew.idle = False
    if why == "not due":
        rig.take(TWO, "x0")
        rig.claims.outcome(TWO, "a", "x0", Ending.RETRYABLE, "again")
    if why == "capped":
        capped(rig, 1, "2")
    job_id, previous = ("a", "x0") if why == "not due" else ("b", None)
    real = ledger.refuse

    def full(*_: object) -> None:
        raise AjError("No space left on device", code="disk")

    monkeypatch.setattr(ledger, "refuse", full)
    with pytest.raises(AjError) as unsaid:
        rig.claims.claim(ONE, job_id, "x1", 0, previous)
    assert unsaid.value.code == "disk", "what is not certain is not said: the replica asks once more"
    monkeypatch.setattr(ledger, "refuse", real)
    for _ in range(2):
        with pytest.raises(Refused) as error:
            rig.claims.claim(ONE, job_id, "x1", 0, previous)
        assert error.value.code == "candidate-stale"
    if why == "full":
        rig.claims.outcome(ONE, "a", "x0", Ending.COMPLETED, None)
    if why == "capped":
        capped(rig, 100, "2")
    rig.crew.idle = True
    rig.clock.move(3600)
    rig.again() if why != "capped" else None
    with pytest.raises(Refused) as error:
        rig.claims.claim(ONE, job_id, "x1", 0, previous)
    assert error.value.code == "candidate-stale"
    assert rig.job(job_id).state is S.QUEUED
    assert rig.claims.claim(ONE, job_id, "x2", 0, previous).execution_id == "x2"


@pytest.mark.rule("TD-09")
@pytest.mark.parametrize(
    ("said", "state"),
    [(Ending.COMPLETED, S.COMPLETED), (Ending.ERRORED, S.ERRORED), (Ending.INVALID, S.INVALID)],
)
def test_the_first_word_counts_and_may_be_said_again(rig: Rig, said: Ending, state: JobState) -> None:
    rig.admit("a")
    rig.take(ONE, "x1")
    with pytest.raises(Refused, match="no execution other"):
        rig.claims.outcome(TWO, "a", "other", said, "words")
    assert rig.claims.outcome(ONE, "a", "x1", said, "words").state is state
    assert rig.job().is_over and rig.job().message == "words"
    rig.again()
    assert rig.claims.outcome(ONE, "a", "x1", said, "words").state is state
    other = Ending.ERRORED if said is Ending.COMPLETED else Ending.COMPLETED
    with pytest.raises(Refused) as error:
        rig.claims.outcome(ONE, "a", "x1", other, "words")
    assert error.value.code == "execution-over"
    for bad, message in ((Ending.LOST, "x"), (Ending.ERRORED, ""), (Ending.ERRORED, "x" * 4097)):
        with pytest.raises(UserError):
            rig.claims.outcome(ONE, "a", "x1", bad, message)


@pytest.mark.rule("TD-09", "TD-24")
def test_a_retried_job_keeps_its_place_and_waits_a_while(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "MOST_TRIES", 4)
    rig.admit("a", timeout_s=5)
    rig.take(ONE, "x1")
    rig.admit("b")
    rig.claims.outcome(ONE, "a", "x1", Ending.RETRYABLE, "later")
    rig.again()
    assert rig.claims.outcome(ONE, "a", "x1", Ending.RETRYABLE, "later").state is S.QUEUED
    assert rig.job().claimed and rig.job().retry is not None
    first = rig.claims.candidate(ONE, 0)
    assert first is not None and first.job_id == "b", "it is not due yet"
    rig.clock.move(30)
    rig.claims.round()
    assert rig.take(ONE, "x2") == Candidate("a", 0, "x1"), "its deadline was met, and it is the oldest"
    rig.claims.outcome(ONE, "a", "x2", Ending.RETRYABLE, "later")
    assert rig.job().retry is not None and rig.job().retry.earliest_at - rig.clock.now() == pytest.approx(16, abs=1)  # type: ignore[union-attr]
    with pytest.raises(Refused) as error:
        rig.claims.claim(ONE, "a", "x1", 0, None)
    assert error.value.code == "execution-used", "also one that is only on file"
    assert rig.claims.outcome(ONE, "a", "x1", Ending.RETRYABLE, "again").id == "a"
    for number in range(3, 5):
        rig.clock.move(730)
        rig.take(ONE, f"x{number}")
        rig.claims.outcome(ONE, "a", f"x{number}", Ending.RETRYABLE, "never")
    assert (rig.job().state, rig.job().reason) == (S.FAILED, "retries-exhausted")


@pytest.mark.rule("TD-19", "TD-21", "TD-22", "TD-23")
def test_a_deadline_is_for_the_first_claim(rig: Rig) -> None:
    rig.admit("a", timeout_s=30)
    assert rig.claims.round() == pytest.approx(rig.clock.now() + 30)
    assert _outcome(rig.job(), 0) is ClaimState.PENDING
    seen = rig.claims.candidate(ONE, 0)
    assert seen is not None
    rig.clock.move(30)
    assert rig.claims.candidate(ONE, 0) is None
    with pytest.raises(Refused, match="is not where it was: failed"):
        rig.claims.claim(ONE, "a", "x1", 0, None)
    assert (rig.job().state, rig.job().reason, rig.job().claimed) == (S.FAILED, "claim-deadline-expired", False)
    assert _outcome(rig.job(), 0) is ClaimState.EXPIRED
    rig.jobs.tidy_now()
    answer = rig.jobs.resubmit("a", False, None)
    assert (answer.workload.submission_revision, answer.workload.deadline_at) == (1, None)
    assert _outcome(rig.job(), 0) is ClaimState.CHANGED
    rig.clock.move(1e6)
    rig.take(ONE, "x2")
    assert _outcome(rig.job(), 1) is ClaimState.CLAIMED


@pytest.mark.rule("TD-15", "TD-16", "TD-18")
def test_a_terminated_job_holds_its_slot_until_it_is_put_away_or_fenced(rig: Rig) -> None:
    rig.admit("a")
    rig.take(ONE, "x1")
    with pytest.raises(Refused, match="is running"):
        rig.claims.cleanup(ONE, "a", "x1")
    assert not rig.claims.cancellation(ONE, "a", "x1", 0)
    rig.claims.terminate("a", 10)
    rig.claims.terminate("a", 0)
    rig.jobs.tidy_now()
    assert rig.job().state is S.TERMINATED and rig.job().cleaned_at is None
    assert rig.claims.cancellation(ONE, "a", "x1", 0) and not rig.claims.cancellation(ONE, "a", "x9", 0)
    with pytest.raises(Refused, match="not cleaned up yet"):
        rig.jobs.resubmit("a", False, None)
    with pytest.raises(Refused, match="not cleaned up yet"):
        rig.jobs.delete("a")
    rig.admit("b")
    assert rig.claims.candidate(ONE, 0) is None, "the slot is not free"
    with pytest.raises(Refused) as error:
        rig.claims.outcome(ONE, "a", "x1", Ending.COMPLETED, None)
    assert error.value.code == "terminated"
    assert rig.claims.round() == pytest.approx(rig.clock.now() + 10) and not rig.crew.fenced
    rig.clock.move(10)
    rig.claims.round()
    assert rig.crew.fenced == [0] and rig.job().cleaned_at is None, "it may still run"
    rig.crew.gone = {0}
    rig.claims.round()
    assert rig.job().is_over
    with pytest.raises(Refused) as error:
        rig.claims.outcome(ONE, "a", "x1", Ending.COMPLETED, None)
    assert error.value.code == "terminated"
    rig.crew.gone = set()
    rig.claims.terminate("b", None)
    assert rig.job("b").message == "terminated before it ran"
    rig.jobs.resubmit("a", False, None)
    rig.take(ONE, "x2")
    rig.claims.terminate("a", None)
    rig.claims.cleanup(ONE, "a", "x2")
    rig.claims.cleanup(ONE, "a", "x2")
    assert rig.job("a").is_over
    with pytest.raises(Refused, match="no execution"):
        rig.claims.cleanup(ONE, "a", "x9")


@pytest.mark.rule("TD-24", "TD-06")
def test_a_lost_replica_gives_its_job_back(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "MOST_TRIES", 4)
    rig.admit("a", timeout_s=60)
    rig.take(ONE, "x1")
    rig.crew.gone = {0}
    rig.claims.round()
    job = rig.job()
    assert (job.state, job.recoveries, job.claimed, job.retry) == (S.QUEUED, 1, True, None)
    rig.take(TWO, "x2")
    with pytest.raises(Refused, match="ended already: lost"):
        rig.claims.outcome(ONE, "a", "x1", Ending.COMPLETED, None)
    rig.crew.gone = {0, 1}
    rig.claims.round()
    assert rig.job().retry is not None, "a job that loses one replica after the other is slowed down"
    rig.crew.gone = set()
    for number in range(2):
        rig.clock.move(730)
        rig.take(ONE, f"y{number}")
        rig.crew.gone = {0}
        rig.claims.round()
        rig.crew.gone = set()
    assert (rig.job().state, rig.job().reason) == (S.FAILED, "host-lost")


def test_what_a_killed_daemon_left_between_two_moves_goes_on(rig: Rig) -> None:
    for job_id, state, by in (("a", S.RETRYING, Mover.DRIVER), ("b", S.RECOVERING, Mover.MONITOR)):
        rig.admit(job_id, state=S.RUNNING)
        rig.jobs.lifecycle.move(job_id, state, by, "words")
    rig.again()
    rig.claims.round()
    assert {rig.job("a").state, rig.job("b").state} == {S.QUEUED}


def test_a_ledger_forgives_what_a_crash_left(rig: Rig) -> None:
    rig.admit("a")
    folder = rig.home.layout.job("a")
    over = Execution("x1", 0, None, 0, 1, "now", Ending.LOST, "then", None)
    for _ in range(2):
        ledger.append(folder, over)
    with ledger.file(folder).open("ab") as out:
        out.write(b'{"id": 3}\nnonsense\n{"id": "torn')
    assert ledger.read(folder) == [over]
    assert ledger.find(folder, "x1") == over and ledger.find(folder, "x2") is None


# What a claim costs


def capped(rig: Rig, usd: int, price: str = "1") -> None:
    """Let this machine cost something, and let claims be decided by that."""
    prices = rig.home.layout.prices
    prices.parent.mkdir(parents=True, exist_ok=True)
    prices.write_text(f"local = {price}\n")
    rig.jobs.spend.set_cap(SetCap(usd))
    crew, lifecycle = rig.crew, rig.jobs.lifecycle
    rig.claims = Claims(lifecycle, rig.home.layout, rig.clock, crew, deciding=rig.jobs.spend.deciding)


@pytest.mark.rule("SC-07", "SC-08", "TD-07")
def test_a_claim_that_would_pass_a_cap_is_refused_in_the_step_that_would_take_the_job(rig: Rig) -> None:
    capped(rig, 1)
    rig.admit("a")
    rig.admit("b")
    seen = rig.claims.candidate(TWO, 0)
    assert seen is not None and seen.job_id == "a"
    rig.take(ONE, "x1")
    assert rig.claims.candidate(TWO, 0) is None, "nothing is left for it"
    words = "blocked by throttle: rate $1.00/h + $1.00/h is over the cap of $1/h"
    assert rig.job("b").waiting_for == words
    with pytest.raises(Refused, match="blocked by throttle") as error:
        rig.claims.claim(TWO, "b", "x2", 0, None)
    assert error.value.code == "candidate-stale" and rig.job("b").state is S.QUEUED
    rig.claims.outcome(ONE, "a", "x1", Ending.COMPLETED, None)
    assert rig.take(TWO, "x3").job_id == "b"
    assert rig.job("b").waiting_for is None


@pytest.mark.rule("LC-17", "SC-10")
def test_a_job_of_a_deployment_costs_from_its_claim_until_its_slot_is_free(rig: Rig) -> None:
    capped(rig, 9)
    rig.admit("a")
    rig.clock.move(3600)
    rig.take(ONE, "x1")
    rig.clock.move(1800)
    rig.claims.terminate("a", None)
    rig.clock.move(1800)
    assert rig.jobs.spend.cost(CostQuery("a")).total.running == 1, "its slot is not free yet"
    rig.claims.cleanup(ONE, "a", "x1")
    rig.clock.move(3600)
    total = rig.jobs.spend.cost(CostQuery("a"))
    assert (total.total.cost, total.total.running) == (1_000_000, 0)
    assert [one.name for one in total.providers] == ["local"]


def test_each_try_of_a_job_of_a_deployment_costs_by_itself(rig: Rig) -> None:
    capped(rig, 9)
    rig.admit("a")
    rig.take(ONE, "x1")
    rig.clock.move(1800)
    rig.claims.outcome(ONE, "a", "x1", Ending.RETRYABLE, "again")
    rig.clock.move(3600)
    rig.take(ONE, "x2")
    rig.clock.move(1800)
    rig.claims.outcome(ONE, "a", "x2", Ending.COMPLETED, None)
    answer = rig.jobs.spend.cost(CostQuery("a")).total
    assert (answer.cost, answer.hosts, answer.running) == (1_000_000, 2, 0)
