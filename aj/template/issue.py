"""One finding about a template: how grave, where, what, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import cast

from aj.base.errors import AjError, Place, TemplateError
from aj.base.noun import dataclass
from aj.model.json import Json


class Level(StrEnum):
    """How grave a finding is. A note asks for nothing."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Issue:
    """A finding. `path` is the value's path below `config`, empty when it is about the whole file."""

    level: Level
    message: str
    place: Place | None = None
    path: str = ""
    hint: str | None = None
    code: str = "bad-template"

    @property
    def is_error(self) -> bool:
        return self.level is Level.ERROR

    def json(self) -> dict[str, Json]:
        """Return the finding as machines read it; an unknown line is null."""
        place = self.place
        return {
            "level": self.level.value,
            "code": self.code,
            "file": place.file if place else None,
            "line": (place.line or None) if place else None,
            "column": (place.column or None) if place else None,
            "path": self.path,
            "message": self.message,
            "hint": self.hint,
        }

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


def error(message: str, place: Place | None = None, *, path: str = "", hint: str | None = None) -> Issue:
    """Make a finding that stops a submission."""
    return Issue(Level.ERROR, message, place, path, hint)


def warning(
    message: str, place: Place | None = None, *, path: str = "", hint: str | None = None, code: str = "template"
) -> Issue:
    """Make a finding that is told and does not stop."""
    return Issue(Level.WARNING, message, place, path, hint, code)


def note(message: str, place: Place | None = None, *, path: str = "", hint: str | None = None) -> Issue:
    """Make a remark."""
    return Issue(Level.NOTE, message, place, path, hint, "note")


def said(message: str, hint: str | None) -> str:
    """Write a finding with its hint in one line."""
    return f"{message}; {hint}" if hint else message


def distinct(issues: Iterable[Issue]) -> list[Issue]:
    """Drop findings that say the same of the same place, and keep the order."""
    return list({(issue.level, issue.place, issue.message): issue for issue in issues}.values())


def fatal(issues: Sequence[Issue]) -> TemplateError:
    """Make one error of several findings: it speaks as the first and carries them all in `details`."""
    first = next(issue for issue in issues if issue.is_error)
    details: dict[str, object] = {"issues": [issue.json() for issue in issues], "path": first.path}
    return TemplateError(first.message, hint=first.hint, place=first.place, details=details)


def stop_at_errors(issues: Sequence[Issue]) -> None:
    """Raise TemplateError when any of the findings is an error."""
    if any(issue.is_error for issue in issues):
        raise fatal(issues)


def of_error(raised: AjError) -> list[Issue]:
    """Return the findings that an error carries: all of `fatal`, or the one that any other error is."""
    carried = raised.details.get("issues")
    if not isinstance(carried, list):
        return [Issue(Level.ERROR, raised.message, raised.place, str(raised.details.get("path", "")), raised.hint)]
    return [_of_json(cast(Mapping[str, Json], item)) for item in carried]


def _of_json(item: Mapping[str, Json]) -> Issue:
    file = item["file"]
    place = Place(str(file), _number(item["line"]), _number(item["column"])) if file is not None else None
    hint = item["hint"]
    return Issue(
        Level(str(item["level"])),
        str(item["message"]),
        place,
        str(item["path"]),
        None if hint is None else str(hint),
        str(item["code"]),
    )


def _number(value: Json) -> int:
    return value if isinstance(value, int) else 0
