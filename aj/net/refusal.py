"""An answer of 300 or more, as one of our errors: what was tried, what the service said, and what would help.

Status, the service's own code and its request id are kept as details. What a service says is passed
through redaction, since it may repeat what it was sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from aj.base import redact, text, units
from aj.base.errors import AjError, AuthError, NotFound, OutcomeUnknown, Refused, RemoteError, Unavailable
from aj.net.http import Request

SHOWN = 500  # characters of an answer that is not JSON: enough to know a proxy's page by
DETAILS = 3  # of error.details: the rest repeats them
# Statuses after which nobody can say whether a change happened.
VAGUE = frozenset({408, *range(500, 600)})
_RIGHTS = "ask its owner for a role that allows it"


class Unauthorized(AuthError):
    """The service did not accept the token. `challenge` is its WWW-Authenticate header."""

    def __init__(self, message: str, *, challenge: str | None, details: Mapping[str, object]) -> None:
        super().__init__(message, details=details)
        self.challenge = challenge


def error(
    request: Request, status: int, headers: Mapping[str, str], body: bytes, *, now: float, once: bool = False
) -> AjError:
    """Return the error that an answer stands for; `once` for a change, `now` in seconds since the epoch."""
    code, words = _said(body)
    details = _details(status, code, headers, now)
    what = f"could not {request.doing}: {_sentence(status, code, words)}"
    if status < 400:
        return RemoteError(f"could not {request.doing}: a redirect was not followed", code="redirect", details=details)
    if once and status in VAGUE:
        what = f"whether it worked to {request.doing} is not known: {_sentence(status, code, words)}"
        return OutcomeUnknown(what, details=details)
    if status == 401:
        return Unauthorized(what, challenge=headers.get("www-authenticate"), details=details)
    if status == 403:
        where = request.resource or request.origin.host
        return Refused(f"{what} (no right on {where})", code="forbidden", hint=_RIGHTS, details=details)
    if status == 404:
        return NotFound(what, details=details)
    if status in (409, 412):
        return Refused(what, code="conflict", details=details)
    if status in (408, 429) or status >= 500:
        asked_s = details.get("retry_after_s")
        hint = f"it asks to wait {units.duration(asked_s)}" if isinstance(asked_s, float) else None
        return Unavailable(what, hint=hint, details=details)
    return RemoteError(what, details=details)


def status_of(problem: AjError) -> int | None:
    """Return the HTTP status that an error came from, or None when there was no answer."""
    status = problem.details.get("status")
    return status if isinstance(status, int) else None


def said_by(problem: AjError) -> str | None:
    """Return the service's own code of an error, or None."""
    code = problem.details.get("remote_code")
    return code if isinstance(code, str) else None


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds a service asks to wait, given as a number or as a date; None when it asks for none."""
    word = headers.get("retry-after", "").strip()
    if not word:
        return None
    if word.isascii() and word.isdigit():
        return float(word)
    try:
        return max(0.0, parsedate_to_datetime(word).timestamp() - now)
    except ValueError:
        return None


def _details(status: int, code: str | None, headers: Mapping[str, str], now: float) -> dict[str, object]:
    request_id = headers.get("x-ms-request-id") or headers.get("x-ms-correlation-request-id")
    found = {
        "status": status,
        "remote_code": code,
        "request_id": request_id,
        "retry_after_s": retry_after_s(headers, now),
    }
    return {name: value for name, value in found.items() if value is not None}


def _sentence(status: int, code: str | None, words: str) -> str:
    return ": ".join(part for part in (code or f"status {status}", words) if part)


def _said(body: bytes) -> tuple[str | None, str]:
    """Return the service's code and its words in one line, secrets taken out."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None, _line(text.decoded(body[: 4 * SHOWN]))[:SHOWN]
    problem = found.get("error", found) if isinstance(found, dict) else None
    if not isinstance(problem, dict):
        # `{"error": "invalid_client", "error_description": "…"}`, as sign-in services answer
        described = found.get("error_description") if isinstance(found, dict) else None
        return (_line(str(problem)) if problem else None), _line(str(described or ""))[:SHOWN]
    code = problem.get("code")
    more = problem.get("details")
    parts = [problem.get("message"), *(_message(item) for item in (more if isinstance(more, list) else [])[:DETAILS])]
    return (_line(str(code)) if code else None), "; ".join(_line(str(part)) for part in parts if part)


def _message(item: object) -> object:
    return item.get("message") if isinstance(item, dict) else None


def _line(words: str) -> str:
    return " ".join(redact.text(text.visible(words)).split())
