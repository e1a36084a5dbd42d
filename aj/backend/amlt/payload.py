"""A JobSpec as the YAML that amlt knows, which is also what a dry run shows for every service."""

from __future__ import annotations

import re
from collections.abc import Mapping

from aj.model import words
from aj.model.job import JobSpec, Task
from aj.model.json import Json
from aj.template import dump

# amlt fills `$NAME` itself: a dollar of the user's is written twice, one that is meant for amlt stays.
_DOLLAR = r"\$\$|\$CONFIG_DIR(?![A-Za-z0-9_])|\$"


def document(spec: JobSpec, env: Mapping[str, str] | None = None) -> dict[str, Json]:
    """Return the document: the merged template without `_extra`, its first job as it will run.

    `env` is the whole environment of the job with the injected names; without it only the user's part stands
    there. Roles with a shape of their own, which amlt does not know, stand under `aj_tasks`.
    """
    config = {key: value for key, value in spec.config.items() if key != "_extra"}
    jobs = config.get("jobs")
    first, *rest = jobs if isinstance(jobs, list | tuple) and jobs else [{}]
    job = _job(spec, first if isinstance(first, Mapping) else {}, spec.env if env is None else env)
    found = {**config, "jobs": [job, *rest]}
    if spec.tasks:
        found["aj_tasks"] = {task.name: _task(spec, task) for task in spec.tasks}
    return {key: _doubled(value) for key, value in found.items()}


def text(spec: JobSpec, env: Mapping[str, str] | None = None) -> str:
    """Return the document as YAML text."""
    return dump.dump(document(spec, env))


def _job(spec: JobSpec, written: Mapping[str, Json], env: Mapping[str, str]) -> dict[str, Json]:
    """Lay what was settled over a job as it is written."""
    arguments = written.get("submit_args")
    job: dict[str, Json] = {
        **written,
        "name": spec.name,
        "sku": spec.sku if spec.sku is not None else written.get("sku"),
        "instance_count": spec.shape.nodes,
        "process_count_per_node": spec.shape.processes_per_node,
        "command": _lines(spec, spec.lines),
        "submit_args": {**(arguments if isinstance(arguments, Mapping) else {}), "env": dict(env)},
    }
    if job["sku"] is None:
        del job["sku"]
    return job


def _lines(spec: JobSpec, lines: tuple[str, ...]) -> list[Json]:
    """The template's lines, then the user's words as a shell reads them."""
    return [*lines, *([words.line(spec.argv)] if spec.argv else [])]


def _task(spec: JobSpec, task: Task) -> dict[str, Json]:
    """Write one role with everything that holds for it."""
    found: dict[str, Json] = {
        "replicas": task.replicas,
        "cpus_per_node": task.cpus_per_node,
        "memory": task.memory,
        "gpus_per_node": task.gpus_per_node,
        "rdma": task.rdma,
        "processes_per_node": task.processes_per_node,
        "image": task.image,
        "setup": list(task.setup),
        "command": list(task.lines) if task.lines else _lines(spec, spec.lines),
        "env": dict(task.env),
        "node_selector": dict(task.node_selector),
    }
    if container := task.raw.get("container_args"):
        found["container_args"] = container
    return found


def _doubled(value: Json) -> Json:
    """Double every dollar that amlt must not fill."""
    if isinstance(value, str):
        return re.sub(_DOLLAR, lambda found: "$$" if found[0] == "$" else found[0], value)
    if isinstance(value, Mapping):
        return {key: _doubled(item) for key, item in value.items()}
    return [_doubled(item) for item in value] if isinstance(value, list | tuple) else value
