"""Deployments with a real daemon and real programs: jobs, ends, kills of replicas and of the daemon."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from aj import Client, JobFailed, JobState, JobSubmissionExpired, NotFound, Refused, UserError, WorkloadWaitTimeout
from aj.base import proc
from aj.base.clock import SYSTEM
from aj.base.settings import Settings
from aj.model.deployment import DeploymentStatus
from aj.wire.deployment import Create, Upgrade
from tests.conftest import Home, RunningDaemon

LIMIT_S = 60.0
HOUSE = Path(__file__).resolve().parents[2]


@dataclass
class Site:
    """A deployment of the test's program, and a client."""

    home: Home
    daemon: RunningDaemon
    client: Client
    folder: Path

    def deploy(self, replicas: int, **more: object) -> None:
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(HOUSE)}
        argv = (sys.executable, "-m", "tests.workload.app", str(self.folder))
        asked = Create("models", argv, replicas, str(self.folder), inherited=env, **more)  # type: ignore[arg-type]
        self.client.deployments.create(asked)

    def until(self, is_so: Callable[[], object], what: str) -> None:
        limit = SYSTEM.monotonic() + LIMIT_S
        while not is_so():
            assert SYSTEM.monotonic() < limit, f"{what} did not come: {self.status()}"
            SYSTEM.sleep(0.02)

    def status(self) -> DeploymentStatus:
        return self.client.get_deployment("models")

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def pid_of(self, job_id: str) -> int:
        return next(int(line.split()[1]) for line in reversed(self.lines("begun")) if line.startswith(f"{job_id} "))


@pytest.fixture
def site(home: Home, daemon: RunningDaemon, tmp_path: Path) -> Site:
    folder = tmp_path / "app"
    folder.mkdir()
    settings = Settings({**home.settings.env, "PATH": os.environ["PATH"]})
    client = Client(settings)
    daemon.clients.append(client)
    return Site(home, daemon, client, folder)


@pytest.mark.rule(
    "TD-01",
    "TD-03",
    "TD-04",
    "TD-05",
    "TD-06",
    "TD-08",
    "TD-09",
    "TD-16",
    "TD-17",
    "TD-18",
    "TD-20",
    "TD-23",
    "TD-25",
    "TD-26",
    "TD-02",
    "CO-04",
)
def test_jobs_of_a_deployment_end_as_its_program_says(site: Site) -> None:
    client = site.client
    with pytest.raises(NotFound, match="models"):
        client.submit(deployment="models", workload_id="work-0")
    site.deploy(1)
    with pytest.raises(UserError, match="gpu"):
        client.submit(deployment="models", gpu="h100")
    gate = client.submit(deployment="models", workload_id="gate-1")
    site.until(lambda: gate.status().workload.claimed, "the claim")
    assert gate.status().jobs_ahead is None
    after = [client.submit(deployment="models", workload_id=name) for name in ("work-1", "fail-1", "bad-1")]
    assert [job.status().jobs_ahead for job in after] == [0, 1, 2]
    seen = site.status()
    assert (seen.ready, seen.busy, seen.queued, seen.state) == (1, 1, 3, "ready")
    assert [(held.job_id, held.unreleased) for held in seen.jobs] == [("gate-1", False)]
    with pytest.raises(Refused, match="no logs"):
        gate.logs()
    with pytest.raises(Refused, match="inside of deployment `models`"):
        gate.exec("true")
    with pytest.raises(Refused, match="not ended"):
        gate.resubmit()
    with pytest.raises(WorkloadWaitTimeout):
        gate.wait(timeout=0)
    (site.folder / "go").touch()
    done = gate.wait(timeout=LIMIT_S, cleaned=True)
    assert (done.state, done.claimed) == (JobState.COMPLETED, True)
    after[0].wait(timeout=LIMIT_S)
    states = []
    for job in after[1:]:
        with pytest.raises(JobFailed) as failed:
            job.wait(timeout=LIMIT_S, cleaned=True)
        states.append((failed.value.details["state"], failed.value.message.partition(": ")[2]))
    assert states == [("errored", "it does not work"), ("invalid", "nobody can do this")]
    again = client.get("gate-1")
    assert again.resubmit(timeout=50).workload.submission_revision == 1
    assert again.wait(timeout=LIMIT_S).submission_revision == 1
    assert [line.split()[0] for line in site.lines("begun")] == ["gate-1", "work-1", "fail-1", "bad-1", "gate-1"]


