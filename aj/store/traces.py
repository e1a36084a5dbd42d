"""Traces: what was made on clusters for a submission and must not stay there for ever.

A trace is on disk before the thing is made and goes when the thing is gone, so nothing is forgotten by a daemon that
was killed. Secrets are only named here; what they hold is not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from aj.base.errors import AjError
from aj.base.noun import dataclass
from aj.model.json import Json
from aj.store import atomic

HELPER, SECRET = "helper", "secret"
OWNER = "owner"  # a file beside them


@dataclass(frozen=True)
class Trace:
    """One thing on a cluster. `kind` is HELPER, a pod that brings code, or SECRET.

    `noted_at` is when this was written; what a Secret holds was signed then, and is good until `expires_at` (both in
    seconds since the epoch; None: nothing in it ends). `context` is one of the user's kubeconfig. `host` is the machine
    whose daemon made it, since several may share a state folder; `project` is the path of the job's project.
    """

    kind: str
    job: str
    context: str
    namespace: str
    noted_at: float
    expires_at: float | None = None
    host: str = ""
    project: str | None = None

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.job}.json"


@dataclass(frozen=True)
class Traces:
    """The folder of traces."""

    folder: Path

    def owner(self) -> str:
        """Return the word that tells what daemons of this state folder made from what others made.

        It is drawn once: names of machines and folders are the same in many places. Raises AjError.
        """
        path = self.folder / OWNER
        for _ in range(2):
            try:
                return path.read_text("ascii").strip()
            except FileNotFoundError:
                atomic.make_folder(self.folder)
                atomic.write_bytes(path, os.urandom(8).hex().encode() + b"\n")
            except (OSError, UnicodeDecodeError) as error:
                raise AjError(f"{path} cannot be read: {error}", code="disk") from error
        raise AjError(f"{path} was written and is not there", code="disk")

    def note(self, trace: Trace) -> None:
        """Write a trace down, in the place of an earlier one. Raises AjError when the disk refuses."""
        atomic.make_folder(self.folder)
        atomic.write_json(self.folder / trace.name, {"schema_version": 1, **_values(trace)})

    def forget(self, kind: str, job: str) -> None:
        """Drop a trace, if there is one. Raises AjError when the disk refuses."""
        atomic.remove(self.folder / f"{kind}-{job}.json")

    def find(self, kind: str, job: str) -> Trace | None:
        """Return a trace, or None."""
        return next((trace for trace in self.all() if (trace.kind, trace.job) == (kind, job)), None)

    def all(self) -> tuple[Trace, ...]:
        """Return every trace; a file that cannot be understood is passed over."""
        try:
            paths = sorted(self.folder.glob("*.json"))
        except OSError:
            return ()
        return tuple(trace for path in paths if (trace := _read(path)) is not None)


def _values(trace: Trace) -> dict[str, Json]:
    return {
        "kind": trace.kind,
        "job": trace.job,
        "context": trace.context,
        "namespace": trace.namespace,
        "noted_at": trace.noted_at,
        "expires_at": trace.expires_at,
        "host": trace.host,
        "project": trace.project,
    }


def _read(path: Path) -> Trace | None:
    try:
        found: Json = json.loads(path.read_bytes())
        return _trace(found) if isinstance(found, Mapping) else None
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return None  # removed just now, or damaged


def _trace(found: Mapping[str, Json]) -> Trace:
    noted_at, expires_at, project = found["noted_at"], found["expires_at"], found.get("project")
    if not isinstance(noted_at, int | float) or not isinstance(expires_at, int | float | None):
        raise ValueError("not a moment")
    return Trace(
        kind=str(found["kind"]),
        job=str(found["job"]),
        context=str(found["context"]),
        namespace=str(found["namespace"]),
        noted_at=float(noted_at),
        expires_at=None if expires_at is None else float(expires_at),
        host=str(found.get("host", "")),
        project=None if project is None else str(project),
    )
