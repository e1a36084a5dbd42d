"""Errors as they cross the socket: a status, and a document with a type from a closed list.

A traceback never crosses. A type that this release does not know becomes a plain AjError with its
words kept, and an error that nobody foresaw arrives as Unexpected, which ends a command with 70.
"""

from __future__ import annotations

from collections.abc import Mapping

from aj.base import errors
from aj.base.errors import AjError, Place
from aj.model.json import Json
from aj.model.ticket import Fault

SCHEMA_VERSION = 1
_KINDS = {kind.__name__: kind for kind in errors.KINDS}
_STATUS: tuple[tuple[type[AjError], int], ...] = (
    (errors.UserError, 422),
    (errors.AuthError, 401),
    (errors.NotFound, 404),
    (errors.Refused, 409),
    (errors.OutcomeUnknown, 504),
    (errors.TimedOut, 504),
    (errors.DaemonError, 503),
    (errors.Unavailable, 503),
    (errors.RemoteError, 502),
)


class Unexpected(AjError):
    """The daemon met an error that nobody foresaw; its log has the rest."""

    exit_code = errors.EXIT_UNEXPECTED
    default_code = "unexpected"


class Malformed(errors.UserError):
    """A request that is not one: bad HTTP, bad JSON, a bad header."""

    default_code = "bad-request"

    def __init__(self, message: str, *, status: int = 400, hint: str | None = None, code: str | None = None) -> None:
        super().__init__(message, hint=hint, code=code)
        self.status = status


def status_of(error: AjError) -> int:
    """Return the HTTP status by which an error crosses."""
    if isinstance(error, Malformed):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def type_of(error: AjError) -> str:
    """Return the name under which an error crosses: its own, or that of its nearest known parent."""
    known = (kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _KINDS)
    return Unexpected.__name__ if isinstance(error, Unexpected) else next(known, AjError.__name__)


def fault(error: AjError) -> Fault:
    """Return an error as it is kept and sent."""
    details: dict[str, Json] = {name: _plain(value) for name, value in error.details.items()}
    if error.place is not None:
        details |= {"file": error.place.file, "line": error.place.line, "column": error.place.column}
    return Fault(type_of(error), error.code, error.message, error.hint, details)


def _plain(value: object) -> Json:
    """Return a detail as JSON has it; what has no JSON form is written out."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return str(value)


def error(kept: Fault) -> AjError:
    """Return the error that a kept or sent one stands for, in its own class."""
    details: dict[str, object] = dict(kept.details)
    place = _place(details)
    kind = Unexpected if kept.type == Unexpected.__name__ else _KINDS.get(kept.type, AjError)
    return kind(kept.message, hint=kept.hint, code=kept.code, place=place, details=details)


def _place(details: dict[str, object]) -> Place | None:
    """Take the place out of the details, where a template or setting is to blame."""
    file, line, column = details.get("file"), details.get("line"), details.get("column")
    if not (isinstance(file, str) and isinstance(line, int) and isinstance(column, int)):
        return None
    for name in ("file", "line", "column"):
        del details[name]
    return Place(file, line, column)


def document(error: AjError) -> dict[str, Json]:
    """Return the error document, as it crosses and as a command prints it."""
    kept = fault(error)
    return {
        "schema_version": SCHEMA_VERSION,
        "error": {
            "type": kept.type,
            "code": kept.code,
            "message": kept.message,
            "hint": kept.hint,
            "retryable": error.retryable,
            "details": dict(kept.details),
        },
    }


def from_document(value: object) -> AjError | None:
    """Read an error document; None when it is something else."""
    found = value.get("error") if isinstance(value, Mapping) else None
    if not isinstance(found, Mapping):
        return None
    details, hint = found.get("details"), found.get("hint")
    return error(
        Fault(
            str(found.get("type", AjError.__name__)),
            str(found.get("code", AjError.default_code)),
            str(found.get("message", "")),
            hint if isinstance(hint, str) else None,
            dict(details) if isinstance(details, Mapping) else {},
        )
    )
