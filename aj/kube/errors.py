"""What a cluster answers when it does not do what it was asked, as one of our errors.

A refusal of the rights is told apart from one by a rule of the cluster (an admission hook, a quota):
both come with the same status. The server's reason and causes are kept as details.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from aj.base import redact, text, units
from aj.base.errors import AjError, AuthError, NotFound, OutcomeUnknown, Refused, RemoteError, Unavailable
from aj.base.noun import dataclass
from aj.kube.resources import EXEC, RIGHTS
from aj.model.json import Json
from aj.net import refusal

SHOWN = 1000  # characters of an answer: a refusal of a manifest names each fault
# A program in a pod is asked for by a GET, and servers since 1.35 want the right to create it, too; when that is what
# is missing they give no reason.
_SILENT = re.compile(r"is forbidden:?\s*\Z")
_RIGHT = re.compile(r'User "(?P<user>[^"]*)" cannot (?P<verb>\w+) resource')


@dataclass(frozen=True)
class Asked:
    """What was asked. `doing` completes "could not …"; `resource` is what the right is about."""

    doing: str
    verb: str
    resource: str
    namespace: str | None
    user: str
    changes: bool = False


@dataclass(frozen=True)
class Said:
    """The server's own words."""

    message: str
    reason: str | None = None
    causes: tuple[str, ...] = ()


def error(asked: Asked, status: int, headers: Mapping[str, str], body: bytes, now: float) -> AjError:
    """Return the error that an answer of 300 or more stands for. `now` is in seconds since the epoch."""
    said = _said(body, status)
    details = _details(said, status, headers, now)
    what = f"could not {asked.doing}: {said.message}"
    if status == 408 or status >= 500:
        if asked.changes:
            return OutcomeUnknown(f"whether it worked to {asked.doing} is not known: {said.message}", details=details)
        return Unavailable(what, details=details)
    if status == 401:
        hint = f"sign in again as your cluster wants it (user {asked.user} of the kubeconfig)"
        return AuthError(f"could not {asked.doing}: the cluster does not accept who we are", hint=hint, details=details)
    if status == 403:
        return _forbidden(asked, said, what, details)
    if status == 404:
        return NotFound(what, hint=_missing_kind(asked, said), details=details)
    if status == 409:
        code = "exists" if said.reason == "AlreadyExists" else "conflict"
        return Refused(what, code=code, details=details)
    if status == 410:
        return Unavailable(what, code="expired", details=details)
    if status == 429:
        asked_s = details.get("retry_after_s")
        pause = f"it asks to wait {units.duration(asked_s)}" if isinstance(asked_s, float) else None
        return Unavailable(what, hint=pause, code="throttled", details=details)
    if status < 400:
        return RemoteError(f"could not {asked.doing}: a redirect was not followed", code="redirect", details=details)
    return Refused(what, code="invalid", details=details)


def no_right(verb: str, resource: str, namespace: str | None, user: str) -> Refused:
    """Say which right is missing, and which ones a job needs of this kind."""
    where = f" in namespace {namespace}" if namespace else ""
    needed = next((f"{kind}: {', '.join(verbs)}" for kind, verbs in RIGHTS if kind == resource), None)
    hint = f"ask the cluster's owner for {needed}" if needed else "ask the cluster's owner for it"
    return Refused(f"no right to {verb} {resource}{where} as user {user}", code="forbidden", hint=hint)


def is_silence(problem: AjError) -> bool:
    """Tell whether a cluster gave no answer at all, or none that settles anything."""
    return isinstance(problem, Unavailable | OutcomeUnknown)


def status_of(problem: AjError) -> int | None:
    """Return the HTTP status that an error came from, or None when there was no answer."""
    return refusal.status_of(problem)


def _forbidden(asked: Asked, said: Said, what: str, details: Mapping[str, object]) -> Refused:
    found = _RIGHT.search(said.message)
    if found is not None:
        problem = no_right(found["verb"], asked.resource, asked.namespace, found["user"] or asked.user)
    elif asked.resource == EXEC and _SILENT.search(said.message):
        problem = no_right("create", EXEC, asked.namespace, asked.user)
    else:  # the rights are there; a rule of the cluster is against it
        return Refused(what, code="admission", details=details)
    problem.details.update(details)
    return problem


def _missing_kind(asked: Asked, said: Said) -> str | None:
    """Tell an object that is not there from a kind that the cluster does not know."""
    if said.reason == "NotFound" and "could not find the requested resource" not in said.message:
        return None
    return f"does the cluster have Volcano? it knows no {asked.resource}" if "volcano.sh" in asked.resource else None


def _details(said: Said, status: int, headers: Mapping[str, str], now: float) -> dict[str, object]:
    found: dict[str, object] = {
        "status": status,
        "remote_code": said.reason,
        "retry_after_s": refusal.retry_after_s(headers, now),
        "causes": said.causes or None,
        "audit_id": headers.get("audit-id"),
    }
    return {name: value for name, value in found.items() if value is not None}


def _said(body: bytes, status: int) -> Said:
    try:
        found: Json = json.loads(body)
    except (ValueError, RecursionError):
        page = _line(text.decoded(body[: 4 * SHOWN]))[:SHOWN]
        return Said(page or f"status {status}")
    if not isinstance(found, Mapping):
        return Said(f"status {status}")
    message, reason = found.get("message"), found.get("reason")
    inner = found.get("details")
    causes = inner.get("causes") if isinstance(inner, Mapping) else None
    told = tuple(_cause(item) for item in causes if isinstance(item, Mapping)) if isinstance(causes, list) else ()
    words = _line(str(message))[:SHOWN] if message else f"status {status}"
    return Said(words, str(reason) if reason else None, told)


def _cause(item: Mapping[str, Json]) -> str:
    return _line(": ".join(str(item[key]) for key in ("field", "message") if item.get(key)))[:SHOWN]


def _line(words: str) -> str:
    return " ".join(redact.text(text.visible(words)).split())
