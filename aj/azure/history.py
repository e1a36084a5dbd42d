"""Run history: what the data plane of a workspace knows of a run: its log files, its error, its artifacts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aj.azure import arm, workspaces
from aj.azure.arm import Session
from aj.azure.workspaces import Facts
from aj.base.noun import dataclass
from aj.net import document, http, pages
from aj.net.document import Document
from aj.net.http import Request, Transport
from aj.net.origin import Origin

DEPTH = 20  # of errors within errors; what is nested deeper says no more


@dataclass(frozen=True)
class Fault:
    """Why a run failed: the outer code, and the code and words of the error at the bottom."""

    code: str
    message: str
    inner_code: str | None = None


@dataclass(frozen=True)
class Details:
    """What is known of a run. `logs` maps a path to an address that is signed, and so is a secret."""

    status: str | None
    logs: Mapping[str, str] = field(repr=False)
    fault: Fault | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class History:
    """The run history of one workspace."""

    transport: Transport = field(repr=False)
    origin: Origin
    base: str

    @classmethod
    def of(cls, session: Session, facts: Facts) -> History:
        """Return the history of a workspace. Raises RemoteError when its data plane is none of this cloud."""
        transport, origin = workspaces.data_plane(session, facts)
        return cls(transport, origin, f"/history/v1.0{facts.at.path}")

    def details(self, run: str) -> Details:
        """Read the details of a run. Raises NotFound."""
        request = self._request(arm.path("runs", run, "details"), {}, f"read the details of run {run}")
        found = document.of(self.transport.ask(request), request)
        warnings = tuple(words for row in found.each("warnings") if (words := row.text("message")))
        return Details(found.text("status"), found.texts("logFiles"), _fault(found.inner("error")), warnings)

    def artifacts(self, experiment: str, run: str, prefix: str) -> tuple[str, ...]:
        """List the paths of a run's artifacts below a prefix, all of them. Raises NotFound."""
        way = arm.path("experiments", experiment, "runs", run, "artifacts", "path")
        doing = f"list the files of run {run} under {prefix}"

        def following(page: Document) -> Request | None:
            token = page.text("continuationToken")
            return self._request(way, {"path": prefix, "continuationToken": token}, doing) if token else None

        first = self._request(way, {"path": prefix}, doing)
        found = pages.pages(self.transport, first, following)
        return tuple(row.need_text("path") for page in found for row in page.each("value"))

    def content_url(self, experiment: str, run: str, path: str) -> str:
        """Return the signed address of one artifact: a secret. Raises NotFound."""
        way = arm.path("experiments", experiment, "runs", run, "artifacts", "contentinfo")
        request = self._request(way, {"path": path}, f"find the content of {path}")
        return document.of(self.transport.ask(request), request).need_text("contentUri")

    def _request(self, way: str, query: Mapping[str, str], doing: str) -> Request:
        return Request("GET", arm.url(self.origin, self.base + way, query), doing, limit=http.STANDARD)


def _fault(problem: Document) -> Fault | None:
    """Read an error: its own code, and the deepest one inside with its words."""
    outer = problem.inner("error")
    code = outer.text("code")
    if code is None and outer.text("message") is None:
        return None
    message = outer.text("message") or ""
    inner_code = None
    below = outer.inner("innerError")
    for _ in range(DEPTH):
        if not below.values:
            break
        inner_code = below.text("code") or inner_code
        message = below.text("message") or message
        below = below.inner("innerError")
    return Fault(code or "", message, inner_code)
