"""A JobSpec: everything a user asked for, typed, with nothing left to look up in a template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aj.base.noun import dataclass
from aj.model.bucket import Buckets
from aj.model.code import CodePlan
from aj.model.json import Json


@dataclass(frozen=True)
class Shape:
    """How many machines and processes.

    `sku_processes` is the per-node SKU selector (GPU count, or CPU size tier); `gpus_per_node` is 0
    on CPU SKUs; `processes_per_node` is how many processes the launcher starts on each node.
    """

    nodes: int
    sku_processes: int
    processes_per_node: int
    gpus_per_node: int

    @property
    def total_gpus(self) -> int:
        return self.nodes * self.gpus_per_node

    @property
    def world_size(self) -> int:
        return self.nodes * self.processes_per_node


@dataclass(frozen=True)
class Task:
    """One role of a gang whose roles differ: `replicas` nodes with the same resources and command."""

    name: str
    replicas: int
    gpus_per_node: int
    processes_per_node: int
    cpus_per_node: int | None = None
    memory: str | None = None
    rdma: bool | None = None
    image: str | None = None
    setup: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    raw: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class JobSpec:
    """One submission, complete.

    `argv` are the user's own words, exactly; `setup` and `lines` are shell lines of the template;
    `env` holds values and therefore never reaches the journal; `inherited` is what the submitting shell
    lends to a job of this machine (PATH, HOME and their like), below everything in `env`, and `umask` its
    mask of file modes; `config` is the merged template, which only the service's own options room looks into.
    Without `brings_code` the job is an image with its command alone, and no tree of files goes with it.
    `image_digest` is what the image's tag means, once somebody has looked. A `spot` job may lose its host and
    goes on at another one. `secrets` are names; their values are read at each start. `max_cost` is in millionths of
    a US dollar.
    """

    id: str
    name: str
    service: str
    template: str
    experiment: str | None
    directory: str
    project: str | None
    shape: Shape
    argv: tuple[str, ...]
    code: CodePlan
    sku: str | None = None
    image: str | None = None
    setup: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    inherited: Mapping[str, str] = field(default_factory=dict, repr=False)
    umask: int | None = None
    tasks: tuple[Task, ...] = ()
    config: Mapping[str, Json] = field(default_factory=dict, repr=False)
    start_timeout_s: float | None = None
    buckets: Buckets | None = None
    secrets: tuple[str, ...] = ()
    agent: str | None = None
    session: str | None = None
    session_title: str | None = None
    brings_code: bool = True
    image_digest: str | None = None
    spot: bool = False
    max_runtime_s: float | None = None
    max_cost: int | None = None


def injected(spec: JobSpec, *, accepted_at: str, digest: str | None, archive_sha256: str | None) -> dict[str, str]:
    """Return the `AJ_*` variables that every process of the job finds, whatever the service.

    `accepted_at` is `YYYY-MM-DDTHH:MM:SS.ffffff+00:00`. Rank and directory are added where the process starts.
    """
    nodes = sum(task.replicas for task in spec.tasks) or spec.shape.nodes
    gpus = sum(task.replicas * task.gpus_per_node for task in spec.tasks)
    world = sum(task.replicas * task.processes_per_node for task in spec.tasks) or spec.shape.world_size
    found = {
        "AJ_ID": spec.id,
        "AJ_NAME": spec.name,
        "AJ_TEMPLATE": spec.template,
        "AJ_SUBMIT_TIMESTAMP_UTC": accepted_at,
        "AJ_NODES": str(nodes),
        "AJ_PROCESSES": str(gpus if spec.tasks else spec.shape.nodes * spec.shape.sku_processes),
        "AJ_WORLD_SIZE": str(world),
    }
    if not spec.tasks:
        found["AJ_GPUS_PER_NODE"] = str(spec.shape.gpus_per_node)
        found["AJ_PROCESSES_PER_NODE"] = str(spec.shape.processes_per_node)
    if digest is not None:
        found["AJ_CODE_DIGEST"] = digest
    if archive_sha256 is not None:
        found["AJ_CODE_ARCHIVE_SHA256"] = archive_sha256
    return found
