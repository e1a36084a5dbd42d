"""The gang as it will run: one role a Task, each with everything that holds for its nodes, in the order of ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from aj.backend.volcano import fields
from aj.backend.volcano.fields import Container
from aj.backend.volcano.options import Options
from aj.backend.volcano.tasks import MASTER
from aj.base.errors import TemplateError
from aj.base.noun import dataclass
from aj.model.job import JobSpec, Task
from aj.model.json import Json
from aj.template import tree
from aj.template.reader import Reader

WORKER = "worker"


@dataclass(frozen=True)
class Role:
    """One Task. Its first node has the rank `rank_base`, its first process the rank `process_base`.

    `cpus` and `memory` None are not requested; `lines` are shell lines of the template, and with `runs_words` the
    words of the command line follow them.
    """

    name: str
    replicas: int
    gpus: int
    processes: int
    rdma: bool
    image: str
    cpus: str | None
    memory: str | None
    container: Container
    setup: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    runs_words: bool = True
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    rank_base: int = 0
    process_base: int = 0


def roles(spec: JobSpec, chosen: Options) -> list[Role]:
    """Return the roles of a job, the master first, then by the bytes of their names. Raises TemplateError."""
    found = [_task(spec, chosen, task) for task in spec.tasks] if spec.tasks else _alike(spec, chosen)
    found.sort(key=lambda role: (role.name != MASTER, role.name.encode()))
    return _ranked(found)


def nodes(gang: Sequence[Role]) -> int:
    """Return how many pods a gang has."""
    return sum(role.replicas for role in gang)


def world(gang: Sequence[Role]) -> int:
    """Return how many processes a gang has."""
    return sum(role.replicas * role.processes for role in gang)


def _ranked(gang: Sequence[Role]) -> list[Role]:
    ranked: list[Role] = []
    for role in gang:
        ranked.append(replace(role, rank_base=nodes(ranked), process_base=world(ranked)))
    return ranked


def _alike(spec: JobSpec, chosen: Options) -> list[Role]:
    """Nodes that are all alike: the first is the master, the others are workers."""
    pod, shape = chosen.pod, spec.shape
    sizes = {MASTER: 1, **({WORKER: shape.nodes - 1} if shape.nodes > 1 else {})}
    return [
        Role(
            name=name,
            replicas=replicas,
            gpus=shape.gpus_per_node,
            processes=shape.processes_per_node,
            rdma=shape.gpus_per_node > 0 if pod.rdma is None else pod.rdma,
            image=_image(spec.image, name),
            cpus=pod.cpus.text if pod.cpus else None,
            memory=pod.memory.text if pod.memory else None,
            container=pod.container,
            setup=spec.setup,
            lines=spec.lines,
            env=spec.env,
            node_selector=pod.node_selector,
        )
        for name, replicas in sizes.items()
    ]


def _task(spec: JobSpec, chosen: Options, task: Task) -> Role:
    return Role(
        name=task.name,
        replicas=task.replicas,
        gpus=task.gpus_per_node,
        processes=task.processes_per_node,
        rdma=bool(task.rdma),
        image=_image(task.image or spec.image, task.name),
        cpus=None if task.cpus_per_node is None else str(task.cpus_per_node),
        memory=task.memory,
        container=_container(spec, task),
        setup=task.setup,
        lines=task.lines or spec.lines,
        runs_words=not task.lines,
        env=task.env,
        node_selector={**chosen.pod.node_selector, **task.node_selector},
    )


def _image(image: str | None, name: str) -> str:
    if image is None:
        raise TemplateError(f"`{name}` has no image", hint="write `environment: {image: registry.example/train:1}`")
    return image


def _container(spec: JobSpec, task: Task) -> Container:
    """Lay the container arguments of a Task over those of the job; both were checked before."""
    jobs = spec.config.get("jobs")
    job = jobs[0] if isinstance(jobs, list | tuple) and jobs else {}
    merged = {**_section(_section(job, "submit_args"), "container_args"), **_section(task.raw, "container_args")}
    return fields.container(Reader(tree.section_of(merged), []), ())


def _section(value: Json, key: str) -> Mapping[str, Json]:
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}
