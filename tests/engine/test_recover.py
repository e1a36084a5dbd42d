"""Jobs on spot that lose their host, and jobs with buckets: told by the clock of the test, hours pass at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from aj.backend.protocol import Fate, Observation, SetupFailed
from aj.base.errors import AjError, Refused
from aj.engine.artifacts import EVERY_S, LAST_S
from aj.model.bucket import Purpose
from aj.model.state import JobState
from aj.store import jobs
from tests.conftest import Home
from tests.engine.play import Play
from tests.yard import PROJECT

S = JobState
JOB = "aaaaaaaa"
EXIT_0 = Observation(Fate.EXITED, exit_code=0)
LOST = Observation(Fate.LOST, message="the supervisor is gone")


@pytest.fixture
def play(home: Home) -> Iterator[Play]:
    found = Play(home)
    try:
        yield found
    finally:
        found.engine.stop()


def done(play: Play, what: str) -> int:
    return play.driver.done.count((JOB, what))


def saved(play: Play, what: str) -> int:
    return play.box.done.count((JOB, what))


def running(play: Play, **changes: object) -> None:
    play.admit(JOB, spot=True, **changes)
    play.until(JOB, S.RUNNING)


def a_minute_passes(play: Play) -> None:
    """Let the time until the next saving pass, once somebody waits for it."""
    play.that(lambda: play.clock.is_awaited(EVERY_S))
    play.clock.at += EVERY_S


# The host


@pytest.mark.rule("SP-01", "SP-02", "LC-05")
def test_a_host_that_comes_back_is_used_again_and_the_job_runs_on_there(play: Play) -> None:
    running(play)
    play.engine.preempt(JOB, True)
    play.that(lambda: play.engine.show(JOB).workload.attempt == 2)
    job = play.until(JOB, S.RUNNING)
    assert play.states(JOB)[-2:] == ["recovering", "running"]
    assert (job.attempt, job.recoveries, job.setup_attempt) == (2, 1, 0)
    assert (job.preempted, job.can_restart, len(job.hosts)) == (False, False, 1)
    assert (done(play, "revive"), done(play, "release"), done(play, "starting")) == (1, 0, 2)
    play.driver.ends[JOB] = EXIT_0
    assert play.until(JOB, S.COMPLETED, cleaned=True).exit_code == 0


@pytest.mark.rule("SP-03", "LC-09", "LC-10", "T76")
def test_a_host_that_stays_lost_is_released_before_another_is_taken_and_that_costs_no_try(play: Play) -> None:
    play.box.purposes = (Purpose.CHECKPOINT,)
    play.driver.releases = [AjError("the old machine is still there"), AjError("the old machine is still there")]
    running(play)
    play.engine.preempt(JOB, False)
    play.waits(JOB, "the release of its last host: the old machine is still there")
    job = play.engine.show(JOB).workload
    assert (job.state, job.setup_attempt, job.recoveries) == (S.QUEUED, 0, 1)
    assert job.host is not None and job.host.is_awaiting_release
    play.admit("bbbbbbbb")
    play.until("bbbbbbbb", S.RUNNING)  # who waits for a release holds nobody up
    play.clock.at += 3
    play.that(lambda: done(play, "release") == 2)
    assert play.engine.show(JOB).workload.state is S.QUEUED
    play.clock.at += 10
    job = play.until(JOB, S.RUNNING)
    assert (job.attempt, job.setup_attempt, len(job.hosts), job.cleanup_error) == (2, 1, 2, None)
    assert saved(play, "restore") == 2, "the other host begins with what was saved"
    first, second = job.hosts
    assert first.ended_at is not None and first.released_at is not None and first.released_at > first.ended_at
    assert second.ended_at is None


@pytest.mark.rule("SP-01")
def test_only_a_spot_job_with_a_host_can_lose_it_in_a_rehearsal(play: Play) -> None:
    play.admit("bbbbbbbb")
    play.until("bbbbbbbb", S.RUNNING)
    with pytest.raises(Refused, match="not on spot") as error:
        play.engine.preempt("bbbbbbbb", False)
    assert "--spot" in (error.value.hint or "")
    play.driver.places = 1
    play.admit(JOB, spot=True)
    with pytest.raises(Refused, match="has no host: queued"):
        play.engine.preempt(JOB, False)


@pytest.mark.rule("SP-01", "LC-23")
def test_a_host_that_is_lost_in_the_midst_of_setup_is_replaced_for_want_of_capacity(play: Play) -> None:
    begun, go = threading.Event(), threading.Event()
    step = play.driver.step

    def slow(state: JobState, job: object, folder: object) -> object:
        if state is S.PROVISIONING:
            begun.set()
            go.wait(10)
        return step(state, job, folder)  # type: ignore[arg-type]

    play.driver.step = slow  # type: ignore[method-assign, assignment]
    play.admit(JOB, spot=True)
    assert begun.wait(10)
    play.engine.preempt(JOB, False)
    go.set()
    play.that(lambda: play.engine.show(JOB).workload.retry is not None)
    job = play.engine.show(JOB).workload
    assert job.retry is not None and (job.retry.cause, job.retry.message) == ("capacity", "the host was preempted")
    play.that(lambda: done(play, "release") == 1)
    play.waits(JOB, "try 2 of 100 at ")
    play.clock.at += 13
    assert play.until(JOB, S.RUNNING).setup_attempt == 2
    assert [event.metadata.get("cause") for event in play.engine.show(JOB).events if event.state is S.RETRYING] == [
        "capacity"
    ]


@pytest.mark.rule("SP-03")
def test_a_job_whose_host_vanishes_right_after_each_start_waits_ever_longer(play: Play) -> None:
    running(play)
    pauses = []
    for recoveries in (1, 2, 3):
        play.driver.ends[JOB] = LOST
        play.that(lambda: play.engine.show(JOB).workload.recoveries == recoveries)  # noqa: B023
        play.that(lambda: play.engine.show(JOB).workload.state is S.QUEUED)
        job = play.engine.show(JOB).workload
        assert job.retry is not None
        pauses.append(round(job.retry.latest_at - play.clock.at))
        play.that(lambda: done(play, "release") == recoveries)  # noqa: B023
        play.clock.at += pauses[-1] + 1
        play.that(lambda: play.engine.show(JOB).workload.state is S.RUNNING)
    assert pauses == [12, 24, 48] and done(play, "revive") == 0
    play.clock.at += 3600
    play.driver.ends[JOB] = LOST
    play.that(lambda: play.engine.show(JOB).workload.attempt == 5)
    assert done(play, "revive") == 1, "after a long run the loss is nobody's fault"


@pytest.mark.rule("T86")
def test_a_job_that_is_not_on_spot_fails_with_its_host(play: Play) -> None:
    play.admit(JOB)
    play.until(JOB, S.RUNNING)
    play.driver.ends[JOB] = LOST
    job = play.until(JOB, S.FAILED, cleaned=True)
    assert (job.reason, job.recoveries) == ("host-lost", 0)


@pytest.mark.rule("T47", "LC-06")
def test_a_job_that_is_ended_while_it_has_no_host_does_not_come_back(play: Play) -> None:
    running(play)
    play.driver.releases = [AjError("still there")] * 9
    play.engine.preempt(JOB, False)
    play.waits(JOB, "the release")
    assert play.engine.terminate(JOB, None).workload.state is S.TERMINATED
    assert play.engine.show(JOB).workload.cleaned_at is None
    play.clock.at += 10
    job = play.until(JOB, S.TERMINATED, cleaned=True)
    assert (job.attempt, job.recoveries) == (1, 1)


@pytest.mark.rule("SP-02")
def test_whatever_a_daemon_left_undone_of_a_recovery_is_done_by_the_next(play: Play) -> None:
    running(play)
    play.engine.stop()
    asked = replace(jobs.read(play.home.layout, JOB), preempted=True, can_restart=True)
    jobs.save(play.home.layout, asked)  # and here the daemon was killed, before it took the host away
    play.again().adopt(PROJECT)
    play.that(lambda: play.engine.show(JOB).workload.attempt == 2)
    assert done(play, "preempt") == 1
    job = play.until(JOB, S.RUNNING)
    play.engine.stop()
    between = replace(job, state=S.RECOVERING, attempt=3, facts={**job.facts, "restarting": 3}, recoveries=2)
    jobs.save(play.home.layout, between)  # and here, before or after the start
    play.again().adopt(PROJECT)
    again = play.until(JOB, S.RUNNING)
    assert (again.attempt, again.recoveries, "restarting" in again.facts) == (3, 2, False)


@pytest.mark.rule("LC-08")
def test_what_fails_after_the_host_is_there_keeps_it_and_what_fails_before_does_not(play: Play) -> None:
    play.driver.fails = {S.DOWNLOADING: [SetupFailed("no line")], S.STARTING: [SetupFailed("no room")]}
    play.box.fails = [AjError("the bucket is gone")]
    play.box.purposes = (Purpose.INPUT,)
    play.admit(JOB, image="r.example/train:1")
    for tries, words in ((1, "no line"), (2, "the bucket is gone"), (3, "no room")):
        play.that(lambda: (play.engine.show(JOB).workload.retry or replace_none()).attempt == tries)  # noqa: B023
        job = play.engine.show(JOB).workload
        assert job.retry is not None and words in job.retry.message
        assert len(job.hosts) == 1 and job.hosts[0].ended_at is None
        play.clock.at += 100
    assert play.until(JOB, S.RUNNING).setup_attempt == 4
    assert done(play, "release") == 0
    play.driver.fails = {S.PROVISIONING: [SetupFailed("no quota", "quota")], S.STARTING: []}
    play.admit("bbbbbbbb")
    play.that(lambda: play.engine.show("bbbbbbbb").workload.retry is not None)
    job = play.engine.show("bbbbbbbb").workload
    assert job.retry is not None and job.retry.cause == "quota" and job.hosts[0].ended_at is not None
    play.that(lambda: play.driver.done.count(("bbbbbbbb", "release")) == 1)
    play.clock.at += 13
    assert len(play.until("bbbbbbbb", S.RUNNING).hosts) == 2


def replace_none() -> object:
    from aj.model.workload import Retry

    return Retry(0, 0, 0, "", "")


@pytest.mark.rule("LC-17")
def test_a_host_lives_from_its_making_to_its_release_whatever_the_job_says_of_itself(play: Play) -> None:
    running(play)
    play.clock.at += 100
    play.driver.teardowns = [AjError("busy")]
    play.driver.ends[JOB] = replace(EXIT_0, ended_at=play.clock.at - 50)
    job = play.until(JOB, S.COMPLETED)
    play.that(lambda: play.engine.show(JOB).workload.cleanup_error is not None)
    assert job.completed_at is not None and job.hosts[0].ended_at is None
    play.clock.at += 10
    job = play.until(JOB, S.COMPLETED, cleaned=True)
    host = job.hosts[0]
    assert host.created_at <= (job.started_at or "") and host.ended_at is not None
    assert (job.completed_at or "") < host.ended_at == host.released_at == job.cleaned_at


# How long it may run


def test_a_job_is_ended_when_all_its_starts_together_have_run_as_long_as_they_may(play: Play) -> None:
    running(play, max_runtime_s=3600.0)
    play.clock.at += 2000
    play.engine.preempt(JOB, True)
    play.that(lambda: play.engine.show(JOB).workload.attempt == 2)
    play.until(JOB, S.RUNNING)
    play.clock.at += 1500
    assert play.engine.show(JOB).workload.state is S.RUNNING
    play.clock.at += 200
    job = play.until(JOB, S.TERMINATED, cleaned=True)
    assert (job.reason, job.exit_code) == ("max-runtime", 143)


# What is kept in buckets


@pytest.mark.rule("LC-01", "LC-03", "DA-03", "SP-04")
def test_a_job_with_buckets_is_restored_before_it_starts_and_saved_every_minute_and_at_the_end(play: Play) -> None:
    play.box.purposes = (Purpose.OUTPUT, Purpose.CHECKPOINT)
    play.admit(JOB)
    play.until(JOB, S.RUNNING)
    for minutes in (1, 2, 3):
        a_minute_passes(play)
        play.that(lambda minutes=minutes: saved(play, "save") == minutes)  # type: ignore[misc]
    play.driver.ends[JOB] = EXIT_0
    play.until(JOB, S.COMPLETED, cleaned=True)
    assert play.states(JOB) == [
        *("queued", "provisioning", "syncing", "starting", "running"),
        *("finalizing", "completed"),
    ]
    assert [what for _, what in play.box.done] == ["restore", *["save"] * 3, "last", "remove"]


def test_a_saving_that_fails_is_made_good_by_the_next_and_by_the_last(play: Play) -> None:
    play.box.purposes = (Purpose.CHECKPOINT,)
    play.admit(JOB)
    play.until(JOB, S.RUNNING)
    play.box.fails = [AjError("no network"), AjError("no network"), AjError("no network")]
    a_minute_passes(play)
    play.that(lambda: saved(play, "save") == 1)
    assert play.engine.show(JOB).workload.state is S.RUNNING
    play.driver.ends[JOB] = EXIT_0
    play.that(lambda: saved(play, "last") == 1)
    for tries in (2, 3):
        play.clock.at += 30
        play.that(lambda tries=tries: saved(play, "last") >= tries)  # type: ignore[misc]
    job = play.until(JOB, S.COMPLETED)
    assert job.data_error is None and any("not saved, tried again in 60 s: no network" in line for line in play.log)


@pytest.mark.parametrize(("needed", "code"), [(False, 0), (False, 3), (True, 0), (True, 3)])
def test_a_last_upload_that_never_works_is_told_and_fails_the_job_only_if_it_has_to(
    play: Play, needed: bool, code: int
) -> None:
    play.box.purposes, play.box.needed = (Purpose.OUTPUT,), needed
    play.admit(JOB)
    play.until(JOB, S.RUNNING)
    play.box.fails = [AjError("the bucket is gone")] * 1000
    play.driver.ends[JOB] = Observation(Fate.EXITED, exit_code=code)
    play.until(JOB, S.FINALIZING)
    play.that(lambda: saved(play, "last") >= 1)
    play.clock.at += LAST_S
    play.that(lambda: play.engine.show(JOB).workload.state.is_final)
    job = play.engine.show(JOB).workload
    outcome = {(True, 0): S.FAILED, (True, 3): S.FAILED, (False, 0): S.COMPLETED, (False, 3): S.ERRORED}[needed, code]
    assert (job.state, job.exit_code, job.data_error) == (outcome, code, "the bucket is gone")
    assert job.reason == ("output-not-saved" if needed else None)
    play.box.fails.clear()


def test_an_end_that_is_asked_for_in_the_last_upload_gives_it_half_a_minute(play: Play) -> None:
    play.box.purposes = (Purpose.OUTPUT,)
    play.admit(JOB)
    play.until(JOB, S.RUNNING)
    play.box.holds = threading.Event()
    play.driver.ends[JOB] = EXIT_0
    play.until(JOB, S.FINALIZING)
    play.engine.terminate(JOB, None)
    play.clock.at += 20
    assert play.engine.show(JOB).workload.state is S.FINALIZING
    play.clock.at += 11
    job = play.until(JOB, S.TERMINATED)
    assert (job.exit_code, job.data_error) == (0, "the time for the last upload was over")


def test_a_job_that_is_ended_is_saved_when_its_processes_are_gone(play: Play) -> None:
    play.box.purposes = (Purpose.CHECKPOINT,)
    play.admit(JOB)
    play.until(JOB, S.RUNNING)
    play.engine.terminate(JOB, 5)
    job = play.until(JOB, S.TERMINATED, cleaned=True)
    assert (job.exit_code, job.data_error, job.reason) == (143, None, "terminated")
    assert saved(play, "last") == 1 and play.states(JOB)[-2:] == ["finalizing", "terminated"]


@pytest.mark.rule("T86")
def test_a_host_that_is_lost_in_the_last_upload_does_not_run_the_job_once_more(play: Play) -> None:
    play.box.purposes = (Purpose.OUTPUT,)
    running(play)
    play.box.holds = threading.Event()
    play.driver.ends[JOB] = EXIT_0
    play.until(JOB, S.FINALIZING)
    play.engine.preempt(JOB, False)
    play.clock.at += 2
    job = play.until(JOB, S.COMPLETED)
    assert (job.attempt, job.exit_code, job.data_error) == (1, 0, "the host was lost before the last upload")


@pytest.mark.parametrize("between", [S.FINALIZING, S.SYNCING])
def test_another_daemon_goes_on_with_what_was_being_restored_or_saved(play: Play, between: JobState) -> None:
    play.box.purposes = (Purpose.CHECKPOINT,)
    play.admit(JOB)
    job = play.until(JOB, S.RUNNING)
    play.engine.stop()
    ended = {"exit_code": 0} if between is S.FINALIZING else {}
    jobs.save(play.home.layout, replace(job, state=between, **ended))  # type: ignore[arg-type]
    if between is S.SYNCING:
        play.again().adopt(PROJECT)
        play.until(JOB, S.RUNNING)
        assert saved(play, "restore") == 2
    else:
        play.again().adopt(PROJECT)
        assert play.until(JOB, S.COMPLETED).exit_code == 0
        assert saved(play, "last") == 1


@pytest.mark.rule("UP-03")
def test_a_job_that_is_stopped_for_an_upgrade_is_saved_first_if_that_is_possible(play: Play) -> None:
    play.box.purposes = (Purpose.CHECKPOINT,)
    running(play)
    play.engine.hold(10_000, stop=True)
    play.until(JOB, S.QUEUED)
    assert saved(play, "last") == 1
    play.driver.ends.clear()
    play.engine.stop()
    play.again().adopt(PROJECT)
    play.until(JOB, S.RUNNING)
    play.box.fails = [AjError("the bucket is gone")] * 1000
    play.engine.hold(10_000, stop=True)
    play.that(lambda: saved(play, "last") >= 2)
    play.clock.at += 31
    assert play.until(JOB, S.QUEUED).recoveries == 2, "an upgrade waits for no bucket"
    play.box.fails.clear()


# The image


@pytest.mark.rule("SB-05", "C-026")
def test_an_image_stays_what_it_was_at_admission_until_somebody_wants_it_anew(play: Play) -> None:
    means = {"1": "a"}
    play.resolve = lambda image: f"sha256:{means[image.rpartition(':')[2]] * 64}"
    play.again()
    play.admit(JOB, image="r.example/train:1")
    play.until(JOB, S.RUNNING)
    assert play.engine.show(JOB).workload.image_digest == f"sha256:{'a' * 64}"
    means["1"] = "b"
    for refresh, due in ((False, "a"), (True, "b")):
        play.driver.ends[JOB] = EXIT_0
        play.until(JOB, S.COMPLETED, cleaned=True)
        del play.driver.ends[JOB]
        play.engine.resubmit(JOB, False, None, refresh)
        play.that(lambda: play.engine.show(JOB).workload.state is S.RUNNING)
        assert play.engine.show(JOB).workload.image_digest == f"sha256:{due * 64}"


@pytest.mark.rule("SB-05")
def test_a_promise_to_run_again_with_a_new_image_is_kept_with_what_was_found_then(play: Play) -> None:
    play.admit(JOB, image="r.example/train:1")
    play.until(JOB, S.RUNNING)
    play.driver.teardowns = [AjError("busy")]
    play.driver.ends[JOB] = EXIT_0
    play.until(JOB, S.COMPLETED)
    play.that(lambda: play.engine.show(JOB).workload.cleanup_error is not None)
    play.engine.stop()
    play.resolve = lambda image: f"sha256:{'c' * 64}"
    play.again().resubmit(JOB, True, None, True)
    del play.driver.ends[JOB]
    play.clock.at += 10
    play.that(lambda: play.engine.show(JOB).workload.submission_revision == 1)
    assert play.until(JOB, S.RUNNING).image_digest == f"sha256:{'c' * 64}"


def test_a_registry_that_does_not_answer_makes_no_job(play: Play) -> None:
    def refuse(image: str) -> str:
        raise AjError("no network")

    play.resolve = refuse
    play.again()
    with pytest.raises(AjError, match="no network"):
        play.admit(JOB, image="r.example/train:1")
    assert play.engine.find(JOB) is None
