"""Manifests: what each kind of job sends, checked as a cluster does, and decoded as a node does."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import aj
from aj.backend.volcano import gang, names, payload, pods, program
from aj.backend.volcano.payload import Objects
from aj.base.errors import TemplateError, UserError
from aj.model.code import CodePlan
from aj.model.job import JobSpec, Shape
from aj.model.json import Json
from aj.template import dump
from aj.template.build import Request
from tests.backend.volcano import kit
from tests.backend.volcano.kit import Plain, arrived, container, env, made, pod, spec, tasks
from tests.template.kit import EXAMPLES, ID, VOLCANO, built

GOLDEN = Path(__file__).parent / "golden"
HETEROGENEOUS = "base:\n" + (EXAMPLES / "heterogeneous.yaml").read_text()
FILLED = {
    "<KUBECTL_CONTEXT>": "kind",
    "<CONTAINER_IMAGE>": "registry.example/train:1",
    "<PVC_NAME>": "team-data",
    "<ACCOUNT>": "account1",
    "<CONTAINER>": "code",
}


def filled(text: str) -> str:
    for placeholder, value in FILLED.items():
        text = text.replace(placeholder, value)
    return text


def example_of(root: Path, *parts: str) -> Objects:
    """Build the user's own example of Volcano, with more of his pieces over it."""
    others = {f"part/{name}": filled((EXAMPLES / f"{name}.yaml").read_text()) for name in ("volcano", *parts)}
    bases = ", ".join(f"part.{name}" for name in ("volcano", *parts))
    folder = root / "train"
    folder.mkdir()
    return kit.of(built(folder, f"base: [{bases}]\nconfig: {{}}\n", "python", "train.py", **others).spec)


def shown(objects: Objects) -> str:
    """A manifest as text, with a word in the place of the program."""
    job = json.loads(payload.written(objects.job))
    for task in job["spec"]["tasks"]:
        (main,) = task["template"]["spec"]["containers"]
        assert main["args"] == [program.argument()]
        main["args"] = ["<the program>"]
    return dump.dump(job)


def changed(text: str, **values: str) -> str:
    """A template with something in place of something else, each of which must be there."""
    for old, new in values.items():
        assert old in text
        text = text.replace(old, new)
    return text


# the whole


@pytest.mark.rule("V-030", "V-032", "V-061", "C-197")
def test_the_users_example_of_two_nodes(tmp_path: Path) -> None:
    check_golden("two-nodes", example_of(tmp_path, "nested"))


@pytest.mark.rule("V-031", "V-004")
def test_one_node_without_gpus(tmp_path: Path) -> None:
    text = VOLCANO.replace("gpus_per_node: 8, cpus_per_node: 96, memory: 512Gi", "gpus_per_node: 0")
    text = text.replace("instance_count: 2", "instance_count: 1").replace('"{nodes}xG{processes}"', "C1")
    (tmp_path / "train").mkdir()
    objects = made(tmp_path / "train", text)
    check_golden("one-node", objects)
    assert {"affinity", "tolerations"}.isdisjoint(pod(objects))
    assert "resources" not in container(objects)


