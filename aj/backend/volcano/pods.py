"""The pod of a role: what its container takes, where it may run, and which volumes it sees."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from aj.backend.volcano import fields, names, program, variables
from aj.backend.volcano.gang import Role
from aj.backend.volcano.options import BLOB, Options
from aj.backend.volcano.variables import Facts
from aj.model.job import JobSpec
from aj.model.json import Json

CONTAINER = "main"
SHM, WORK, CLAIM, SCRATCH, SECRETS = "aj-shm", "aj-work", "aj-pvc", "aj-scratch", "aj-secrets"
HOST = "kubernetes.io/hostname"
SCHEDULER = "volcano"
OWNER_READS, GROUP_READS = 0o400, 0o440
_UNITS = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))
_USER = {"user": "runAsUser", "group": "runAsGroup", "fs_group": "fsGroup"}
_Pair = tuple[Json, Json]  # a volume, and how the container sees it


def template(spec: JobSpec, chosen: Options, facts: Facts, role: Role, everyone: Sequence[Role]) -> dict[str, Json]:
    """Return the pod template of a role. Raises UserError as `variables.of`."""
    where = chosen.where
    metadata: dict[str, Json] = {
        "labels": {**where.labels, names.ID: spec.id, names.TASK: role.name, names.MANAGED_BY: "aj"},
        "annotations": dict(where.annotations),
    }
    pairs = list(_volumes(spec, chosen, facts, role))
    body: dict[str, Json] = {
        "restartPolicy": "Never",
        "schedulerName": SCHEDULER,
        "terminationGracePeriodSeconds": math.ceil(chosen.ending.grace_s),
        "activeDeadlineSeconds": _whole(chosen.ending.active_deadline_s),
        "enableServiceLinks": False,
        **bearing(chosen, tolerations(chosen, facts, role)),
        "nodeSelector": dict(role.node_selector),
        "affinity": _affinity(spec, chosen, role, everyone),
        "volumes": [volume for volume, _ in pairs],
        "containers": [_container(spec, chosen, facts, role, everyone, [mount for _, mount in pairs])],
    }
    return {"metadata": given(metadata), "spec": given(body)}


def bearing(chosen: Options, accepted: Sequence[Json]) -> dict[str, Json]:
    """Return what every pod of a job has, the one that takes code to a volume too: account, user, tolerations.

    Values that are None or empty are to be left out.
    """
    where = chosen.where
    return {
        "automountServiceAccountToken": None if where.service_account else False,
        "serviceAccountName": where.service_account,
        "imagePullSecrets": [{"name": name} for name in where.image_pull_secrets],
        "priorityClassName": where.priority_class,
        "securityContext": {_USER[key]: number for key, number in chosen.pod.run_as.items()},
        "tolerations": list(accepted),
    }


def tolerations(chosen: Options, facts: Facts, role: Role) -> list[Json]:
    """Return what a pod tolerates: the taints of the devices that it asks for, then what the template adds."""
    resources = [chosen.pod.gpu_resource] * (role.gpus > 0) + [_rdma(chosen, facts)] * role.rdma
    derived: list[Json] = [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in resources]
    added = [one for one in map(dict, chosen.pod.tolerations) if one not in derived]
    return derived + [one for at, one in enumerate(added) if one not in added[:at]]


def secret_mode(chosen: Options) -> int:
    """Return the mode of files of the Secret: who runs the program can read them, and nobody else."""
    return GROUP_READS if chosen.pod.run_as.get("user") and "fs_group" in chosen.pod.run_as else OWNER_READS


def amount(size_bytes: int) -> str:
    """Write a size as the cluster does: a whole number of the largest unit that divides it."""
    return next((f"{size_bytes // unit}{name}" for name, unit in _UNITS if size_bytes % unit == 0), str(size_bytes))


def given(values: Mapping[str, Json]) -> dict[str, Json]:
    """Return a mapping without what is None or empty."""
    return {key: value for key, value in values.items() if value not in (None, {}, [])}


def _whole(seconds: float | None) -> int | None:
    return None if seconds is None else max(1, math.ceil(seconds))


def _rdma(chosen: Options, facts: Facts) -> str:
    return chosen.pod.rdma_resource or facts.rdma_resource


def _affinity(spec: JobSpec, chosen: Options, role: Role, everyone: Sequence[Role]) -> dict[str, Json] | None:
    """Keep nodes of the job apart. The label is the job's own, so two jobs never repel each other."""
    alone = role.replicas == 1 if spec.tasks else sum(one.replicas for one in everyone) == 1
    if alone or chosen.pod.spread == "none":
        return None
    labels = {names.ID: spec.id, **({names.TASK: role.name} if spec.tasks else {})}
    term: dict[str, Json] = {"labelSelector": {"matchLabels": labels}, "topologyKey": HOST}
    if chosen.pod.spread == "preferred":
        weighed: Json = [{"weight": 100, "podAffinityTerm": term}]
        return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighed}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _volumes(spec: JobSpec, chosen: Options, facts: Facts, role: Role) -> list[_Pair]:
    found: list[_Pair] = []
    container, pod = role.container, chosen.pod
    if container.shm_bytes is not None:
        memory: Json = {"medium": "Memory", "sizeLimit": amount(container.shm_bytes)}
        found.append(({"name": SHM, "emptyDir": memory}, _mount(SHM, fields.SHM)))
    if facts.archive_sha256 is not None:
        found.append(({"name": WORK, "emptyDir": {"sizeLimit": pod.workdir_size}}, _mount(WORK, fields.WORKDIR)))
    if chosen.volume is not None:
        claim: Json = {"claimName": chosen.volume.claim}
        found.append(({"name": CLAIM, "persistentVolumeClaim": claim}, _mount(CLAIM, chosen.volume.folder)))
    if container.scratch is not None:
        limit: dict[str, Json] = {"sizeLimit": container.scratch.size.text} if container.scratch.size else {}
        found.append(({"name": SCRATCH, "emptyDir": limit}, _mount(SCRATCH, container.scratch.path)))
    if secret_keys(chosen, facts):
        source: Json = {"secretName": names.secret(spec.id), "defaultMode": secret_mode(chosen)}
        found.append(({"name": SECRETS, "secret": source}, {**_mount(SECRETS, fields.SECRETS), "readOnly": True}))
    return found


