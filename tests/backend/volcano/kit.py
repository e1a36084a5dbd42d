"""Gangs for the tests: built from templates, checked as a cluster does, decoded as a node does, and run for real."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from aj.backend.volcano import payload, program
from aj.backend.volcano.payload import Objects
from aj.backend.volcano.variables import Facts
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.template.build import Request
from tests.azure.nodes import Node
from tests.servers import kube_rules, kube_schema
from tests.template.kit import built

SHA = "9d" + "0" * 62
MOMENT = "2026-01-02T03:04:05.000006+00:00"
SUFFIX = "x7k2p"  # what a server adds to a generated name
Plain = dict[str, Json]


def facts(**changed: object) -> Facts:
    """What only others know, with code that goes along."""
    given: dict[str, object] = {"namespace": "training", "digest": "c0de", "archive_sha256": SHA}
    given = {**given, "blob_endpoint": "https://{account}.blob.core.windows.net", **changed}
    return Facts(MOMENT, **given)  # type: ignore[arg-type]


def made(root: Path, text: str, *argv: str, known: Facts | None = None, request: Request | None = None) -> Objects:
    """Build what a template sends, with code where code goes along, and let the cluster's checks pass over it."""
    spec = built(root, text, *argv, request=request).spec
    return of(spec, known)


def of(spec: JobSpec, known: Facts | None = None) -> Objects:
    """Build what a job sends."""
    chosen = payload.options(spec)
    settled = known or (facts() if payload.moves_code(chosen) else facts(digest=None, archive_sha256=None))
    objects = payload.build(spec, chosen, settled)
    assert wrong(objects) == []
    hidden = payload.secret(spec, settled, dict.fromkeys(objects.secret_keys, "x"))
    assert not kube_schema.core("Secret").unknown(hidden)
    assert not kube_schema.core("Secret").causes(hidden)
    assert list(kube_rules.secret(hidden)) == []
    return objects


def wrong(objects: Objects) -> list[str]:
    """What a cluster with Volcano says against a job, fields it does not know among them."""
    schema = kube_schema.custom("batch.volcano.sh_jobs")
    job = dict(objects.job)
    found = [f"unknown: {path}" for path in schema.unknown(job)]
    found += [f"{cause.field}: {cause.message}" for cause in schema.causes(job)]
    metadata = cast(Plain, job["metadata"])
    named = {**job, "metadata": {**metadata, "name": f"{metadata['generateName']}{SUFFIX}"}}
    return found + kube_rules.job(named, lambda name: {"status": {"state": "Open"}})


def spec(objects: Objects) -> Plain:
    return cast(Plain, objects.job["spec"])


def tasks(objects: Objects) -> dict[str, Plain]:
    """The Tasks by their names."""
    return {str(task["name"]): task for task in cast(list[Plain], spec(objects)["tasks"])}


def pod(objects: Objects, task: str = "master") -> Plain:
    """The pod spec of a Task."""
    return cast(Plain, cast(Plain, tasks(objects)[task]["template"])["spec"])


def container(objects: Objects, task: str = "master") -> Plain:
    return cast(list[Plain], pod(objects, task)["containers"])[0]


def env(objects: Objects, task: str = "master") -> dict[str, Json]:
    """The variables of a Task as they are written, those that the node fills in with where they come from."""
    found = cast(list[Plain], container(objects, task)["env"])
    names = [str(one["name"]) for one in found]
    assert len(set(names)) == len(names), "a variable stands twice"
    return {str(one["name"]): one.get("value", one.get("valueFrom")) for one in found}


def expanded(text: str, known: Mapping[str, str]) -> str:
    """Replace references byte by byte as a node does: `$$` is one dollar, an unknown `$(NAME)` stays.

    A `$` before anything else is written anew with the one byte that follows, as a letter of its own.
    """
    raw, out, at = text.encode(), bytearray(), 0
    while at < len(raw):
        if raw[at : at + 1] != b"$" or at + 1 == len(raw):
            out += raw[at : at + 1]
            at += 1
            continue
        after, end = raw[at + 1 : at + 2], raw.find(b")", at + 2)
        if after == b"(" and end >= 0:
            name = raw[at + 2 : end].decode()
            out += known.get(name, f"$({name})").encode()
            at = end + 1
            continue
        out += b"$" if after == b"$" else b"$" + chr(after[0]).encode()
        at += 2
    return out.decode()


@dataclass(frozen=True)
class Arrived:
    """A container as it starts on a node."""

    argv: list[str]
    env: dict[str, str]


def arrived(objects: Objects, task: str = "master", index: int = 0) -> Arrived:
    """Decode the container of one pod: its variables, and its words with references to them."""
    known = variables(objects, task, index)
    found = container(objects, task)
    words = [*cast(list[str], found["command"]), *cast(list[str], found["args"])]
    return Arrived([expanded(word, known) for word in words], known)


def variables(objects: Objects, task: str = "master", index: int = 0) -> dict[str, str]:
    """Decode the variables of one pod: references in values, fields of the pod, Volcano's own."""
    metadata = cast(Plain, objects.job["metadata"])
    job = f"{metadata['generateName']}{SUFFIX}"
    fields = {"metadata.annotations['volcano.sh/task-spec']": task, "metadata.labels['volcano.sh/job-name']": job}
    known: dict[str, str] = {}
    found = container(objects, task)
    for one in cast(list[Plain], found["env"]):
        if "value" in one:
            known[str(one["name"])] = expanded(str(one["value"]), known)
        else:
            reference = cast(Plain, cast(Plain, one["valueFrom"])["fieldRef"])
            known[str(one["name"])] = fields[str(reference["fieldPath"])]
    return known | {"VC_TASK_INDEX": str(index), "VK_TASK_INDEX": str(index), "HOSTNAME": f"{job}-{task}-{index}"}


ALONE = {
    "VC_TASK_INDEX": "0",
    "AJ_RANK_BASE": "0",
    "AJ_NODES": "1",
    "AJ_PROCESSES_PER_NODE": "1",
    "AJ_WORLD_SIZE": "1",
}


def pods(node: Node) -> Iterator[Node]:
    """A node on which pods of one process may start."""
    home = node.root / "home"
    home.mkdir()
    node.env |= {**ALONE, "HOME": str(home), "AJ_TERM_GRACE": "20"}
    yield node


PROGRAM = ("-c", program.text())
