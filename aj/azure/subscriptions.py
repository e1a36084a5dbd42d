"""Subscriptions: those this user sees and may use."""

from __future__ import annotations

from collections.abc import Sequence

from aj.azure.arm import Call, Session
from aj.base import text
from aj.base.noun import dataclass
from aj.net import http
from aj.net.document import Document

API = "2022-12-01"
USABLE = frozenset({"enabled", "warned", "pastdue"})


@dataclass(frozen=True)
class Subscription:
    """One subscription."""

    id: str
    name: str
    tenant: str | None
    state: str

    @property
    def is_usable(self) -> bool:
        return self.state.lower() in USABLE


@dataclass(frozen=True)
class InScope:
    """The subscriptions to look at, and what to tell about those that were left out."""

    subscriptions: tuple[Subscription, ...]
    notice: str | None = None


def list_all(session: Session) -> tuple[Subscription, ...]:
    """List every subscription this user sees, whatever its state."""
    return Call(session, ("subscriptions",), API, "list subscriptions", limit=http.QUICK).read(_made).rows


def in_scope(found: Sequence[Subscription], tenant: str | None) -> InScope:
    """Keep the usable subscriptions of a tenant (None: of any), with one notice about those of another."""
    usable = [one for one in found if one.is_usable]
    if tenant is None:
        return InScope(tuple(usable))
    ours = tuple(one for one in usable if one.tenant is None or one.tenant.lower() == tenant.lower())
    skipped = len(usable) - len(ours)
    notice = f"{text.plural(skipped, 'subscription')} of another tenant than {tenant} skipped" if skipped else None
    return InScope(ours, notice)


def _made(row: Document) -> Subscription:
    subscription = row.need_text("subscriptionId")
    return Subscription(
        subscription, row.text("displayName") or subscription, row.text("tenantId"), row.text("state") or ""
    )
