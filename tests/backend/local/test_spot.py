"""Hosts of this machine that are lost: processes killed, folders gone, checkpoints restored, daemons killed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from aj.backend.local import mounts
from aj.base import crash, proc
from aj.bucket.folder import Folder
from aj.bucket.storage import Bytes
from aj.engine import artifacts
from aj.model.bucket import Buckets, Wanted
from aj.model.state import JobState
from aj.model.ticket import Mode
from aj.store import jobs
from tests.jobs import EARLY
from tests.yard import PROJECT, Yard, is_gone

S = JobState
CHECKPOINT = "$AJ_CHECKPOINT_DIR"
# Counts its starts where nothing is lost with a host, and in the folders that it was given.
LINE = f"""
echo start >> $COUNT; echo here >> here
steps=$(cat {CHECKPOINT}/steps 2>/dev/null || echo 0)
[ $(wc -l < $COUNT) -lt 2 ] || {{ echo "went on at $steps"; exit 0; }}
echo 7 > {CHECKPOINT}/steps; echo $$ > pid; sleep 300
"""


@pytest.fixture
def spot(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> Yard:
    monkeypatch.setattr(artifacts, "EVERY_S", 0.05)
    return yard


def begin(yard: Yard) -> tuple[str, int]:
    """Start a job that saves a checkpoint; return it and its process, once the checkpoint is in its bucket."""
    job_id = yard.shell(LINE, spot=True, env={"COUNT": str(yard.root / "count")})
    pid = int(yard.wait_for(yard.work(job_id) / "pid"))
    yard.until(job_id, S.RUNNING)
    return job_id, pid


def saved(yard: Yard, job_id: str) -> bool:
    told = yard.show(job_id).checkpoints
    return told is not None and told.health.objects > 0


def until_saved(yard: Yard, job_id: str) -> None:
    while not saved(yard, job_id):
        yard.engine.wait(job_id, 10**6, 0.05)


@pytest.mark.rule("SP-01", "SP-02", "C-025b")
def test_a_host_that_comes_back_has_everything_and_the_job_starts_there_again(spot: Yard) -> None:
    job_id, pid = begin(spot)
    spot.engine.preempt(job_id, True)
    end = spot.done(job_id)
    assert is_gone(pid) and (end.state, end.attempt, end.recoveries, len(end.hosts)) == (S.COMPLETED, 2, 1, 1)
    assert spot.output(job_id) == "went on at 7\n"
    assert (spot.work(job_id) / "here").read_text() == "here\nhere\n"
    states = [event.state.value for event in spot.show(job_id).events]
    assert states[-5:] == ["running", "recovering", "running", "finalizing", "completed"]


@pytest.mark.rule("SP-03", "SP-05", "DA-03", "DA-05", "CB-03", "T76")
def test_another_host_has_what_was_submitted_and_the_checkpoint_and_nothing_else(spot: Yard) -> None:
    job_id, pid = begin(spot)
    until_saved(spot, job_id)
    spot.engine.preempt(job_id, False)
    end = spot.done(job_id)
    assert is_gone(pid) and (end.state, end.attempt, end.recoveries, len(end.hosts)) == (S.COMPLETED, 2, 1, 2)
    assert spot.output(job_id) == "went on at 7\n"
    assert (spot.work(job_id) / "here").read_text() == "here\n", "the other host never saw the first one's files"
    aside = spot.folder(job_id) / "work" / "host-1"
    assert (aside / "node0" / "here").read_text() == "here\n", "which a rehearsal does not destroy"
    assert all(host.released_at for host in end.hosts)
    told = spot.show(job_id).checkpoints
    assert told is not None and not told.is_kept
    assert not (spot.home.layout.buckets / told.bucket).exists(), "its own bucket goes with the job"


POINTS = ("preempt.after-note", "recover.before-restart", "recover.after-restart", "recover.after-release")


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.rule("SP-02", "SP-03", "T32")
def test_a_daemon_killed_in_the_midst_of_a_recovery_is_followed_by_one_that_ends_it(yard: Yard, point: str) -> None:
    assert point in crash.POINTS
    up, ran = yard.root / "up", yard.root / "ran"
    line = f"echo ran >> {ran}; [ $(wc -l < {ran}) -lt 2 ] || exit 5; touch {up}; sleep 300"
    yard.engine.stop()
    loss = "lost" if point == "recover.after-release" else "restartable"
    argv = [sys.executable, "-m", "tests.engine.jobhost", str(yard.root), "00000001", line, loss]
    log = os.open(yard.home.root / "host.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    child = proc.spawn(
        argv, stdout=log, stderr=log, env={**yard.home.env, "AJ_TEST_CRASH": point}, cwd=Path(__file__).parents[3]
    )
    os.close(log)
    assert child.wait(30) == -9, (yard.home.root / "host.log").read_text()
    assert not jobs.read(yard.home.layout, "00000001").is_over
    yard.again().adopt(PROJECT)
    end = yard.done("00000001")
    assert (end.state, end.exit_code, end.attempt, end.recoveries) == (S.ERRORED, 5, 2, 1)
    assert ran.read_text() == "ran\nran\n", "each start happened once"


# What one job leaves for the next: nothing

LEAVES = """
for where in $AJ_OUTPUT_DIR $AJ_CHECKPOINT_DIR $TMPDIR /dev/shm .; do
  ls -A $where | grep -q left-by && echo "found in $where"; echo x > $where/left-by-a-job
done
setsid sleep 300 & echo $! > $PIDS; [ -w /mnt/input/data ] || echo read-only; cat /mnt/input/data
"""


@pytest.mark.rule("RS-01", "RS-02", "RS-03", "DA-01", "DA-02")
def test_a_job_finds_nothing_that_another_left(yard: Yard) -> None:
    if not mounts.are_possible():
        pytest.skip("this user may not make mount namespaces on this machine")
    given = Folder(yard.home.layout.buckets, "data")
    given.create()
    given.put("data", Bytes(b"given\n"))
    yard.root.mkdir()
    Folder(yard.home.layout.buckets, "saved").create()
    asked = Buckets(Wanted("data"), Wanted("results"), Wanted("saved"))
    config = {"target": {"service": "local"}, "jobs": [{"submit_args": {"container_args": {"shm_size": "16m"}}}]}
    for number in (1, 2):
        pids = yard.root / f"pids{number}"
        wanted = yard.spec("sh", "-c", LEAVES, buckets=asked, brings_code=False, config=config, env={"PIDS": str(pids)})
        yard.engine.admit(wanted, None, ticket="t", project_key=PROJECT, accepted_at=EARLY, mode=Mode.DIRECT)
        assert yard.done(wanted.id).state is S.COMPLETED, yard.output(wanted.id)
        assert yard.output(wanted.id) == "read-only\ngiven\n"
        assert is_gone(int(pids.read_text()))
        assert not (yard.folder(wanted.id) / "tmp").exists()
    assert "left-by-a-job" not in os.listdir("/dev/shm"), "the machine's own was not touched"


def test_without_namespaces_the_folders_are_named_and_the_user_is_told(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounts, "are_possible", lambda: False)
    line = "echo it > $AJ_OUTPUT_DIR/result; case $AJ_OUTPUT_DIR in /mnt/*) exit 9;; esac"
    job_id = yard.shell(line, buckets=Buckets(output=Wanted("results")))
    end = yard.done(job_id)
    assert end.state is S.COMPLETED and any("no namespaces here" in note for note in end.notes)
    assert (yard.home.layout.buckets / "results" / job_id / "result").exists()
