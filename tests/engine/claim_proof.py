"""Any history of one deployment: replicas, a daemon, their messages, the disk, and a user, step by step in one thread.

`python -m tests.engine.claim_proof 10000` runs so many histories. Each follows a tape of bytes that hypothesis
draws: which replica does what, which message is lost, doubled or late, who acts in between, at which write the
power goes, when a replica is killed and when that is noticed. After every step the promises of the claim protocol
are looked for on the disk; at the end all that was bad stops, and every job must come to one end.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aj.base.errors import AjError, AuthError, DaemonError, Refused
from aj.base.paths import NO_PROJECT
from aj.daemon import call as calls
from aj.daemon import router
from aj.daemon.call import Call
from aj.daemon.front import Reply, Request
from aj.daemon.routes import workload as routes
from aj.engine.claims import EXPIRED, Claims
from aj.engine.jobs import Jobs
from aj.model.claim import Bearer, Candidate, ClaimState, Ending, SelectedJob, Targeted
from aj.model.state import JobState
from aj.model.workload import Needs, Workload
from aj.net.uds import Answer, Lost
from aj.store import claims as ledger
from aj.store import jobs as store
from aj.wire import paths
from aj.wire.messages import Done
from aj.workload.deployment import Deployment
from aj.workload.job import CurrentJob, ExecutionOver, JobTerminated
from aj.workload.speech import Speech
from tests.conftest import MovedClock
from tests.engine import host
from tests.engine.histories import Dead, Disk

T = TypeVar("T")
NAME, UID = "train", "0123456789abcdef"
TAPE = 320  # bytes: a long history uses about so many decisions
STEPS = 40
MOST_JOBS = 4
DEEP = 2  # so many others may act while one message is on its way
HEALING = 200  # rounds in which everything must have come to its end
FINAL = ("completed", "errored", "failed", "invalid", "terminated")


class Tape:
    """Decisions, one byte each; when it is over, always the first choice."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self.is_calm = False

    @property
    def is_over(self) -> bool:
        return self._at >= len(self._data)

    def pick(self, choices: Sequence[T]) -> T:
        """Choose one; the first is the harmless one."""
        if self.is_calm or self._at >= len(self._data):
            return choices[0]
        self._at += 1
        return choices[self._data[self._at - 1] % len(choices)]


@dataclass
class Replica:
    """One replica: a start of its program, which may be dead before anybody has noticed."""

    slot: int
    attempt: int = 1
    lives: bool = True
    is_known: bool = True  # the daemon takes it for running
    drains: bool = False
    is_busy: bool = False  # it waits for an answer
    deployment: Deployment | None = None
    jobs: list[CurrentJob] = field(default_factory=list)
    said: set[str] = field(default_factory=set)  # executions of which the program has said how they ended

    @property
    def bearer(self) -> Bearer:
        return Bearer(NAME, UID, self.slot, self.attempt)


class Still(Jobs):
    """The jobs of a daemon without its threads: what they would do is done when the history says so."""

    def _begin(self, work: Callable[[], None]) -> None:
        pass

    def tidy_now(self) -> None:
        self._janitor.round(frozenset({NO_PROJECT}))


class Once:
    """The way back to a replica: looks once and does not wait."""

    def poll(self, look: Callable[[float], T], is_over: Callable[[T], bool], timeout_s: float) -> T:
        return look(0.0)


