"""How a program asks for jobs when answers are lost, late, or no."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from aj.base.errors import AuthError, DaemonError, NotFound, Refused, UserError
from aj.base.settings import Settings
from aj.daemon import router
from aj.model.claim import Candidate, SelectedJob
from aj.model.json import Json
from aj.net.uds import Answer, Lost
from aj.wire import codec
from aj.wire.deployment import Cancellation, Found
from aj.wire.messages import Done
from aj.workload import ExecutionOver, JobTerminated, current_deployment
from aj.workload.deployment import Deployment
from aj.workload.speech import Speech, socket_of
from tests.conftest import MovedClock

HERE = Candidate("request-1", 0, None)
Reply = object


@dataclass
class Daemon:
    """Answers in the order that a test gives; keeps what it was asked."""

    clock: MovedClock
    answers: list[Reply] = field(default_factory=list)
    asked: list[tuple[str, str, dict[str, Json]]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)

    def __call__(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, *, silence_s: float
    ) -> Answer:
        self.asked.append((method, target.rpartition("/")[2], json.loads(body or b"{}")))
        self.tokens.append(headers["authorization"])
        answer = self.answers.pop(0)
        if callable(answer):
            answer = answer(self.asked[-1][2])
        if isinstance(answer, Lost):
            raise answer
        if isinstance(answer, (DaemonError, Refused, NotFound, AuthError)):
            refused = router.refusal(answer)
            return Answer(refused.status, {}, json.dumps(refused.document).encode())
        return Answer(200, {}, json.dumps(codec.dump(answer)).encode())

    def deployment(self, token: Callable[[], str] = lambda: "word") -> Deployment:
        return Deployment("models", Speech(self, token, self.clock), self.clock)


def selected(body: Mapping[str, Json]) -> SelectedJob:
    return SelectedJob("request-1", 0, str(body["execution_id"]), None, "models", "2026-01-31T12:00:00.000000Z")


@pytest.fixture
def daemon(clock: MovedClock) -> Daemon:
    return Daemon(clock)


@pytest.mark.rule("TD-07", "TD-08", "TD-10")
def test_a_job_is_found_and_claimed(daemon: Daemon) -> None:
    daemon.answers = [Found(HERE), selected]
    job = daemon.deployment().next_job()
    assert job is not None
    assert (job.id, job.selected.job_id, job.selected.deployment) == ("request-1", "request-1", "models")
    assert [what for _, what, _ in daemon.asked] == ["candidate?timeout_s=20.0", "claim"]


@pytest.mark.rule("TD-11", "TD-13")
def test_zero_looks_once_and_longer_is_told_to_the_daemon(daemon: Daemon) -> None:
    daemon.answers = [Found(None), Found(None)]
    deployment = daemon.deployment()
    assert deployment.next_job(timeout=0) is None
    assert deployment.next_job(timeout=7.5) is None
    assert [what for _, what, _ in daemon.asked] == ["candidate?timeout_s=0.0", "candidate?timeout_s=7.5"]
    for timeout in (-1, 21, float("nan"), float("inf")):
        with pytest.raises(UserError, match="from 0 to 20"):
            deployment.next_job(timeout=timeout)


@pytest.mark.rule("TD-12", "TD-13", "TD-14")
def test_a_claim_without_an_answer_is_settled_before_anything_else(daemon: Daemon) -> None:
    daemon.answers = [Found(HERE), *[Lost("cut")] * 40]
    deployment = daemon.deployment()
    with pytest.raises(DaemonError):
        deployment.next_job(timeout=5)
    assert deployment.has_pending_claim
    sent = {str(body["execution_id"]) for _, what, body in daemon.asked if what == "claim"}
    assert len(sent) == 1, "the same execution all the time"
    assert 100 <= sum(daemon.clock.slept) <= 125, "it went on asking for two minutes"
    daemon.answers, daemon.asked = [selected], []
    job = deployment.next_job(timeout=0)
    assert job is not None and job.selected.execution_id in sent
    assert [what for _, what, _ in daemon.asked] == ["claim"], "nothing else was looked for"
    assert not deployment.has_pending_claim


@pytest.mark.rule("TD-11", "TD-13")
def test_who_comes_second_looks_again_in_the_time_that_is_left(daemon: Daemon) -> None:
    stale = Refused("somebody was first", code="candidate-stale")
    daemon.answers = [Found(HERE), stale, Found(HERE), selected]
    assert daemon.deployment().next_job(timeout=5) is not None
    daemon.answers = [Found(HERE), stale]
    assert daemon.deployment().next_job(timeout=0) is None
    daemon.answers = [Found(HERE), NotFound("deleted"), Found(None)]
    assert daemon.deployment().next_job(timeout=5) is None


@pytest.mark.rule("TD-13", "TD-14")
def test_an_execution_that_is_over_is_told_and_forgotten(daemon: Daemon) -> None:
    daemon.answers = [Found(HERE), Refused("over", code="execution-used"), Found(None)]
    deployment = daemon.deployment()
    with pytest.raises(Refused, match="over"):
        deployment.next_job()
    assert not deployment.has_pending_claim
    assert deployment.next_job(timeout=0) is None


def test_the_token_is_read_for_each_request(daemon: Daemon) -> None:
    words = iter(("one", "two", "three"))
    daemon.answers = [AuthError("too old", code="bad-token"), Found(HERE), selected]
    assert daemon.deployment(lambda: next(words)).next_job() is not None
    assert daemon.tokens == ["Bearer one", "Bearer two", "Bearer three"]
    daemon.answers = [AuthError("no", code="bad-token")] * 40
    with pytest.raises(AuthError):
        daemon.deployment().next_job()
    assert sum(daemon.clock.slept) < 20, "a token that does not hold is not asked with for minutes"


@pytest.mark.rule("TD-09", "TD-15")
def test_a_job_ends_by_one_word_and_hears_of_its_cancellation(daemon: Daemon) -> None:
    daemon.answers = [Found(HERE), selected, Cancellation(False), Lost("cut"), Done("errored")]
    job = daemon.deployment().next_job()
    assert job is not None and not job.cancelled(timeout=3)
    job.error("")
    assert daemon.asked[-1][1] == "outcome"
    assert (daemon.asked[-1][2]["outcome"], daemon.asked[-1][2]["message"]) == ("errored", "errored")
    daemon.answers = [Refused("terminated", code="terminated"), Done()]
    with pytest.raises(JobTerminated):
        job.complete()
    assert daemon.asked[-1][1] == "cleanup", "its slot is free, since nobody works on it"
    daemon.answers = [Refused("it went on", code="execution-over")]
    with pytest.raises(ExecutionOver):
        job.retry("x" * 9000)
    assert len(str(daemon.asked[-1][2]["message"])) == 4096


def test_the_current_deployment_is_one_object(tmp_path: Path) -> None:
    env = {"AJ_API_URL": "unix:///run/aj/daemon.sock", "AJ_DEPLOYMENT_ID": "models"}
    with pytest.raises(UserError, match="does not run in a deployment"):
        current_deployment(Settings(env))
    whole = Settings({**env, "AJ_WORKLOAD_TOKEN_FILE": str(tmp_path / "token")})
    with current_deployment(whole) as deployment:
        assert deployment.name == "models"
    assert current_deployment(whole) is deployment
    for url in ("http://host/", "unix://relative"):
        with pytest.raises(UserError, match="AJ_API_URL"):
            socket_of(url)