@pytest.mark.rule("V-033", "V-041", "V-048", "V-055")
def test_the_users_example_of_tasks(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    objects = made(tmp_path / "train", filled(HETEROGENEOUS))
    check_golden("tasks", objects)


@pytest.mark.rule("V-072", "V-074", "V-080", "V-085")
def test_the_users_examples_of_blob_and_storage(tmp_path: Path) -> None:
    objects = example_of(tmp_path, "blob")
    assert objects.secret_keys == ("code.url",)
    check_golden("blob", objects)


def check_golden(name: str, objects: Objects) -> None:
    """Compare with the file of that name, the order of keys included."""
    path = GOLDEN / f"{name}.yaml"
    assert shown(objects) == path.read_text()


@pytest.mark.rule("V-032")
@pytest.mark.parametrize("nodes", [1, 2, 100])
def test_so_many_nodes_start_together(tmp_path: Path, nodes: int) -> None:
    objects = made(tmp_path, VOLCANO.replace("instance_count: 2", f"instance_count: {nodes}"))
    assert spec(objects)["minAvailable"] == nodes
    sizes = {name: (task["replicas"], task["minAvailable"]) for name, task in tasks(objects).items()}
    assert sizes == {"master": (1, 1), **({"worker": (nodes - 1, nodes - 1)} if nodes > 1 else {})}
    bases = {name: env(objects, name)["AJ_RANK_BASE"] for name in sizes}
    assert bases == {"master": "0", **({"worker": "1"} if nodes > 1 else {})}


def test_the_templates_of_the_page_can_be_sent(tmp_path: Path) -> None:
    page = (Path(aj.__file__).parent / "docs/volcano.md").read_text()
    first, blob = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    parts = {"part/first": first.replace("base:\n", ""), "part/blob": blob}
    one = kit.of(built(tmp_path, "base: part.first\nconfig: {}\n", **parts).spec)
    both = kit.of(built(tmp_path, "base: [part.first, part.blob]\nconfig: {}\n", **parts).spec)
    assert (list(tasks(one)), one.secret_keys, both.secret_keys) == (["master", "worker"], (), ("code.url",))


# names and labels


@pytest.mark.rule("V-025", "V-026", "V-027", "V-028")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=220), st.integers(1, 100_000))
@example("x" * 200, 100)
@example("master", 11)
@example("-9Ünï.cødé/" * 20, 12)
def test_no_name_is_ever_too_long_and_all_bear_the_id(tmp_path: Path, base: str, nodes: int) -> None:
    text = VOLCANO.replace("instance_count: 2", f"instance_count: {nodes}")
    asked = Request(ID, tmp_path, ("true",), name=base.replace("\0", ""))
    objects = made(tmp_path, text, request=asked)  # the cluster's own checks of every pod's name are in there
    generated = str(cast(Plain, objects.job["metadata"])["generateName"])
    assert generated.endswith(f"-{ID}-")
    last = f"{generated}{kit.SUFFIX}-worker-{max(nodes - 2, 0)}"
    assert len(last) <= 63
    assert env(objects)["AJ_NAME"] == generated[:-1]


@pytest.mark.rule("V-027")
def test_all_that_belongs_to_a_job_is_named_by_its_id(tmp_path: Path) -> None:
    assert (names.secret(ID), names.helper(ID)) == (f"aj-{ID}", f"aj-{ID}-upload")
    assert env(example_of(tmp_path))["AJ_CODE_FROM"] == f"/mnt/shared/aj_code/{ID}/code.tar.gz"


@pytest.mark.rule("V-028", "V-009")
def test_labels_of_ours_stand_beside_those_of_the_user(tmp_path: Path) -> None:
    text = changed(VOLCANO, **{"service: volcano": "service: volcano, labels: {team: a}, annotations: {note: any one}"})
    asked = Request(ID, tmp_path, ("true",), name="My Job")
    objects = made(tmp_path, text, request=asked, known=kit.facts(submitter="someone"))
    metadata = cast(Plain, objects.job["metadata"])
    ours = {"aj-id": ID, "app.kubernetes.io/managed-by": "aj"}
    assert metadata["labels"] == {"team": "a", **ours}
    told = {"note": "any one", "aj-name": "my-job", "aj-template": "t", "aj-submitter": "someone"}
    assert metadata["annotations"] == told
    template = cast(Plain, tasks(objects)["worker"]["template"])
    assert template["metadata"] == {
        "labels": {"team": "a", "aj-task": "worker", **ours},
        "annotations": {"note": "any one"},
    }


# where pods may run, and what they take


def target(text: str, words: str) -> str:
    return changed(text, **{"service: volcano": f"service: volcano, {words}"})


@pytest.mark.rule("V-036", "V-013")
def test_nodes_of_a_job_stay_apart(tmp_path: Path) -> None:
    own = {"labelSelector": {"matchLabels": {"aj-id": ID}}, "topologyKey": "kubernetes.io/hostname"}
    when = "DuringSchedulingIgnoredDuringExecution"
    found = made(tmp_path, VOLCANO)
    assert pod(found)["affinity"] == pod(found, "worker")["affinity"] == {"podAntiAffinity": {f"required{when}": [own]}}
    preferred = pod(made(tmp_path, target(VOLCANO, "spread: preferred")))["affinity"]
    assert preferred == {"podAntiAffinity": {f"preferred{when}": [{"weight": 100, "podAffinityTerm": own}]}}
    assert "affinity" not in pod(made(tmp_path, target(VOLCANO, "spread: none")))


