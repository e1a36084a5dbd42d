"""Code onto a volume through a pod, with real bytes and a real shell; every way to fail leaves nothing behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from aj.backend.volcano import porter, volume
from aj.backend.volcano.options import Volume
from aj.backend.volcano.transfer import MIB, Limits
from aj.base.errors import AjError, NotFound, OutcomeUnknown, Refused, RemoteError, TimedOut, Unavailable
from aj.model.step import Kind
from aj.store.traces import HELPER as KIND
from aj.store.traces import Trace
from tests.backend.volcano.bench import HELPER, OWNER, TEMPLATE, Bench, bench
from tests.conftest import Home, MovedClock
from tests.servers import kube
from tests.servers.kube import CLAIM, NAMESPACE, Cut, Denied, Turn, User
from tests.servers.kube_schema import core
from tests.template.kit import ID

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


@pytest.fixture
def at(home: Home, clock: MovedClock, loopback: None, programs: None, tmp_path: Path) -> Iterator[Bench]:
    with bench(home, clock, tmp_path / "cluster") as made:
        yield made


def kinds(at: Bench) -> set[str]:
    return {step.kind for step in at.told}


# The pod


@pytest.mark.rule("V-063", "V-028", "V-027", "V-061")
def test_the_pod_is_small_and_without_rights(at: Bench) -> None:
    body = dict(at.helper.body)
    assert not core("Pod").unknown(body)
    assert not core("Pod").causes(body)
    about, spec = body["metadata"], body["spec"]
    assert about == {
        "name": HELPER,
        "namespace": NAMESPACE,
        "labels": {"aj-id": ID, "app.kubernetes.io/managed-by": "aj"},
        "annotations": {"aj-owner": OWNER},
    }
    (container,) = spec["containers"]
    assert container["resources"] == {"requests": (least := {"cpu": "200m", "memory": "256Mi"}), "limits": least}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["image"].partition("@")[2].startswith("sha256:")
    assert (spec["restartPolicy"], spec["activeDeadlineSeconds"]) == ("Never", 21600)
    assert spec["automountServiceAccountToken"] is False
    assert spec["volumes"] == [{"name": "aj-pvc", "persistentVolumeClaim": {"claimName": CLAIM}}]
    assert container["volumeMounts"] == [{"name": "aj-pvc", "mountPath": "/mnt/aj-volume"}]
    assert {one["key"] for one in spec["tolerations"]} == {"nvidia.com/gpu", "rdma/rdma_shared_device_a"}
    assert {one["name"]: one["value"] for one in container["env"]}["AJ_IDLE"] == "600"
    assert "nodeSelector" not in spec


@pytest.mark.rule("V-063")
def test_the_pod_has_the_jobs_account_user_and_secrets(at: Bench) -> None:
    more = "service_account: trainer, image_pull_secrets: [pull], run_as: {user: 1000, group: 2000, fs_group: 3000}"
    at.template = TEMPLATE.replace("service: volcano,", f"service: volcano, {more},")
    spec = at.helper.body["spec"]
    assert spec["serviceAccountName"] == "trainer"  # type: ignore[index, call-overload]
    assert spec["automountServiceAccountToken"] is False  # type: ignore[index, call-overload]
    assert spec["imagePullSecrets"] == [{"name": "pull"}]  # type: ignore[index, call-overload]
    user = {"runAsUser": 1000, "runAsGroup": 2000, "fsGroup": 3000}
    assert spec["securityContext"] == user  # type: ignore[index, call-overload]
    assert spec["containers"][0]["securityContext"]["runAsNonRoot"] is True  # type: ignore[index, call-overload]


def test_its_programs_arrive_as_they_are_written(at: Bench) -> None:
    from tests.servers.kube_pods import expanded

    env = {one["name"]: one["value"] for one in at.helper.body["spec"]["containers"][0]["env"]}  # type: ignore[index, call-overload]
    assert expanded(env["AJ_RECEIVE"], {}) == porter.script("receive.sh")
    assert expanded(env["AJ_TIDY"], {}) == porter.script("tidy.sh")
    (text,) = at.helper.body["spec"]["containers"][0]["args"]  # type: ignore[index, call-overload]
    assert expanded(text, {}) == porter.script("keep.sh")


# The way there


@pytest.mark.rule("V-061", "V-063", "V-064", "V-065", "V-067", "V-068")
def test_code_is_brought_whole_and_the_pod_is_gone(at: Bench) -> None:
    sent = at.bring()
    assert at.there.read_bytes() == at.data
    assert (sent.sent_bytes, sent.skipped_bytes) == (len(at.data), 0)
    assert at.left() == []
    assert at.there.parent.stat().st_mode & 0o777 == 0o700
    uploads = [step for step in at.told if step.kind is Kind.UPLOAD]
    assert uploads[0].detail == f"starting pod {HELPER}"
    assert (uploads[-1].detail, uploads[-1].completed) == ("code: uploaded 3.0 MiB", len(at.data))
    assert all(step.total == len(at.data) for step in uploads[1:])
    deletion = at.server.requests("DELETE", HELPER)[0]
    assert b'"gracePeriodSeconds":0' in deletion.body


@pytest.mark.rule("V-067")
def test_an_equal_file_is_not_sent_again(at: Bench) -> None:
    at.bring()
    at.told.clear()
    assert at.bring().is_reused
    assert at.words[-1] == "code: reused (0 B sent)"
    assert sum(len(one.stdin) for one in at.server.nodes.execs) < len(at.data) + 1000


@pytest.mark.rule("V-066", "V-064")
@pytest.mark.parametrize("kills", [True, False])
def test_a_line_that_is_cut_is_taken_up_again(at: Bench, kills: bool) -> None:
    cuts = (MIB // 2, 2 * MIB, 10)
    at.server.nodes.turns.extend(("AJ_RECEIVE", Turn(after_stdin=after, kills=kills)) for after in cuts)
    at.bring()
    assert at.there.read_bytes() == at.data
    assert at.left() == []
    assert len([one for one in at.server.nodes.execs if "AJ_RECEIVE" in one.command[2]]) == 4
    assert len(at.server.requests("POST", PODS)) == 1, "one pod was enough"


@pytest.mark.rule("V-066", "V-068", "V-125")
def test_a_line_that_stands_still_is_given_up_and_the_next_try_goes_on(at: Bench) -> None:
    turn = Turn(after_stdin=2 * MIB + 1000, cut=False)
    at.server.nodes.turns.append(("AJ_RECEIVE", turn))
    waiting = at.when(turn.reached, 61)
    error = at.failing()
    turn.release.set()
    waiting.join()
    assert isinstance(error, Unavailable)
    assert str(error) == f"the upload stood still for 60 s at 2.0 of 3.0 MiB (helper {HELPER} on node node-1)"
    assert error.hint == "run again: it resumes"
    assert at.left() == []
    assert at.bring().skipped_bytes >= 2 * MIB
    assert at.there.read_bytes() == at.data


@pytest.mark.rule("V-066")
def test_a_line_that_always_breaks_is_given_up(at: Bench) -> None:
    at.server.nodes.turns.extend(("AJ_RECEIVE", Turn(after_stdin=2)) for _ in range(4))
    error = at.failing()
    assert isinstance(error, Unavailable)
    assert "the upload broke at 0 B of 3.0 MiB, and 2 more tries brought nothing" in str(error)
    assert at.left() == []


@pytest.mark.rule("V-066", "V-068")
def test_a_pod_that_is_put_out_ends_it_with_its_reason(at: Bench) -> None:
    turn = Turn(after_stdin=MIB, kills=True)
    at.server.nodes.turns.append(("AJ_RECEIVE", turn))
    at.server.nodes.fate(HELPER, kube.evicted(after=2))
    error = at.failing()
    assert isinstance(error, RemoteError)
    assert f"pod {HELPER} ended: Evicted: The node was low on resource: memory." in str(error)
    assert at.left() == []


def test_a_pod_that_somebody_else_removed(at: Bench) -> None:
    at.server.nodes.turns.append(("AJ_RECEIVE", Turn(after_stdin=MIB, kills=True)))
    at.server.server.on(f"GET {PODS}/{HELPER}", None, None, kube.status(404, "gone"))
    error = at.failing()
    assert str(error) == f"pod {HELPER} was removed by somebody else"
    assert at.left() == []


@pytest.mark.rule("V-065", "V-068")
def test_a_volume_that_does_not_take_it(at: Bench) -> None:
    at.there.parent.parent.mkdir(parents=True)
    at.there.parent.symlink_to(at.home.root)
    error = at.failing()
    assert isinstance(error, RemoteError)
    assert f"/mnt/aj-volume/aj_code/{ID} cannot be made on the volume" in str(error)
    assert at.left() == []


@pytest.mark.rule("V-068")
def test_whoever_stops_it_leaves_nothing_behind(at: Bench) -> None:
    class Stopped(Exception):
        pass

    def tell(step: object) -> None:
        if getattr(step, "completed", None):
            raise Stopped

    with pytest.raises(Stopped):
        at.upload().carry_out(at.traces, tell)
    assert at.left() == []


# The pod that does not come up


@pytest.mark.rule("V-064", "V-068", "V-126")
@pytest.mark.parametrize(
    ("fate", "words"),
    [
        (kube.no_image(), "cannot start: ImagePullBackOff"),
        (kube.no_image("InvalidImageName", "no name"), "cannot start: InvalidImageName"),
        (kube.exits(1, "Error", after=0), r"ended before it was used: Error \(exit 1\)"),
        (kube.unschedulable(), "gets no node: 0/3 nodes are available"),
    ],
)
def test_a_pod_that_cannot_start_fails_early_with_its_reason(at: Bench, fate: kube.Fate, words: str) -> None:
    at.server.nodes.fate(HELPER, fate)
    began = at.clock.monotonic()
    with pytest.raises(RemoteError, match=f"pod {HELPER} {words}") as caught:
        at.bring()
    assert caught.value.hint == "`volcano.helper_image`, `target.run_as`"
    assert at.clock.monotonic() - began < 60
    assert at.left() == []
    if fate.events:
        assert fate.events[0][2] in str(caught.value), "its last events are told"


@pytest.mark.rule("V-064")
def test_a_pod_that_is_never_ready_is_waited_for_five_minutes(at: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(porter, "LOOK_S", 15.0)
    at.server.nodes.fate(HELPER, kube.comes_up(after=100_000))
    began = at.clock.monotonic()
    with pytest.raises(TimedOut, match=f"pod {HELPER} was not ready within 300 s: ContainerCreating"):
        at.bring()
    assert 300 <= at.clock.monotonic() - began < 320
    assert at.left() == []


@pytest.mark.rule("V-126")
def test_a_pod_that_the_cluster_refuses(at: Bench) -> None:
    at.server.kube.denials.append(("pods", Denied("images come from registry.example alone")))
    error = at.failing()
    assert isinstance(error, Refused)
    assert str(error).startswith(f"pod {HELPER} was refused: admission webhook")
    assert "images come from registry.example alone" in str(error)
    assert error.hint == "`volcano.helper_image`, `target.run_as`"
    assert at.left() == []


@pytest.mark.rule("V-104")
@pytest.mark.parametrize("lacking", ["create pods", "get pods/exec", "get pods"])
def test_a_missing_right_is_named_and_nothing_stays(at: Bench, lacking: str) -> None:
    whole = {("create", "pods"), ("get", "pods"), ("delete", "pods"), ("get", "pods/exec"), ("create", "pods/exec")}
    verb, resource = lacking.split()
    at.server.kube.users[kube.TOKEN] = User("ann", frozenset(whole - {(verb, resource)}))
    error = at.failing()
    assert isinstance(error, Refused)
    assert f"no right to {verb} {resource} in namespace {NAMESPACE} as user ann" in str(error)
    names = [name for name in at.left() if not name.startswith("helper-")]
    assert names == []


@pytest.mark.rule("V-064")
def test_a_pod_of_ours_is_taken_over(at: Bench) -> None:
    at.reach().create(porter.PODS, at.helper.body, NAMESPACE)
    at.bring()
    assert at.there.read_bytes() == at.data
    assert len(at.server.requests("DELETE", HELPER)) == 1
    assert at.left() == []


@pytest.mark.rule("V-064")
def test_a_pod_of_ours_that_ended_is_replaced(at: Bench) -> None:
    at.server.nodes.fate(HELPER, kube.exits(1, after=0))
    at.reach().create(porter.PODS, at.helper.body, NAMESPACE)
    at.server.nodes.fates.clear()
    at.bring()
    assert at.there.read_bytes() == at.data
    assert at.left() == []


@pytest.mark.rule("V-064")
def test_a_pod_of_somebody_else_is_left_alone(at: Bench) -> None:
    at.server.kube.add("pods", HELPER, spec={"containers": [{"name": "main", "image": "x:1"}]})
    error = at.failing()
    assert isinstance(error, Refused)
    assert error.code == "other-pod"
    assert at.left() == [HELPER]


@pytest.mark.rule("V-064")
def test_a_creation_whose_answer_is_lost_is_looked_up(at: Bench) -> None:
    at.server.server.on(f"POST {PODS}", Cut.AFTER_BODY)
    at.bring()
    assert len(at.server.requests("POST", PODS)) == 1
    assert at.left() == []


def test_a_creation_that_may_still_come_stays_noted(at: Bench) -> None:
    at.server.server.on(f"POST {PODS}", kube.Undone())
    assert isinstance(at.failing(), OutcomeUnknown)
    assert at.left() == [f"helper-{ID}.json"]


@pytest.mark.rule("V-068")
def test_a_removal_that_fails_is_told_and_stays_noted(at: Bench) -> None:
    at.server.server.on(f"DELETE {PODS}", *[kube.unavailable()] * porter.TRIES)
    at.bring()
    assert at.left() == [HELPER, f"helper-{ID}.json"]
    (warning,) = at.warnings()
    assert warning.startswith(f"pod {HELPER} could not be removed: ")


# What was left behind


@pytest.mark.rule("V-068")
def test_helpers_of_a_daemon_that_was_killed_are_swept_and_no_others(at: Bench) -> None:
    ours = at.reach()
    at.traces.note(Trace(KIND, ID, kube.CONTEXT, NAMESPACE, 0.0))
    ours.create(porter.PODS, at.helper.body, NAMESPACE)
    for job, owner in (("00000001", "another"), ("00000002", OWNER)):
        other = {**at.helper.body, "metadata": {**at.helper.body["metadata"], "name": f"aj-{job}-upload"}}  # type: ignore[dict-item]
        other["metadata"] |= {
            "labels": {**other["metadata"]["labels"], "aj-id": job},
            "annotations": {"aj-owner": owner},
        }  # type: ignore[operator, index, call-overload]
        ours.create(porter.PODS, other, NAMESPACE)
    at.server.kube.add(
        "pods",
        "a-job-master-0",
        spec={"containers": [{"name": "main", "image": "x:1"}]},
        metadata={"labels": {"aj-id": ID, "app.kubernetes.io/managed-by": "aj", "aj-task": "master"}},
    )
    assert porter.sweep(ours, NAMESPACE, OWNER, lambda job: job == "00000002") == [ID]
    assert at.left() == ["a-job-master-0", "aj-00000001-upload", "aj-00000002-upload", f"helper-{ID}.json"]


# The volume before, and old code


@pytest.mark.rule("V-062")
def test_a_volume_that_cannot_serve_is_refused_first(at: Bench) -> None:
    ours = at.reach()
    for name, mode, phase in (
        ("once", "ReadWriteOnce", "Bound"),
        ("reading", "ReadOnlyMany", "Bound"),
        ("lost", "ReadWriteMany", "Lost"),
        ("waiting", "ReadWriteMany", "Pending"),
    ):
        kube.add_claim(at.server, name, mode=mode, phase=phase)

    def refused(name: str, nodes: int = 2) -> AjError | None:
        try:
            volume.check(ours, NAMESPACE, Volume(name, "/mnt/shared"), nodes)
        except AjError as error:
            return error
        return None

    assert refused(CLAIM) is None
    assert refused("waiting") is None
    assert refused("once", 1) is None
    assert "one node has it, and the job has 2" in str(refused("once"))
    assert "for reading only: ReadOnlyMany" in str(refused("reading", 1))
    assert "volume claim lost of namespace training is Lost" in str(refused("lost"))
    missing = refused("none")
    assert isinstance(missing, NotFound)
    assert str(missing) == "no volume claim none in namespace training"


@pytest.mark.rule("V-069")
def test_old_code_of_jobs_that_are_gone_is_removed(at: Bench) -> None:
    top = at.there.parent.parent
    for job in ("00000001", "00000002", "00000003"):
        (top / job).mkdir(parents=True)
        os.utime(top / job, (1, 1))
    (top / "00000004").mkdir()
    (top / "my-notes").mkdir()
    os.utime(top / "my-notes", (1, 1))
    living = {"labels": {"aj-id": "00000002", "app.kubernetes.io/managed-by": "aj"}}
    task = {"name": "master", "replicas": 1, "template": {"spec": {"containers": [{"name": "m", "image": "x"}]}}}
    at.server.kube.add(
        "jobs", "train-x", metadata=living, spec={"minAvailable": 1, "queue": "default", "tasks": [task]}
    )
    at.bring()
    assert {entry.name for entry in top.iterdir()} == {ID, "00000002", "00000004", "my-notes"}
    assert at.warnings() == []


@pytest.mark.rule("V-069")
def test_the_code_of_one_job_is_removed(at: Bench) -> None:
    at.bring()
    volume.forget(at.reach(), at.helper, [ID], at.traces)
    assert list(at.there.parent.parent.iterdir()) == []
    assert at.left() == []


def test_that_old_code_could_not_be_looked_for_is_a_warning(at: Bench) -> None:
    at.server.server.on("GET /apis/batch.volcano.sh", *[kube.unavailable()] * 3)
    at.bring()
    (warning,) = at.warnings()
    assert warning.startswith("old code was left on the volume: ")


def test_an_archive_that_is_not_what_it_says_never_gets_its_name(at: Bench) -> None:
    wrong = at.upload(code=type(at.code)("d1" * 32, "0" * 64, 3, 300, len(at.data)))
    with pytest.raises(RemoteError, match=r"where 0+ was sent"):
        wrong.carry_out(at.traces, at.told.append)
    assert list(at.there.parent.iterdir()) == []
    assert at.left() == []


def test_limits_are_those_that_are_promised() -> None:
    assert Limits() == Limits(part=32 * MIB, stall_s=60.0, tries=5)
