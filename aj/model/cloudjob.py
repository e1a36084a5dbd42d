"""A job of a workspace as it is told here: what its service says of it, and our word for where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aj.base.noun import dataclass
from aj.model.state import JobState


@dataclass(frozen=True)
class CloudJob:
    """One job. `status` is the service's own word; `state` is None when that means nothing certain.

    `name` is unique within `workspace` (subscription/group/name). Times are RFC 3339 UTC; `compute` and
    `environment` are names; `error` is why it failed, as far as it was asked. `gpus` are those of each node.
    """

    name: str
    workspace: str
    service: str
    status: str
    state: JobState | None = None
    kind: str = ""
    display_name: str | None = None
    experiment: str | None = None
    created_at: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    duration_s: float | None = None
    queued_s: float | None = None
    compute: str | None = None
    environment: str | None = None
    instance: str | None = None
    nodes: int | None = None
    gpus: int | None = None
    tier: str | None = None
    user: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    aj_id: str | None = None
    error: str | None = None
    portal: str | None = None

    @property
    def is_final(self) -> bool:
        return self.state is not None and self.state.is_final

    @property
    def words(self) -> str:
        """Where it stands: our word, and the service's own where that says more."""
        if self.state is None:
            return self.status
        said = self.status.lower()
        return self.state.value if said == self.state.value else f"{self.state.value} ({self.status})"
