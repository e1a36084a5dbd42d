"""Jobs to test with: requests, records, and a packed tree of files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from aj.model.code import CodePlan, CodeRef
from aj.model.job import JobSpec, Shape
from aj.model.spend import Per, window
from aj.model.state import JobState
from aj.model.workload import Needs, Workload
from aj.pack import archive, walk
from aj.store.layout import Layout

EARLY = "2026-01-31T12:00:00.000000Z"


def shape(nodes: int = 1, processes: int = 1, gpus: int = 0) -> Shape:
    return Shape(nodes=nodes, sku_processes=gpus or 1, processes_per_node=processes, gpus_per_node=gpus)


def spec(job_id: str = "1a2b3c4d", *argv: str, directory: str = "/", **changes: object) -> JobSpec:
    """A request for this machine. Its shell lends a PATH and nothing else."""
    whole = JobSpec(
        id=job_id,
        name=f"train_{job_id}",
        service="local",
        template="local",
        experiment=None,
        directory=directory,
        project=None,
        shape=shape(),
        argv=argv or ("true",),
        code=CodePlan(directory),
        inherited={"PATH": os.environ["PATH"]},
        config={"target": {"service": "local"}},
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def workload(job_id: str = "1a2b3c4d", state: JobState = JobState.QUEUED, **changes: object) -> Workload:
    """A record as admission would make it."""
    whole = Workload(
        id=job_id,
        name=f"train_{job_id}",
        service="local",
        template="local",
        project=None,
        project_key="_none",
        ticket=f"aj-{job_id}",
        state=state,
        created_at=EARLY,
        submitted_at=EARLY,
        needs=Needs(),
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def long_window(now: float) -> Per:
    """A window of a budget that does not end within the next hours, so that midnight changes no test."""
    return next(per for per in reversed(Per) if window(per, now).ends_at > now + 7200)


def packed(layout: Layout, root: Path, files: Mapping[str, str]) -> CodeRef:
    """Write a tree of files, and pack it where the daemon keeps what was submitted."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return archive.pack(walk.select(CodePlan(str(root))), folder=layout.code)
