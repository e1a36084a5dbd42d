"""Volcano as a service, before an API server: what is checked, in which order things are sent, what is believed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from aj.azure.memory import Memory
from aj.backend.volcano import backend as room
from aj.backend.volcano.backend import Means, Parcel, Planned, VolcanoBackend
from aj.backend.volcano.options import Options
from aj.backend.volcano.variables import Facts
from aj.base.errors import AjError, NotFound, OutcomeUnknown, Refused, RemoteError, Unavailable, UserError
from aj.kube import config
from aj.kube.client import Cluster
from aj.model.code import CodeRef
from aj.model.handle import Handle, parse
from aj.model.job import JobSpec
from aj.model.state import JobState
from aj.model.step import Kind, Step
from tests.conftest import Home, MovedClock
from tests.servers import kube
from tests.template.kit import ID, Request, built, project

AT = "2026-01-31T12:00:00.000000+00:00"
CODE = CodeRef("d1" * 32, "9d" * 32, 3, 300, 120)
TEMPLATE = """base:
config:
  target: {service: volcano, queue: default, gpus_per_node: 8, cpus_per_node: 96, memory: 512Gi}
  environment: {image: "registry.example/train:1"}
  jobs:
  - sku: "{nodes}x80G{processes}-H100"
    submit_args:
      env: {AMLT_PERSISTENT_VOLUME_NAME: team-data, AMLT_PERSISTENT_VOLUME_MOUNT_DIR: /mnt/shared}
