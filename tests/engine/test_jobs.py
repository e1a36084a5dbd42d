"""Driven jobs through every accident: daemons killed at any step, hosts lost, ends asked for, and runs again."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from aj.backend.local import attempt
from aj.backend.protocol import Fate, Observation, SetupFailed, SetupInvalid
from aj.base import clock as clocks
from aj.base import crash, paths, proc
from aj.base.clock import rfc3339
from aj.base.errors import AjError, NotFound, Refused, UserError
from aj.model.json import Json
from aj.model.state import JobState
from aj.model.ticket import Mode
from aj.model.workload import Workload
from aj.store import jobs, jsonl
from aj.wire.messages import Exec
from tests.conftest import Home
from tests.engine.play import Play
from tests.jobs import EARLY
from tests.yard import PROJECT, Yard, is_gone

S = JobState


@pytest.fixture
def yard(home: Home, tmp_path: Path, programs: None, real_clock: None) -> Iterator[Yard]:
    found = Yard(home, tmp_path / "project")
    try:
        yield found
    finally:
        found.close()


def hosted(yard: Yard, line: str, **variables: str) -> proc.Identity:
    """Run the engine in a process of its own with one job, `00000001`."""
    yard.engine.stop()
    argv = [sys.executable, "-m", "tests.engine.jobhost", str(yard.root), "00000001", line]
    env = {**yard.home.env, **variables}
    log = os.open(yard.home.root / "host.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    child = proc.spawn(argv, stdout=log, stderr=log, env=env, cwd=Path(__file__).parents[2])
    os.close(log)
    proc.let_go(child)
    return proc.identity(child.pid)


def ended(yard: Yard, who: proc.Identity) -> None:
    assert proc.wait_any(who, 30), (yard.home.root / "host.log").read_text()
    proc.reap(who.pid)


def history(yard: Yard, job_id: str) -> list[str]:
    path = jobs.events_file(yard.folder(job_id))
    lines = list(jsonl.read(path, lambda where: pytest.fail(where)))
    assert [line["number"] for line in lines] == list(range(1, len(lines) + 1))
    return [str(line["state"]) for line in lines]


POINTS = [point for point in crash.POINTS if point.startswith(("drive.", "finish."))]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.rule("T32", "T44", "T48")
def test_a_daemon_killed_at_any_step_is_replaced_and_the_job_ran_once(yard: Yard, point: str) -> None:
    ran = yard.root / "ran"
    who = hosted(yard, f"echo ran >> {ran}; exit 5", AJ_TEST_CRASH=point)
    ended(yard, who)
    left = jobs.read(yard.home.layout, "00000001")
    assert not left.is_over, "it was killed on the way"
    yard.again().adopt(PROJECT)
    end = yard.done("00000001")
    assert (end.state, end.exit_code, end.attempt) == (S.ERRORED, 5, 1)
    assert ran.read_text() == "ran\n"
    assert history(yard, "00000001") == ["queued", "provisioning", "initializing", "starting", "running", "errored"]
    assert yard.log == []


@pytest.mark.rule("T32")
def test_a_job_outlives_its_daemon_and_the_next_one_learns_how_it_ended(yard: Yard) -> None:
    go = yard.root / "go"
    who = hosted(yard, f"echo $$ > pid; while ! [ -e {go} ]; do sleep 0.02; done; echo done; exit 8")
    pid = int(yard.wait_for(yard.work("00000001") / "pid"))
    proc.send(who, signal.SIGKILL)
    ended(yard, who)
    assert proc.start_time(pid) is not None
    supervisor = yard.supervisor("00000001")
    go.touch()
    assert proc.wait_any(supervisor, 20), "it ended while nobody was there"
    ended_by = rfc3339(clocks.SYSTEM.now())
    yard.again().adopt(PROJECT)
    end = yard.done("00000001")
    assert (end.state, end.exit_code, yard.output("00000001")) == (S.ERRORED, 8, "done\n")
    assert end.completed_at is not None and end.completed_at <= ended_by


def test_a_running_job_is_taken_up_watched_and_can_be_ended(yard: Yard) -> None:
    who = hosted(yard, "echo $$ > pid; exec sleep 300")
    pid = int(yard.wait_for(yard.work("00000001") / "pid"))
    proc.send(who, signal.SIGKILL)
    ended(yard, who)
    yard.again().adopt(PROJECT)
    yard.engine.adopt(PROJECT)
    yard.until("00000001", S.RUNNING)
    assert yard.engine.running() == 1
    yard.engine.terminate("00000001", 5)
    assert yard.done("00000001").state is S.TERMINATED and is_gone(pid)


def test_a_supervisor_lost_while_no_daemon_was_there_is_a_lost_host(yard: Yard) -> None:
    job_id = yard.shell("echo $$ > pid; exec sleep 300")
    pid = int(yard.wait_for(yard.work(job_id) / "pid"))
    yard.until(job_id, S.RUNNING)
    yard.engine.stop()
    proc.send(yard.supervisor(job_id), signal.SIGKILL)
    assert is_gone(pid), "the kernel saw to it: nobody of us was there"
    yard.again().adopt(PROJECT)
    end = yard.done(job_id)
    assert (end.state, end.reason) == (S.FAILED, "host-lost")


@pytest.mark.parametrize("other", [{"boot_id": "an earlier one"}, {"start_time": "1"}])
def test_another_process_of_the_same_number_is_never_touched(yard: Yard, other: dict[str, str]) -> None:
    job_id = yard.shell("exec sleep 300")
    yard.until(job_id, S.RUNNING)
    yard.engine.stop()
    who = yard.supervisor(job_id)
    proc.send(who, signal.SIGKILL)
    assert proc.wait_any(who, 5)
    proc.reap(who.pid)
    bystander = proc.spawn(["sleep", "300"], stdout=1, stderr=2)
    named = replace(proc.identity(bystander.pid), **other)
    path = jobs.attempt_folder(yard.folder(job_id), 1) / "supervisor.json"
    path.write_text(json.dumps(vars(named)))
    yard.again().adopt(PROJECT)
    assert yard.done(job_id).reason == "host-lost"
    assert bystander.poll() is None, "it has the number, but it is not the supervisor"
    bystander.kill()
    bystander.wait()


@pytest.mark.rule("C-025")
def test_the_wish_to_end_a_job_survives_the_daemon(yard: Yard) -> None:
    job_id = yard.shell("exec sleep 300")
    yard.until(job_id, S.RUNNING)
    yard.engine.stop()
    job = jobs.read(yard.home.layout, job_id)
    asked = replace(job, terminating_since=rfc3339(clocks.SYSTEM.now()), grace_s=5.0)
    jobs.save(yard.home.layout, asked)  # and here the daemon was killed
    yard.again().adopt(PROJECT)
    assert yard.done(job_id).state is S.TERMINATED


def test_a_start_that_is_still_on_its_way_when_its_job_is_ended_does_not_run(yard: Yard) -> None:
    ran = yard.root / "ran"
    ended(yard, hosted(yard, f"echo ran >> {ran}", AJ_TEST_CRASH="drive.before-spawn"))
    asked = replace(jobs.read(yard.home.layout, "00000001"), terminating_since=EARLY, grace_s=5.0)
    jobs.save(yard.home.layout, asked)
    yard.again().adopt(PROJECT)
    assert yard.done("00000001").state is S.TERMINATED
    place = jobs.attempt_folder(yard.folder("00000001"), 1)
    rank = {"node": 0, "cwd": "/", "argv": ["sh", "-c", f"echo ran >> {ran}"], "env": {}}
    attempt.write_request(place, attempt.Request(str(yard.folder("00000001")), 1, (), (rank,)))
    late = proc.run([*paths.program(), "__supervise", str(place)], timeout_s=30)  # as a slow machine would
    assert late.code == 0 and not ran.exists()
    assert attempt.exit_record(place) is not None


@pytest.mark.rule("C-026", "LC-14", "LC-15")
def test_a_job_runs_again_from_the_same_code_in_a_fresh_folder(yard: Yard) -> None:
    job_id = yard.shell("echo line >> made; cat train.py; exit 2", {"train.py": "as submitted\n"})
    first = yard.done(job_id)
    (yard.root / "train.py").write_text("edited\n")
    (yard.work(job_id) / "train.py").write_text("broken by the job\n")
    assert yard.engine.resubmit(job_id, False, 60.0).workload.submission_revision == 1
    again = yard.done(job_id)
    assert (again.state, again.exit_code, again.attempt, again.setup_attempt) == (S.ERRORED, 2, 2, 1)
    assert again.created_at == first.created_at and again.deadline_at is not None
    assert (yard.output(job_id), yard.output(job_id, number=1)) == ("as submitted\n", "as submitted\n")
    assert (yard.work(job_id) / "made").read_text() == "line\n"
    assert (yard.folder(job_id) / "work" / "submission-0" / "node0" / "made").read_text() == "line\n"


def test_a_job_that_has_not_ended_or_lost_its_code_does_not_run_again(yard: Yard) -> None:
    job_id = yard.shell("exec sleep 300")
    with pytest.raises(Refused, match="has not ended"):
        yard.engine.resubmit(job_id, True, None)
    with pytest.raises(Refused, match="has not ended"):
        yard.engine.delete(job_id)
    yard.engine.terminate(job_id, 1)
    yard.done(job_id)
    for path in yard.home.layout.code.iterdir():
        path.unlink()
    with pytest.raises(Refused, match="no longer kept"):
        yard.engine.resubmit(job_id, False, None)
    assert yard.engine.delete(job_id).status == "deleted"
    assert not yard.folder(job_id).exists()
    with pytest.raises(NotFound):
        yard.show(job_id)


def test_the_same_submission_is_admitted_once_and_another_of_its_id_not_at_all(yard: Yard) -> None:
    wanted = yard.spec("true")
    yard.admit(wanted)
    yard.admit(wanted)
    with pytest.raises(Refused, match="already"):
        yard.engine.admit(wanted, None, ticket="aj-other", project_key=PROJECT, accepted_at=EARLY, mode=Mode.DIRECT)
    yard.done(wanted.id)
    assert yard.show(wanted.id).workload.submission_revision == 0
    yard.admit(wanted)
    assert [job.id for job in yard.engine.list(PROJECT, [S.COMPLETED], 5).jobs] == [wanted.id]
    assert yard.engine.find("ffffffff") is None


@pytest.fixture
def play(home: Home) -> Iterator[Play]:
    found = Play(home)
    try:
        yield found
    finally:
        found.engine.stop()


@pytest.mark.rule("LC-05", "LC-07")
def test_a_setup_that_fails_is_tried_again_when_it_is_due(play: Play) -> None:
    play.driver.fails[S.STARTING] = [SetupFailed("no room"), OSError(28, "No space left on device")]
    play.admit("aaaaaaaa")
    for tries, (low, high), words in ((1, (8, 12), "no room"), (2, (16, 24), "No space left")):
        play.that(lambda tries=tries: play.driver.done.count(("aaaaaaaa", "starting")) == tries)
        job = play.until("aaaaaaaa", S.QUEUED)
        assert job.retry is not None and job.retry.attempt == tries and words in job.retry.message
        assert job.retry.earliest_at - play.clock.at == pytest.approx(low)
        assert job.retry.latest_at - play.clock.at == pytest.approx(high)
        play.clock.at += high
    job = play.until("aaaaaaaa", S.RUNNING)
    assert (job.setup_attempt, job.attempt, job.retry) == (3, 3, None)
    assert job.notes == ("provisioning was noted", "starting was noted")


@pytest.mark.rule("LC-07")
def test_the_hundredth_failure_is_the_last(play: Play) -> None:
    play.engine.stop()
    play.admit("aaaaaaaa")
    jobs.save(play.home.layout, replace(jobs.read(play.home.layout, "aaaaaaaa"), setup_attempt=98))
    play.driver.fails[S.PROVISIONING] = [SetupFailed(f"no room {number}") for number in (99, 100, 101)]
    play.again().adopt(PROJECT)
    play.that(lambda: play.engine.show("aaaaaaaa").workload.retry is not None)
    play.clock.at += 720
    job = play.until("aaaaaaaa", S.FAILED)
    assert (job.reason, job.setup_attempt) == ("setup-attempts-exhausted", 100)
    assert job.message == "setup failed 100 times, the last time: no room 100"


@pytest.mark.rule("LC-11")
def test_what_can_never_work_is_not_tried_again(play: Play) -> None:
    play.driver.fails[S.STARTING] = [SetupInvalid("no such image")]
    play.admit("aaaaaaaa")
    job = play.until("aaaaaaaa", S.INVALID, cleaned=True)
    assert (job.message, job.setup_attempt) == ("no such image", 1)


def test_a_request_that_is_damaged_on_disk_is_invalid(play: Play) -> None:
    play.driver.places = 0
    play.admit("aaaaaaaa")
    jobs.spec_file(play.home.layout.job("aaaaaaaa")).write_text("{")
    play.driver.places = 1
    play.admit("bbbbbbbb")
    assert "spec.json is damaged" in (play.until("aaaaaaaa", S.INVALID).message or "")
    play.until("bbbbbbbb", S.RUNNING)


def test_who_waits_says_why_and_starts_when_there_is_room(play: Play) -> None:
    play.driver.places = 1
    for name in ("aaaaaaaa", "bbbbbbbb", "cccccccc"):
        play.admit(name)
    play.until("aaaaaaaa", S.RUNNING)
    play.that(lambda: play.engine.show("cccccccc").workload.waiting_for is not None)
    assert play.engine.show("bbbbbbbb").workload.waiting_for == "a free slot: all 1 are taken"
    assert play.engine.show("cccccccc").workload.waiting_for == "job bbbbbbbb, which is before it in the line"
    assert (play.engine.show("bbbbbbbb").jobs_ahead, play.engine.show("cccccccc").jobs_ahead) == (0, 1)
    assert (play.engine.running(), play.engine.queued()) == (1, 2)
    play.driver.ends["aaaaaaaa"] = Observation(Fate.EXITED, exit_code=0)
    assert play.until("bbbbbbbb", S.RUNNING).waiting_for is None


@pytest.mark.rule("QT-04", "C-022")
def test_a_job_that_could_not_start_in_time_fails_with_the_reason_it_waited_for(play: Play) -> None:
    play.driver.places = 1
    play.admit("aaaaaaaa")
    play.until("aaaaaaaa", S.RUNNING)
    play.admit("bbbbbbbb", start_timeout_s=1800.0)
    play.that(lambda: play.engine.show("bbbbbbbb").workload.waiting_for is not None)
    play.clock.at += 1801
    job = play.until("bbbbbbbb", S.FAILED)
    assert job.reason == "claim-deadline-expired"
    assert job.message == "it could not start within 30m00s; it waited for a free slot: all 1 are taken"


@pytest.mark.rule("T47")
def test_a_job_that_waits_is_terminated_at_once_and_never_starts(play: Play) -> None:
    play.driver.places = 0
    play.admit("aaaaaaaa")
    assert play.engine.terminate("aaaaaaaa", None).workload.state is S.TERMINATED
    play.driver.places = 2
    play.admit("bbbbbbbb")
    play.until("bbbbbbbb", S.RUNNING)
    assert all(name != "aaaaaaaa" or what == "teardown" for name, what in play.driver.done)


def test_an_end_asked_for_in_the_midst_of_setup_is_kept_after_the_start(play: Play) -> None:
    begun, go = threading.Event(), threading.Event()
    step = play.driver.step

    def slow(state: JobState, job: Workload, folder: Path) -> Mapping[str, Json]:
        if state is S.STARTING:
            begun.set()
            go.wait(10)
        return step(state, job, folder)

    play.driver.step = slow  # type: ignore[method-assign]
    play.admit("aaaaaaaa")
    assert begun.wait(10)
    assert play.engine.terminate("aaaaaaaa", 3).workload.state is S.STARTING
    go.set()
    job = play.until("aaaaaaaa", S.TERMINATED)
    assert job.exit_code == 143
    assert play.driver.done.count(("aaaaaaaa", "terminate 3")) == 2, "once at once, and again when it had started"


@pytest.mark.rule("LC-13", "LC-14", "LC-16")
def test_the_end_is_told_before_the_teardown_which_is_tried_until_it_works(play: Play) -> None:
    play.driver.teardowns = [AjError("processes do not end: 7"), AjError("processes do not end: 7")]
    play.driver.ends["aaaaaaaa"] = Observation(Fate.EXITED, exit_code=0)
    play.admit("aaaaaaaa")
    play.until("aaaaaaaa", S.COMPLETED)
    play.that(lambda: play.engine.show("aaaaaaaa").workload.cleanup_error == "processes do not end: 7")
    with pytest.raises(Refused, match="not cleaned up yet: processes do not end"):
        play.engine.resubmit("aaaaaaaa", False, None)
    for tries in (2, 3):
        play.clock.at += 5
        play.that(lambda tries=tries: play.driver.done.count(("aaaaaaaa", "teardown")) >= tries)
    job = play.until("aaaaaaaa", S.COMPLETED, cleaned=True)
    assert job.cleanup_error is None
    assert len(play.engine.show("aaaaaaaa").events) == 5, "a teardown is no event"


@pytest.mark.rule("C-026")
def test_a_promise_to_run_again_is_kept_also_by_the_next_daemon(play: Play) -> None:
    play.driver.teardowns = [AjError("busy")]
    play.driver.ends["aaaaaaaa"] = Observation(Fate.LOST, message="gone")
    play.admit("aaaaaaaa")
    assert play.until("aaaaaaaa", S.FAILED).reason == "host-lost"
    play.that(lambda: play.engine.show("aaaaaaaa").workload.cleanup_error is not None)
    assert play.engine.resubmit("aaaaaaaa", True, 90.0).workload.resubmit_when_clean
    play.engine.stop()
    del play.driver.ends["aaaaaaaa"]
    play.again().adopt(PROJECT)
    job = play.until("aaaaaaaa", S.RUNNING)
    assert (job.submission_revision, job.resubmit_when_clean, job.deadline_at) == (1, False, play.clock.at + 90)


def test_a_promise_whose_keeping_was_cut_off_is_kept(play: Play) -> None:
    play.driver.ends["aaaaaaaa"] = Observation(Fate.EXITED, exit_code=0)
    play.admit("aaaaaaaa")
    job = play.until("aaaaaaaa", S.COMPLETED, cleaned=True)
    play.engine.stop()
    jobs.save(play.home.layout, replace(job, resubmit_when_clean=True))
    del play.driver.ends["aaaaaaaa"]
    assert play.again().unfinished_projects() == {PROJECT}
    play.engine.adopt(PROJECT)
    assert play.until("aaaaaaaa", S.RUNNING).submission_revision == 1


def test_what_stood_between_two_states_goes_on(play: Play) -> None:
    play.engine.stop()
    for name, state in (("aaaaaaaa", S.RETRYING), ("bbbbbbbb", S.RECOVERING)):
        play.admit(name)
        jobs.save(play.home.layout, replace(jobs.read(play.home.layout, name), state=state))
    play.again().adopt(PROJECT)
    for name in ("aaaaaaaa", "bbbbbbbb"):
        play.until(name, S.RUNNING)


def test_another_project_is_taken_up_when_a_job_of_it_is_asked_for(play: Play) -> None:
    play.admit("aaaaaaaa")
    play.until("aaaaaaaa", S.RUNNING)
    play.engine.stop()
    play.again()
    assert play.engine.show("aaaaaaaa").workload.state is S.RUNNING
    assert play.engine.running() == 0
    asked: list[str] = []
    play.engine.open_project = asked.append
    play.driver.ends["aaaaaaaa"] = Observation(Fate.EXITED, exit_code=0)
    play.engine.show("aaaaaaaa")
    assert asked == [PROJECT]
    play.until("aaaaaaaa", S.COMPLETED, cleaned=True)


def test_a_job_of_another_daemon_is_shown_and_left_alone(play: Play) -> None:
    play.admit("aaaaaaaa")
    play.until("aaaaaaaa", S.RUNNING)
    play.engine.stop()

    def refuse(key: str) -> None:
        raise Refused(f"{key} is held by process 7")

    play.again().open_project = refuse
    assert play.engine.show("aaaaaaaa").workload.state is S.RUNNING
    for act in (
        lambda: play.engine.terminate("aaaaaaaa", None),
        lambda: play.engine.resubmit("aaaaaaaa", False, None),
        lambda: play.engine.delete("aaaaaaaa"),
    ):
        with pytest.raises(Refused, match="held by process 7"):
            act()


def test_an_error_of_our_own_in_setup_fails_the_job_and_is_not_hidden(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[BaseException | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: seen.append(args.exc_value))
    play.driver.fails[S.PROVISIONING] = [KeyError("oops")]
    play.admit("aaaaaaaa")
    job = play.until("aaaaaaaa", S.FAILED, cleaned=True)
    assert (job.reason, job.message) == ("internal-error", "KeyError: 'oops'")
    play.that(lambda: len(seen) == 1)


def test_a_disk_that_refuses_the_outcome_only_delays_it(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    from aj.store import atomic

    play.admit("aaaaaaaa")
    play.until("aaaaaaaa", S.RUNNING)
    real = jobs.save
    refused: list[str] = []

    def full(layout: object, workload: Workload) -> None:
        if workload.state is S.COMPLETED and len(refused) < 2:
            refused.append(workload.id)
            raise atomic.cannot_write("record.json", OSError(28, ""))
        real(layout, workload)  # type: ignore[arg-type]

    monkeypatch.setattr(jobs, "save", full)
    play.driver.ends["aaaaaaaa"] = Observation(Fate.EXITED, exit_code=0)
    for tries in (1, 2):
        play.that(lambda tries=tries: len(refused) == tries)
        assert play.engine.show("aaaaaaaa").workload.state is S.RUNNING
        play.clock.at += 5
    assert play.until("aaaaaaaa", S.COMPLETED).exit_code == 0


def test_damaged_records_are_told_and_the_rest_works(play: Play) -> None:
    play.admit("aaaaaaaa")
    play.engine.stop()
    (play.home.layout.jobs / "bbbbbbbb").mkdir()
    jobs.record_file(play.home.layout.job("bbbbbbbb")).write_text("{")
    play.again().adopt(PROJECT)
    play.until("aaaaaaaa", S.RUNNING)
    assert any("set aside" in words for words in play.engine.show("aaaaaaaa").warnings)
    assert [job.id for job in play.engine.list(None, [], 9).jobs] == ["aaaaaaaa"]


def test_a_wait_ends_with_its_time_or_when_the_daemon_leaves(play: Play) -> None:
    play.admit("aaaaaaaa")
    job = play.until("aaaaaaaa", S.RUNNING)
    number = job.last_event.number if job.last_event else 0
    assert play.engine.wait("aaaaaaaa", number, 0.01).workload.state is S.RUNNING
    assert play.engine.wait("aaaaaaaa", 0, 10).events_total == number
    leaving = threading.Timer(0.05, play.engine.stop)
    leaving.start()
    assert play.engine.wait("aaaaaaaa", number, 30).workload.state is S.RUNNING
    leaving.join()
    with pytest.raises(NotFound):
        play.engine.wait("ffffffff", 0, 1)
    with pytest.raises(UserError):
        play.engine.exec_plan("aaaaaaaa", Exec(()))


def test_no_job_leaves_a_value_of_its_environment_in_an_answer(play: Play) -> None:
    play.admit("aaaaaaaa", env={"TOKEN": "hush-hush"})
    play.until("aaaaaaaa", S.RUNNING)
    assert "hush-hush" not in repr(play.engine.show("aaaaaaaa"))
    assert "hush-hush" not in repr(play.engine.list(None, [], 1))
    assert play.engine.show("aaaaaaaa").workload.spec is None


# The upgrade of the daemon


@pytest.mark.rule("UP-01", "UP-02")
def test_nothing_starts_while_an_upgrade_waits_for_what_runs(play: Play) -> None:
    play.admit("aaaaaaaa")
    play.until("aaaaaaaa", S.RUNNING)
    assert play.engine.hold(60, stop=False) == 1
    play.admit("bbbbbbbb")
    play.that(lambda: play.engine.show("bbbbbbbb").workload.waiting_for == "the upgrade of the daemon")
    play.driver.ends["aaaaaaaa"] = Observation(Fate.EXITED, exit_code=0)
    play.until("aaaaaaaa", S.COMPLETED)
    assert play.engine.hold(60, stop=False) == 0
    assert play.engine.show("bbbbbbbb").workload.state is S.QUEUED
    play.engine.stop()
    play.again().adopt(PROJECT)
    play.until("bbbbbbbb", S.RUNNING)


@pytest.mark.rule("UP-02")
def test_who_waits_for_an_upgrade_and_goes_away_lets_the_jobs_start(play: Play) -> None:
    play.engine.hold(60, stop=False)
    play.admit("aaaaaaaa")
    play.that(lambda: play.engine.show("aaaaaaaa").workload.waiting_for is not None)
    play.clock.at += 61
    play.until("aaaaaaaa", S.RUNNING)


@pytest.mark.rule("UP-03", "LC-09")
def test_a_forced_upgrade_stops_what_runs_and_it_runs_again_afterwards(play: Play) -> None:
    play.admit("aaaaaaaa", start_timeout_s=30.0)
    play.until("aaaaaaaa", S.RUNNING)
    play.engine.hold(600, stop=True)
    job = play.until("aaaaaaaa", S.QUEUED)
    assert (job.recoveries, job.setup_attempt, job.attempt, job.recover_for) == (1, 0, 1, None)
    assert (job.exit_code, job.completed_at, job.message) == (None, None, "stopped for the upgrade of the daemon")
    assert [one.state.value for one in play.engine.show("aaaaaaaa").events][-3:] == ["running", "recovering", "queued"]
    assert play.driver.done.count(("aaaaaaaa", "terminate 30")) == 1
    assert play.engine.hold(600, stop=True) == 0
    play.engine.stop()
    play.driver.ends.clear()
    play.clock.at += 100  # past its deadline, which was for the first start
    play.again().adopt(PROJECT)
    assert play.until("aaaaaaaa", S.RUNNING).attempt == 2
    play.driver.ends["aaaaaaaa"] = Observation(Fate.EXITED, exit_code=0)
    assert play.until("aaaaaaaa", S.COMPLETED).recoveries == 1


@pytest.mark.rule("UP-03")
def test_a_daemon_that_dies_in_the_midst_of_it_is_replaced_by_one_that_goes_on(play: Play) -> None:
    play.admit("aaaaaaaa")
    play.until("aaaaaaaa", S.RUNNING)
    play.engine.stop()
    jobs.save(play.home.layout, replace(jobs.read(play.home.layout, "aaaaaaaa"), recover_for="an upgrade"))
    play.again().hold(600, stop=False)
    play.engine.adopt(PROJECT)
    assert play.until("aaaaaaaa", S.QUEUED).recoveries == 1
    assert play.driver.done.count(("aaaaaaaa", "terminate 30")) == 1
    play.driver.ends.clear()
    play.clock.at += 601
    assert play.until("aaaaaaaa", S.RUNNING).attempt == 2


def test_what_is_asked_to_end_does_not_run_again(play: Play) -> None:
    play.admit("aaaaaaaa")
    play.until("aaaaaaaa", S.RUNNING)
    play.engine.terminate("aaaaaaaa", None)
    play.engine.hold(600, stop=True)
    assert play.until("aaaaaaaa", S.TERMINATED).recoveries == 0
