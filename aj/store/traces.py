"""Traces: what was made on clusters for a submission and must not stay there for ever.

A trace is on disk before the thing is made and goes when the thing is gone, so nothing is forgotten by a daemon that
was killed. Secrets are only named here; what they hold is not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from aj.base.noun import dataclass
from aj.model.json import Json
from aj.store import atomic

HELPER, SECRET = "helper", "secret"


@dataclass(frozen=True)
class Trace:
    """One thing on a cluster. `kind` is HELPER, a pod that brings code, or SECRET.

    `noted_at` is when this was written; what a Secret holds was signed then, and is good until `expires_at` (both in
    seconds since the epoch; None: nothing in it ends). `context` is one of the user's kubeconfig.
    """

    kind: str
    job: str
    context: str
    namespace: str
    noted_at: float
    expires_at: float | None = None

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.job}.json"


@dataclass(frozen=True)
class Traces:
    """The folder of traces."""

    folder: Path

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
    }


def _read(path: Path) -> Trace | None:
    try:
        found: Json = json.loads(path.read_bytes())
        return _trace(found) if isinstance(found, Mapping) else None
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return None  # removed just now, or damaged


def _trace(found: Mapping[str, Json]) -> Trace:
    noted_at, expires_at = found["noted_at"], found["expires_at"]
    if not isinstance(noted_at, int | float) or not isinstance(expires_at, int | float | None):
        raise ValueError("not a moment")
    return Trace(
        kind=str(found["kind"]),
        job=str(found["job"]),
        context=str(found["context"]),
        namespace=str(found["namespace"]),
        noted_at=float(noted_at),
        expires_at=None if expires_at is None else float(expires_at),
    )
