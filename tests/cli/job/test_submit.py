"""aj job IMAGE, aj job preempt, aj status --watch: what they take, what they refuse, and what comes of it."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Shell


@pytest.mark.rule("C-019", "SB-01", "SB-04", "WK-01", "LC-18", "LC-22", "OP-04")
def test_a_command_runs_on_the_machine_itself_without_project_template_or_code(live: Shell) -> None:
    seen = live(
        "job",
        "local/host",
        "--wait",
        "--json",
        "--max-runtime",
        "1h",
        "-e",
        "A=b",
        "--",
        "sh",
        "-c",
        "ls -A; [ $A = b ]",
    )
    job = seen.json["item"]["job"]
    assert (seen.code, job["state"], job["image"], job["codeDigest"]) == (0, "completed", "local/host", None)
    assert (job["spot"], job["maxRuntime_s"], job["imageDigest"], len(job["vms"])) == (False, 3600.0, None, 1)
    assert live("logs", job["id"]).out == "", "its folder is empty"
    told = live("status", job["id"]).out
    assert "image\tlocal/host" in told and "  completed" in told


@pytest.mark.rule("C-025b", "SP-01", "SP-02", "SP-07", "LC-18")
def test_a_spot_job_is_seen_to_lose_its_host_and_to_come_back(live: Shell) -> None:
    line = "test -e again && exit 0; touch again; echo up; sleep 300"
    job_id = live("job", "local/host", "--spot", "-o", "name", "--", "sh", "-c", line).out.strip()
    while "up" not in live("logs", job_id, "-q").out:
        assert live("status", job_id, "--json").json["item"]["workload"]["completedAt"] is None
    played = live("job", "preempt", job_id, "--restartable", "--json").json["items"][0]
    assert (played["id"], played["status"], played["detail"]) == (job_id, "ok", "its host comes back")
    watched = live("status", job_id, "--watch")
    assert watched.code == 0 and watched.out.rstrip().endswith("completed")
    assert "spot\t1 recovery, 1 host so far" in watched.out
    waited = live("wait", job_id)
    assert waited.code == 0 and "recovering  the host was preempted" in waited.out


@pytest.mark.rule("SP-01", "C-068")
def test_a_host_that_is_gone_before_anything_was_saved_is_told_so(live: Shell) -> None:
    line = "echo up; sleep 300"
    job_id = live("job", "local/host", "--spot", "-o", "name", "--", "sh", "-c", line).out.strip()
    while "up" not in live("logs", job_id, "-q").out:
        assert live("status", job_id, "--json").json["item"]["workload"]["completedAt"] is None
    played = live("job", "preempt", job_id, "--json").json["items"][0]
    assert played["detail"] == "its host is gone; nothing was saved yet, so it begins anew"
    live("terminate", job_id, "--wait")
    gone = live("job", "preempt", job_id)
    assert gone.code == 5 and f"hint: `aj resubmit {job_id}` runs it again" in gone.err
    entered = live("exec", job_id, "true")
    assert entered.code == 5 and f"hint: `aj logs {job_id}` shows what it printed" in entered.err


@pytest.mark.rule("C-068")
def test_who_asks_for_spot_elsewhere_hears_how_it_is_said(live: Shell) -> None:
    live.write("train.sh", "true\n")
    job_id = live("run", "--wait", "--json", "true").json["item"]["id"]
    refused = live("job", "preempt", job_id)
    assert "from a template with `target: {spot: true}`" in refused.err and "`aj job --spot`" in refused.err
    assert "`target: {spot: true}`" in live("run", "--spot", "true").err


@pytest.mark.rule("C-019")
@pytest.mark.parametrize(
    ("words", "code", "error", "hint"),
    [
        (("lsit",), 2, "`lsit` is no command of `aj job`", "`aj job list`; for an image of that name"),
        (("local/host",), 2, "CMD is missing", "`aj job local/host -- CMD`"),
        (("UPPER/x", "--", "true"), 2, "`UPPER/x` is no image", "registry.example/train:1"),
        (("x:1", "--gpu-type", "h100:8"), 2, "`--gpu-type` is no option here", "chooses a machine by `sku`"),
        (("x:1", "--vm-type", "a"), 2, "`--vm-type` is no option here", "chooses a machine by `sku`"),
        (("x:1", "--credentials", "a"), 2, "`--credentials` is no option here", "nothing is rented"),
        (("x:1", "--bind", "/a:/b"), 2, "`--bind` is no option here", "--input-bucket"),
        (("x:1", "--ipc", "private"), 2, "`private` is none of host", ""),
        (("x:1", "--cpus", "none"), 2, "`none` is no count of CPUs", ""),
        (("x:1", "--shm-size", "2g", "--memory", "1Gi"), 2, "counts against `memory`", "raise `memory`"),
        (("x:1", "--queue", "--wait"), 2, "`--queue` returns at once", ""),
        (("local/host", "--gpus", "all", "--", "true"), 2, "this machine has no GPU", "local.gpus"),
    ],
)
def test_what_local_cannot_serve_is_refused_before_anything_is_sent(
    aj: Shell, programs: None, words: tuple[str, ...], code: int, error: str, hint: str
) -> None:
    seen = aj("job", *words)
    assert seen.code == code and error in seen.err and hint in seen.err


@pytest.mark.rule("C-021")
def test_watching_is_for_one_job_and_a_person(aj: Shell) -> None:
    assert "`--watch` needs one job" in aj("status", "--watch").err
    assert "`--watch` is for a person" in aj("status", "1a2b3c4d", "--watch", "--json").err
