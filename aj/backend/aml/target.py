"""Which compute of which workspace a job goes to, and whether it can take it.

A workspace that is named is asked alone. Without a name the one of the settings comes first, then all that
this user sees, by the compute's name. One that gave no answer is told, and never counts as "no".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aj.azure import computes, identity, workplace
from aj.azure.arm import Session, Workspace
from aj.azure.computes import Compute
from aj.azure.fan import Failure, gather
from aj.azure.memory import Memory
from aj.azure.workplace import Places, Wish
from aj.base import text
from aj.base.errors import AjError, NotFound, Refused, RemoteError, UserError
from aj.base.noun import dataclass

REMEMBERED_S = 24 * 3600.0  # a compute moves between workspaces seldom, and a wrong memory costs one question
READY = "Succeeded"
ONE_NODE = "ComputeInstance"


@dataclass(frozen=True)
class Target:
    """The compute, its workspace, and what to tell."""

    workspace: Workspace
    compute: Compute
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Search:
    """A search for a compute. `configured` is the workspace of the user's settings."""

    places: Places
    compute: str
    wish: Wish
    configured: Wish
    memory: Memory

    @property
    def session(self) -> Session:
        return self.places.session

    def target(self) -> Target:
        """Find it. Raises NotFound, UserError when there are several, and RemoteError when too few answered."""
        if self.wish.workspace is not None:
            return self._in_named(self.wish.workspace)
        if (known := self._remembered()) is not None:
            return known
        found = self._in_named(self.places.named(self.wish)) if self.wish.name else self._anywhere()
        self.memory.keep("compute", *self._key, value=found.workspace.id)
        return found

    def workspace(self) -> Workspace:
        """Find the workspace alone. Raises as `target`."""
        return self.wish.workspace or self.target().workspace

    @property
    def _key(self) -> tuple[str, ...]:
        """What a finding depends on: who asks, and for what. Another user sees other workspaces."""
        who = identity.whoami(self.session)
        wish, configured = self.wish, self.configured
        parts = (wish.name, wish.subscription, wish.group, configured.name, configured.subscription, configured.group)
        return (
            self.session.cloud.name,
            who.tenant or "",
            who.object_id or "",
            self.compute.lower(),
            *(part.lower() if part else "" for part in parts),
        )

    def _remembered(self) -> Target | None:
        """Return what an earlier submission found, if it is still so."""
        kept = self.memory.recall("compute", *self._key, max_age_s=REMEMBERED_S)
        if kept is None:
            return None
        try:
            workspace = Workspace.of_id(kept)
            compute = computes.find(self.session, workspace, self.compute)
        except (NotFound, Refused, RemoteError):
            compute = None  # the search itself will tell what is wrong
        if compute is not None:
            return Target(workspace, compute)
        self.memory.forget("compute", *self._key)
        return None

    def _in_named(self, workspace: Workspace) -> Target:
        compute = computes.find(self.session, workspace, self.compute)
        if compute is not None:
            return Target(workspace, compute)
        has = sorted(one.name for one in computes.list_all(self.session, workspace))
        near = text.nearest(self.compute, has)
        raise NotFound(
            f"no compute called {self.compute} in workspace {workspace.name} (has: {', '.join(has) or 'none'})",
            hint=f"`{near}` is the nearest name" if near else "write another `target.name`",
            code="no-compute",
        )

    def _anywhere(self) -> Target:
        first, failures = self._in_configured()
        if first is not None:
            return first
        listed = self.places.matching(self.wish)
        asked = gather(listed, lambda one: (one, computes.find(self.session, one, self.compute)))
        found = [Target(one, compute) for one, compute in asked.values if compute is not None]
        again = {one.name for one in listed}
        failures = (*(failure for failure in failures if failure.part not in again), *asked.failures)
        if len(found) > 1:
            raise self._several([one.workspace for one in found])
        if not found:
            raise self._nowhere(len(asked.values), failures)
        return replace(found[0], warnings=_could_not_ask(failures))

    def _in_configured(self) -> tuple[Target | None, tuple[Failure, ...]]:
        """Ask the workspace of the settings, if it passes the filters."""
        if self.configured.name is None:
            return None, ()
        try:
            workspace = self.places.named(self.configured)
            if not self.wish.allows(workspace):
                return None, ()
            compute = computes.find(self.session, workspace, self.compute)
        except (NotFound, UserError):
            raise
        except AjError as error:
            return None, (Failure(self.configured.name, error),)
        return (None if compute is None else Target(workspace, compute)), ()

    def _several(self, found: Sequence[Workspace]) -> UserError:
        ordered = sorted(found, key=lambda one: (one.name.casefold(), one.subscription, one.group))
        listed = ", ".join(str(one) for one in ordered)
        return UserError(
            f"compute {self.compute} exists in {text.plural(len(ordered), 'workspace')}: {listed}",
            hint=f"set {workplace.deciding(ordered)}",
            code="several-computes",
        )

    def _nowhere(self, answered: int, failures: Sequence[Failure]) -> AjError:
        filters = f" ({', '.join(self.wish.filters)})" if self.wish.filters else ""
        if not failures:
            return NotFound(
                f"no compute called {self.compute} in {text.plural(answered, 'workspace')}{filters}",
                hint="set target.workspace_name, or write another `target.name`",
                code="no-compute",
            )
        silent = "; ".join(f"{failure.part}: {failure.error.message}" for failure in failures)
        return RemoteError(
            f"compute {self.compute} was not found in {text.plural(answered, 'workspace')}{filters}; "
            f"{len(failures)} could not be asked: {silent}",
            hint="set target.workspace_name if you know it",
            code="not-all-asked",
        )


def _could_not_ask(failures: Sequence[Failure]) -> tuple[str, ...]:
    return tuple(f"workspace {failure.part} could not be asked: {failure.error.message}" for failure in failures)


def check(compute: Compute, nodes: int) -> None:
    """Raise Refused when a compute is not ready for so many nodes, with its own word or both numbers."""
    if compute.provisioning.lower() != READY.lower():
        word = compute.provisioning or "in no known state"
        raise Refused(f"compute {compute.name} is {word}, not {READY}", code="compute-not-ready")
    if compute.kind.lower() == ONE_NODE.lower() and nodes > 1:
        raise Refused(
            f"compute {compute.name} is one machine, and the job wants {nodes} nodes",
            hint="-n 1",
            code="too-many-nodes",
        )
    if compute.max_nodes is not None and nodes > compute.max_nodes:
        raise Refused(
            f"compute {compute.name} has at most {text.plural(compute.max_nodes, 'node')}, and the job wants {nodes}",
            hint=f"-n {compute.max_nodes}" if compute.max_nodes else "ask its owner to let it grow",
            code="too-many-nodes",
        )
