"""A JSON object that a service answered, read field by field.

A field that is absent or null is None; one of another kind than expected is an error that names it,
never a guess. Fields that nobody asks for are passed over: a service may add some on any day.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from aj.base.errors import OutcomeUnknown, RemoteError
from aj.base.noun import dataclass
from aj.model.json import Json
from aj.net.http import Request, Response


@dataclass(frozen=True)
class Document:
    """One object; `what` names it in errors, `at` is the way to it from the top."""

    values: Mapping[str, Json]
    what: str
    at: str = ""

    def text(self, *path: str) -> str | None:
        """Return a text, or None. Raises RemoteError when something else stands there."""
        value = self._value(path)
        if value is None or isinstance(value, str):
            return value
        raise self._unfit(path, "a text")

    def need_text(self, *path: str) -> str:
        """Return a text that is there and not empty. Raises RemoteError."""
        return self.text(*path) or self._missing(path)

    def whole(self, *path: str) -> int | None:
        """Return a whole number, or None. Raises RemoteError when something else stands there."""
        value = self._value(path)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._unfit(path, "a whole number")
        return value

    def number(self, *path: str) -> float | None:
        """Return a number, or None. Raises RemoteError when something else stands there."""
        value = self._value(path)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._unfit(path, "a number")
        return float(value)

    def flag(self, *path: str) -> bool | None:
        """Return true or false, or None. Raises RemoteError when something else stands there."""
        value = self._value(path)
        if value is None or isinstance(value, bool):
            return value
        raise self._unfit(path, "true or false")

    def inner(self, *path: str) -> Document:
        """Return an object; an empty one when it is absent. Raises RemoteError when something else stands there."""
        value = self._value(path)
        if value is not None and not isinstance(value, Mapping):
            raise self._unfit(path, "an object")
        return Document(value or {}, self.what, self._way(path))

    def each(self, *path: str) -> tuple[Document, ...]:
        """Return the objects of a list; none when it is absent. Raises RemoteError when something else stands there."""
        value = self._value(path)
        if value is None:
            return ()
        if not isinstance(value, list | tuple):
            raise self._unfit(path, "a list")
        found = []
        for number, item in enumerate(value):
            if not isinstance(item, Mapping):
                raise self._unfit((*path, str(number)), "an object")
            found.append(Document(item, self.what, self._way((*path, str(number)))))
        return tuple(found)

    def words(self, *path: str) -> tuple[str, ...]:
        """Return the texts of a list; none when it is absent. Raises RemoteError when something else stands there."""
        value = self._value(path)
        if value is None:
            return ()
        if not isinstance(value, list | tuple):
            raise self._unfit(path, "a list")
        for item in value:
            if not isinstance(item, str):
                raise self._unfit(path, "a list of texts")
        return tuple(str(item) for item in value)

    def texts(self, *path: str) -> dict[str, str]:
        """Return the texts of an object by name, nulls left out. Raises RemoteError as the others."""
        inner = self.inner(*path)
        return {name: text for name in inner.values if (text := inner.text(name)) is not None}

    def _value(self, path: tuple[str, ...]) -> Json:
        value: Json = self.values
        for depth, name in enumerate(path):
            if value is None:
                return None
            if not isinstance(value, Mapping):
                raise self._unfit(path[:depth], "an object")
            value = value.get(name)
        return value

    def _way(self, path: tuple[str, ...]) -> str:
        return ".".join(part for part in (self.at, *path) if part)

    def _unfit(self, path: tuple[str, ...], due: str) -> RemoteError:
        return RemoteError(f"{self.what}: `{self._way(path)}` is not {due}", code="bad-answer")

    def _missing(self, path: tuple[str, ...]) -> str:
        raise RemoteError(f"{self.what}: `{self._way(path)}` is missing", code="bad-answer")


def of(response: Response, request: Request) -> Document:
    """Read the answer to a question. Raises RemoteError when it is no JSON object."""
    what = f"the answer to `{request.doing}`"
    try:
        value: Json = json.loads(response.body)
    except (ValueError, RecursionError):
        raise RemoteError(f"{what} is not JSON", code="bad-answer") from None
    if not isinstance(value, Mapping):
        raise RemoteError(f"{what} is not a JSON object", code="bad-answer")
    return Document(value, what)


def of_change(response: Response, request: Request) -> Document:
    """Read the answer to a change. Raises OutcomeUnknown when it is no JSON object: the change may have happened."""
    try:
        return of(response, request)
    except RemoteError as error:
        details = {"status": response.status, "request_id": response.header("x-ms-request-id")}
        words = f"whether it worked to {request.doing} is not known: {error.message}"
        raise OutcomeUnknown(words, details=details) from error
