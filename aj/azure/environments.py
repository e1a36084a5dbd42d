"""Environments: the images that a workspace knows by name and version."""

from __future__ import annotations

from aj.azure import arm
from aj.azure.arm import Session, Workspace
from aj.base.errors import NotFound
from aj.base.noun import dataclass
from aj.net.document import Document


@dataclass(frozen=True)
class Container:
    """An environment by name, with its newest version."""

    name: str
    latest: str | None
    is_archived: bool


@dataclass(frozen=True)
class Version:
    """One version of an environment. `image` is None for one that is built from a recipe."""

    id: str
    name: str
    image: str | None
    system: str | None
    is_archived: bool


def list_all(session: Session, workspace: Workspace) -> tuple[Container, ...]:
    """List the environments of a workspace."""
    doing = f"list the environments of workspace {workspace}"
    return arm.in_workspace(session, workspace, "environments", doing=doing).read(_container).rows


def versions(session: Session, workspace: Workspace, name: str) -> tuple[Version, ...]:
    """List the versions of an environment. Raises NotFound."""
    doing = f"list the versions of environment {name}"
    return arm.in_workspace(session, workspace, "environments", name, "versions", doing=doing).read(_version).rows


def find(session: Session, workspace: Workspace, name: str, version: str) -> Version | None:
    """Read one version; None when there is none of that name and number."""
    call = arm.in_workspace(
        session, workspace, "environments", name, "versions", version, doing=f"read environment {name}:{version}"
    )
    try:
        return _version(call.get())
    except NotFound:
        return None


def put(session: Session, workspace: Workspace, name: str, version: str, *, image: str) -> Version:
    """Register a Linux image. Putting the same again changes nothing, but un-archives it."""
    call = arm.in_workspace(
        session, workspace, "environments", name, "versions", version, doing=f"register image {image} as an environment"
    )
    return _version(call.put_same({"properties": {"image": image, "osType": "Linux"}}))


def _container(row: Document) -> Container:
    return Container(
        row.need_text("name"), row.text("properties", "latestVersion"), row.flag("properties", "isArchived") or False
    )


def _version(row: Document) -> Version:
    return Version(
        row.need_text("id"),
        row.need_text("name"),
        row.text("properties", "image"),
        row.text("properties", "osType"),
        row.flag("properties", "isArchived") or False,
    )
