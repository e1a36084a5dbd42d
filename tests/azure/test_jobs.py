"""Jobs: put once, read, listed, cancelled and deleted, whatever becomes of the answers."""

from __future__ import annotations

from itertools import islice

import pytest

from aj.azure import endings, jobs
from aj.azure.jobs import View
from aj.azure.times import moment
from aj.base.errors import NotFound, OutcomeUnknown, Refused, RemoteError
from tests.conftest import MovedClock
from tests.servers.arm import Deletion
from tests.servers.azure import WORKSPACE, SmallAzure
from tests.servers.loopback import Answer, Cut, problem
from tests.servers.test_spec import JOB

JOBS = f"{WORKSPACE.path}/jobs"
FULL: dict = {
    "systemData": {"createdAt": "2024-01-31T12:00:00.1234567+00:00"},
    "properties": {
        **JOB["properties"],
        "displayName": "pretrain_0a1b2c3d",
        "experimentName": "aj",
        "computeId": "/subscriptions/x/virtualclusters/vc",
        "status": "Completed",
        "properties": {
            "aj_id": "0a1b2c3d",
            "StartTimeUtc": "2024-01-31 12:10:00",
            "EndTimeUtc": "2024-01-31 13:10:30",
        },
        "resources": {
            "instanceCount": 2,
            "properties": {
                "AISuperComputer": {"instanceType": "Singularity.H4_a,Singularity.H4_b", "slaTier": "Premium", "n": 1}
            },
        },
        "services": {"Studio": {"endpoint": "https://studio.example/run", "jobServiceType": "Studio"}},
        "tags": {"team": "research", "_aml_system_x": "1"},
    },
}


def add(azure: SmallAzure, name: str, status: str = "Running", **changes: object) -> None:
    properties = {**JOB["properties"], "status": status, **changes}
    azure.arm.add(f"{WORKSPACE.id}/jobs/{name}", {"properties": properties}, "JobBase")


@pytest.mark.rule("A-037")
def test_a_job_is_put_read_and_found(azure: SmallAzure) -> None:
    assert jobs.find(azure.session, WORKSPACE, "a") is None
    made = jobs.put(azure.session, WORKSPACE, "a", JOB)
    assert (made.id, made.name, made.kind, made.status) == (f"{WORKSPACE.id}/jobs/a", "a", "Command", "NotStarted")
    assert jobs.get(azure.session, WORKSPACE, "a") == made == jobs.find(azure.session, WORKSPACE, "a")
    assert azure.arm_server.targets()[:2] == [f"GET {JOBS}/a", f"PUT {JOBS}/a"]
    with pytest.raises(NotFound):
        jobs.get(azure.session, WORKSPACE, "b")


@pytest.mark.rule("A-160")
def test_a_row_tells_times_hardware_tags_and_ids(azure: SmallAzure) -> None:
    azure.arm.add(f"{WORKSPACE.id}/jobs/full", FULL, "JobBase")
    job = jobs.get(azure.session, WORKSPACE, "full")
    assert job.created_at == pytest.approx(1706702400.123456)
    assert (job.started_at, job.ended_at) == (1706703000, 1706706630)
    assert job.queued_s == pytest.approx(599.876544)
    assert job.ran_s(0) == 3630
    assert (job.display_name, job.experiment, job.portal) == ("pretrain_0a1b2c3d", "aj", "https://studio.example/run")
    assert (job.instance, job.nodes, job.tier) == ("H4_a,H4_b", 2, "Premium")
    assert (job.tags, job.aj_id, job.is_final) == ({"team": "research"}, "0a1b2c3d", True)


