"""Storage accounts: those this user sees."""

from __future__ import annotations

from collections.abc import Sequence

from aj.azure import graph
from aj.azure.arm import Session
from aj.azure.graph import Question
from aj.base.noun import dataclass
from aj.net.document import Document

TYPE = "microsoft.storage/storageaccounts"


@dataclass(frozen=True)
class Account:
    """One storage account. `sku` is the name of its redundancy, such as `Standard_LRS`."""

    id: str
    name: str
    subscription: str
    group: str
    location: str
    kind: str
    sku: str


def find(session: Session, subscriptions: Sequence[str], *, name: str | None = None) -> tuple[Account, ...]:
    """List the storage accounts of subscriptions, those of a name alone when given."""
    fields = ("name", "resourceGroup", "subscriptionId", "location", "kind", "sku")
    question = Question(TYPE, fields, name=name)
    return graph.ask(session, question, subscriptions, _made, doing="list storage accounts")


def _made(row: Document) -> Account:
    return Account(
        row.need_text("id"),
        row.need_text("name"),
        row.text("subscriptionId") or "",
        row.text("resourceGroup") or "",
        row.text("location") or "",
        row.text("kind") or "",
        row.text("sku", "name") or "",
    )