"""
STORAGE = TEMPLATE.replace(
    "  jobs:", "  storage: {data: {storage_account_name: stuff, container_name: ccc, mount_dir: /mnt/d}}\n  jobs:"
)
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/training/jobs"


@dataclass
class Courier:
    """Brings nothing, and notes when it would have."""

    came: list[str]
    trouble: AjError | None = None

    def deliver(self, cluster: Cluster, spec: JobSpec, chosen: Options, facts: Facts, parcel: Parcel) -> int | None:
        if self.trouble is not None:
            raise self.trouble
        self.came.append(f"code {facts.archive_sha256}")
        return 120

    def secrets(
        self, cluster: Cluster, spec: JobSpec, chosen: Options, facts: Facts, keys: Sequence[str]
    ) -> Mapping[str, str]:
        return {key: f"sig=planted-{key}" for key in keys}


@dataclass
class Desk:
    """The service under test, its cluster, and what it told."""

    cluster: kube.Cluster
    home: Home
    clock: MovedClock
    told: list[Step] = field(default_factory=list)
    came: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.courier = Courier(self.came)
        self.settings = self.home.having(KUBECONFIG=str(self.cluster.config)).settings
        self.service = self.another()

    def another(self) -> VolcanoBackend:
        """The same service in a daemon that has just started."""
        return room.make(
            Means(
                open=self.open,
                facts=lambda spec, at: Facts(at),
                archive=lambda code: self.home.root / "code.tar.gz",
                courier=self.courier,
                memory=Memory(self.home.layout.answers / "kube", self.clock),
                clock=self.clock,
                tell=lambda aj_id, step: self.told.append(step),
            )
        )

    def open(self, context: str | None, namespace: str | None) -> Cluster:
        access = config.read(self.settings).access(context, namespace)
        return Cluster(access, self.settings, self.clock, self.home.root / "kube")

    def spec(self, template: str = TEMPLATE, nodes: int = 2, **changes: object) -> JobSpec:
        where = project(self.home.root / "p", {"t": template})
        asked = Request(ID, self.home.root / "p", ("python", "train.py"), where, name="train")
        text = template.replace("  - sku:", f"  - instance_count: {nodes}\n    sku:")
        return replace(built(self.home.root / "p", text, request=asked).spec, **changes)  # type: ignore[arg-type]

    def send(self, spec: JobSpec | None = None, *, service: VolcanoBackend | None = None) -> Handle:
        """Plan, prepare and submit, as the one who carries submissions out."""
        to = service or self.service
        planned = to.plan(spec or self.spec(), CODE, accepted_at=AT)
        to.prepare(planned)
        return to.submit(planned)

    def creations(self) -> int:
        """How often a job was to be created for real."""
        return len([got for got in self.cluster.requests("POST", f"{JOBS}?") if got.value("dryRun") is None])

    def warnings(self) -> list[str]:
        return [step.detail for step in self.told if step.kind is Kind.WARNING]


@pytest.fixture
def desk(home: Home, clock: MovedClock, loopback: None, tmp_path: Path) -> Iterator[Desk]:
    with kube.running(tmp_path / "cluster") as cluster:
        yield Desk(cluster, home, clock)


@pytest.mark.rule("V-100", "V-025", "V-026", "V-027", "V-028", "V-039", "V-085")
def test_everything_is_sent_in_its_order(desk: Desk) -> None:
    planned = desk.service.plan(desk.spec(STORAGE), CODE, accepted_at=AT)
    before = len(desk.cluster.server.got)
    assert all(got.method == "GET" or got.value("dryRun") == "All" for got in desk.cluster.server.got)
    desk.service.prepare(planned)
    desk.cluster.server.got.insert(before, kube.Got("CODE", desk.came[0], (), {}, b""))
    handle = desk.service.submit(planned)
    assert [f"{got.method} {got.path}{'?dry' if got.value('dryRun') else ''}" for got in desk.cluster.server.got] == [
        "GET /apis/scheduling.volcano.sh/v1beta1/queues/default",
        "GET /api/v1/namespaces/training/persistentvolumeclaims/team-data",
        f"GET {JOBS}",
        f"POST {JOBS}?dry",
        f"CODE code {CODE.archive_sha256}",
        "POST /api/v1/namespaces/training/secrets",
        f"POST {JOBS}",
        f"GET /api/v1/namespaces/training/secrets/aj-{ID}",
        f"PUT /api/v1/namespaces/training/secrets/aj-{ID}",
    ]
    job = desk.cluster.kube.stored("jobs", handle.name)
    assert handle.name.startswith(f"train-{ID}-")
    assert str(handle) == f"volcano://lab/training/{handle.name}"
    assert handle.uploaded_bytes == 120
    assert job["metadata"]["labels"] == {"aj-id": ID, "app.kubernetes.io/managed-by": "aj"}
    assert job["spec"]["minAvailable"] == 2
    (owner,) = desk.cluster.kube.stored("secrets", f"aj-{ID}")["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["kind"], owner["controller"]) == (job["metadata"]["uid"], "Job", False)


@pytest.mark.rule("V-002")
def test_what_was_chosen_is_told_with_its_reason(desk: Desk) -> None:
    desk.service.plan(desk.spec(), CODE, accepted_at=AT)
    assert "namespace training of lab" in desk.told[0].detail
    assert "namespace: the context lab names it" in desk.told[0].detail


@pytest.mark.rule("V-100")
def test_a_job_that_is_there_is_not_sent_again(desk: Desk) -> None:
    first = desk.send(desk.spec(STORAGE))
    again = desk.send(desk.spec(STORAGE), service=desk.another())
    assert again == first
    assert desk.creations() == 1
    assert len(desk.came) == 1


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        ("closed", "queue closed is Closed (open: default)"),
        ("nowhere", "there is no queue nowhere (open: default)"),
        ("root", "queue root takes no jobs (open: default)"),
    ],
)
@pytest.mark.rule("V-003", "V-121")
def test_a_queue_that_takes_no_jobs_is_refused(desk: Desk, queue: str, words: str) -> None:
    spec = desk.spec(TEMPLATE.replace("queue: default", f"queue: {queue}"))
    with pytest.raises(Refused) as caught:
        desk.service.plan(spec, CODE, accepted_at=AT)
    assert caught.value.message == words
    assert caught.value.hint is not None and "aj k8s queues" in caught.value.hint
    assert desk.cluster.requests("POST") == []


def without(*missing: tuple[str, str]) -> kube.User:
    """Someone with all rights a job needs but these."""
    from aj.kube.resources import RIGHTS

    every = {(verb, resource) for resource, verbs in RIGHTS for verb in verbs}
    return kube.User("ann", frozenset(every - set(missing)))


@pytest.mark.rule("V-003")
def test_who_may_not_read_queues_is_told_so(desk: Desk) -> None:
    queues = "queues.scheduling.volcano.sh"
    desk.cluster.kube.users[kube.TOKEN] = without(("get", queues), ("list", queues))
    desk.send()
    assert desk.warnings() == [
        "the queue default was not checked: no right to get queues.scheduling.volcano.sh as user ann"
    ]


@pytest.mark.rule("V-062")
@pytest.mark.parametrize(
    ("mode", "phase", "nodes", "is_fine"),
    [
        ("ReadWriteMany", "Bound", 2, True),
        ("ReadWriteOnce", "Bound", 1, True),
        ("ReadWriteOnce", "Bound", 2, False),
        ("ReadOnlyMany", "Bound", 1, False),
        ("ReadWriteMany", "Pending", 1, True),
        ("ReadWriteMany", "Lost", 1, False),
    ],
)
def test_a_volume_must_serve_all_nodes(desk: Desk, mode: str, phase: str, nodes: int, is_fine: bool) -> None:
    kube.add_claim(desk.cluster, "mine", mode=mode, phase=phase)
    spec = desk.spec(TEMPLATE.replace("team-data", "mine"), nodes)
    if is_fine:
        desk.service.plan(spec, CODE, accepted_at=AT)
        return
    with pytest.raises(Refused, match="volume claim mine"):
        desk.service.plan(spec, CODE, accepted_at=AT)
    assert desk.cluster.requests("POST") == []


def test_a_volume_that_is_not_there_is_named(desk: Desk) -> None:
    with pytest.raises(NotFound, match="no volume claim nowhere in namespace training"):
        desk.service.plan(desk.spec(TEMPLATE.replace("team-data", "nowhere")), CODE, accepted_at=AT)


@pytest.mark.rule("V-039")
def test_what_the_cluster_would_refuse_is_refused_before_anything_is_brought(desk: Desk) -> None:
    desk.cluster.kube.denials.append(("jobs", kube.Denied("image registry.example is not allowed")))
    with pytest.raises(Refused, match=r"image registry\.example is not allowed"):
        desk.send(desk.spec(STORAGE))
    assert desk.came == []
    assert desk.creations() == 0
    assert desk.cluster.kube.names("secrets") == []


@pytest.mark.rule("V-039")
def test_a_cluster_that_makes_no_dry_runs_is_noted(desk: Desk) -> None:
    desk.cluster.kube.knows_dry_run = False
    desk.send()
    assert desk.warnings() == [room.NO_DRY_RUN]
    assert desk.creations() == 1


@pytest.mark.rule("V-101")
@pytest.mark.parametrize("fault", [kube.Cut.AFTER_BODY, kube.Cut.MID_ANSWER])
def test_a_lost_answer_to_a_creation_that_happened(desk: Desk, fault: kube.Cut) -> None:
    planned = desk.service.plan(desk.spec(STORAGE), CODE, accepted_at=AT)
    desk.service.prepare(planned)
    desk.cluster.server.on(f"POST {JOBS}?", fault)
    handle = desk.service.submit(planned)
    assert desk.cluster.kube.names("jobs") == [handle.name]
    assert desk.creations() == 1
    assert desk.warnings() == [f"the answer to the creation was lost; {handle.name} is there"]
    assert desk.clock.slept[:1] == [1.0]
    assert desk.cluster.kube.stored("secrets", f"aj-{ID}")["metadata"]["ownerReferences"]


@pytest.mark.rule("V-101", "V-128", "V-085")
@pytest.mark.parametrize("fault", [kube.Undone(), kube.unavailable(500), kube.unavailable(504), kube.Cut.AFTER_HEADERS])
def test_a_lost_answer_to_a_creation_that_is_not_seen(desk: Desk, fault: kube.Undone | kube.Answer | kube.Cut) -> None:
    planned = desk.service.plan(desk.spec(STORAGE), CODE, accepted_at=AT)
    desk.service.prepare(planned)
    desk.cluster.server.on(f"POST {JOBS}?", fault)  # type: ignore[arg-type]
    with pytest.raises(OutcomeUnknown) as caught:
        desk.service.submit(planned)
    assert caught.value.message == f"the answer to the creation of train-{ID} was lost; not seen yet"
    assert caught.value.hint == f"`aj queue reconcile q-{ID}`"
    assert desk.clock.slept == [1.0, 3.0, 10.0]
    assert desk.creations() <= 1
    assert desk.cluster.kube.names("secrets") == [f"aj-{ID}"]


@pytest.mark.rule("V-101", "V-085")
@pytest.mark.parametrize(
    "answer", [kube.status(403, "no more jobs today"), kube.status(422, "spec is bad"), kube.too_many()]
)
def test_a_refusal_is_certain_and_the_secret_goes(desk: Desk, answer: kube.Answer) -> None:
    planned = desk.service.plan(desk.spec(STORAGE), CODE, accepted_at=AT)
    desk.service.prepare(planned)
    desk.cluster.server.on(f"POST {JOBS}?", answer)
    with pytest.raises((Refused, RemoteError)) as caught:
        desk.service.submit(planned)
    assert not isinstance(caught.value, OutcomeUnknown | Unavailable)
    assert desk.creations() == 1
    assert desk.cluster.kube.names("secrets") == []
    assert desk.cluster.kube.names("jobs") == []


@pytest.mark.rule("V-103")
def test_a_secret_that_gets_no_owner_is_a_warning(desk: Desk) -> None:
    desk.cluster.server.on("PUT /api/v1/namespaces/training/secrets", kube.status(403, "not today"))
    handle = desk.send(desk.spec(STORAGE))
    assert handle.name in desk.cluster.kube.names("jobs")
    (warning,) = desk.warnings()
    assert warning.startswith("the secret has no owner yet: could not update Secret")


@pytest.mark.rule("V-104", "V-127")
def test_a_missing_right_is_named(desk: Desk) -> None:
    desk.cluster.kube.users[kube.TOKEN] = without(("create", "jobs.batch.volcano.sh"))
    with pytest.raises(Refused) as caught:
        desk.send()
    assert caught.value.message == "no right to create jobs.batch.volcano.sh in namespace training as user ann"


@pytest.mark.rule("V-060")
def test_without_a_volume_no_code_goes_along(desk: Desk) -> None:
    line = "      env: {AMLT_PERSISTENT_VOLUME_NAME: team-data, AMLT_PERSISTENT_VOLUME_MOUNT_DIR: /mnt/shared}\n"
    desk.send(desk.spec(TEMPLATE.replace(line, "      env: {A: b}\n")))
    assert desk.came == []


@pytest.mark.rule("V-102")
def test_a_submission_is_found_where_it_was_sent(desk: Desk) -> None:
    """Also when the current context has become another one meanwhile."""
    handle = desk.send()
    other = desk.cluster.write(desk.home.root / "other", context="elsewhere", namespace="default")
    desk.settings = desk.home.having(KUBECONFIG=f"{other}:{desk.cluster.config}").settings
    assert desk.another().find(desk.spec()) == handle


@pytest.mark.rule("V-102")
def test_what_is_not_there_is_not_there_only_where_it_was_sent(desk: Desk) -> None:
    with pytest.raises(OutcomeUnknown) as caught:
        desk.service.find(desk.spec())
    assert caught.value.code == "not-remembered"
    desk.service.prepare(desk.service.plan(desk.spec(), CODE, accepted_at=AT))
    assert desk.another().find(desk.spec()) is None
    named = desk.spec(TEMPLATE.replace("queue: default", "queue: default, context: lab"), id="ffffffff")
    assert desk.service.find(named) is None


@pytest.mark.rule("V-102")
def test_several_jobs_of_one_id_are_named_and_left_alone(desk: Desk) -> None:
    handle = desk.send()
    body = desk.cluster.kube.stored("jobs", handle.name)
    desk.cluster.kube.add("jobs", "twin", metadata={"labels": body["metadata"]["labels"]}, spec=body["spec"])
    with pytest.raises(Refused) as caught:
        desk.service.find(desk.spec())
    assert caught.value.message == f"2 jobs bear the id {ID}: {handle.name}, twin"
    assert sorted(desk.cluster.kube.names("jobs")) == sorted([handle.name, "twin"])


@pytest.mark.rule("V-094")
@pytest.mark.parametrize(
    ("phase", "state", "cancelled"),
    [
        ("Pending", JobState.QUEUED, JobState.QUEUED),
        ("Restarting", JobState.STARTING, JobState.STARTING),
        ("Running", JobState.RUNNING, JobState.RUNNING),
        ("Completing", JobState.RUNNING, JobState.RUNNING),
        ("Completed", JobState.COMPLETED, JobState.COMPLETED),
        ("Failed", JobState.ERRORED, JobState.TERMINATED),
        ("Aborting", JobState.ERRORED, JobState.TERMINATED),
        ("Aborted", JobState.ERRORED, JobState.TERMINATED),
        ("Terminating", JobState.ERRORED, JobState.TERMINATED),
        ("Terminated", JobState.ERRORED, JobState.TERMINATED),
        ("Sleeping", None, None),
    ],
)
def test_phases_have_our_words(desk: Desk, phase: str, state: JobState | None, cancelled: JobState | None) -> None:
    assert room.states.state_of(phase) is state
    assert room.states.state_of(phase, is_cancelled=True) is cancelled


@pytest.mark.rule("V-094")
def test_a_status_is_asked_for(desk: Desk) -> None:
    handle = desk.send()
    desk.cluster.play(handle.name, "Running")
    status = desk.service.status(handle)
    assert status is not None and (status.state, status.words) == (JobState.RUNNING, "Running")
    assert desk.service.status(replace(handle, name="nobody")) is None


@pytest.mark.rule("V-116")
def test_an_end_is_told_in_the_job_and_then_it_is_deleted_once(desk: Desk) -> None:
    handle = desk.send()
    uid = desk.cluster.kube.stored("jobs", handle.name)["metadata"]["uid"]
    desk.service.cancel(handle)
    (patch,) = desk.cluster.requests("PATCH")
    (delete,) = desk.cluster.requests("DELETE", JOBS)
    order = [got.method for got in desk.cluster.server.got if got.method in ("PATCH", "DELETE")]
    assert order == ["PATCH", "DELETE"]
    assert "aj-cancelled" in patch.json()["metadata"]["annotations"]  # type: ignore[index, call-overload]
    assert delete.json() == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": uid},
    }
    assert desk.cluster.kube.names("jobs") == []
    desk.service.cancel(handle)  # it is gone: nothing is sent
    assert len(desk.cluster.requests("DELETE", JOBS)) == 1


@pytest.mark.rule("V-116")
def test_a_lost_answer_to_an_end_is_settled_by_a_look(desk: Desk) -> None:
    handle = desk.send()
    desk.cluster.server.on(f"DELETE {JOBS}", kube.Cut.MID_ANSWER)
    desk.service.cancel(handle)
    assert desk.cluster.kube.names("jobs") == []
    again = desk.send(desk.spec(id="0a1b2c3e", name="train-0a1b2c3e"))
    desk.cluster.server.on(f"DELETE {JOBS}", kube.Undone())
    with pytest.raises(OutcomeUnknown, match=f"whether {again.name} was deleted is not known"):
        desk.service.cancel(again)
    assert len(desk.cluster.requests("DELETE", f"{JOBS}/{again.name}")) == 1


@pytest.mark.rule("V-116")
def test_a_job_that_has_ended_is_left_alone(desk: Desk) -> None:
    handle = desk.send()
    desk.cluster.play(handle.name, "Completed")
    desk.service.cancel(handle)
    assert desk.cluster.requests("DELETE", JOBS) == []


@pytest.mark.rule("V-027")
def test_handles_survive_being_written_whatever_the_context_is_called(desk: Desk) -> None:
    handle = Handle("volcano", "arn:aws:eks:x:1:cluster/lab/training", "train-1")
    assert parse(str(handle)) == handle
    assert room.split(handle.place) == ("arn:aws:eks:x:1:cluster/lab", "training")
    with pytest.raises(UserError):
        room.split("training")


def test_a_plan_is_of_its_own_service(desk: Desk) -> None:
    planned = desk.service.plan(desk.spec(), CODE, accepted_at=AT)
    assert isinstance(planned, Planned)
    assert (planned.name, planned.is_named) == (f"train-{ID}", False)