@pytest.mark.rule("V-036")
def test_of_tasks_the_replicas_of_each_stay_apart(tmp_path: Path) -> None:
    objects = made(tmp_path, filled(HETEROGENEOUS))
    assert "affinity" not in pod(objects)
    found = cast(Plain, cast(Plain, pod(objects, "a100-worker")["affinity"])["podAntiAffinity"])
    (term,) = cast(list[Plain], found["requiredDuringSchedulingIgnoredDuringExecution"])
    assert term["labelSelector"] == {"matchLabels": {"aj-id": ID, "aj-task": "a100-worker"}}


def requests(objects: Objects, task: str = "master") -> Plain:
    found = cast(Plain, container(objects, task).get("resources", {}))
    assert found.get("requests") == found.get("limits")
    return cast(Plain, found.get("requests", {}))


@pytest.mark.rule("V-005", "V-006", "V-007")
def test_devices_have_the_names_that_are_theirs_here(tmp_path: Path) -> None:
    found = made(tmp_path, target(VOLCANO, "gpu_resource: amd.com/gpu, rdma_resource: rdma/ib"))
    assert requests(found) == {"cpu": "96", "memory": "512Gi", "amd.com/gpu": "8", "rdma/ib": "1"}
    assert [one["key"] for one in cast(list[Plain], pod(found)["tolerations"])] == ["amd.com/gpu", "rdma/ib"]
    by_setting = made(tmp_path, VOLCANO, known=kit.facts(rdma_resource="rdma/own"))
    assert requests(by_setting)["rdma/own"] == "1"
    assert "rdma/rdma_shared_device_a" not in requests(made(tmp_path, target(VOLCANO, "rdma: false")))
    bare = changed(VOLCANO, **{"gpus_per_node: 8": "gpus_per_node: 0"})
    assert set(requests(made(tmp_path, bare))) == {"cpu", "memory"}
    assert set(requests(made(tmp_path, target(bare, "rdma: true")))) == {"cpu", "memory", "rdma/rdma_shared_device_a"}


@pytest.mark.rule("V-010")
def test_tolerations_join_without_doubles(tmp_path: Path) -> None:
    gpu = "{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}"
    own = "{key: team, operator: Equal, value: a}"
    found = pod(made(tmp_path, target(VOLCANO, f"rdma: false, tolerations: [{own}, {gpu}, {own}]")))["tolerations"]
    assert found == yaml.safe_load(f"[{gpu}, {own}]")


