"""The containers of one start of a job: one for each process, each with the job's words and environment. Pure.

A job that is an image alone starts the image's own entrypoint in the image's own folder. One that brings its
code finds it at the same path as on this machine, and starts there; its setup lines and the lines of the
template run in every container before the command, for a container begins as the image is.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from aj.backend.local import options, podman, ranks
from aj.backend.local.podman import Container
from aj.backend.local.ranks import Facts, Process
from aj.model import image
from aj.model.bucket import Purpose
from aj.model.job import JobSpec
from aj.model.workload import Workload
from aj.store import jobs

WORKDIR = "image_workdir"  # the fact in which the image's own folder stands
SHELL = "/bin/sh"  # the only one that hardly any image lacks


def reference(job: Workload) -> str:
    """Return what names the very content that a job runs."""
    return image.parse(job.image or "").at(job.image_digest or "")


def of(job: Workload, folder: Path, facts: Facts) -> list[Container]:
    """Return the containers of the start that the record is at, by rank."""
    assert job.spec is not None, "the engine hands over records with what was asked for"
    marks = folder / "attempts" / str(job.attempt) / "marks"
    where = (str(job.facts.get(WORKDIR) or "/"),) * job.nodes
    inside = replace(facts, shell=SHELL, notes=str(marks), workdirs=facts.workdirs if job.spec.brings_code else where)
    found = ranks.ranks(replace(job.spec, lines=(*job.spec.setup, *job.spec.lines)), inside)
    return [_container(job, folder, facts, process, rank) for rank, process in enumerate(found)]


def _container(job: Workload, folder: Path, facts: Facts, process: Process, rank: int) -> Container:
    spec = job.spec
    assert spec is not None, "of() has looked"
    tag, wanted = podman.tag(folder, job.id), options.of(spec)
    return Container(
        name=podman.name(tag, job.attempt, rank),
        job=tag,
        reference=reference(job),
        argv=process.argv[1:] if spec.brings_code else spec.argv,
        env=process.env,
        entrypoint=process.argv[0] if spec.brings_code else None,
        workdir=process.cwd if spec.brings_code else None,
        binds=tuple(_binds(job, spec, folder, process)),
        cpus=_share(job.needs.cpus, job),
        memory_bytes=None if job.needs.memory_bytes is None else job.needs.memory_bytes // _count(job),
        gpus=facts.gpus or (),
        shm_bytes=wanted.shm_bytes,
        ipc=wanted.ipc,
    )


def _binds(job: Workload, spec: JobSpec, folder: Path, process: Process) -> list[tuple[str, str, bool]]:
    names = sorted(job.attached.bound) if job.attached else []
    found = [(str(folder / "mnt" / name), f"/mnt/{name}", name == Purpose.INPUT.value) for name in names]
    if spec.brings_code:
        work = str(jobs.work_folder(folder, process.node))
        found.append((work, work, False))
    return found


def _count(job: Workload) -> int:
    return job.nodes * job.processes_per_node


def _share(cpus: float | None, job: Workload) -> float | None:
    return None if cpus is None else cpus / _count(job)