@pytest.mark.rule("TD-15", "TD-16", "TD-18", "TD-19", "TD-21", "TD-22", "TD-23")
def test_a_terminated_job_keeps_its_slot_until_it_is_put_away_or_fenced(site: Site) -> None:
    client = site.client
    site.deploy(1)
    stopped = client.submit(deployment="models", workload_id="stop-1", timeout=50, wait=True)
    stopped.wait_for_claim()
    assert stopped.terminate().state is JobState.TERMINATED
    with pytest.raises(JobFailed, match="terminated"):
        stopped.wait(timeout=LIMIT_S, cleaned=True)
    hung = client.submit(deployment="models", workload_id="hang-1", timeout=50, wait=True)
    site.until(lambda: site.lines("begun")[-1].startswith("hang-1"), "the start")
    before = site.pid_of("hang-1")
    hung.terminate(grace=1)
    seen = hung.status().workload
    assert seen.cleaned_at is None and "has not put its work away" in (seen.cleanup_error or "")
    assert site.status().unreleased == 1
    with pytest.raises(Refused, match="not cleaned up"):
        hung.resubmit()
    late = client.submit(deployment="models", workload_id="work-late", timeout=0.05)
    with pytest.raises(JobSubmissionExpired):
        late.wait_for_claim(timeout=LIMIT_S)
    with pytest.raises(JobFailed, match="no replica took it up"):
        late.wait(timeout=LIMIT_S)
    assert not late.status().workload.claimed
    with pytest.raises(JobFailed):
        hung.wait(timeout=LIMIT_S, cleaned=True)
    assert proc.start_time(before) is None, "the replica that hung was ended"
    hung.terminate()
    late.resubmit(when_clean=True)
    assert late.status().workload.deadline_at is None
    late.wait(timeout=LIMIT_S)
    assert [line.split()[0] for line in site.lines("begun")] == ["stop-1", "hang-1", "work-late"]


@pytest.mark.rule("TD-06", "TD-07", "TD-12", "TD-14", "TD-24")
def test_kills_of_replicas_and_of_the_daemon_leave_each_job_one_end(site: Site) -> None:
    client = site.client
    site.deploy(3)
    first = [client.submit(deployment="models", workload_id=f"gate-{number}") for number in range(3)]
    rest = [client.submit(deployment="models", workload_id=f"work-{number}") for number in range(6)]
    site.until(lambda: len(site.lines("begun")) == 3, "three starts")
    killed = site.pid_of("gate-0")
    os.kill(killed, signal.SIGKILL)
    site.daemon.kill()
    client.close()
    site.until(lambda: client.status("gate-0").workload.recoveries == 1, "the recovery")
    assert client.status("gate-0").workload.claimed
    kept = {site.pid_of("gate-1"), site.pid_of("gate-2")}
    assert all(proc.start_time(pid) is not None for pid in kept), "the other replicas went on without a daemon"
    (site.folder / "go").touch()
    for job in (*first, *rest):
        assert job.wait(timeout=LIMIT_S).state is JobState.COMPLETED
    for job in (*first, *rest):
        finals = [event.state for event in job.status().events if event.state.is_final]
        assert finals == [JobState.COMPLETED], job.id
    ended = [line.split()[0] for line in site.lines("ended")]
    site.until(lambda: len(site.lines("ended")) == 9, "nine ends")
    assert len(set(ended)) == len(ended)
    begun = [line.split()[0] for line in site.lines("begun")]
    assert sorted(begun) == sorted([*(job.id for job in (*first, *rest)), "gate-0"])


@pytest.mark.rule("C-041", "TD-05")
def test_an_upgrade_replaces_idle_replicas_and_a_delete_leaves_nothing(site: Site) -> None:
    client = site.client
    site.deploy(2)
    site.until(lambda: site.status().ready == 2, "two replicas")
    before = {member.pid for member in site.status().members}
    client.deployments.upgrade("models", Upgrade(env={"MODEL": "large"}))
    site.until(lambda: all(member.revision == 2 for member in site.status().members), "the new revision")
    site.until(lambda: site.status().ready == 2, "two new replicas")
    after = {member.pid for member in site.status().members}
    assert not before & after
    client.deployments.upgrade("models", Upgrade(replicas=1))
    site.until(lambda: len(site.status().members) == 1, "one replica")
    assert site.status().revision == 2, "a change of the number alone replaces nothing"
    running = client.submit(deployment="models", workload_id="gate-1")
    site.until(lambda: running.status().workload.claimed, "the claim")
    with pytest.raises(Refused, match="1 unfinished job: gate-1"):
        client.deployments.delete("models")
    client.deployments.delete("models", force=True)
    with pytest.raises(JobFailed, match="terminated"):
        running.wait(timeout=LIMIT_S, cleaned=True)
    site.until(lambda: not client.list_deployments(), "the end of the deployment")
    assert not (site.home.layout.deployments / "models").exists()
    with pytest.raises(NotFound):
        client.get("gate-1").resubmit()
