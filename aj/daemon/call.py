"""One decoded call, as a route sees it: who is asked, about what, with which words and body."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import field
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl, unquote_to_bytes

from aj.base.errors import UserError
from aj.base.noun import dataclass
from aj.base.paths import NO_PROJECT, Project
from aj.daemon.engine import Engine
from aj.daemon.front import Reply, Request
from aj.daemon.stream import Line
from aj.wire import codec, paths
from aj.wire.errors import Malformed
from aj.wire.paths import Route

T = TypeVar("T")
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?\Z", re.ASCII)
_WHOLE = re.compile(r"[0-9]{1,9}\Z", re.ASCII)


@dataclass(frozen=True)
class Streaming:
    """An answer that goes on until either side hangs up."""

    pieces: Generator[bytes, None, None]


Answer = Reply | Streaming


@dataclass(frozen=True)
class Call:
    """What one request asks, decoded."""

    engine: Engine
    route: Route
    segments: tuple[str, ...]
    query: Mapping[str, str]
    project: Project | None
    body: bytes
    line: Line
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The one segment that most paths have: a ticket, a key, the id of a job."""
        return self.segments[0]

    @property
    def key(self) -> str:
        """The name of the caller's project in the state directory."""
        return self.project.key if self.project else NO_PROJECT

    def decode(self, kind: type[T]) -> T:
        """Read the body strictly; an empty one is `{}`. Raises Malformed on bad JSON, else UserError with the path."""
        try:
            value = codec.parse(self.body) if self.body else {}
        except UserError as error:
            raise Malformed(error.message, code=error.code) from error
        return codec.load(kind, value, where="body")

    def seconds(self, name: str, default_s: float = 0.0) -> float:
        """Read a number of seconds from the query. Raises UserError."""
        word = self.query.get(name)
        if word is None:
            return default_s
        if not _SECONDS.match(word):
            raise UserError(f"query.{name}: {word!r} is not a number of seconds", code="bad-field")
        return float(word)

    def whole(self, name: str, default: int) -> int:
        """Read a whole number from the query. Raises UserError."""
        word = self.query.get(name)
        if word is None:
            return default
        if not _WHOLE.match(word):
            raise UserError(f"query.{name}: {word!r} is not a whole number", code="bad-field")
        return int(word)

    def flag(self, name: str) -> bool:
        """Read a yes-or-no from the query: 1 or 0. Raises UserError."""
        word = self.query.get(name, "0")
        if word not in ("0", "1"):
            raise UserError(f"query.{name}: {word!r} is neither 0 nor 1", code="bad-field")
        return word == "1"

    def words(self, name: str, kind: type[T]) -> tuple[T, ...]:
        """Read comma-separated words of an enum from the query. Raises UserError."""
        given = self.query.get(name)
        if not given:
            return ()
        return tuple(codec.load(kind, word, where=f"query.{name}") for word in given.split(","))


def reply(value: object, status: int = 200) -> Reply:
    """Return a message as an answer."""
    return Reply(status, codec.dump(value))


Handler = Callable[[Call], Answer]


def query(request: Request, route: Route) -> dict[str, str]:
    """Read the query of a request. Raises UserError on a word that the route does not know or that stands twice."""
    pairs = parse_qsl(request.query, keep_blank_values=True)
    found = dict(pairs)
    unknown = sorted(found.keys() - set(route.query))
    if unknown:
        raise UserError(f"query.{unknown[0]}: unknown field", code="bad-field")
    if len(found) != len(pairs):
        raise UserError("query: a word stands twice", code="bad-field")
    return found


def project(request: Request) -> Project | None:
    """Read which project a request is about. Raises Malformed when it is not a folder that can be read."""
    word = request.headers.get(paths.PROJECT)
    if not word:
        return None
    path = Path(os.fsdecode(unquote_to_bytes(word)))
    if "\0" in str(path) or not path.is_absolute():
        raise Malformed(f"{paths.PROJECT}: {word[:200]!r} is not an absolute path")
    if not path.is_dir():
        raise Malformed(f"the project directory {path} does not exist", code="no-project")
    if not os.access(path, os.R_OK | os.X_OK):
        raise Malformed(f"the project directory {path} cannot be read", code="no-project")
    return Project(path)
