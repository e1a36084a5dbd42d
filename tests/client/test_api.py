"""The client of Python programs before a real daemon: steps, independent jobs, logs, commands inside, errors."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import aj
from aj import (
    AsyncClient,
    Client,
    JobFailed,
    JobState,
    JobSubmissionUncertain,
    NotFound,
    Refused,
    TimedOut,
    UserError,
    WorkloadWaitTimeout,
)
from aj.base.agents import Tag
from aj.base.clock import SYSTEM
from aj.base.errors import OutcomeUnknown
from aj.base.settings import Settings
from aj.client import request
from aj.client.job import Job
from aj.client.request import Asking
from aj.model.bucket import Buckets, Kind, Wanted
from aj.store import credentials
from aj.store.credentials import FOLDER, Credential
from tests.conftest import Home, RunningDaemon

LIMIT_S = 60.0
HOST = "local/host"
# Where a job finds its folders, whether this machine has namespaces or not.
DIRS = "I=${AJ_INPUT_DIR:-/mnt/input} O=${AJ_OUTPUT_DIR:-/mnt/output}; "


def shell(line: str) -> list[str]:
    return ["sh", "-c", line]


@pytest.fixture
def settings(home: Home, daemon: RunningDaemon) -> Settings:
    return Settings({**home.settings.env, "PATH": os.environ["PATH"]})


@pytest.fixture
def client(settings: Settings, daemon: RunningDaemon) -> Client:
    found = Client(settings)
    daemon.clients.append(found)
    return found


@pytest.mark.rule("CO-01", "CO-02", "CO-03", "SB-02")
def test_steps_follow_each_other_through_a_bucket(client: Client, home: Home, tmp_path: Path) -> None:
    (home.folders.config).mkdir(parents=True)
    (home.folders.config / "aj.toml").write_text("[local]\ngpus = 8\n")
    credentials.save(home.layout, Credential("my-aws", Kind.DIR, FOLDER, root=str(tmp_path / "disk")))
    with client:
        prepared = client.submit(
            HOST,
            command=shell(DIRS + "echo prepared > $O/data"),
            credential_name="my-aws",
            gpu="h100",
            cloud_config={"output_bucket": "prepared-training-data"},
        )
        prepared.wait(timeout=LIMIT_S)
        trained = client.submit(
            HOST,
            command=shell(DIRS + "cat $I/*/data"),
            credential_name="my-aws",
            gpu="h100:8",
            cloud_config={"input_bucket": "prepared-training-data"},
        )
        assert trained.wait(timeout=LIMIT_S).needs.gpus == 8
        assert b"".join(trained.logs()) == b"prepared\n"
        with pytest.raises(JobFailed) as failed:
            client.submit(HOST, command=shell("exit 3")).wait(timeout=LIMIT_S)
            client.submit(HOST, command=shell("true"))
    assert (failed.value.details["exit_code"], failed.value.details["state"]) == (3, "errored")
    assert len(client.list()) == 3, "the step after a failed one was never submitted"


@pytest.mark.rule("CO-04", "CO-05", "LC-21")
def test_independent_jobs_are_submitted_first_and_fail_one_by_one(client: Client, tmp_path: Path) -> None:
    jobs = [client.submit(HOST, command=shell(f"exit {number}"), name="part") for number in (0, 1, 0, 2)]
    ends: list[object] = []
    for job in jobs:
        try:
            ends.append(job.wait(timeout=LIMIT_S).exit_code)
        except JobFailed as error:
            ends.append(error.details["exit_code"])
    assert ends == [0, 1, 0, 2]
    assert [job.id for job in client.list(states=["errored"])] == [jobs[3].id, jobs[1].id]
    for missing in ("submit_many", "get_or_submit", "JobGroup"):
        assert not hasattr(client, missing) and not hasattr(aj, missing)
    with pytest.raises(UserError, match="is not a valid"):
        client.list(states=["great"])


@pytest.mark.rule("SB-02", "TD-17", "OP-03", "OP-04", "OP-05")
def test_a_job_is_followed_looked_into_ended_and_run_again(client: Client, tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.sh").write_text(
        "echo begun; cat word; until test -e go; do sleep 0.02; done; echo over\n"
    )
    (tmp_path / "code" / "word").write_text("travelled\n")
    job = client.submit(command="sh train.sh", directory=tmp_path / "code", wait=True)
    assert client.get(job.id).status().state is JobState.RUNNING
    with pytest.raises(WorkloadWaitTimeout, match="nothing was stopped"):
        job.wait(timeout=0)
    lines = job.logs(follow=True)
    assert next(lines).startswith(b"begun\n")
    ran = job.exec(["sh", "-c", "cat; echo bad >&2; exit 4"], stdin=b"handed on")
    assert (ran.exit_code, ran.out, ran.err) == (4, b"handed on", b"bad\n")
    assert job.exec("kill -9 $$").exit_code == 137
    with pytest.raises(TimedOut, match="did not end within"):
        job.exec("sleep 50", timeout=0.1)
    job.exec("touch go")
    assert b"".join(lines).endswith(b"over\n")
    assert job.wait(timeout=LIMIT_S, cleaned=True).state is JobState.COMPLETED
    with pytest.raises(Refused):
        job.exec("true")
    assert job.resubmit().workload.submission_revision == 1
    job.wait_for_start(timeout=LIMIT_S)
    job.terminate(grace=5)
    with pytest.raises(JobFailed, match="terminated"):
        job.wait(timeout=LIMIT_S, cleaned=True)
    job.delete()
    with pytest.raises(NotFound):
        client.get(job.id)
    with pytest.raises(UserError, match="no deployment"):
        client.submit(HOST, command=shell("true")).wait_for_claim()


def test_a_lost_answer_leaves_a_handle(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object, **__: object) -> None:
        raise OutcomeUnknown("the answer was lost", hint="look")

    monkeypatch.setattr(client.submissions, "submit", lost)
    with pytest.raises(JobSubmissionUncertain) as error:
        client.submit(HOST, command=shell("true"))
    assert isinstance(error.value.job, Job)
    with pytest.raises(NotFound):
        error.value.job.status()


@pytest.mark.rule("CO-04")
def test_the_same_for_asyncio(settings: Settings, client: Client, tmp_path: Path) -> None:
    async def program() -> list[object]:
        async with AsyncClient(settings) as there:
            good = await there.submit(HOST, command=shell("echo good"))
            bad = await there.submit(HOST, command=shell("exit 9"))
            slow = await there.submit(HOST, command=shell(f"until test -e {tmp_path}/go; do sleep 0.02; done"))
            waiting = asyncio.ensure_future(slow.wait())
            ends = await asyncio.gather(good.wait(LIMIT_S), bad.wait(LIMIT_S), return_exceptions=True)
            assert not waiting.done()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(slow.wait(), 0.05)
            with pytest.raises(WorkloadWaitTimeout):
                await slow.wait(timeout=0)
            assert (await slow.status()).state is not JobState.COMPLETED, "a cancelled wait ends nothing"
            (tmp_path / "go").touch()
            await (await there.get(slow.id)).wait(LIMIT_S)
            text = b"".join([piece async for piece in good.logs(follow=True)])
            return [text, *(type(end).__name__ for end in ends), len(await there.list())]

    assert asyncio.run(program()) == [b"good\n", "Workload", "JobFailed", 3]
    limit = SYSTEM.monotonic() + LIMIT_S
    while any(thread.name == "aj call" for thread in threading.enumerate()):
        assert SYSTEM.monotonic() < limit, "a call that was cancelled goes on"
        SYSTEM.sleep(0.02)


@pytest.mark.rule("CO-02")
def test_arguments_are_read_strictly(home: Home) -> None:
    assert [request.gpus(word) for word in (None, 2, "3", "h100", "h100:8")] == [None, 2, 3, 1, 8]
    for word in (":8", "h100:", "h100:x", "h100:0", ""):
        with pytest.raises(UserError, match="is no GPU"):
            request.gpus(word)
    assert request.buckets({}, "my-aws") is None
    given = {"output_bucket": "out", "input_bucket": "in", "input_storage_credentials": "other"}
    expected = Buckets(input=Wanted("in", "other"), output=Wanted("out", "my-aws"))
    assert request.buckets(given, "my-aws") == expected
    for wrong in ({"ouput_bucket": "x"}, {"output_bucket": 3}, {"output_bucket": "x", "checkpoint_keep": 0}):
        with pytest.raises(UserError, match="cloud_config"):
            request.buckets(wrong, None)
    assert request.spec(Asking(command="x", max_cost=2.5), "1a2b3c4d", home.settings, None, Tag()).max_cost == 2_500_000
    for wrong in (
        *(
            {"command": [1]},
            {"command": "a\0b"},
            {"command": "x", "env": {"A": "b\0"}},
            {"command": "x", "env": {"A": 1}},
        ),
        *(
            {"command": "x", name: value}
            for name in ("timeout", "max_runtime")
            for value in (-1, 0, float("inf"), "1h")
        ),
        *({"command": "x", "name": "\n"}, {"command": "x", "cpus": float("nan")}, {"command": "x", "secrets": [3]}),
    ):
        with pytest.raises(UserError) as refused:
            request.spec(Asking(**wrong), "1a2b3c4d", home.settings, None, Tag())  # type: ignore[arg-type]
        assert refused.value.code == "bad-argument"
    limits = [Asking(command="x", max_cost=limit) for limit in (0, -1, "much", float("nan"))]
    for asked in (Asking(), Asking(template="gpu", command="x"), *limits):
        with pytest.raises(UserError):
            request.spec(asked, "1a2b3c4d", home.settings, None, Tag())


FORKED = """
import os, sys
from aj import Client
client = Client()
before = [job.id for job in client.list()]
child = os.fork()
seen = [[job.id for job in client.list()] for _ in range(40)]
ok = all(one == before for one in seen)
if child == 0:
    os._exit(0 if ok else 9)
print(ok, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_client_may_be_used_on_both_sides_of_a_fork(home: Home, daemon: RunningDaemon) -> None:
    daemon.start()
    found = subprocess.run(
        [sys.executable, "-c", FORKED], env=dict(home.env), capture_output=True, text=True, timeout=100, cwd=home.root
    )
    assert found.stdout == "True 0\n", found.stderr


def test_importing_aj_is_nearly_free_and_everything_it_names_is_there(programs: None) -> None:
    code = "import sys, aj; print(sorted(name for name in sys.modules if name.startswith('aj')))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['aj']"
    for name in aj.__all__:
        thing = getattr(aj, name)
        assert thing.__doc__ and (not isinstance(thing, type) or thing.__name__ == name)
    with pytest.raises(AttributeError):
        _ = aj.nothing  # type: ignore[attr-defined]
