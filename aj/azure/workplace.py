"""Which workspace a submission goes to: by its coordinates, by its name, or the one of the user's settings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from aj.azure import subscriptions, workspaces
from aj.azure.arm import Session, Workspace
from aj.base import text
from aj.base.errors import NotFound, UserError
from aj.base.noun import dataclass

BOTH_WAYS = "write target.workspace_name, or set workspace.name in aj.toml"


@dataclass(frozen=True)
class Wish:
    """What is known of a workspace: each part that is None is open. Compared without case."""

    name: str | None = None
    subscription: str | None = None
    group: str | None = None

    @property
    def workspace(self) -> Workspace | None:
        """The workspace itself, when nothing is open."""
        if self.name and self.subscription and self.group:
            return Workspace(self.subscription, self.group, self.name)
        return None

    @property
    def filters(self) -> tuple[str, ...]:
        """What is given besides the name, in words."""
        given = (("subscription", self.subscription), ("resource group", self.group))
        return tuple(f"{what} {value}" for what, value in given if value)

    def allows(self, workspace: Workspace) -> bool:
        """Tell whether a workspace fits."""
        pairs = (
            (self.name, workspace.name),
            (self.subscription, workspace.subscription),
            (self.group, workspace.group),
        )
        return all(wanted is None or wanted.lower() == has.lower() for wanted, has in pairs)


class Places:
    """Where this user can look, each question asked once. `notices` tell what was left out."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.notices: list[str] = []

    def subscriptions(self, own: str | None = None) -> tuple[str, ...]:
        """Return the one subscription that is given, or all that are usable and of the session's tenant."""
        return self._usable if own is None else (own,)

    @cached_property
    def _usable(self) -> tuple[str, ...]:
        found = subscriptions.in_scope(subscriptions.list_all(self.session), self.session.tenant)
        if found.notice:
            self.notices.append(found.notice)
        return tuple(one.id for one in found.subscriptions)

    def named(self, wish: Wish) -> Workspace:
        """Return the workspace of a name, and ask only for what is open.

        Raises NotFound with the nearest names, UserError when there are several, naming what would decide.
        """
        return wish.workspace or self.one_of(self.matching(wish), wish)

    def matching(self, wish: Wish) -> tuple[Workspace, ...]:
        """Return every workspace that fits, in a fixed order."""
        looked = self.subscriptions(wish.subscription)
        listed = workspaces.find(self.session, looked, name=wish.name, group=wish.group)
        return tuple(sorted((one.at for one in listed), key=lambda at: (at.name.casefold(), at.subscription, at.group)))

    def one_of(self, found: Sequence[Workspace], wish: Wish) -> Workspace:
        """Return the one that was found. Raises NotFound or UserError as `named`."""
        if len(found) == 1:
            return found[0]
        if found:
            raise UserError(
                f"{len(found)} workspaces are called {wish.name}: {', '.join(map(str, found))}",
                hint=f"set {deciding(found)}",
                code="several-workspaces",
            )
        others = self.matching(Wish(None, wish.subscription, wish.group))
        near = text.nearest_few(wish.name or "", [one.name for one in others])
        filters = f" ({', '.join(wish.filters)})" if wish.filters else ""
        listed = ", ".join(f"`{name}`" for name in near)
        hint = f"the nearest are {listed}" if near else "`aj ws list` shows what there is"
        raise NotFound(f"no workspace is called {wish.name}{filters}", hint=hint, code="no-workspace")


def deciding(found: Sequence[Workspace]) -> str:
    """Return the key of a template that would tell several workspaces apart."""
    if len({one.name.lower() for one in found}) == len(found):
        return "target.workspace_name"
    if len({one.subscription.lower() for one in found}) == len(found):
        return "target.subscription_id"
    if len({one.group.lower() for one in found}) == len(found):
        return "target.resource_group"
    return "target.workspace_name, target.subscription_id and target.resource_group"