@pytest.mark.rule("A-160")
def test_what_is_not_known_yet_is_none(azure: SmallAzure) -> None:
    add(azure, "new", "Queued")
    job = jobs.get(azure.session, WORKSPACE, "new")
    assert (job.created_at, job.started_at, job.ended_at, job.queued_s, job.ran_s(5)) == (None,) * 5
    assert (job.instance, job.nodes, job.tier, job.portal, job.aj_id) == (None, 2, None, None, None)
    add(azure, "going", properties={"StartTimeUtc": "2024-01-31T12:10:00Z"})
    assert jobs.get(azure.session, WORKSPACE, "going").ran_s(1706703000 + 90) == 90


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("2024-01-31T12:00:00Z", 1706702400),
        ("2024-01-31 12:00:00", 1706702400),
        ("2024-01-31T13:00:00.0000000+01:00", 1706702400),
        ("", None),
        (None, None),
        ("soon", None),
    ],
)
def test_moments(words: str | None, seconds: float | None) -> None:
    assert moment(words) == seconds


@pytest.mark.rule("A-038", "A-008")
def test_jobs_are_listed_as_they_are_wanted(azure: SmallAzure) -> None:
    for number in range(5):
        add(azure, f"job-{number}")
    add(azure, "old", "Completed", isArchived=True)
    found = jobs.each(azure.session, WORKSPACE, kind="Command", tag="team=x", properties="aj_id")
    assert azure.arm_server.got == []
    assert [job.name for job in islice(found, 2)] == ["job-0", "job-1"]
    assert len(azure.arm_server.got) == 2
    assert dict(azure.arm_server.got[0].query) == {
        "api-version": "2024-04-01",
        "listViewType": "ActiveOnly",
        "jobType": "Command",
        "tag": "team=x",
        "properties": "aj_id",
    }
    assert [job.name for job in jobs.each(azure.session, WORKSPACE, view=View.ARCHIVED)] == ["old"]
    assert len(list(jobs.each(azure.session, WORKSPACE, view=View.ALL))) == 6


@pytest.mark.rule("A-003")
def test_a_put_whose_answer_was_lost_is_unknown_and_can_be_looked_up(azure: SmallAzure) -> None:
    for name, cut, has_arrived in (("a", Cut.AFTER_BODY, True), ("b", Cut.AFTER_HEADERS, False)):
        azure.arm_server.on("PUT", cut)
        with pytest.raises(OutcomeUnknown):
            jobs.put(azure.session, WORKSPACE, name, JOB)
        assert (jobs.find(azure.session, WORKSPACE, name) is not None) is has_arrived
    azure.arm_server.on("PUT", problem(400, "ValidationError", "no such compute"))
    with pytest.raises(RemoteError, match="could not submit job a: ValidationError: no such compute"):
        jobs.put(azure.session, WORKSPACE, "a", JOB)


# Cancelling


@pytest.mark.rule("A-164", "T72")
@pytest.mark.parametrize("status", ["Completed", "Failed", "Canceled"])
def test_a_job_that_has_ended_is_left_alone(azure: SmallAzure, status: str) -> None:
    add(azure, "a", status)
    found = endings.cancel(azure.session, WORKSPACE, "a")
    assert (found.was_final, found.job.status) == (True, status)
    assert azure.arm_server.targets() == [f"GET {JOBS}/a"]


@pytest.mark.rule("A-164", "A-037")
def test_a_job_that_runs_is_asked_to_end_once(azure: SmallAzure) -> None:
    add(azure, "a")
    found = endings.cancel(azure.session, WORKSPACE, "a")
    assert not found.was_final
    assert azure.arm_server.targets() == [f"GET {JOBS}/a", f"POST {JOBS}/a/cancel"]
    assert azure.arm_server.got[-1].body == b""
    endings.cancel(azure.session, WORKSPACE, "a")  # asking again is always allowed


@pytest.mark.rule("A-164")
@pytest.mark.parametrize("status", [200, 202, 204])
def test_each_way_to_accept_is_accepted(azure: SmallAzure, status: int) -> None:
    add(azure, "a")
    azure.arm_server.on("/cancel", Answer(status))
    assert not endings.cancel(azure.session, WORKSPACE, "a").was_final


