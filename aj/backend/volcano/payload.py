"""What a submission sends to the cluster. Pure: the same facts give the same bytes."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence

from aj.backend.volcano import gang, names, pods
from aj.backend.volcano import options as section
from aj.backend.volcano.gang import Role
from aj.backend.volcano.options import BLOB, Options
from aj.backend.volcano.variables import Facts
from aj.base import units
from aj.base.errors import UserError
from aj.base.noun import dataclass
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.template import tree

API_VERSION, KIND = "batch.volcano.sh/v1alpha1", "Job"
LARGEST = 1024 * 1024  # bytes of one object; the cluster's own store takes little more
REDACTED = "<redacted>"


@dataclass(frozen=True)
class Objects:
    """What is created for one submission: the job, and a Secret when it needs one (its data is added at the end)."""

    job: Mapping[str, Json]
    secret_keys: Sequence[str] = ()


def options(spec: JobSpec) -> Options:
    """Read the template's section once more. Raises TemplateError."""
    return section.parse(tree.section_of(spec.config))


def moves_code(chosen: Options) -> bool:
    """Tell whether code goes along: to a volume when there is one, or through blob storage."""
    return chosen.upload.strategy == BLOB or chosen.volume is not None


def build(spec: JobSpec, chosen: Options, facts: Facts) -> Objects:
    """Return what is sent. Raises UserError on what the cluster, or a node, would not take."""
    everyone = gang.roles(spec, chosen)
    metadata: dict[str, Json] = {
        "generateName": names.generated(spec.name),
        "namespace": facts.namespace,
        "labels": {**chosen.where.labels, **names.labels(spec.id)},
        "annotations": {**chosen.where.annotations, **_annotations(spec, facts)},
    }
    job: dict[str, Json] = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata,
        "spec": _spec(spec, chosen, facts, everyone),
    }
    _check_size(job, everyone)
    return Objects(job, pods.secret_keys(chosen, facts))


def secret(spec: JobSpec, facts: Facts, values: Mapping[str, str]) -> dict[str, Json]:
    """Return the Secret of a job, with each value encoded as the cluster wants it."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": names.secret(spec.id), "namespace": facts.namespace, "labels": names.labels(spec.id)},
        "type": "Opaque",
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }


def shown(spec: JobSpec, facts: Facts, objects: Objects) -> list[dict[str, Json]]:
    """Return what is sent, in its order, as a dry run shows it: no value of the Secret is there."""
    if not objects.secret_keys:
        return [dict(objects.job)]
    hidden = {**secret(spec, facts, {}), "data": dict.fromkeys(objects.secret_keys, REDACTED)}
    return [hidden, dict(objects.job)]


def written(body: Mapping[str, Json]) -> bytes:
    """Return an object as it is sent."""
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()


def _annotations(spec: JobSpec, facts: Facts) -> dict[str, Json]:
    found = {names.NAME: names.base(spec), names.TEMPLATE: spec.template or None, names.SUBMITTER: facts.submitter}
    return pods.given(found)


def _spec(spec: JobSpec, chosen: Options, facts: Facts, everyone: Sequence[Role]) -> dict[str, Json]:
    ending = chosen.ending
    restarts = "restart" in (ending.on_failure, ending.on_evict)
    found: dict[str, Json] = {
        "schedulerName": pods.SCHEDULER,
        "queue": chosen.where.queue,
        "priorityClassName": chosen.where.priority_class,
        "minAvailable": gang.nodes(everyone),
        "maxRetry": ending.max_retry if restarts else None,
        "ttlSecondsAfterFinished": None if ending.ttl_s is None else math.ceil(ending.ttl_s),
        "plugins": {"env": [], "svc": ["--publish-not-ready-addresses=true"]},
        "policies": [_policy("PodFailed", ending.on_failure), _policy("PodEvicted", ending.on_evict)],
        "tasks": [_task(spec, chosen, facts, role, everyone) for role in everyone],
    }
    return pods.given(found)


def _policy(event: str, action: str) -> Json:
    """One dead member never leaves the others holding what they hold."""
    return {"event": event, "action": "RestartJob" if action == "restart" else "TerminateJob"}


def _task(spec: JobSpec, chosen: Options, facts: Facts, role: Role, everyone: Sequence[Role]) -> dict[str, Json]:
    completes = chosen.ending.complete_with == role.name
    found: dict[str, Json] = {
        "name": role.name,
        "replicas": role.replicas,
        "minAvailable": role.replicas,
        "policies": [{"event": "TaskCompleted", "action": "CompleteJob"}] if completes else None,
        "template": pods.template(spec, chosen, facts, role, everyone),
    }
    return pods.given(found)


def _check_size(job: Mapping[str, Json], everyone: Sequence[Role]) -> None:
    size = len(written(job))
    if size <= LARGEST:
        return
    where = "_extra.volcano.tasks" if len(everyone) > 2 else "jobs[0].submit_args.env"
    raise UserError(
        f"the manifest is {units.size(size)} long, and the cluster takes {units.size(LARGEST)}",
        hint=f"say less in `{where}`: each of the {len(everyone)} Tasks holds all of its variables and its program",
    )