@pytest.mark.rule("V-008", "V-012", "V-037")
def test_what_is_not_given_is_not_there(tmp_path: Path) -> None:
    bare = pod(made(tmp_path, VOLCANO))
    assert bare["automountServiceAccountToken"] is False
    absent = {"serviceAccountName", "imagePullSecrets", "priorityClassName", "securityContext", "nodeSelector"}
    assert absent.isdisjoint(bare)
    assert "securityContext" not in container(made(tmp_path, VOLCANO))
    words = (
        "service_account: runner, image_pull_secrets: [a, b], priority_class: high, node_selector: {pool: big}, "
        "run_as: {user: 1000, group: 100, fs_group: 7}"
    )
    found = made(tmp_path, target(VOLCANO, words))
    assert spec(found)["priorityClassName"] == pod(found)["priorityClassName"] == "high"
    assert "automountServiceAccountToken" not in pod(found)
    assert pod(found)["serviceAccountName"] == "runner"
    assert pod(found)["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]
    assert pod(found)["nodeSelector"] == {"pool": "big"}
    assert pod(found)["securityContext"] == {"runAsUser": 1000, "runAsGroup": 100, "fsGroup": 7}


def arguments(text: str, words: str) -> str:
    return changed(text, **{"submit_args:\n": f"submit_args:\n      container_args: {{{words}}}\n"})


def mounts(objects: Objects, task: str = "master") -> dict[str, tuple[Json, Json]]:
    """Each volume by the place where it is mounted: its name, and what it is."""
    volumes = {str(one["name"]): one for one in cast(list[Plain], pod(objects, task).get("volumes", []))}
    found = {}
    for mount in cast(list[Plain], container(objects, task).get("volumeMounts", [])):
        source = volumes.pop(str(mount["name"]))
        found[str(mount["mountPath"])] = (mount["name"], source)
    assert not volumes
    return found


@pytest.mark.rule("V-014", "V-015", "V-038", "V-016")
def test_memory_scratch_and_work_are_folders_of_the_pod(tmp_path: Path) -> None:
    words = "shm_size: 64g, capabilities: [cap_sys_admin, NET_RAW], scratch_mount_path: /var/x, scratch_size: 200Gi"
    found = made(tmp_path, target(arguments(VOLCANO, words), "workdir_size: 1Ti"))
    places = {place: source for place, (_, source) in mounts(found).items()}
    assert places == {
        "/dev/shm": {"name": "aj-shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}},
        "/mnt/aj-work": {"name": "aj-work", "emptyDir": {"sizeLimit": "1Ti"}},
        "/mnt/pvc": {"name": "aj-pvc", "persistentVolumeClaim": {"claimName": "pvc"}},
        "/var/x": {"name": "aj-scratch", "emptyDir": {"sizeLimit": "200Gi"}},
    }
    assert requests(found)["ephemeral-storage"] == "200Gi"
    assert container(found)["securityContext"] == {"capabilities": {"add": ["SYS_ADMIN", "NET_RAW"]}}
    loose = made(tmp_path, arguments(VOLCANO, "scratch_mount_path: /var/x"))
    assert mounts(loose)["/var/x"][1] == {"name": "aj-scratch", "emptyDir": {}}
    assert "ephemeral-storage" not in requests(loose)


@pytest.mark.rule("V-015")
@pytest.mark.parametrize(
    ("size", "due"), [("64g", "64Gi"), ("1536m", "1536Mi"), ("2048m", "2Gi"), ("1t", "1Ti"), ("5k", "5Ki"), ("7", "7")]
)
def test_a_size_is_written_as_the_cluster_does(tmp_path: Path, size: str, due: str) -> None:
    text = arguments(changed(VOLCANO, **{"512Gi": "2Ti"}), f"shm_size: {size}")
    assert cast(Plain, mounts(made(tmp_path, text))["/dev/shm"][1])["emptyDir"] == {
        "medium": "Memory",
        "sizeLimit": due,
    }


@pytest.mark.rule("V-018", "C-197")
def test_the_image_is_used_as_it_is_written(tmp_path: Path) -> None:
    text = changed(VOLCANO, **{"image: train:1": "image: a/b@sha256:" + "0" * 64 + ", registry: registry.example"})
    found = made(tmp_path, text)
    assert {container(found, task)["image"] for task in tasks(found)} == {"a/b@sha256:" + "0" * 64}
    told = [one.message for one in built(tmp_path, text).warnings]
    assert "Volcano uses `environment.image` as written: `registry` has no effect" in told


@pytest.mark.rule("V-060")
def test_without_a_volume_no_code_goes_along_and_nothing_is_mounted(tmp_path: Path) -> None:
    text = VOLCANO.partition("    submit_args")[0]
    found = made(tmp_path, text)
    assert "volumes" not in pod(found)
    assert {"AJ_WORKDIR", "AJ_CODE_FROM", "AJ_CODE_ARCHIVE_SHA256", "AJ_CODE_DIGEST"}.isdisjoint(env(found))


STORAGE = """  storage:
    data: {storage_account_name: account1, container_name: cont1}
    ro_2: {storage_account_name: account2, container_name: cont2, mount_dir: /data/x y, mode: ro}
"""


@pytest.mark.rule("V-037", "V-080", "V-081", "V-085")
def test_storage_makes_pods_privileged_and_says_what_goes_where(tmp_path: Path) -> None:
    tools = {"AJ_AZCOPY": "a", "AJ_BLOBFUSE2": "b", "AJ_BLOBFUSE2_MINIMUM": "2"}
    found = made(tmp_path, VOLCANO + STORAGE, known=kit.facts(tools=tools))
    assert container(found)["securityContext"] == {"privileged": True}
    assert found.secret_keys == ("storage.data", "storage.ro_2")
    assert cast(Plain, mounts(found)["/mnt/aj-secrets"][1])["secret"] == {
        "secretName": f"aj-{ID}",
        "defaultMode": 0o400,
    }
    told = {name: value for name, value in env(found).items() if name.startswith(("AJ_STORAGE", "AJ_AZ", "AJ_BLOB"))}
    assert told == {
        "AJ_STORAGE": "data ro_2",
        "AJ_STORAGE_ACCOUNT_data": "account1",
        "AJ_STORAGE_ENDPOINT_data": "https://account1.blob.core.windows.net",
        "AJ_STORAGE_CONTAINER_data": "cont1",
        "AJ_STORAGE_FOLDER_data": "/mnt/data",
        "AJ_STORAGE_MODE_data": "rw",
        "AJ_STORAGE_SAS_FILE_data": "/mnt/aj-secrets/storage.data",
        "AJ_STORAGE_ACCOUNT_ro_2": "account2",
        "AJ_STORAGE_ENDPOINT_ro_2": "https://account2.blob.core.windows.net",
        "AJ_STORAGE_CONTAINER_ro_2": "cont2",
        "AJ_STORAGE_FOLDER_ro_2": "/data/x y",
        "AJ_STORAGE_MODE_ro_2": "ro",
        "AJ_STORAGE_SAS_FILE_ro_2": "/mnt/aj-secrets/storage.ro_2",
        "AJ_BLOBFUSE2": "b",
        "AJ_BLOBFUSE2_MINIMUM": "2",
    }


BLOB = "  _extra: {code_upload: {strategy: blob, blob: {storage_account: account1, container: code, AUTH}}}\n"


@pytest.mark.rule("V-072", "V-074")
def test_a_signed_address_is_in_the_secret_alone_and_an_identity_needs_none(tmp_path: Path) -> None:
    tools = {"AJ_AZCOPY": "a", "AJ_BLOBFUSE2": "b"}
    signed = made(tmp_path, VOLCANO + BLOB.replace(", AUTH", ""), known=kit.facts(tools=tools))
    assert env(signed)["AJ_CODE_URL_FILE"] == "/mnt/aj-secrets/code.url"
    assert "sig=" not in shown(signed)
    by_identity = made(tmp_path, VOLCANO + BLOB.replace("AUTH", "auth: identity"), known=kit.facts(tools=tools))
    assert by_identity.secret_keys == ()
    url = f"https://account1.blob.core.windows.net/code/aj-code/{kit.SHA}.tgz"
    assert {name: env(by_identity).get(name) for name in ("AJ_CODE_URL", "AJ_CODE_URL_FILE", "AJ_AZCOPY")} == {
        "AJ_CODE_URL": url,
        "AJ_CODE_URL_FILE": None,
        "AJ_AZCOPY": "a",
    }
    elsewhere = kit.facts(blob_endpoint="http://127.0.0.1:10000/{account}")
    found = made(tmp_path, VOLCANO + BLOB.replace("AUTH", "auth: identity"), known=elsewhere)
    assert str(env(found)["AJ_CODE_URL"]).startswith("http://127.0.0.1:10000/account1/code/aj-code/")


@pytest.mark.rule("V-072")
@pytest.mark.parametrize(
    ("run_as", "mode"),
    [("{group: 5}", 0o400), ("{user: 0, fs_group: 7}", 0o400), ("{user: 1000, fs_group: 7}", 0o440)],
)
def test_the_secret_can_be_read_by_who_runs(tmp_path: Path, run_as: str, mode: int) -> None:
    found = made(tmp_path, target(VOLCANO, f"run_as: {run_as}") + BLOB.replace(", AUTH", ""))
    assert cast(Plain, mounts(found)["/mnt/aj-secrets"][1])["secret"] == {"secretName": f"aj-{ID}", "defaultMode": mode}


# how it ends


@pytest.mark.rule("V-090", "V-011")
def test_one_dead_member_ends_the_gang_or_starts_it_anew(tmp_path: Path) -> None:
    default = spec(made(tmp_path, VOLCANO))
    ends = [{"event": event, "action": "TerminateJob"} for event in ("PodFailed", "PodEvicted")]
    assert (default["policies"], "maxRetry" in default) == (ends, False)
    again = spec(made(tmp_path, target(VOLCANO, "on_evict: restart, max_retry: 5")))
    assert again["policies"] == [ends[0], {"event": "PodEvicted", "action": "RestartJob"}]
    assert again["maxRetry"] == 5
    assert spec(made(tmp_path, target(VOLCANO, "on_failure: restart")))["maxRetry"] == 3


@pytest.mark.rule("V-091")
def test_a_task_may_complete_the_job(tmp_path: Path) -> None:
    found = tasks(made(tmp_path, target(VOLCANO, "complete_with: master")))
    assert found["master"]["policies"] == [{"event": "TaskCompleted", "action": "CompleteJob"}]
    assert "policies" not in found["worker"]


@pytest.mark.rule("V-092", "V-011", "V-093")
def test_lifetimes(tmp_path: Path) -> None:
    found = made(tmp_path, target(VOLCANO, "ttl: 1h, active_deadline: 90m, grace: 2m"))
    assert spec(found)["ttlSecondsAfterFinished"] == 3600
    assert (pod(found)["activeDeadlineSeconds"], pod(found)["terminationGracePeriodSeconds"]) == (5400, 120)
    assert env(found)["AJ_TERM_GRACE"] == "115"
    assert spec(made(tmp_path, target(VOLCANO, "ttl: 0s")))["ttlSecondsAfterFinished"] == 0
    forever = made(tmp_path, target(VOLCANO, "ttl: never, grace: 0"))
    assert "ttlSecondsAfterFinished" not in spec(forever)
    assert (pod(forever)["terminationGracePeriodSeconds"], env(forever)["AJ_TERM_GRACE"]) == (0, "0")


# ranks and variables


@pytest.mark.rule("V-041", "V-046", "V-048", "C-172")
def test_tasks_count_in_the_order_of_their_names_behind_the_master(tmp_path: Path) -> None:
    objects = made(tmp_path, changed(filled(HETEROGENEOUS), **{"namespace: training": "launcher: processes"}))
    told = ("AJ_RANK_BASE", "AJ_PROCESS_BASE", "AJ_TASK_REPLICAS", "AJ_GPUS_PER_NODE", "AJ_PROCESSES_PER_NODE")
    found = {name: [env(objects, name)[one] for one in told] for name in tasks(objects)}
    assert found == {
        "master": ["0", "0", "1", "0", "1"],
        "a100-worker": ["1", "1", "2", "8", "8"],
        "h100-worker": ["3", "17", "4", "8", "8"],
    }
    whole = ("AJ_NODES", "AJ_GPU_NODES", "AJ_TOTAL_GPUS", "AJ_PROCESSES", "AJ_WORLD_SIZE", "AJ_LAUNCHER")
    for name in found:
        assert [env(objects, name)[one] for one in whole] == ["7", "6", "48", "48", "49", "processes"]


@pytest.mark.rule("V-054", "V-051", "V-052")
def test_a_task_runs_its_own_words_or_those_of_the_command_line(tmp_path: Path) -> None:
    own = "environment: {setup: []}\n          env: {A: task}\n          replicas: 2"
    text = changed(filled(HETEROGENEOUS), **{"replicas: 2": own})
    text = changed(text, **{"sku: heterogeneous": "sku: heterogeneous\n      submit_args: {env: {A: job, B: job}}"})
    objects = made(tmp_path, text, "python", "train.py")
    commands = {name: env(objects, name)["AJ_COMMAND"] for name in tasks(objects)}
    assert commands == {
        "master": "python coordinator.py",
        "a100-worker": "python train.py",
        "h100-worker": "python h100_train.py",
    }
    assert ["AJ_SETUP" in env(objects, name) for name in commands] == [True, False, True]
    assert [env(objects, name)["A"] for name in commands] == ["job", "task", "job"]
    assert {env(objects, name)["B"] for name in commands} == {"job"}


@pytest.mark.rule("V-051", "V-017")
def test_the_container_arguments_of_a_task_hold_over_those_of_the_job(tmp_path: Path) -> None:
    words = "{shm_size: 8g, capabilities: [SYS_ADMIN], scratch_mount_path: /x}"
    text = changed(
        filled(HETEROGENEOUS),
        **{"sku: heterogeneous": f"sku: heterogeneous\n      submit_args: {{container_args: {words}}}"},
    )
    text = changed(text, **{"replicas: 2": "replicas: 2\n          container_args: {shm_size: 16g, scratch_size: 1Gi}"})
    objects = made(tmp_path, text)
    shm = {name: cast(Plain, mounts(objects, name)["/dev/shm"][1])["emptyDir"] for name in tasks(objects)}
    sizes = {name: cast(Plain, found)["sizeLimit"] for name, found in shm.items()}
    assert sizes == {"master": "8Gi", "a100-worker": "16Gi", "h100-worker": "8Gi"}
    assert requests(objects, "a100-worker")["ephemeral-storage"] == "1Gi"
    assert container(objects, "a100-worker")["securityContext"] == {"capabilities": {"add": ["SYS_ADMIN"]}}


@pytest.mark.rule("V-047", "C-174")
def test_the_address_of_the_master_is_its_pod_unless_the_job_says_otherwise(tmp_path: Path) -> None:
    found = arrived(made(tmp_path, VOLCANO), "worker").env
    job = f"{found['AJ_NAME']}-{kit.SUFFIX}"
    assert (found["MASTER_ADDR"], found["MASTER_PORT"]) == (f"{job}-master-0.{job}", "6105")
    assert (found["AJ_K8S_JOB"], found["AJ_TASK_NAME"]) == (job, "worker")
    own = changed(VOLCANO, **{"env: {": "env: {MASTER_ADDR: 10.0.0.1, MASTER_PORT: '7', "})
    other = arrived(made(tmp_path, own)).env
    assert (other["MASTER_ADDR"], other["MASTER_PORT"]) == ("10.0.0.1", "7")


def test_what_steers_the_pod_is_not_the_jobs_to_say(tmp_path: Path) -> None:
    text = changed(VOLCANO, **{"env: {": "env: {AJ_LAUNCHER: processes, VC_TASK_INDEX: '7', AJ_STORAGE_ACCOUNT_x: y, "})
    found = env(made(tmp_path, text))
    assert {"AJ_LAUNCHER", "VC_TASK_INDEX", "AJ_STORAGE_ACCOUNT_x"}.isdisjoint(found)
    told = [one.message for one in built(tmp_path, text).warnings]
    assert "AJ_LAUNCHER steers the pod itself: the value here is dropped" in told


@pytest.mark.rule("V-093", "A-142")
def test_a_limit_of_the_setup_goes_along(tmp_path: Path) -> None:
    text = changed(VOLCANO, **{"image: train:1": "image: train:1, setup: [make], setup_timeout: 90s"})
    found = env(made(tmp_path, text))
    assert (found["AJ_SETUP"], found["AJ_SETUP_TIMEOUT"]) == ("make", "90")


# text that must arrive as it is


def with_text(value: str) -> JobSpec:
    """A job with a text everywhere where the user may have one."""
    return replace(SPEC, argv=("printf", value), setup=(value,), lines=(value,), env={"A": value, "B": "$(A)"})


SPEC = JobSpec(
    id=ID,
    name=f"x-{ID}",
    service="volcano",
    template="",
    experiment=None,
    directory="/x",
    project=None,
    shape=Shape(2, 0, 1, 0),
    argv=("true",),
    code=CodePlan("/x"),
    image="train:1",
    config={"target": {"service": "volcano"}, "environment": {"image": "train:1"}, "jobs": [{"sku": "C1"}]},
)


@pytest.mark.rule("V-034", "A-147")
@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("$$$(){}ABJé\n\u0800 '\"\\x"), max_size=24))
@example("$(HOME)")
@example("$$(HOME)")
@example("$$$(AJ_ID)$$")
@example("$(AJ_ID)")
@example("price: 5$é")
@example("$")
@example("$(AJ_")
@example("kill $$; x=$(id)")
def test_text_arrives_as_it_was_written(value: str) -> None:
    spec_ = with_text(value)
    found = kit.variables(payload.build(spec_, payload.options(spec_), kit.facts(archive_sha256=None)), "worker")
    assert found["A"] == value
    assert found["B"] == "$(A)"
    assert found["AJ_SETUP"] == value
    assert found["AJ_COMMAND"].startswith(f"{value}\nprintf ")


