"""A selection: the entries of a tree that are code, in byte order of their paths, with what is known of each.

The facts stand in columns, not in objects, because a tree may have a hundred thousand files. Paths are bytes,
relative to the root, as they stand in the archive: a folder ends in a slash.
"""

from __future__ import annotations

import heapq
import os
from array import array
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, TypeAlias

from aj.base import text, units
from aj.base.errors import UserError
from aj.model.code import CodePlan, CodeWarning
from aj.pack import advice, ignore, scripts
from aj.pack.ignore import Rules

Name: TypeAlias = bytes  # within Selection, `bytes` is the size of its files
WIDTH = 5  # facts of one entry: mode, size, mtime_ns, ctime_ns, inode; only the mode for folders and links
REGULAR, FOLDER, LINK = 0o10, 0o04, 0o12  # what stands above the permission bits of a mode
KIND_SHIFT = 12
facts_of = attrgetter("st_mode", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")


class Kind(StrEnum):
    """What an entry is."""

    FILE = "file"
    FOLDER = "directory"
    LINK = "link"


KINDS = {REGULAR: Kind.FILE, FOLDER: Kind.FOLDER, LINK: Kind.LINK}


class Member(NamedTuple):
    """One selected entry. A folder's path ends in a slash; `target` is empty but for links."""

    path: bytes
    kind: Kind
    size: int
    executable: bool
    target: bytes = b""

    @property
    def shown(self) -> str:
        return shown(self.path)


def shown(path: bytes) -> str:
    """Write a path so that it can stand on a terminal: what is not printable UTF-8 is escaped."""
    return text.cell(text.decoded(path))


@dataclass(frozen=True, eq=False)
class Selection:
    """What was selected, at the moment `taken_at_ns`. Nothing was opened for it.

    `excluded` holds the entries that were left out, each with the index of its rule; what lies below an
    excluded folder does not appear.
    """

    plan: CodePlan
    paths: Sequence[Name]
    facts: array[int]
    targets: Mapping[Name, Name]
    folders: int
    rules: Rules
    excluded: Sequence[tuple[Name, int]]
    ignore_file: str | None
    warnings: tuple[CodeWarning, ...]
    taken_at_ns: int
    cache_dir: Path | None = None

    @property
    def files(self) -> int:
        """How many regular files there are."""
        return len(self.paths) - self.folders - self.links

    @property
    def links(self) -> int:
        return len(self.targets)

    @cached_property
    def regular(self) -> Sequence[int]:
        """The indexes of the files among all entries."""
        return [index for index, mode in enumerate(self.facts[::WIDTH]) if mode >> KIND_SHIFT == REGULAR]

    @cached_property
    def bytes(self) -> int:
        """The size of all files together."""
        return sum(self.facts[1::WIDTH])

    @cached_property
    def members(self) -> tuple[Member, ...]:
        return tuple(self.member(index) for index in range(len(self.paths)))

    def member(self, index: int) -> Member:
        mode, size = self.facts[index * WIDTH : index * WIDTH + 2]
        path = self.paths[index]
        return Member(path, KINDS[mode >> KIND_SHIFT], size, bool(mode & 0o100), self.targets.get(path, b""))

    def largest(self, count: int) -> list[Member]:
        """Return the largest files, the largest first; of equal ones the first in byte order."""
        sizes = self.facts[1::WIDTH]
        return [self.member(index) for index in heapq.nlargest(count, self.regular, key=sizes.__getitem__)]

    @cached_property
    def names(self) -> Set[Name]:
        return frozenset(self.paths)

    def has(self, path: Name) -> bool:
        """Tell whether a path (relative to the root) is selected, whatever its kind."""
        return path in self.names or path + b"/" in self.names

    @property
    def excluded_top(self) -> tuple[str, ...]:
        """The names in the root that are left out, for the user to see."""
        kept = {ignore.PROJECT} if ignore.PROJECT + b"/" in self.names else set()
        return tuple(shown(path) for path, _ in self.excluded if b"/" not in path and path not in kept)

    @property
    def patterns(self) -> int:
        """How many patterns of the template and the ignore file hold."""
        return len(self.rules.chosen)

    @cached_property
    def _base(self) -> Name:
        return os.fsencode(self.plan.root) + b"/"

    def place(self, path: Name) -> Name:
        """Return where a selected entry is on the disk."""
        return self._base + path if self.plan.scripts is None else scripts.place(self.plan, path)

    def in_words(self, count: int = 5) -> str:
        """Name the largest files with their sizes, for a warning or an error."""
        return ", ".join(f"`{file.shown}` {units.size(file.size)}" for file in self.largest(count))


def column(facts: Sequence[int]) -> array[int]:
    """Pack facts as 64-bit numbers; an inode above them (some network file systems) loses its top bit."""
    try:
        return array("q", facts)
    except OverflowError:
        return array("q", [fact & 0x7FFF_FFFF_FFFF_FFFF if fact > 0 else fact for fact in facts])


def need_files(selection: Selection) -> None:
    """Refuse a selection without a file. Raises UserError with the rule that left out most."""
    if selection.files or selection.links:
        return
    hint = "`aj code stats --list-all` shows what is left out; what needs no file runs by `aj job local/host -- CMD`"
    raise UserError(f"no files selected in {selection.plan.root}{_why_none(selection)}", code="no-files", hint=hint)


def _why_none(selection: Selection) -> str:
    counts: dict[int, int] = {}
    for _, index in selection.excluded:
        counts[index] = counts.get(index, 0) + 1
    if not counts:
        return ": the folder is empty"
    most = max(counts, key=lambda index: counts[index])
    rule = selection.rules.all[most]
    where = f" of {rule.source}{f':{rule.line}' if rule.line else ''}" if not rule.is_built_in else " (built-in)"
    return f": `{advice.shown(rule)}`{where} left out {text.plural(counts[most], 'entry', 'entries')}"


def excluded_paths(selection: Selection) -> Iterator[tuple[str, str, int | None, str]]:
    """Give each entry left out: its path, and the source, line and pattern that decided."""
    for path, index in selection.excluded:
        rule = selection.rules.all[index]
        yield shown(path), rule.source, rule.line or None, advice.shown(rule)
