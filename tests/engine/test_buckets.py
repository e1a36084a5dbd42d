"""Buckets of jobs with real processes: what is restored, what is saved and when, and what goes with the job."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aj.base import clock as clocks
from aj.base import proc
from aj.base.errors import AjError, NotFound, Refused, Unavailable, UserError
from aj.bucket import mirror, prices
from aj.bucket.folder import Folder
from aj.bucket.scope import Scope
from aj.bucket.storage import Bytes, objects
from aj.bucket.transfer import Pace
from aj.engine import artifacts, buckets, drive, janitor
from aj.engine.storage import Storages
from aj.model.bucket import Buckets, Kind, Owner, Wanted
from aj.model.state import JobState
from aj.model.workload import Workload
from aj.net import retry
from aj.store import credentials, jobs, secrets
from aj.store.credentials import Credential
from aj.store.layout import Layout
from tests.conftest import Home
from tests.servers import azurite as emulator
from tests.servers.azurite import ACCOUNT, KEY, Azurite
from tests.servers.loopback import Answer, Got, serving
from tests.yard import PROJECT, Yard

S = JobState
LIMIT_S = 30.0
# Where a job finds its folders, whether this machine has namespaces or not.
DIRS = "I=${AJ_INPUT_DIR:-/mnt/input} O=${AJ_OUTPUT_DIR:-/mnt/output} C=${AJ_CHECKPOINT_DIR:-/mnt/checkpoint}; "


@pytest.fixture
def yard(home: Home, tmp_path: Path, programs: None, real_clock: None) -> Iterator[Yard]:
    found = Yard(home, tmp_path / "project")
    try:
        yield found
    finally:
        found.close()


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    """Blob storage by plain http, opened by key."""
    with emulator.running(tmp_path_factory.mktemp("azurite")) as running:
        yield running


def bucket(yard: Yard, name: str, **files: str) -> Folder:
    """A bucket of this machine with some objects; `__` in a name stands for `/`."""
    made = Folder(yard.home.layout.buckets, name)
    made.create()
    for file, words in files.items():
        made.put(file.replace("__", "/"), Bytes(words.encode()))
    return made


def content(storage: Folder | Scope, prefix: str = "") -> dict[str, str]:
    return {one.name: storage.read(one.name, 0, one.size_bytes).decode() for one in objects(storage, prefix)}


def wanted(**names: str) -> Buckets:
    return Buckets(**{purpose: Wanted(name) for purpose, name in names.items()})  # type: ignore[arg-type]


def eventually(seen: Callable[[], bool], why: Callable[[], object]) -> None:
    limit = clocks.SYSTEM.monotonic() + LIMIT_S
    while not seen():
        assert clocks.SYSTEM.monotonic() < limit, why()
        clocks.SYSTEM.sleep(0.02)


def checkpointed(yard: Yard, job_id: str) -> int:
    """How many files of the newest complete checkpoint are in the bucket."""
    found = yard.show(job_id).checkpoints
    return found.health.objects if found else 0


@pytest.mark.rule("BK-01", "BK-02", "BK-03", "BK-04", "BK-17", "DA-01", "DA-02", "DA-04", "LC-01", "OP-07")
def test_a_job_reads_its_input_and_leaves_output_checkpoint_and_log(yard: Yard) -> None:
    bucket(yard, "datasets", a__train="1 2 3", b="4")
    bucket(yard, "models")
    line = DIRS + 'cat $I/a/train $I/b >$O/sum; mkdir $O/d; echo x >"$O/d/e f"; echo 7 >$C/step; echo said'
    job_id = yard.shell(line, buckets=wanted(input="datasets", output="made-new", checkpoint="models"))
    end = yard.done(job_id)
    assert (end.state, end.data_error) == (S.COMPLETED, None), yard.log
    states = [event.state for event in yard.show(job_id).events]
    assert states.index(S.SYNCING) < states.index(S.STARTING) < states.index(S.RUNNING) < states.index(S.FINALIZING)
    output = content(Folder(yard.home.layout.buckets, "made-new"))
    assert output.pop(f".aj/logs/{job_id}/1/rank0.out") == "said\n"
    assert {name: words for name, words in output.items() if not name.startswith(".aj/")} == {
        f"{job_id}/sum": "1 2 34",
        f"{job_id}/d/e f": "x\n",
    }
    kept = content(Folder(yard.home.layout.buckets, "models"))
    assert kept and all(name.startswith(f"{job_id}/") for name in kept)
    assert "7\n" in kept.values()


@pytest.mark.rule("C-173")
def test_a_job_is_told_where_its_folders_are_and_of_none_that_it_does_not_have(yard: Yard) -> None:
    bucket(yard, "datasets", a="1")
    line = 'cat "$AJ_INPUT_DIR/a"; echo 2 >"$AJ_OUTPUT_DIR/b"; echo "${AJ_CHECKPOINT_DIR-none} $AJ_API_URL"'
    job_id = yard.shell(line, buckets=wanted(input="datasets", output="results"))
    assert yard.done(job_id).exit_code == 0, yard.output(job_id)
    assert yard.output(job_id) == "1none \n", "the daemon is for replicas"
    assert content(Folder(yard.home.layout.buckets, "results"))[f"{job_id}/b"] == "2\n"


@pytest.mark.rule("DA-01")
def test_the_input_is_a_mirror_that_cannot_be_written_where_there_are_namespaces(yard: Yard) -> None:
    from aj.backend.local import mounts

    if not mounts.are_possible():
        pytest.skip("this machine has no mount namespaces")
    bucket(yard, "datasets", a="1")
    line = "{ echo more >/mnt/input/b; } 2>/dev/null || echo no; cat /mnt/input/a"
    job_id = yard.shell(line, buckets=wanted(input="datasets"))
    yard.done(job_id)
    assert "no\n1" in yard.output(job_id)


@pytest.mark.rule("BK-03", "BK-04", "DA-02", "SP-04", "SP-07")
def test_what_a_job_writes_is_saved_while_it_runs(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    assert artifacts.EVERY_S == 60.0
    monkeypatch.setattr(artifacts, "EVERY_S", 0.05)
    bucket(yard, "results")
    bucket(yard, "models")
    line = DIRS + "echo 1 >$O/first; echo 1 >$C/step; while [ ! -e go ]; do sleep 0.05; done"
    job_id = yard.shell(line, buckets=wanted(output="results", checkpoint="models"))
    storage = Folder(yard.home.layout.buckets, "results")
    eventually(lambda: f"{job_id}/first" in content(storage), lambda: yard.log)
    eventually(lambda: checkpointed(yard, job_id) == 1, lambda: yard.log)
    assert yard.until(job_id, S.RUNNING)
    told = yard.show(job_id).checkpoints
    assert told is not None and told.is_kept and (told.bucket, told.mount) == ("models", "/mnt/checkpoint")
    assert (told.health.objects, told.health.bytes, told.health.problem) == (1, 2, None)
    (yard.work(job_id) / "go").touch()
    assert yard.done(job_id).state is S.COMPLETED


@pytest.mark.rule("CB-01", "CB-02", "CB-03", "CB-04", "DA-05", "SP-03", "SP-05")
def test_a_spot_job_goes_on_from_its_own_bucket_which_goes_with_it(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "EVERY_S", 0.05)
    line = DIRS + (
        "if [ -e $C/step ]; then cat $C/step >$O/found; exit 0; fi; echo 41 >$C/step; while :; do sleep 0.1; done"
    )
    job_id = yard.shell(line, spot=True, buckets=wanted(output="results"))
    eventually(lambda: checkpointed(yard, job_id) == 1, lambda: yard.log)
    told = yard.show(job_id).checkpoints
    assert told is not None and told.bucket == job_id and not told.is_kept
    own = Folder(yard.home.layout.buckets, job_id)
    assert own.look() is not None
    yard.engine.preempt(job_id, False)
    end = yard.done(job_id)
    assert (end.state, end.recoveries) == (S.COMPLETED, 1), yard.log
    assert content(Folder(yard.home.layout.buckets, "results"))[f"{job_id}/found"] == "41\n"
    assert own.look() is None
    assert any("was restored" in note for note in end.notes)


@pytest.mark.rule("DA-02", "OP-07")
def test_what_could_not_be_saved_is_kept_when_the_job_runs_again(yard: Yard) -> None:
    bucket(yard, "results")
    bucket(yard, "models")
    line = DIRS + """[ -e $O/odd. ] && echo still; echo 1 >$O/odd.; echo 2 >$O/good; echo 3 >$C/odd.; ls $O $C"""
    asked = dataclasses.replace(wanted(output="results", checkpoint="models"), require_output=True)
    job_id = yard.shell(line, buckets=asked)
    first = yard.done(job_id)
    assert first.state is S.FAILED and "odd." in (first.data_error or "")
    yard.engine.resubmit(job_id, False, None)
    again = yard.done(job_id)
    kept = yard.folder(job_id) / "work"
    found = {str(path.relative_to(kept)): path.read_text() for path in kept.glob("unsaved-*/*/*")}
    assert sorted(found) == ["unsaved-1/checkpoint/odd.", "unsaved-1/output/good", "unsaved-1/output/odd."], found
    assert found["unsaved-1/output/odd."] == "1\n" and found["unsaved-1/checkpoint/odd."] == "3\n"
    assert any(str(kept / "unsaved-1/output") in note for note in again.notes), again.notes
    assert "still" not in yard.output(job_id)


@pytest.mark.rule("DA-02")
@pytest.mark.parametrize("line", ["mkdir $O/d; ln -s d $O/folder", "ln -s gone $O/nowhere"])
def test_required_output_that_is_left_out_fails_the_job(yard: Yard, line: str) -> None:
    bucket(yard, "results")
    asked = dataclasses.replace(wanted(output="results"), require_output=True)
    end = yard.done(yard.shell(DIRS + line, buckets=asked))
    assert (end.state, end.reason) == (S.FAILED, "output-not-saved")
    assert line.rpartition("/")[2] in (end.data_error or "")


@pytest.mark.rule("CB-04", "SP-05")
def test_a_job_that_runs_again_begins_with_an_empty_bucket_of_its_own(yard: Yard) -> None:
    line = DIRS + "ls $C; echo 1 >$C/step"
    job_id = yard.shell(line, spot=True)
    yard.done(job_id)
    yard.engine.resubmit(job_id, False, None)
    end = yard.done(job_id)
    assert (end.state, end.submission_revision) == (S.COMPLETED, 1), yard.log
    assert "step" not in yard.output(job_id)
    assert Folder(yard.home.layout.buckets, job_id).look() is None


@pytest.mark.rule("T53")
def test_a_bucket_made_for_a_job_that_could_not_be_admitted_goes_again(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = yard.home.layout.buckets
    bucket(yard, "mine")
    real, tries = jobs.create, []

    def full(layout: Layout, job: Workload) -> None:
        tries.append((job.id, sorted(path.name for path in folder.iterdir())))
        if len(tries) == 1:
            raise AjError("No space left on device", code="disk")
        real(layout, job)

    monkeypatch.setattr(jobs, "create", full)
    with pytest.raises(AjError, match="No space left"):
        yard.shell("true", spot=True)
    job_id, there = tries[0]
    assert len(there) == 2 and any(job_id in name for name in there), "it was made first"
    assert [path.name for path in folder.iterdir()] == ["mine"]
    yard.done(yard.shell("true", spot=True))


@pytest.mark.rule("SP-06", "DA-04")
def test_checkpoints_in_a_named_bucket_stay_and_are_found_by_the_next_submission(yard: Yard) -> None:
    bucket(yard, "models")
    line = DIRS + "cat $C/step; echo 1 >$C/step"
    job_id = yard.shell(line, buckets=wanted(checkpoint="models"))
    yard.done(job_id)
    yard.engine.resubmit(job_id, False, None)
    assert yard.done(job_id).state is S.COMPLETED, yard.log
    assert "1\n" in yard.output(job_id)


@pytest.mark.rule("CB-09")
def test_a_bucket_that_was_there_before_the_job_is_used_and_stays(yard: Yard) -> None:
    theirs = bucket(yard, "00000001", precious="mine")
    job_id = yard.shell(DIRS + "echo 1 >$C/step", spot=True)
    assert job_id == "00000001"
    end = yard.done(job_id)
    assert end.state is S.COMPLETED and any("was there before" in note for note in end.notes)
    told = yard.show(job_id).checkpoints
    assert told is not None and told.is_kept and told.is_foreign
    assert content(theirs)["precious"] == "mine"
    assert any(name.startswith("00000001/blobs/") for name in content(theirs))


@pytest.mark.rule("CB-08")
def test_a_name_that_is_somebody_elses_bucket_is_refused_with_two_ways_out(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(self: Folder, owner: Owner | None = None) -> bool:
        raise Refused("the name is taken", code="forbidden")

    monkeypatch.setattr(Folder, "create", taken)
    with pytest.raises(Refused, match="cannot have a bucket of its own") as refused:
        yard.shell("true", spot=True)
    assert "--checkpoint-bucket" in (refused.value.hint or "") and "another id" in (refused.value.hint or "")
    assert yard.engine.find("00000001") is None


@pytest.mark.rule("CB-09")
def test_a_bucket_that_lost_our_mark_is_never_removed(yard: Yard) -> None:
    job_id = yard.shell(DIRS + "while [ ! -e go ]; do sleep 0.05; done", spot=True)
    yard.until(job_id, S.RUNNING)
    own = Folder(yard.home.layout.buckets, job_id)
    own.delete()
    own.create(Owner(job_id, "somebody else's"))
    own.put("precious", Bytes(b"mine"))
    (yard.work(job_id) / "go").touch()
    yard.done(job_id)
    assert own.head("precious").size_bytes == 4


@pytest.mark.rule("CB-04", "LC-16")
def test_a_bucket_that_cannot_be_removed_is_told_until_it_can(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = yard.shell("while [ ! -e go ]; do sleep 0.05; done", spot=True)
    yard.until(job_id, S.RUNNING)

    def refuse(self: Folder) -> None:
        raise Refused("no right to delete", code="forbidden")

    monkeypatch.setattr(janitor, "FIRST_PAUSE_S", 0.05)
    with monkeypatch.context() as patch:
        patch.setattr(Folder, "delete", refuse)
        (yard.work(job_id) / "go").touch()
        eventually(lambda: "no right" in (yard.show(job_id).workload.cleanup_error or ""), lambda: yard.log)
        assert yard.until(job_id).state is S.COMPLETED
    yard.done(job_id)
    assert Folder(yard.home.layout.buckets, job_id).look() is None


@pytest.mark.parametrize(("required", "state"), [(False, S.COMPLETED), (True, S.FAILED)])
def test_an_output_that_did_not_arrive_is_told_and_fails_who_requires_it(
    yard: Yard, required: bool, state: JobState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drive, "LAST_S", 0.2)
    asked = Buckets(output=Wanted("results"), require_output=required)
    job_id = yard.shell(DIRS + "echo 1 >$O/a; while [ ! -e go ]; do sleep 0.05; done", buckets=asked)
    yard.until(job_id, S.RUNNING)
    Folder(yard.home.layout.buckets, "results").delete()
    (yard.work(job_id) / "go").touch()
    end = yard.done(job_id)
    assert (end.state, end.exit_code) == (state, 0)
    assert end.data_error is not None and "results" in end.data_error


def test_what_no_bucket_takes_is_told_at_once(yard: Yard) -> None:
    job_id = yard.shell(DIRS + "ln -s /etc/hostname $O/away; echo 1 >$O/a", buckets=wanted(output="results"))
    end = yard.done(job_id)
    assert end.state is S.COMPLETED and end.data_error is not None and "`away` leads out" in end.data_error
    assert f"{job_id}/a" in content(Folder(yard.home.layout.buckets, "results"))


@pytest.mark.rule("BK-10", "BK-14", "BK-15")
@pytest.mark.parametrize(("name", "says"), [("s3://data", "Amazon S3"), ("gs://b", "Google"), ("r2://b", "Cloudflare")])
def test_a_bucket_of_another_storage_is_refused_with_the_name_of_that_storage(yard: Yard, name: str, says: str) -> None:
    with pytest.raises(Refused, match=says):
        yard.engine.settle(yard.spec("true", buckets=wanted(input=name)))


@pytest.mark.rule("BK-11", "BK-12", "BK-13", "BK-06")
def test_what_cannot_serve_is_refused_before_anything_is_made(yard: Yard) -> None:
    bucket(yard, "there")
    refusals = [
        (wanted(input="absent"), NotFound, "no input bucket .*absent"),
        (wanted(checkpoint="absent"), NotFound, "no checkpoint bucket .*absent"),
        (Buckets(input=Wanted("there", "nobody")), NotFound, "--input-storage-credentials.*nobody"),
        (Buckets(output=Wanted("new-one", "nobody")), NotFound, "--output-storage-credentials.*nobody"),
        (Buckets(checkpoint=Wanted("there"), checkpoint_keep=0), UserError, "at least one"),
        (Buckets(input=Wanted("there"), require_output=True), UserError, "needs a bucket"),
        (wanted(output="Not A Name"), UserError, "cannot name a bucket"),
    ]
    for asked, kind, says in refusals:
        with pytest.raises(kind, match=says):
            yard.engine.settle(yard.spec("true", buckets=asked))
    assert sorted(path.name for path in yard.home.layout.buckets.iterdir()) == ["there"]


@pytest.mark.rule("BK-06", "BK-09", "BK-20", "CB-05")
def test_each_bucket_is_opened_by_its_own_credential(yard: Yard, tmp_path: Path) -> None:
    for name in ("one", "two"):
        root = tmp_path / name
        credentials.save(yard.home.layout, Credential(name, Kind.DIR, "folder", root=str(root)))
    Folder(tmp_path / "one", "data").create()
    Folder(tmp_path / "one", "data").put("a", Bytes(b"1"))
    asked = Buckets(input=Wanted("data", "one"), output=Wanted("data", "two"), checkpoint=Wanted(None, "two"))
    job_id = yard.shell(
        DIRS + "cp $I/a $O/b; echo 1 >$C/step; while [ ! -e go ]; do sleep 0.05; done", spot=True, buckets=asked
    )
    yard.until(job_id, S.RUNNING)
    assert Folder(tmp_path / "two", job_id).look() is not None
    (yard.work(job_id) / "go").touch()
    assert yard.done(job_id).state is S.COMPLETED, yard.log
    assert content(Folder(tmp_path / "two", "data"))[f"{job_id}/b"] == "1"
    assert Folder(tmp_path / "two", job_id).look() is None


@pytest.mark.rule("BK-18", "BK-19")
def test_a_job_gets_no_credential_and_neither_does_its_record(yard: Yard, tmp_path: Path) -> None:
    secret = "c2VjcmV0LXRoYXQtbXVzdC1ub3QtYmUtc2Vlbg=="
    credentials.save(yard.home.layout, Credential("one", Kind.DIR, "folder", root=str(tmp_path / "one"), value=secret))
    job_id = yard.shell(
        DIRS + "env >$O/env; cat /proc/self/environ >$O/environ", buckets=Buckets(output=Wanted("data", "one"))
    )
    yard.done(job_id)
    output = content(Folder(tmp_path / "one", "data"))
    assert f"{job_id}/env" in output and not any(secret in words for words in output.values())
    for path in yard.folder(job_id).rglob("*"):
        with contextlib.suppress(OSError):
            assert path.is_dir() or secret.encode() not in path.read_bytes()
    assert secret not in json.dumps(yard.published, default=str)


@pytest.mark.rule("C-174")
def test_a_secret_is_a_variable_of_the_job_read_anew_at_each_start(yard: Yard) -> None:
    layout = yard.home.layout
    with pytest.raises(NotFound, match="HF_TOKEN"):
        yard.engine.settle(yard.spec("true", secrets=("HF_TOKEN",)))
    secrets.save(layout, "HF_TOKEN", "hf_first")
    job_id = yard.shell('test "$HF_TOKEN" = hf_first && echo as it was || echo changed', secrets=("HF_TOKEN",))
    yard.done(job_id)
    assert yard.output(job_id) == "as it was\n"
    secrets.delete(layout, "HF_TOKEN")
    secrets.save(layout, "HF_TOKEN", "hf_second")
    yard.engine.resubmit(job_id, False, None)
    yard.done(job_id)
    assert yard.output(job_id) == "changed\n"
    for path in (*yard.folder(job_id).rglob("*.json"), *yard.folder(job_id).rglob("*.jsonl")):
        assert "hf_" not in path.read_text().replace("hf_first && echo", ""), path


@pytest.mark.rule("DA-02")
def test_a_file_that_a_job_removes_stays_in_its_output(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "EVERY_S", 0.05)
    line = DIRS + "echo 1 >$O/early; while [ ! -e go ]; do sleep 0.05; done; rm $O/early; echo 2 >$O/late"
    job_id = yard.shell(line, buckets=wanted(output="results"))
    storage = Folder(yard.home.layout.buckets, "results")
    eventually(lambda: f"{job_id}/early" in content(storage), lambda: yard.log)
    (yard.work(job_id) / "go").touch()
    yard.done(job_id)
    assert {f"{job_id}/early", f"{job_id}/late"} <= content(storage).keys()


def test_the_name_of_a_jobs_own_bucket_is_its_id_or_one_like_it() -> None:
    assert buckets._name_of("1a2b3c4d") == "1a2b3c4d"
    odd = buckets._name_of("My_Job.7")
    assert odd.startswith("my-job-7-") and odd != buckets._name_of("my-job.7")
    assert 3 <= len(buckets._name_of("x" * 64)) <= 63
    assert jobs.check_id("My_Job.7")


@pytest.mark.rule("BK-05", "CB-03", "SP-03", "LC-09")
def test_a_daemon_killed_while_it_saves_and_a_lost_host_cost_no_whole_checkpoint(yard: Yard) -> None:
    """The job has one file, of another name each time, and for a moment two: never an older one besides."""
    write = "while :; do n=$((n+1)); echo $n >next; mv next $C/$n; rm -f $C/$((n-1)); sleep 0.1; done"
    line = (
        DIRS + f'n=0; set -- $C/[0-9]*; if [ -e $1 ]; then echo "$#" >$O/count; cat $* >$O/found; exit 0; fi; {write}'
    )
    yard.engine.stop()
    argv = [sys.executable, "-m", "tests.engine.buckethost", str(yard.root), "00000001", line]
    log = os.open(yard.home.root / "host.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    child = proc.spawn(argv, stdout=log, stderr=log, env={**yard.home.env}, cwd=Path(__file__).parents[2])
    os.close(log)
    proc.let_go(child)
    who = proc.identity(child.pid)
    health = jobs.sync_folder(yard.folder("00000001")) / "health.json"

    def has_saved() -> bool:
        with contextlib.suppress(OSError, ValueError):
            return int(json.loads(health.read_bytes())["kept"]) >= 2
        return False

    eventually(has_saved, lambda: (yard.home.root / "host.log").read_text())
    proc.send(who, signal.SIGKILL)
    assert proc.wait_any(who, LIMIT_S)
    proc.reap(who.pid)
    yard.again().adopt(PROJECT)
    yard.until("00000001", S.RUNNING)
    yard.engine.preempt("00000001", False)
    end = yard.done("00000001")
    assert end.state is S.COMPLETED, yard.log
    results = content(Folder(yard.home.layout.buckets, "results"))
    numbers = [int(word) for word in results["00000001/found"].split()]
    assert int(results["00000001/count"]) <= 2 and max(numbers) - min(numbers) <= 1, results


@pytest.mark.rule("DA-02")
def test_a_storage_that_is_away_for_a_while_ends_no_job_and_loses_nothing(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "EVERY_S", 0.02)
    monkeypatch.setattr(retry, "PAUSES_S", (0.001,) * 3)
    bucket(yard, "models")
    really, away = Folder.put, threading.Event()
    away.set()
    tried: list[str] = []

    def put(self: Folder, name: str, *rest: object) -> object:
        if away.is_set():
            tried.append(name)
            raise Unavailable("the storage is away")
        return really(self, name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Folder, "put", put)
    line = DIRS + "echo 1 >$O/a; echo 1 >$C/step; while [ ! -e go ]; do sleep 0.05; done"
    job_id = yard.shell(line, buckets=wanted(output="results", checkpoint="models"))
    eventually(lambda: len(tried) > 20, lambda: yard.log)
    told = yard.show(job_id).checkpoints
    assert told is not None and told.health.problem == "the storage is away" and told.health.objects == 0
    assert yard.until(job_id, S.RUNNING)
    away.clear()
    eventually(lambda: checkpointed(yard, job_id) == 1, lambda: yard.log)
    (yard.work(job_id) / "go").touch()
    end = yard.done(job_id)
    assert (end.state, end.data_error) == (S.COMPLETED, None)
    assert content(Folder(yard.home.layout.buckets, "results"))[f"{job_id}/a"] == "1\n"


@pytest.mark.rule("BK-01", "BK-06", "BK-09", "BK-17", "BK-18", "CB-01", "CB-05")
def test_the_same_with_containers_of_azure(yard: Yard, loopback: None, azurite: Azurite) -> None:
    endpoint = f"{azurite.url}/{ACCOUNT}"
    made = Credential("work", Kind.AZURE, "account key", account=ACCOUNT, endpoint=endpoint, value=KEY)
    credentials.save(yard.home.layout, made)
    bucket(yard, "datasets", a="1")
    asked = Buckets(Wanted("datasets"), Wanted("results", "work"), Wanted(None, "work"), checkpoint_keep=1)
    line = DIRS + "cp $I/a $O/b; env >$O/env; if [ -e $C/s ]; then exit 0; fi; echo 1 >$C/s; kill -9 $$"
    job_id = yard.shell(line, spot=True, buckets=asked)
    yard.done(job_id)
    results = yard.door.open("results", "work")
    found = {one.name: results.read(one.name, 0, one.size_bytes).decode() for one in objects(results)}
    assert found[f"{job_id}/b"] == "1" and KEY not in found[f"{job_id}/env"]
    assert f".aj/logs/{job_id}/1/rank0.out" in found
    assert yard.door.open(job_id, "work").look() is None, "its own container went with it"


@pytest.mark.rule("BK-16")
def test_an_account_that_takes_no_keys_is_refused_at_admission(yard: Yard, loopback: None) -> None:
    def answer(_: Got) -> Answer:
        return Answer(403, headers={"x-ms-error-code": "KeyBasedAuthenticationNotPermitted"})

    with serving(answer) as server:
        made = Credential("work", Kind.AZURE, "account key", account="acc", endpoint=f"{server.url}/acc", value=KEY)
        credentials.save(yard.home.layout, made)
        with pytest.raises(Refused, match="acc takes no account keys"):
            yard.engine.settle(yard.spec("true", buckets=Buckets(input=Wanted("data", "work"))))


@pytest.mark.rule("BK-24")
def test_what_leaves_a_storage_is_priced_by_list() -> None:
    assert prices.egress_usd("azure", 500 * 10**9) == pytest.approx(43.5)
    assert prices.egress_usd("s3", 500 * 10**9) == pytest.approx(45)
    assert prices.egress_usd("gcs", 500 * 10**9) == pytest.approx(60)
    assert prices.egress_words(Kind.AZURE, 10**6) is None and prices.egress_words(Kind.DIR, 10**12) is None
    assert "about $43.50" in (prices.egress_words(Kind.AZURE, 500 * 10**9) or "")


def test_a_restore_that_the_daemon_cuts_off_by_leaving_costs_no_try(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket(yard, "datasets", a="1")
    really, leaving = mirror.download, threading.Event()

    def slow(*words: object, **more: object) -> object:
        leaving.set()
        pace = words[2]
        assert isinstance(pace, Pace) and pace.stop.wait(LIMIT_S)
        return really(*words, **more)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(mirror, "download", slow)
        job_id = yard.shell(DIRS + "cat $I/a", buckets=wanted(input="datasets"))
        assert leaving.wait(LIMIT_S)
        yard.engine.stop()
    yard.again().adopt(PROJECT)
    assert yard.done(job_id).state is S.COMPLETED
    assert S.RETRYING not in [event.state for event in yard.show(job_id).events]


@pytest.mark.rule("BK-20")
def test_what_a_job_needs_is_not_deleted_under_it(yard: Yard, tmp_path: Path) -> None:
    storages = Storages(yard.home.layout, yard.door, clocks.SYSTEM)
    credentials.save(yard.home.layout, Credential("disk", Kind.DIR, "folder", root=str(tmp_path / "disk")))
    asked = Buckets(output=Wanted("results", "disk"))
    job_id = yard.shell("while [ ! -e go ]; do sleep 0.05; done", buckets=asked)
    yard.until(job_id, S.RUNNING)
    for act in (lambda: storages.delete_credential("disk"), lambda: storages.delete("results", "disk")):
        with pytest.raises(Refused, match=job_id):
            act()
    (yard.work(job_id) / "go").touch()
    yard.done(job_id)
    assert storages.delete("results", "disk").status == "ok"
    assert storages.delete_credential("disk").status == "ok"