class World:
    """Everything there is."""

    def __init__(self, root: Path, tape: Tape, disk: Disk) -> None:
        self.home = host.home(root, host.variables(root))
        self.home.layout.prepare()
        self.tape, self.disk, self.clock = tape, disk, MovedClock()
        self.most = tape.pick([1, 1, 2])
        self.replicas = [Replica(slot) for slot in range(tape.pick([2, 3, 1, 4]))]
        self.late: list[tuple[str, str, Mapping[str, str], bytes | None]] = []
        self.depth = 0
        self.expired: set[tuple[str, int]] = set()
        self.claimed: set[tuple[str, int]] = set()
        self.taken: dict[tuple[str, int, str | None], set[str]] = {}
        self.kinds: Counter[str] = Counter()
        self.submitted = 0
        self._boot()
        for replica in self.replicas:
            self._new_program(replica)

    # the daemon

    def _boot(self) -> None:
        """Start a daemon that knows only what is on disk."""
        self.jobs = Still(self.home.layout, {}, self.clock, lambda *_: None)
        self.claims = Claims(self.jobs.lifecycle, self.home.layout, self.clock, self, released=self.jobs.tidy_now)
        self.jobs.targets = self
        self.jobs.adopt(NO_PROJECT)

    def power(self, act: Callable[[], T]) -> T | None:
        """Do something in the daemon; None when it was killed meanwhile, and is back."""
        try:
            return act()
        except Dead:
            self.kinds["killed at a write"] += 1
            self.disk.plan(None, "before")
            self._boot()
            return None

    def kill_daemon(self) -> None:
        self.kinds["daemon killed"] += 1
        self._boot()

    # what claims ask of replicas

    def is_current(self, deployment: str, slot: int, attempt: int) -> bool:
        replica = self.replicas[slot]
        return replica.attempt == attempt and replica.is_known

    def may_claim(self, who: Bearer) -> bool:
        return self.is_current(who.deployment, who.slot, who.attempt) and not self.replicas[who.slot].drains

    def places(self, deployment: str) -> int:
        return self.most

    def fence(self, deployment: str, slot: int, attempt: int) -> None:
        replica = self.replicas[slot]
        if replica.attempt == attempt:
            self.kinds["fenced"] += 1
            replica.lives = False

    # what jobs ask of deployments

    def terminate(self, job_id: str, grace_s: float | None) -> None:
        self.claims.terminate(job_id, grace_s)

    def check_resubmission(self, name: str) -> None:
        assert name == NAME

    # what the routes ask

    @property
    def deployments(self) -> World:
        return self

    def bearer(self, token: str) -> Bearer:
        slot, attempt = (int(word) for word in token.split("/"))
        who = Bearer(NAME, UID, slot, attempt)
        if not self.is_current(NAME, slot, attempt):
            raise Refused("replaced", code="replaced")
        return who

    def candidate(self, who: Bearer, wait_s: float) -> Candidate | None:
        return self.claims.candidate(who, wait_s)

    def claim(self, who: Bearer, job_id: str, execution_id: str, revision: int, previous: str | None) -> SelectedJob:
        selected = self.claims.claim(who, job_id, execution_id, revision, previous)
        at = (job_id, revision, previous)
        self.taken.setdefault(at, set()).add(selected.execution_id)
        assert len(self.taken[at]) == 1, f"two executions of {at}: {self.taken[at]}"
        assert (job_id, revision) not in self.expired, f"{at} was claimed after it had expired"
        self.kinds["claimed"] += 1
        return selected

    def cancellation(self, who: Bearer, job_id: str, execution_id: str, wait_s: float) -> bool:
        return self.claims.cancellation(who, job_id, execution_id, wait_s)

    def outcome(self, who: Bearer, job_id: str, execution_id: str, said: Ending, message: str | None) -> Done:
        return Done(self.claims.outcome(who, job_id, execution_id, said, message).state.value)

    def cleanup(self, who: Bearer, job_id: str, execution_id: str) -> Done:
        self.claims.cleanup(who, job_id, execution_id)
        return Done()

    # messages

    def _new_program(self, replica: Replica) -> None:
        """Start the program of a replica, which knows nothing of what the last one did."""
        token = f"{replica.slot}/{replica.attempt}"
        replica.jobs, replica.said = [], set()
        replica.deployment = Deployment(
            NAME, Speech(self._sender(replica, replica.attempt), lambda: token, self.clock, ride_s=2.0), self.clock
        )

    def _sender(self, replica: Replica, attempt: int) -> Callable[..., Answer]:
        def send(
            method: str, target: str, headers: Mapping[str, str], body: bytes | None, *, silence_s: float
        ) -> Answer:
            if not replica.lives or replica.attempt != attempt:
                raise Gone  # it was killed while this was on its way
            answer = self._carry(method, target, headers, body)
            if not replica.lives or replica.attempt != attempt:
                raise Gone
            return answer

        return send

    def _carry(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        """Carry one message there and its answer back, or not."""
        fates = ["whole", "whole", "whole", "lost", "answer lost", "doubled", "late", "between", "cut"]
        fate = self.tape.pick(["whole", "whole", "late", "late", *fates] if target.endswith("/claim") else fates)
        self.kinds[fate] += 1
        message = (method, target, headers, body)
        if fate == "lost":
            raise Lost("lost on its way there")
        if fate == "late":
            self.late.append(message)
            raise Lost("late")
        if fate == "between":
            self.someone_else()
        if fate == "cut":
            self.disk.plan(self.tape.pick(range(7)), self.tape.pick(["before", "in", "after"]))
        answer = self.deliver(*message)
        if fate == "between":
            self.someone_else()
        if fate == "doubled":
            second = self.deliver(*message)
            answer = self.tape.pick([answer, second])
        if fate == "answer lost" or answer is None:
            raise Lost("lost on its way back")
        return answer

    def deliver(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> Answer | None:
        """Let the daemon answer one message; None when it was killed over it."""
        path, _, query = target.partition("?")
        match = paths.match(method, path)
        request = Request(
            method, path, query, {name.lower(): word for name, word in headers.items()}, body or b"", True
        )
        line: Any = Once()
        engine: Any = self
        asked = Call(
            engine,
            match.route,
            match.segments,
            calls.query(request, match.route),
            None,
            request.body,
            line,
            request.headers,
        )

        def answer() -> Answer:
            try:
                reply = routes.HANDLERS[match.route](asked)
            except AjError as error:
                reply = router.refusal(error)
            assert isinstance(reply, Reply)
            return Answer(reply.status, {}, json.dumps(reply.document).encode())

        return self.power(answer)

    def deliver_late(self) -> None:
        if self.late:
            message = self.late.pop(self.tape.pick(range(len(self.late))))
            self.kinds["delivered late"] += 1
            self.deliver(*message)

    # who acts

    def step(self) -> None:
        """Let somebody do something."""
        acts = [
            *(self.program,) * 8,
            *(self.submit, self.submit, self.user_terminates, self.user_resubmits, self.time_passes, self.time_passes),
            *(self.round, self.round, self.kill_replica, self.notice, self.deliver_late, self.kill_daemon),
            *(self.cut_power, self.drain, self.observe),
        ]
        self.tape.pick(acts)()
        self.look()

    def someone_else(self) -> None:
        """Let others act while a message is on its way."""
        if self.depth >= DEEP or self.tape.is_calm:
            return
        self.depth += 1
        try:
            self.step()
        finally:
            self.depth -= 1

    def cut_power(self) -> None:
        """Let the power go at a write of what comes next."""
        self.disk.plan(self.tape.pick(range(10)), self.tape.pick(["before", "in", "after"]))
        self.tape.pick([self.round, self.user_terminates, self.user_resubmits, self.submit])()
        self.disk.plan(None, "before")

    def submit(self) -> None:
        if self.submitted >= MOST_JOBS:
            self.program()
            return
        job_id, timeout_s = f"request-{self.submitted}", self.tape.pick([None, 20.0, 60.0])
        now = self.clock.now()
        job = Workload(
            id=job_id, name=job_id, service="deployment", template="", project=None, project_key=NO_PROJECT, ticket="",
            state=JobState.QUEUED, created_at=at(now), submitted_at=at(now), needs=Needs(),
            deadline_at=None if timeout_s is None else now + timeout_s, targeted=Targeted(NAME, "n"),
        )  # fmt: skip
        self.submitted += (
            store.exists(self.home.layout, job_id) or self.power(lambda: self.jobs.lifecycle.admit(job)) is not None
        )

    def user_terminates(self) -> None:
        self._user(lambda job_id: self.jobs.terminate(job_id, self.tape.pick([30.0, 0.0, 5.0])))

    def user_resubmits(self) -> None:
        def resubmit(job_id: str) -> None:
            before = self.record(job_id)
            timeout_s, when_clean = self.tape.pick([None, 20.0]), self.tape.pick([False, True])
            answer = self.jobs.resubmit(job_id, when_clean, timeout_s)
            job = answer.workload
            assert before["cleaned_at"] is not None or when_clean, "it ran again before it was cleaned up"
            if job.submission_revision > before["submission_revision"]:
                assert (job.deadline_at is not None) == (timeout_s is not None)
                assert not job.claimed
                self.kinds["resubmitted"] += 1

        self._user(resubmit)

    def _user(self, act: Callable[[str], object]) -> None:
        ids = self.ids()
        if ids:
            job_id = self.tape.pick(ids)
            with contextlib.suppress(Refused):
                self.power(lambda: act(job_id))

    def time_passes(self) -> None:
        self.clock.move(self.tape.pick([1.0, 10.0, 30.0, 100.0]))

    def round(self) -> None:
        self.power(self.claims.round)
        self.power(self.jobs.tidy_now)

    def observe(self) -> None:
        """Let a submitter look what became of the first claim."""
        for job_id in self.ids():
            job = self.jobs.lifecycle.get(job_id)
            from aj.engine.deployments import _outcome

            seen = _outcome(job, job.submission_revision)
            if seen is ClaimState.EXPIRED:
                self.expired.add((job_id, job.submission_revision))
            if seen is ClaimState.CLAIMED:
                self.claimed.add((job_id, job.submission_revision))

    def drain(self) -> None:
        replica = self.tape.pick(self.replicas)
        replica.drains = not replica.drains

    def kill_replica(self) -> None:
        replica = self.tape.pick(self.replicas)
        replica.lives = False
        self.kinds["replica killed"] += 1

    def notice(self) -> None:
        """Let the daemon see which replicas are dead, and start them again."""
        for replica in self.replicas:
            if replica.lives:
                continue
            replica.is_known = False
            self.power(self.claims.round)
            replica.attempt, replica.lives, replica.is_known = replica.attempt + 1, True, True
            self._new_program(replica)

    def program(self) -> None:
        """Let a program look for work, or go on with what it has."""
        replica = self.tape.pick(self.replicas)
        if not replica.lives or replica.is_busy:
            return
        replica.is_busy = True
        try:
            if replica.jobs and self.tape.pick([True, True, False]):  # else it asks for more than it may have
                self._work(replica, self.tape.pick(replica.jobs))
            else:
                self._look_for_work(replica)
        except Gone:
            self.kinds["killed in a call"] += 1
        finally:
            replica.is_busy = False

    def _look_for_work(self, replica: Replica) -> None:
        assert replica.deployment is not None
        try:
            job = replica.deployment.next_job(timeout=self.tape.pick([0, 5]))
        except (DaemonError, Refused, AuthError):
            return
        if job is None:
            assert not replica.deployment.has_pending_claim, "no job, and a claim is still open"
            return
        self._check_alone(replica, job)
        replica.jobs.append(job)

    def _check_alone(self, replica: Replica, job: CurrentJob) -> None:
        """No other program that lives works on the same job."""
        for other in self.replicas:
            working = {held.id for held in other.jobs if held.selected.execution_id not in other.said}
            assert not other.lives or job.id not in working, f"{job.id} runs in {other.slot} and in {replica.slot}"

    def _work(self, replica: Replica, job: CurrentJob) -> None:
        act = self.tape.pick(["complete", "error", "invalid", "retry", "retry", "look", "clean", "nothing"])
        execution = job.selected.execution_id
        try:
            if act == "nothing":
                return
            if act in ("look", "clean"):
                if job.cancelled():
                    replica.said.add(execution)  # its work is put away, whether the daemon hears of it or not
                    job.cleanup()
                    replica.jobs.remove(job)
                return
            replica.said.add(execution)
            getattr(job, act)(*([] if act == "complete" else ["words"]))
            replica.jobs.remove(job)
        except (JobTerminated, ExecutionOver):
            replica.jobs.remove(job)
        except (DaemonError, Refused):
            return  # it says so again later, or something else: the first word that arrived counts

    # what must hold

    def ids(self) -> list[str]:
        folder = self.home.layout.jobs
        return sorted(path.name for path in folder.glob("request-*")) if folder.is_dir() else []

    def record(self, job_id: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(store.record_file(self.home.layout.job(job_id)).read_bytes())
        return found

    def look(self) -> None:
        """Look for every promise on the disk."""
        held: Counter[int] = Counter()
        for job_id in self.ids():
            record = self.record(job_id)
            target, at = record["targeted"], (job_id, record["submission_revision"])
            if at in self.claimed:
                assert target["claimed"], f"{at} was claimed, and is not any more"
            if target["claimed"]:
                self.claimed.add(at)
            if record["state"] == "failed" and record["reason"] == EXPIRED:
                assert at not in self.claimed, f"{at} was claimed and has expired"
                self.expired.add(at)
            if target["held"] is not None:
                held[target["held"]["slot"]] += 1
                assert record["state"] in ("running", "terminated"), f"{job_id} is held and {record['state']}"
            assert record["state"] != "running" or target["held"] is not None, f"{job_id} runs nowhere"
            self._check_executions(job_id, target)
        assert all(count <= self.most for count in held.values()), f"too many jobs: {held}"

    def _check_executions(self, job_id: str, target: Mapping[str, Any]) -> None:
        known = {one.id: (one.revision, one.previous) for one in ledger.read(self.home.layout.job(job_id))}
        for name in ("last", "held"):
            if target[name] is not None:
                known[target[name]["id"]] = (target[name]["revision"], target[name]["previous"])
        assert len(set(known.values())) == len(known), f"{job_id} was taken twice at one point: {known}"

    def heal(self) -> None:
        """Let nothing bad happen any more; every job comes to one end."""
        self.disk.plan(None, "before")
        while self.late:
            self.deliver_late()
            self.look()
        self.tape.is_calm = True
        self.notice()
        for _ in range(HEALING):
            if all(record["state"] in FINAL and record["cleaned_at"] for record in map(self.record, self.ids())):
                break
            self.clock.move(20.0)
            for replica in self.replicas:
                replica.drains = False
                for job in list(replica.jobs):
                    self._finish(replica, job)
                if replica.lives:
                    self._look_for_work(replica)
            self.notice()
            self.round()
            self.look()
        for job_id in self.ids():
            record = self.record(job_id)
            assert record["state"] in FINAL and record["cleaned_at"], f"{job_id} is left: {record}"
            self._check_ends(job_id, record["submission_revision"])

    def _finish(self, replica: Replica, job: CurrentJob) -> None:
        replica.jobs.remove(job)
        with contextlib.suppress(JobTerminated, ExecutionOver, Gone):
            job.complete()

    def _check_ends(self, job_id: str, revision: int) -> None:
        """Each submission ended exactly once."""
        job = store.read(self.home.layout, job_id)
        told: list[str] = []
        states = [event.state for event in store.events(self.home.layout, job, told.append)]
        assert not told, told
        ends = [at for at, state in enumerate(states) if state.is_final]
        assert len(ends) == revision + 1, f"{job_id}: {states}"
        assert ends[-1] == len(states) - 1, f"{job_id}: {states}"
        assert all(states[at + 1] is JobState.QUEUED for at in ends[:-1]), f"{job_id}: {states}"


class Gone(Exception):
    """The program that sent this was killed meanwhile."""


def at(moment: float) -> str:
    from aj.base.clock import rfc3339

    return rfc3339(moment)


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder that forgets everything, in memory where there is such a place."""
    base = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(prefix="aj-claims-", dir=base if base.is_dir() else None))
    try:
        yield made
    finally:
        shutil.rmtree(made)


def run(data: bytes) -> Counter[str]:
    """Run one history; return how often what happened. Raises AssertionError when a promise is broken."""
    with folder() as root, Disk() as disk:
        world = World(root, Tape(data), disk)
        for _ in range(STEPS):
            world.step()
        world.heal()
        return world.kinds


def prove(count: int, seen: Counter[str]) -> None:
    """Run so many histories, and find the shortest one that breaks a promise, if any does."""

    @settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=True
    )
    @given(st.binary(min_size=TAPE, max_size=TAPE))
    def history(data: bytes) -> None:
        seen.update(run(data))
        seen["histories"] += 1

    history()


if __name__ == "__main__":
    happened: Counter[str] = Counter()
    prove(int(sys.argv[1]), happened)
    for kind, number in happened.most_common():
        print(f"{number:9d}  {kind}")
