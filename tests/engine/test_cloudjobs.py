"""Jobs of workspaces: rows, filters page by page, reasons, totals, the end of one, and which workspace is meant."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.azure import jobs as service
from aj.azure.arm import Workspace
from aj.azure.jobs import Job
from aj.base.errors import NotFound, OutcomeUnknown, Refused, RemoteError, UserError
from aj.engine import cloudjobs
from aj.engine.cloud import wished
from aj.model import exits
from aj.model.state import JobState
from aj.net.document import Document
from aj.wire.azure import EVERY, HERE, JobQuery
from tests.engine.cloud import ONE, TWO, WORKSPACE, Sky, add_job, subscribe
from tests.servers.loopback import Cut, problem

NAME = "pretrain_0a1b2c3d"
OTHER = Workspace(ONE, "rg-two", "ws-two")
COORDINATES = f"{ONE}:rg-one:ws-one"


def fault(name: str, status: str, code: str, *inner: str, message: str = "it broke") -> dict:
    """Run details of a job that ended badly."""
    error: dict = {"code": code, "message": message}
    below = error
    for word in inner:
        below["innerError"] = {"code": word}
        below = below["innerError"]
    return {"runId": name, "status": status, "error": {"error": error}}


# Rows


@pytest.mark.rule("A-160", "A-163", "A-177", "A-037")
def test_a_job_is_told_with_all_that_the_service_says(sky: Sky) -> None:
    sky.workspace()
    sky.job(
        NAME,
        "Running",
        created="2027-01-15T07:58:20Z",
        start="2027-01-15T07:59:50Z",
        displayName="pretrain",
        computeId=f"/subscriptions/{ONE}/resourceGroups/rg/providers/x/virtualclusters/vc-red",
        resources={
            "instanceCount": 2,
            "properties": {"AISuperComputer": {"instanceType": "Singularity.H8", "slaTier": "Premium"}},
        },
        environmentVariables={"AJ_GPUS_PER_NODE": "8"},
        tags={"team": "research", "_aml_system_x": "1"},
        services={"Studio": {"endpoint": "https://ml.example/runs/1", "jobServiceType": "Studio"}},
    )
    sky.azure.arm.resources[f"{WORKSPACE.id}/jobs/{NAME}".lower()]["properties"]["properties"]["aj_id"] = "0a1b2c3d"
    job = sky.cloud.job(sky.project, COORDINATES, NAME).job
    assert (job.name, job.workspace, job.service, job.display_name) == (
        NAME,
        f"{ONE}/rg-one/ws-one",
        "sing",
        "pretrain",
    )
    assert (job.state, job.status, job.words) == (JobState.RUNNING, "Running", "running")
    assert (job.created_at, job.queued_s, job.duration_s) == ("2027-01-15T07:58:20.000000Z", 90.0, 10.0)
    assert (job.compute, job.environment, job.instance, job.nodes, job.gpus) == ("vc-red", "aj:4f0c", "H8", 2, 8)
    assert (job.tier, job.user, job.aj_id, job.experiment) == ("Premium", "Ada", "0a1b2c3d", "aj")
    assert dict(job.tags) == {"team": "research"}
    assert (job.portal, job.error, job.ended_at) == ("https://ml.example/runs/1", None, None)
    assert not [target for target in sky.azure.plane_server.targets() if "history" in target]


@pytest.mark.rule("A-161")
@pytest.mark.parametrize(
    ("word", "state", "words"),
    [
        ("NotStarted", JobState.QUEUED, "queued (NotStarted)"),
        ("Preparing", JobState.STARTING, "starting (Preparing)"),
        ("CancelRequested", JobState.RUNNING, "running (CancelRequested)"),
        ("Completed", JobState.COMPLETED, "completed"),
        ("Canceled", JobState.TERMINATED, "terminated (Canceled)"),
        ("Pondering", None, "Pondering"),
    ],
)
def test_our_word_stands_before_the_services_own(sky: Sky, word: str, state: JobState | None, words: str) -> None:
    job = cloudjobs.told(service.read(Document(_row(word), "a job")), WORKSPACE, 0)
    assert (job.state, job.words) == (state, words)
    assert job.is_final is (state is not None and state.is_final)


def _row(status: str) -> dict:
    return {"id": "/x", "name": "n", "properties": {"jobType": "Command", "status": status}}


@pytest.mark.rule("A-163", "A-160", "T73")
def test_what_failed_is_told_with_the_deepest_reason(sky: Sky) -> None:
    sky.workspace()
    for name, status in (("a", "Failed"), ("b", "Failed"), ("c", "Canceled"), ("d", "Completed")):
        sky.job(name, status)
    sky.azure.plane.details["a"] = fault("a", "Failed", "UserError", "ImageNotFound", message="no such image")
    sky.azure.plane.details["c"] = {"runId": "c", "status": "Canceled"}
    reasons = {name: sky.cloud.job(sky.project, COORDINATES, name) for name in "abcd"}
    assert reasons["a"].job.error == "UserError: ImageNotFound: no such image"
    assert reasons["b"].job.error is None
    (warning,) = reasons["b"].warnings
    assert warning.startswith("why b is Failed could not be read: could not read the details of run b")
    assert reasons["c"].job.error == "the service gives no reason"
    assert reasons["d"].job.error is None


@pytest.mark.rule("A-148", "A-163")
def test_an_exit_code_of_our_own_is_translated(sky: Sky) -> None:
    sky.workspace()
    sky.job("a", "Failed")
    words = "Execution failed. User process 'bash' exited with status code 111."
    sky.azure.plane.details["a"] = fault("a", "Failed", "UserError", "X", message=words)
    error = sky.cloud.job(sky.project, COORDINATES, "a").job.error
    assert error is not None
    assert error.endswith("(exit code 111 of aj: the code that arrived is not the code that was sent)")
    assert set(exits.MEANINGS) == {110, 111, 112, 113, 114, 116, 117, 118, 119}
    for other in ("exit code 1", "error 111", "exited with 1113", "status 115", ""):
        assert exits.meaning(other) is None


@pytest.mark.rule("A-163")
def test_a_name_that_nobody_has(sky: Sky) -> None:
    sky.workspace()
    with pytest.raises(NotFound):
        sky.cloud.job(sky.project, COORDINATES, "nobody")


# Lists


@pytest.fixture
def busy(sky: Sky) -> Sky:
    """Ten jobs, one an hour, the newest at eight."""
    sky.workspace()
    for hour in range(10):
        status = ("Completed", "Failed", "Running", "Canceled", "Queued")[hour % 5]
        at = f"2027-01-1{4 if hour < 2 else 5}T{(22 + hour) % 24:02}:59:00Z"
        sky.job(
            f"job-{hour}",
            status,
            created=at,
            experimentName="tune" if hour % 2 else "aj",
            tags={"n": str(hour), **({"team": "x"} if hour < 3 else {})},
        )
    return sky


def names(sky: Sky, query: JobQuery | None = None, workspace: str = COORDINATES) -> list[str]:
    found = sky.cloud.jobs(sky.project, workspace, query or JobQuery())
    return [job.name.removeprefix("job-") for job in found.jobs]


@pytest.mark.rule("A-162", "C-020", "A-038")
@pytest.mark.parametrize(
    ("query", "due"),
    [
        (JobQuery(), "9876543210"),
        (JobQuery(states=("completed",)), "50"),
        (JobQuery(states=("Failed", "queued")), "9641"),
        (JobQuery(states=("errored", "TERMINATED")), "8631"),
        (JobQuery(experiment="tune"), "97531"),
        (JobQuery(tags=("team",)), "210"),
        (JobQuery(tags=("team:x", "n=2")), "2"),
        (JobQuery(tags=("team:y",)), ""),
        (JobQuery(kind="command"), "9876543210"),
        (JobQuery(kind="sweep"), ""),
        (JobQuery(since_s=3600 * 2.5), "987"),
        (JobQuery(limit=3), "987"),
        (JobQuery(states=("completed",), limit=1), "5"),
        (JobQuery(archived=True), ""),
    ],
)
@pytest.mark.parametrize("page_rows", [1, 50])
def test_filters_look_through_the_pages(busy: Sky, query: JobQuery, due: str, page_rows: int) -> None:
    busy.azure.arm.page_rows = page_rows
    assert names(busy, query) == list(due)
    allowed = {"api-version", "listViewType", "jobType", "$skip"}
    for got in busy.azure.arm_server.got:
        if got.path.endswith("/jobs"):
            assert {name for name, _ in got.query} <= allowed


@pytest.mark.rule("A-162", "A-008", "C-020")
def test_a_list_that_stopped_says_so(busy: Sky) -> None:
    def ask(query: JobQuery) -> tuple[bool, str | None, int]:
        found = busy.cloud.jobs(busy.project, COORDINATES, query)
        return found.truncated, found.stopped, found.read

    assert ask(JobQuery(limit=3)) == (True, "stopped after 3 jobs: `-n N` shows more", 3)
    assert ask(JobQuery(limit=10)) == (False, None, 10)
    assert ask(JobQuery(limit=0)) == (False, None, 10)
    assert ask(JobQuery(states=("completed",), limit=1)) == (True, "stopped after 1 jobs: `-n N` shows more", 5)
    assert ask(JobQuery(states=("completed",), limit=2)) == (False, None, 10)
    assert ask(JobQuery(since_s=3600 * 2.5))[:2] == (False, None)


def _job(number: int, created: float | None, status: str = "Running") -> Job:
    made = service.read(Document({"id": f"/{number}", "name": str(number), "properties": {"status": status}}, "a job"))
    return replace(made, created_at=created)


@pytest.mark.rule("A-162")
@settings(max_examples=60)
@given(
    st.lists(st.booleans(), max_size=30),
    st.integers(0, 8),
    st.integers(0, 30),
    st.none() | st.integers(0, 30),
)
def test_a_scan_finds_what_a_plain_filter_finds(fits: list[bool], limit: int, most: int, oldest: int | None) -> None:
    rows = [_job(number, 100.0 - number, "Running" if fit else "Failed") for number, fit in enumerate(fits)]
    found = cloudjobs.scan(
        iter(rows),
        lambda job: job.status == "Running",
        limit=limit,
        oldest=None if oldest is None else 100.0 - oldest,
        most=most,
    )
    young = rows if oldest is None else rows[: oldest + 1]
    every = [job for job in young if job.status == "Running"]
    assert list(found.jobs) == every[: len(found.jobs)]
    assert found.read <= min(most, len(young))
    if found.stopped is None:
        assert list(found.jobs) == every
    else:
        assert found.read < len(young)
        assert len(found.jobs) == limit or found.read == most


@pytest.mark.rule("A-162", "C-282")
@pytest.mark.parametrize(
    ("query", "words"),
    [(JobQuery(states=("success",)), "`success` is no state"), (JobQuery(kind="x"), "`x` is no type of job")],
)
def test_a_word_that_means_nothing_is_told_before_anything_is_asked(busy: Sky, query: JobQuery, words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        busy.cloud.jobs(busy.project, COORDINATES, query)
    assert caught.value.hint is not None and caught.value.hint.startswith("one of ")
    assert busy.azure.arm_server.got == []


@pytest.mark.rule("A-162", "A-009", "A-178")
def test_every_workspace_is_looked_at_and_one_that_is_silent_is_named(busy: Sky) -> None:
    other, third = busy.workspace(OTHER), busy.workspace(Workspace(ONE, "rg-two", "ws-three"))
    add_job(busy.azure, "far", at=other, created="2027-01-15T06:30:00Z")
    add_job(busy.azure, "old", at=other, created="2020-01-15T06:30:00Z")
    busy.azure.arm_server.on("ws-three/jobs", problem(403, "AuthorizationFailed", "no"))
    found = busy.cloud.jobs(busy.project, EVERY, JobQuery(limit=4))
    assert [job.name for job in found.jobs] == ["job-9", "job-8", "far", "job-7"]
    assert (found.truncated, found.workspace) == (True, None)
    assert [part.part for part in found.failures] == [f"workspace {third}"]
    for name in ("ws-one", "ws-two", "ws-three"):
        busy.azure.arm_server.on(f"{name}/jobs", problem(403, "AuthorizationFailed", "no"))
    with pytest.raises(RemoteError, match="3 parts gave no answer"):
        busy.cloud.jobs(busy.project, EVERY, JobQuery())


# Totals


@pytest.mark.rule("C-028", "A-163")
def test_totals_by_experiment_compute_and_user(sky: Sky) -> None:
    sky.workspace()
    rows = [
        ("Completed", 8, 3600, 60, "aj"),
        ("Completed", None, 3600, 30, "aj"),
        ("Failed", 4, 1800, 90, "tune"),
        ("Running", 1, None, None, "tune"),
        ("Queued", 1, None, None, "tune"),
        ("Canceled", 0, 60, 0, "tune"),
        ("Unknown", None, None, None, "tune"),
    ]
    for number, (status, gpus, ran, waited, experiment) in enumerate(rows):
        start = None if waited is None else f"2027-01-15T06:{waited // 60:02}:{waited % 60:02}Z"
        end = None if ran is None or waited is None else _later(waited + ran)
        sky.job(
            f"j{number}",
            status,
            created="2027-01-15T06:00:00Z",
            start=start,
            end=end,
            experimentName=experiment,
            environmentVariables={} if gpus is None else {"AJ_GPUS_PER_NODE": str(gpus)},
        )
    found = sky.cloud.stats(sky.project, COORDINATES, JobQuery(limit=10_000, since_s=7 * 86400))
    total = found.tally.overview
    assert (total.total, total.active, total.queued, total.completed, total.failed, total.canceled) == (
        7,
        1,
        1,
        2,
        1,
        1,
    )
    assert total.success_rate == 0.6667
    assert (total.gpu_hours, total.gpu_jobs) == (10.0, 3)
    assert total.median_queued_s == 45.0
    parts = {
        group: [(part.name, part.total.total) for part in found.tally.groups[group]] for group in found.tally.groups
    }
    assert parts == {"experiment": [("tune", 5), ("aj", 2)], "compute": [("gpu", 7)], "user": [("Ada", 7)]}
    assert (found.read, found.truncated) == (7, False)
    few = sky.cloud.stats(sky.project, COORDINATES, JobQuery(limit=2))
    assert (few.read, few.truncated, few.tally.overview.total) == (2, True, 2)
    assert few.stopped == "only the newest 2 jobs were looked at"


def _later(seconds: int) -> str:
    return f"2027-01-15T{6 + seconds // 3600:02}:{seconds % 3600 // 60:02}:{seconds % 60:02}Z"


# The end


@pytest.mark.rule("A-164", "C-025", "T71")
def test_a_job_is_asked_to_end_once(sky: Sky) -> None:
    sky.workspace()
    sky.job("runs")
    sky.job("over", "Completed")
    asked = sky.cloud.cancel(sky.project, COORDINATES, "runs")
    assert (asked.was_final, asked.job.name) == (False, "runs")
    assert sky.cloud.job(sky.project, COORDINATES, "runs").job.status == "CancelRequested"
    over = sky.cloud.cancel(sky.project, COORDINATES, "over")
    assert (over.was_final, over.job.state) == (True, JobState.COMPLETED)
    assert len(sky.targets("/cancel")) == 1


@pytest.mark.rule("A-165", "C-025b")
def test_only_what_has_ended_is_deleted(sky: Sky) -> None:
    sky.workspace()
    sky.job("runs")
    sky.job("over", "Failed")
    with pytest.raises(Refused, match="job runs is Running"):
        sky.cloud.delete(sky.project, COORDINATES, "runs")
    assert sky.cloud.delete(sky.project, COORDINATES, "over").status == "ok"
    assert sky.cloud.delete(sky.project, COORDINATES, "over").status == "noop"
    assert len(sky.targets("DELETE")) == 1


@pytest.mark.rule("A-164", "A-165")
def test_a_lost_answer_that_nothing_settles_stays_unknown(sky: Sky) -> None:
    sky.workspace()
    sky.job("runs")
    sky.azure.arm_server.on("/cancel", Cut.AFTER_HEADERS, Cut.AFTER_BODY)
    with pytest.raises(OutcomeUnknown):
        sky.cloud.cancel(sky.project, COORDINATES, "runs")
    assert not sky.cloud.cancel(sky.project, COORDINATES, "runs").was_final  # asked again, lost, and found asked for


# Which workspace


@pytest.mark.rule("C-005", "A-177")
def test_the_workspace_of_the_settings_needs_no_search(busy: Sky) -> None:
    with pytest.raises(UserError, match="no workspace is chosen") as caught:
        names(busy, workspace=HERE)
    assert caught.value.hint == "`--ws NAME`, or `aj config set workspace.name NAME`"
    busy.settings(f'[workspace]\nname = "ws-one"\nsubscription_id = "{ONE}"\nresource_group = "rg-one"\n')
    assert names(busy, workspace=HERE) == names(busy, workspace="WS-ONE") == list("9876543210")
    assert not busy.targets("ResourceGraph") and not busy.targets("GET /subscriptions?")
    assert len(busy.targets()) == 2


@pytest.mark.rule("A-177", "A-051")
def test_a_workspace_is_found_by_its_name_once(busy: Sky) -> None:
    cloud = busy.cloud
    for _ in range(3):
        assert len(cloud.jobs(busy.project, "ws-one", JobQuery()).jobs) == 10
    assert len(busy.targets("ResourceGraph")) == 1
    busy.clock.move(601)
    cloud.jobs(busy.project, "ws-one", JobQuery())
    assert len(busy.targets("ResourceGraph")) == 2
    with pytest.raises(NotFound, match="no workspace is called ws-won"):
        cloud.jobs(busy.project, "ws-won", JobQuery())
    subscribe(busy.azure, TWO)
    busy.workspace(Workspace(TWO, "rg-x", "ws-one"))
    with pytest.raises(UserError, match="2 workspaces are called ws-one"):
        busy.cloud.jobs(busy.project, "ws-one", JobQuery())


@pytest.mark.rule("A-019")
def test_a_tenant_before_the_coordinates_is_signed_in_for(busy: Sky) -> None:
    tenant = "bbbbbbbb-0000-0000-0000-00000000000b"
    assert names(busy, workspace=f"{tenant}:{COORDINATES}") == list("9876543210")
    assert busy.opened == [tenant]
    assert {asked[1] for asked in busy.azure.issuer.asked} == {tenant}


@pytest.mark.parametrize("word", ["", "a:b", "a::c", ":a:b", "a:b:c:d:e", "a:b:"])
def test_what_is_no_workspace(word: str) -> None:
    with pytest.raises(UserError, match="is no workspace"):
        wished(word)