@pytest.mark.rule("A-164")
def test_a_conflict_with_a_job_that_ended_meanwhile_is_accepted(azure: SmallAzure) -> None:
    add(azure, "a")
    answer = azure.arm_server.answer

    def end(got: object) -> object:
        found = answer(got)  # type: ignore[arg-type]
        if getattr(got, "method", "") == "GET":
            azure.arm.resources[f"{WORKSPACE.id}/jobs/a".lower()] = {
                "id": "x",
                "name": "a",
                "properties": {**JOB["properties"], "status": "Completed"},
            }
        return found

    azure.arm_server.answer = end  # type: ignore[assignment]
    found = endings.cancel(azure.session, WORKSPACE, "a")
    assert (found.was_final, found.job.status) == (False, "Completed")


@pytest.mark.rule("A-164")
def test_a_conflict_with_a_job_that_goes_on_is_told(azure: SmallAzure) -> None:
    add(azure, "a")
    azure.arm_server.on("/cancel", problem(409, "Busy", "not now"))
    with pytest.raises(Refused, match="could not cancel job a: Busy: not now"):
        endings.cancel(azure.session, WORKSPACE, "a")
    azure.arm_server.on("/cancel", problem(403, "AuthorizationFailed", "no"))
    with pytest.raises(Refused, match="no right on"):
        endings.cancel(azure.session, WORKSPACE, "a")


@pytest.mark.rule("A-164", "A-003")
@pytest.mark.parametrize(("arrived", "status"), [(True, "CancelRequested"), (True, "Canceled"), (False, "Running")])
def test_a_lost_answer_is_looked_up_and_never_repeated(azure: SmallAzure, arrived: bool, status: str) -> None:
    add(azure, "a")
    key = f"{WORKSPACE.id}/jobs/a".lower()
    answer = azure.arm_server.answer

    def lose(got: object) -> object:
        if getattr(got, "method", "") == "POST":
            azure.arm.resources[key]["properties"]["status"] = status
            return problem(502, "BadGateway", "lost")
        return answer(got)  # type: ignore[arg-type]

    azure.arm_server.answer = lose  # type: ignore[assignment]
    if arrived:
        assert endings.cancel(azure.session, WORKSPACE, "a").job.status == status
    else:
        with pytest.raises(OutcomeUnknown):
            endings.cancel(azure.session, WORKSPACE, "a")
    assert azure.arm_server.targets().count(f"POST {JOBS}/a/cancel") == 1


@pytest.mark.rule("A-164")
def test_waiting_ends_with_the_job_or_the_limit(azure: SmallAzure, clock: MovedClock) -> None:
    add(azure, "a")
    assert endings.wait(azure.session, WORKSPACE, "a", clock, limit_s=9).status == "Running"
    assert clock.slept == [2.0] * 5
    azure.arm.resources[f"{WORKSPACE.id}/jobs/a".lower()]["properties"]["status"] = "Canceled"
    assert endings.wait(azure.session, WORKSPACE, "a", clock).status == "Canceled"


# Deleting


@pytest.mark.rule("A-165")
def test_only_a_job_that_has_ended_is_deleted(azure: SmallAzure, clock: MovedClock) -> None:
    add(azure, "a", "Running")
    with pytest.raises(Refused) as error:
        endings.delete(azure.session, WORKSPACE, "a", clock)
    assert (error.value.message, error.value.hint) == ("job a is Running", "`aj job cancel a` first")
    assert azure.arm_server.targets() == [f"GET {JOBS}/a"]


@pytest.mark.rule("A-165")
@pytest.mark.parametrize("status", [200, 204, 404])
def test_a_deletion_that_is_done_at_once(azure: SmallAzure, clock: MovedClock, status: int) -> None:
    add(azure, "a", "Failed")
    if status == 404:
        azure.arm_server.on("DELETE", problem(404, "Gone", "somebody was first"))
    azure.arm.deletion = Deletion(status)
    endings.delete(azure.session, WORKSPACE, "a", clock)
    assert azure.arm_server.targets() == [f"GET {JOBS}/a", f"DELETE {JOBS}/a"]
    endings.delete(azure.session, WORKSPACE, "nobody", clock)
    assert clock.slept == []