@pytest.mark.rule("V-034")
@given(st.text(max_size=40))
def test_guarding_is_undone_by_the_node_and_touches_nothing_else(value: str) -> None:
    guarded = program.escaped(value)
    assert kit.expanded(guarded, {"A": "wrong", "": "wrong"}) == value
    assert value == guarded or "$" in value
    assert program.escaped("$HOME ${X} $1 5$") == "$HOME ${X} $1 5$"


@pytest.mark.rule("V-034")
def test_the_program_is_the_same_for_all_jobs(tmp_path: Path) -> None:
    one, other = made(tmp_path, VOLCANO), kit.of(with_text("echo $(id)"))
    (text,) = {json.dumps(container(objects, task)["args"]) for objects in (one, other) for task in tasks(objects)}
    assert json.loads(text) == [program.argument()]
    assert arrived(one).argv == ["/bin/bash", "-c", program.text()]


# sizes


@pytest.mark.rule("V-035")
@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"env": {"BIG": "x" * 131072}}, "the variable BIG"),
        ({"setup": ("x" * 131072,)}, "environment.setup"),
        ({"lines": ("x" * 131072,)}, "jobs[0].command"),
    ],
)
def test_a_text_that_no_node_starts_is_refused_by_its_key(changes: dict[str, object], key: str) -> None:
    spec_ = replace(SPEC, **changes)  # type: ignore[arg-type]
    with pytest.raises(UserError) as caught:
        payload.build(spec_, payload.options(spec_), kit.facts(archive_sha256=None))
    assert caught.value.message.startswith(f"{key} is 128")


