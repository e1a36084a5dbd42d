"""The keys that a template may have and what kind each value is, whatever the service.

Used on merged templates and on single files alike: it looks at what is there and asks for nothing. A key
that is not listed is a warning with the nearest name, because other programs read these files too. `_extra`
is not looked into: it belongs to whoever reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from aj.template.reader import Reader
from aj.template.tree import Scalar, Section

MAX_NODES = 100_000
MAX_PROCESSES = 4_096

Form: TypeAlias = Callable[[Reader, str], object]
Forms: TypeAlias = Mapping[str, Form]


def check(config: Section) -> Reader:
    """Look at every known key of a `config`; the returned reader holds the findings."""
    reader = Reader(config, [])
    _each(reader, CONFIG)
    return reader


def _each(reader: Reader, forms: Forms) -> None:
    for key in reader.node.entries:
        if key in forms and reader.has(key):
            forms[key](reader, key)
    reader.unknown(tuple(forms))


def _anything(reader: Reader, key: str) -> None:
    """Leave a value to whoever reads it."""


def _section(forms: Forms) -> Form:
    return lambda reader, key: _each(reader.section(key), forms)


def _sections(forms: Forms) -> Form:
    def read(reader: Reader, key: str) -> None:
        for item in reader.sections(key):
            _each(item, forms)

    return read


def _named(forms: Forms) -> Form:
    def read(reader: Reader, key: str) -> None:
        for item in reader.section(key).named_sections().values():
            _each(item, forms)

    return read


def _whole(low: int, high: int) -> Form:
    return lambda reader, key: reader.whole(key, low, high)


def _tags(reader: Reader, key: str) -> None:
    reader.texts(key, numbers=True)


def _labels(reader: Reader, key: str) -> None:
    reader.section(key).named_texts(numbers=True)


def _env(reader: Reader, key: str) -> None:
    reader.section(key).env()


def _mapping(reader: Reader, key: str) -> None:
    reader.section(key)


def _sku(reader: Reader, key: str) -> None:
    node = reader.node.given(key)
    if isinstance(node, Section):
        reader.section(key).named_texts()
    else:
        reader.text(key)


def _shm_size(reader: Reader, key: str) -> None:
    node = reader.node.given(key)
    if not isinstance(node, Scalar) or isinstance(node.value, bool | float):
        reader.wrong(key, f"`{reader.at(key)}` is no size", hint="write 64g")


TEXT, TEXTS, LINES, FLAG = Reader.text, Reader.texts, Reader.lines, Reader.flag
QUANTITY, SECONDS, DOLLARS = Reader.quantity, Reader.seconds, Reader.dollars
COUNT = _whole(0, 10**9)

TOLERATION: Forms = {"key": TEXT, "operator": TEXT, "value": TEXT, "effect": TEXT, "tolerationSeconds": COUNT}
TARGET: Forms = {
    "service": TEXT,
    "name": TEXT,
    "workspace_name": TEXT,
    "subscription_id": TEXT,
    "resource_group": TEXT,
    "tenant_id": TEXT,
    "group_policy": TEXT,
    "gpus_per_node": _whole(0, MAX_PROCESSES),
    "cpus_per_node": QUANTITY,
    "memory": QUANTITY,
    "cpus": QUANTITY,
    "gpus": _whole(0, MAX_PROCESSES),
    "namespace": TEXT,
    "queue": TEXT,
    "context": TEXT,
    "rdma": FLAG,
    "rdma_resource": TEXT,
    "gpu_resource": TEXT,
    "priority_class": TEXT,
    "service_account": TEXT,
    "image_pull_secrets": TEXTS,
    "labels": _labels,
    "annotations": _labels,
    "node_selector": _labels,
    "tolerations": _sections(
        {"key": TEXT, "operator": TEXT, "value": TEXT, "effect": TEXT, "tolerationSeconds": COUNT}
    ),
    "ttl": _anything,  # a duration or the word `never`
    "active_deadline": SECONDS,
    "grace": SECONDS,
    "on_failure": TEXT,
    "on_evict": TEXT,
    "complete_with": TEXT,
    "max_retry": COUNT,
    "run_as": _section({"user": COUNT, "group": COUNT, "fs_group": COUNT}),
    "spread": TEXT,
    "workdir_size": QUANTITY,
    "launcher": TEXT,
    "spot": FLAG,
}
ENVIRONMENT: Forms = {
    "image": TEXT,
    "registry": TEXT,
    "username": TEXT,
    "setup": TEXTS,
    "image_setup": TEXTS,
    "setup_timeout": SECONDS,
}
CODE: Forms = {"local_dir": TEXT, "ignore": TEXTS, "ssh": TEXTS, "ssh_private_keys": FLAG}
STORAGE: Forms = {
    "storage_account_name": TEXT,
    "container_name": TEXT,
    "mount_dir": TEXT,
    "local_dir": TEXT,
    "is_output": FLAG,
    "mode": TEXT,
}
BUCKET: Forms = {"bucket": TEXT, "credentials": TEXT, "region": TEXT}
BUCKETS: Forms = {
    "input": _section(BUCKET),
    "output": _section(BUCKET),
    "checkpoint": _section(BUCKET),
    "checkpoint_keep": _whole(1, 1000),
    "require_output": FLAG,
}
CONTAINER_ARGS: Forms = {
    "shm_size": _shm_size,
    "capabilities": TEXTS,
    "scratch_mount_path": TEXT,
    "scratch_size": QUANTITY,
    "cpus": QUANTITY,
    "memory": QUANTITY,
    "ipc": TEXT,
}
SUBMIT_ARGS: Forms = {
    "env": _env,
    "container_args": _section(CONTAINER_ARGS),
    "max_run_duration_seconds": COUNT,
    "max_attempts": COUNT,
    "secrets": TEXTS,
}
JOB: Forms = {
    "name": TEXT,
    "description": TEXT,
    "sku": _sku,
    "instance_count": _whole(1, MAX_NODES),
    "process_count_per_node": _whole(1, MAX_PROCESSES),
    "command": LINES,
    "identity": TEXT,
    "tags": _tags,
    "sla_tier": TEXT,
    "priority": TEXT,
    "preemptible": FLAG,
    "mpi": FLAG,
    "timeout": SECONDS,
    "start_timeout": SECONDS,
    "max_cost": DOLLARS,
    "submit_args": _section(SUBMIT_ARGS),
}
CONFIG: Forms = {
    "description": TEXT,
    "target": _section(TARGET),
    "environment": _section(ENVIRONMENT),
    "code": _section(CODE),
    "storage": _named(STORAGE),
    "storage_buckets": _section(BUCKETS),
    "data": _anything,
    "env_defaults": _env,
    "search": _anything,
    "jobs": _sections(JOB),
    "_extra": _mapping,
}