@pytest.mark.rule("A-165")
@pytest.mark.parametrize("header", ["Location", "Azure-AsyncOperation", "Operation-Location", None])
def test_a_deletion_that_goes_on_is_watched_to_its_end(
    azure: SmallAzure, clock: MovedClock, header: str | None
) -> None:
    add(azure, "a", "Completed")
    azure.arm.deletion = Deletion(202, header, looks=3, retry_after="7")
    endings.delete(azure.session, WORKSPACE, "a", clock)
    assert jobs.find(azure.session, WORKSPACE, "a") is None
    assert azure.arm_server.targets().count(f"DELETE {JOBS}/a") == 1
    assert clock.slept[0] == 7
    assert len(clock.slept) == 3


@pytest.mark.rule("A-165", "A-006")
def test_a_monitor_on_another_host_is_not_asked(azure: SmallAzure, clock: MovedClock) -> None:
    add(azure, "a", "Completed")
    azure.arm_server.on("DELETE", Answer(202, headers={"Azure-AsyncOperation": "https://evil.example/op"}))
    with pytest.raises(RemoteError, match=r"a link to host evil\.example was not followed"):
        endings.delete(azure.session, WORKSPACE, "a", clock)


@pytest.mark.rule("A-165")
@pytest.mark.parametrize("end", ["Failed", "Canceled"])
@pytest.mark.parametrize("header", ["Location", "Azure-AsyncOperation"])
def test_a_deletion_that_failed_tells_why(azure: SmallAzure, clock: MovedClock, end: str, header: str) -> None:
    add(azure, "a", "Completed")
    azure.arm.deletion = Deletion(202, header, end=end)
    with pytest.raises(RemoteError, match="could not delete job a: JobIsHeld: somebody holds the job"):
        endings.delete(azure.session, WORKSPACE, "a", clock)


@pytest.mark.rule("A-165")
@pytest.mark.parametrize("is_gone", [True, False])
def test_an_operation_that_is_forgotten_leaves_it_to_the_job(
    azure: SmallAzure, clock: MovedClock, is_gone: bool
) -> None:
    add(azure, "a", "Completed")
    azure.arm.deletion = Deletion(202, "Location", forgets_operation=True)
    if is_gone:
        endings.delete(azure.session, WORKSPACE, "a", clock)
        return
    azure.arm_server.on("/operations/", problem(404, "Gone", "forgotten"))
    with pytest.raises(OutcomeUnknown, match="it was still there after 2m00s"):
        endings.delete(azure.session, WORKSPACE, "a", clock)


@pytest.mark.rule("A-165")
def test_a_deletion_without_end_is_unknown_after_two_minutes(azure: SmallAzure, clock: MovedClock) -> None:
    add(azure, "a", "Completed")
    azure.arm.deletion = Deletion(202, "Azure-AsyncOperation", looks=10_000, retry_after="50")
    started = clock.ran
    with pytest.raises(OutcomeUnknown) as error:
        endings.delete(azure.session, WORKSPACE, "a", clock)
    assert 120 <= clock.ran - started < 130
    assert error.value.hint == "`aj job delete a` again a little later"


@pytest.mark.rule("A-165", "A-003")
@pytest.mark.parametrize("is_gone", [True, False])
def test_a_deletion_whose_answer_was_lost_is_looked_up(azure: SmallAzure, clock: MovedClock, is_gone: bool) -> None:
    add(azure, "a", "Completed")
    answer = azure.arm_server.answer

    def lose(got: object) -> object:
        if getattr(got, "method", "") != "DELETE":
            return answer(got)  # type: ignore[arg-type]
        if is_gone:
            answer(got)  # type: ignore[arg-type]
        return problem(503, "Busy", "lost")

    azure.arm_server.answer = lose  # type: ignore[assignment]
    if is_gone:
        endings.delete(azure.session, WORKSPACE, "a", clock)
    else:
        with pytest.raises(OutcomeUnknown):
            endings.delete(azure.session, WORKSPACE, "a", clock)
    assert azure.arm_server.targets().count(f"DELETE {JOBS}/a") == 1
