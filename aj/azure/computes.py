"""Computes: the clusters and machines of one workspace."""

from __future__ import annotations

from aj.azure import arm
from aj.azure.arm import Session, Workspace
from aj.base.errors import NotFound
from aj.base.noun import dataclass
from aj.net.document import Document


@dataclass(frozen=True)
class Compute:
    """One compute. `max_nodes` is None where the kind has no such number; `nodes` counts them by state."""

    id: str
    name: str
    kind: str
    provisioning: str
    location: str | None
    vm_size: str | None
    vm_priority: str | None
    max_nodes: int | None
    nodes: dict[str, int]


def list_all(session: Session, workspace: Workspace) -> tuple[Compute, ...]:
    """List the computes of a workspace."""
    doing = f"list the computes of workspace {workspace}"
    return arm.in_workspace(session, workspace, "computes", doing=doing).read(_made).rows


def find(session: Session, workspace: Workspace, name: str) -> Compute | None:
    """Read one compute by name; None when the workspace has none of that name."""
    doing = f"look for compute {name} in workspace {workspace}"
    try:
        return _made(arm.in_workspace(session, workspace, "computes", name, doing=doing).get())
    except NotFound:
        return None


def _made(row: Document) -> Compute:
    own = row.inner("properties", "properties")
    counts = own.inner("nodeStateCounts")
    nodes = {
        name.removesuffix("NodeCount"): count for name in counts.values if (count := counts.whole(name)) is not None
    }
    return Compute(
        row.need_text("id"),
        row.need_text("name"),
        row.text("properties", "computeType") or "",
        row.text("properties", "provisioningState") or "",
        row.text("location") or row.text("properties", "computeLocation"),
        own.text("vmSize"),
        own.text("vmPriority"),
        own.whole("scaleSettings", "maxNodeCount"),
        nodes,
    )