@pytest.mark.rule("V-035")
def test_the_longest_variable_that_a_node_starts_is_taken() -> None:
    name = "BIG"
    kit.of(replace(SPEC, env={name: "x" * (131072 - len(name) - 2)}))
    with pytest.raises(UserError):
        kit.of(replace(SPEC, env={name: "x" * (131072 - len(name) - 1)}))


@pytest.mark.rule("V-035")
def test_a_manifest_that_no_cluster_keeps_is_refused() -> None:
    env_ = {f"V{number}": "x" * 100_000 for number in range(6)}
    with pytest.raises(UserError, match=r"the manifest is 1\.2 MiB long, and the cluster takes 1\.0 MiB") as caught:
        kit.of(replace(SPEC, env=env_))
    assert "`jobs[0].submit_args.env`" in (caught.value.hint or "")


# the Secret


@pytest.mark.rule("V-030", "V-072")
def test_a_dry_run_shows_the_secret_without_its_data(tmp_path: Path) -> None:
    objects = made(tmp_path, VOLCANO + STORAGE)
    spec_ = built(tmp_path, VOLCANO + STORAGE).spec
    hidden, job = payload.shown(spec_, kit.facts(), objects)
    assert hidden["data"] == {"storage.data": "<redacted>", "storage.ro_2": "<redacted>"}
    assert job == objects.job
    assert payload.shown(SPEC, kit.facts(), kit.of(SPEC)) == [kit.of(SPEC).job]
    sent = payload.secret(spec_, kit.facts(), {"storage.data": "sig=é"})
    assert sent["data"] == {"storage.data": "c2lnPcOp"}
    assert sent["metadata"] == {"name": f"aj-{ID}", "namespace": "training", "labels": names.labels(ID)}


def test_a_role_without_an_image_is_told() -> None:
    spec_ = replace(SPEC, image=None)
    with pytest.raises(TemplateError, match="`master` has no image"):
        gang.roles(spec_, payload.options(SPEC))


def test_a_size_that_no_unit_divides_is_bytes() -> None:
    assert pods.amount(1023) == "1023"
