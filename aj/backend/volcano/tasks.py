"""The Tasks of a gang whose roles differ: `_extra.volcano.tasks`, each with its own resources and command."""

from __future__ import annotations

import re

from aj.backend.volcano import fields
from aj.model import names
from aj.model.job import Task
from aj.template import issue, sections, tree
from aj.template.reader import Reader
from aj.template.tree import Items, Section

PVC_NAME, PVC_FOLDER = "AMLT_PERSISTENT_VOLUME_NAME", "AMLT_PERSISTENT_VOLUME_MOUNT_DIR"
MASTER = "master"
KEYS = (
    *("replicas", "cpus_per_node", "memory", "gpus_per_node", "rdma", "processes_per_node"),
    *("node_selector", "environment", "command", "env", "container_args"),
)
CONTAINER_KEYS = ("shm_size", "capabilities", "scratch_mount_path", "scratch_size")
_NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")
# Each Task says these for itself; a value for all of them would be a second truth.
_GLOBAL = ("gpus_per_node", "cpus_per_node", "memory", "rdma")


def are_given(reader: Reader) -> bool:
    """Tell whether a template describes Tasks."""
    volcano = reader.section("_extra").node.given("volcano")
    return isinstance(volcano, Section) and "tasks" in volcano.entries


def read(reader: Reader, job: Reader, taken: tuple[tuple[str, str], ...]) -> tuple[Task, ...]:
    """Read all Tasks; `taken` are folders that hold something in every container."""
    volcano = reader.section("_extra").section("volcano")
    volcano.unknown(("tasks",), is_error=True)
    _refuse_global(reader, job)
    node = volcano.node.given("tasks")
    if not isinstance(node, Section) or not node.entries:
        found = "null" if node is None else tree.kind(node)
        message = f"`{volcano.at('tasks')}` is {found}; a mapping from names to Tasks is due"
        volcano.wrong("tasks", message, hint="write `master: {replicas: 1, …}` in it")
        return ()
    section = volcano.section("tasks")
    read_ = [_task(name, task, reader, job, taken) for name, task in section.named_sections().items()]
    tasks = tuple(task for task in read_ if task is not None)
    _check_master(section)
    _check_names(section, tasks)
    return tasks


def _refuse_global(reader: Reader, job: Reader) -> None:
    """Note every value that would describe all Tasks at once."""
    target = reader.section("target")
    for key in _GLOBAL:
        if target.has(key):
            target.wrong(key, f"`target.{key}` cannot stand beside Tasks: each Task has its own")
    sku = job.node.given("sku")
    raw = getattr(sku, "raw", "")
    if isinstance(sku, Section | Items) or "{nodes}" in raw or "{processes}" in raw:
        job.wrong("sku", "beside Tasks `jobs[0].sku` is plain text: they fix the shape", hint="write heterogeneous")
    if job.whole("process_count_per_node", 1) not in (None, 1):
        job.wrong("process_count_per_node", "`process_count_per_node` cannot stand beside Tasks: each has its own")


def _check_master(section: Reader) -> None:
    if not section.has(MASTER):
        hint = "it leads the gang: `master: {replicas: 1, …}`"
        message = f"no Task is called `{MASTER}`"
        section.issues.append(issue.error(message, section.node.place, path=section.path, hint=hint))
    elif section.section(MASTER).node.given("replicas") is not None:
        replicas = section.section(MASTER).whole("replicas", 1)
        if replicas not in (None, 1):
            section.section(MASTER).wrong("replicas", f"`{MASTER}` has {replicas} replicas; exactly 1 is due")


def _check_names(section: Reader, tasks: tuple[Task, ...]) -> None:
    """Note a Task whose name leaves no room for the name of a job."""
    for task in tasks:
        limit, _ = names.stem_limit({task.name: task.replicas})
        if not names.has_room(limit):
            message = f"name too long: task {task.name} leaves no room for a job name ({limit} of 63 characters)"
            section.wrong(task.name, message)


def _task(name: str, task: Reader, reader: Reader, job: Reader, taken: tuple[tuple[str, str], ...]) -> Task | None:
    """Read one Task; None when a value that must be there is not."""
    if not _NAME.match(name):
        message = f"`{name}` cannot name a Task: small letters, digits and `-`, beginning with a letter"
        task.issues.append(issue.error(message, task.node.place, path=task.path))
    task.unknown(KEYS, is_error=True)
    for key, example in zip(KEYS[:6], ("1", "16", "64Gi", "8", "false", "1")):
        if not task.has(key):
            task.missing(key, f"write `{key}: {example}`")
    replicas, processes = task.whole("replicas", 1, 100_000), task.whole("processes_per_node", 1, 4_096)
    cpus, gpus = task.whole("cpus_per_node", 1, 4_096), task.whole("gpus_per_node", 0, 4_096)
    memory, rdma = task.quantity("memory"), task.flag("rdma")
    _container(task, job, taken)
    image, setup = _environment(task, reader)
    lines = task.lines("command")
    if task.has("command") and not lines:
        task.wrong("command", f"`{task.at('command')}` is empty", hint="leave it out to run the command line's words")
    env, selector = _env(task), fields.labels(task, "node_selector")
    if replicas is None or processes is None or cpus is None or gpus is None or memory is None or rdma is None:
        return None
    return Task(
        name=name,
        replicas=replicas,
        gpus_per_node=gpus,
        processes_per_node=processes,
        cpus_per_node=cpus,
        memory=memory.text,
        rdma=rdma,
        image=image,
        setup=setup,
        lines=lines,
        env=env,
        node_selector=selector,
        raw=tree.mapping(task.node),
    )


def _container(task: Reader, job: Reader, taken: tuple[tuple[str, str], ...]) -> None:
    """Check the container arguments of a Task as they hold over those of the job."""
    own = task.section("container_args")
    own.unknown(CONTAINER_KEYS, is_error=True)
    job_wide = job.section("submit_args").section("container_args").node
    entries = {**job_wide.entries, **own.node.entries}
    keys = {**job_wide.keys, **own.node.keys}
    merged = Reader(Section(entries, own.node.place, keys), task.issues, own.path)
    found = fields.container(merged, taken)
    fields.tell_scratch(own if own.has("scratch_size") else merged, found.scratch)
    fields.check_shm(merged, found.shm_bytes, task.quantity("memory"))


def _environment(task: Reader, reader: Reader) -> tuple[str | None, tuple[str, ...]]:
    """Read a Task's image and setup; what it does not say is the template's. An empty list clears the setup."""
    own, shared = task.section("environment"), reader.section("environment")
    own.unknown(("image", "setup"), is_error=True)
    image = sections.image(task) if own.has("image") else sections.image(reader)
    if not own.has("image") and not shared.has("image"):
        own.missing("image", "write it here or in `environment.image`")
    return image, own.texts("setup") if own.has("setup") else shared.texts("setup")


def _env(task: Reader) -> dict[str, str]:
    """Read a Task's environment; what belongs to the whole job is refused or dropped with a warning."""
    section = task.section("env")
    found = section.env()
    for name in list(found):
        if name in (PVC_NAME, PVC_FOLDER):
            section.wrong(name, f"{name} is one for all Tasks", hint="set it in `jobs[0].submit_args.env`")
        elif name.startswith("AJ_") or fields.is_steering(name):
            section.warn(name, f"{name} is set for the job: the value here is dropped", code="injected-env")
            del found[name]
    return found
