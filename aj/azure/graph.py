"""Resource Graph: one question over many subscriptions, with an answer that is whole or an error.

A query is put together from quoted values only, projects the id and is ordered by it, since pages of an
unordered answer may repeat rows and lose others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from aj.azure.arm import Call, Session
from aj.base.errors import RemoteError
from aj.base.noun import dataclass
from aj.model.json import Json
from aj.net import http, pages
from aj.net.document import Document
from aj.net.http import Request

API = "2021-03-01"
SUBSCRIPTIONS = 100  # what one request may name; more are asked for in turn
ROWS = 1000  # the most rows a page may have
T = TypeVar("T")
_PARTS = ("providers", "Microsoft.ResourceGraph", "resources")


@dataclass(frozen=True)
class Question:
    """Which resources: of a type, and where they must match. Names are compared without case.

    `fields` are the columns wanted besides the id.
    """

    type: str
    fields: tuple[str, ...]
    name: str | None = None
    group: str | None = None

    @property
    def query(self) -> str:
        """The query text."""
        steps = ["resources", f"where type =~ {quoted(self.type)}"]
        if self.name is not None:
            steps.append(f"where name =~ {quoted(self.name)}")
        if self.group is not None:
            steps.append(f"where resourceGroup =~ {quoted(self.group)}")
        steps += [f"project id, {', '.join(self.fields)}", "order by id asc"]
        return " | ".join(steps)


def quoted(value: str) -> str:
    """Write a value as the query language reads it back unchanged."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    plain = escaped.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")
    return f"'{plain}'"


def ask(
    session: Session, question: Question, subscriptions: Sequence[str], made: Callable[[Document], T], *, doing: str
) -> tuple[T, ...]:
    """Return the rows of a question over subscriptions, all of them.

    Raises RemoteError when the service cuts its answer and tells no way to the rest.
    """
    rows: list[T] = []
    for start in range(0, len(subscriptions), SUBSCRIPTIONS):
        asked = _Asked(session, question, tuple(subscriptions[start : start + SUBSCRIPTIONS]), doing)
        for page in pages.pages(session.manager, asked.request(), asked.following):
            rows += [made(row) for row in page.each("data")]
    return tuple(rows)


@dataclass(frozen=True)
class _Asked:
    """A question on its way through the pages of its answer."""

    session: Session
    question: Question
    subscriptions: tuple[str, ...]
    doing: str

    def request(self, token: str | None = None) -> Request:
        options: dict[str, Json] = {"resultFormat": "objectArray", "$top": ROWS}
        if token is not None:
            options["$skipToken"] = token
        body: dict[str, Json] = {
            "subscriptions": self.subscriptions,
            "query": self.question.query,
            "options": options,
        }
        return Call(self.session, _PARTS, API, self.doing, limit=http.LONG).request("POST", body)

    def following(self, page: Document) -> Request | None:
        if token := page.text("$skipToken"):
            return self.request(token)
        if (page.text("resultTruncated") or "").lower() == "true":
            raise RemoteError(
                f"could not {self.doing}: the answer is cut and there is no way to its rest", code="cut-answer"
            )
        return None