def secret_keys(chosen: Options, facts: Facts) -> tuple[str, ...]:
    """Return the keys of the job's Secret: the signed address of the code, and a signature for each storage."""
    signs = chosen.upload.strategy == BLOB and chosen.upload.auth == "sas" and facts.archive_sha256 is not None
    code = (names.CODE_URL,) if signs else ()
    return (*code, *(f"{names.STORAGE}{mount.key}" for mount in chosen.mounts))


def _mount(name: str, path: str) -> dict[str, Json]:
    return {"name": name, "mountPath": path}


def _container(
    spec: JobSpec, chosen: Options, facts: Facts, role: Role, everyone: Sequence[Role], mounts: Sequence[Json]
) -> dict[str, Json]:
    resources = _resources(chosen, facts, role)
    return given(
        {
            "name": CONTAINER,
            "image": role.image,
            "command": list(program.SHELL),
            "args": [program.argument()],
            "env": variables.of(spec, chosen, facts, role, everyone),
            "resources": {"requests": resources, "limits": dict(resources)} if resources else None,
            "securityContext": _security(chosen, role),
            "volumeMounts": list(mounts),
        }
    )


def _resources(chosen: Options, facts: Facts, role: Role) -> dict[str, Json]:
    """What is requested, and at the same time the limit."""
    scratch = role.container.scratch
    found: dict[str, Json] = {
        "cpu": role.cpus,
        "memory": role.memory,
        chosen.pod.gpu_resource: str(role.gpus) if role.gpus else None,
        _rdma(chosen, facts): "1" if role.rdma else None,
        "ephemeral-storage": scratch.size.text if scratch and scratch.size else None,
    }
    return given(found)


def _security(chosen: Options, role: Role) -> dict[str, Json]:
    added: list[Json] = list(role.container.capabilities)
    return given({"privileged": True if chosen.mounts else None, "capabilities": {"add": added} if added else None})
