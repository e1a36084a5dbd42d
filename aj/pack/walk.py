"""The walk through a tree that selects its code: rules first, so that what is left out is never looked at.

Folders are listed in byte order; an excluded folder is not entered. No file is opened: a selection knows names,
sizes and times only. Whatever cannot be packed (a link out of the tree, a pipe, a file that may not be read) is
gathered and told at once.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import field, replace
from operator import attrgetter
from pathlib import Path

from aj.base import text, units
from aj.base.clock import SYSTEM, Clock
from aj.base.errors import UserError
from aj.base.noun import dataclass
from aj.model.code import CodePlan, CodeWarning
from aj.pack import ignore, links, offence, scripts, sources
from aj.pack.explain import Explanation, explain
from aj.pack.ignore import PROJECT, SCRIPTS, Folder, Rules
from aj.pack.links import Fate
from aj.pack.offence import Ground, Offence
from aj.pack.selection import (
    FOLDER,
    KIND_SHIFT,
    LINK,
    REGULAR,
    WIDTH,
    Selection,
    column,
    facts_of,
    need_files,
    shown,
)

__all__ = ["Explanation", "Selection", "explain", "need_files", "select"]

RESERVED = b"aj_runner.sh"
MANY_BYTES = 1 << 30  # from here on packing is felt, and data has mostly slipped in
MANY_FILES = 50_000
TOLD_AT_MOST = 20  # of one kind of warning
NAMED = 5  # files in one warning about several
_EFFECTIVE = os.access in os.supports_effective_ids
_REASONS = {
    Fate.ABSOLUTE: "is a link to `{}`, and an absolute path is another one elsewhere",
    Fate.OUTSIDE: "is a link to `{}`, out of the code root",
    Fate.MISSING: "is a link to `{}`, which is not selected or does not exist",
    Fate.LOOP: "is a link to `{}`, which leads back to itself",
}
_NO_FACTS = (0,) * (WIDTH - 1)
_FOLDER_FACTS = (FOLDER << KIND_SHIFT, *_NO_FACTS)
_LINK_FACTS = (LINK << KIND_SHIFT, *_NO_FACTS)
_PLAIN = 0o170444  # the bits that tell a file which everybody may read, so nobody needs to be asked
_PLAIN_FILE = 0o100444


@dataclass(frozen=True)
class _Stretch:
    """Files of one folder in a row, and the folder that comes after them: its name and its place on the disk."""

    paths: list[bytes]
    facts: list[int]
    below: tuple[bytes, bytes] | None = None


@dataclass
class _Walk:
    plan: CodePlan
    rules: Rules
    paths: list[bytes] = field(default_factory=list)
    facts: list[int] = field(default_factory=list)
    targets: dict[bytes, bytes] = field(default_factory=dict)
    excluded: list[tuple[bytes, int]] = field(default_factory=list)
    noticed: list[bytes] = field(default_factory=list)
    offences: list[Offence] = field(default_factory=list)
    folders: int = 0
    scripts: bytes | None = None  # where the project's scripts are, when they travel

    def run(self) -> None:
        self.scripts = scripts.travelling(self.plan, self.rules)
        root = self.rules.root()
        pending = [(root, self._stretches(root, os.fsencode(self.plan.root)))]
        while pending:
            folder, stretches = pending[-1]
            for stretch in stretches:
                self.paths += stretch.paths
                self.facts += stretch.facts
                if stretch.below is not None:
                    pending.append(self._enter(folder, *stretch.below))
                    break
            else:
                pending.pop()

    def _enter(self, folder: Folder, name: bytes, place: bytes) -> tuple[Folder, Iterator[_Stretch]]:
        below = folder.below(name)
        self.folders += 1
        self.paths.append(below.prefix)
        self.facts += _FOLDER_FACTS
        if self.scripts is None or below.prefix != PROJECT + b"/":
            return below, self._stretches(below, place)
        if os.path.islink(self.scripts) and self.plan.scripts is None:
            return below, iter([_Stretch(*self._look(below.prefix, place, [SCRIPTS]))])
        return below, iter([_Stretch([], [], (SCRIPTS, self.scripts))])

    def _stretches(self, folder: Folder, place: bytes) -> Iterator[_Stretch]:
        """List what no rule excludes in a folder, in byte order, a folder's name counting with its slash."""
        try:
            files, folders = self._list(folder, place)
            paths, facts = self._look(folder.prefix, place, sorted(files))
        except OSError as error:
            if not folder.prefix:
                raise _no_root(self.plan, f"cannot be listed: {error.strerror}") from error
            self.offend(folder.prefix, f"cannot be listed: {error.strerror}", Ground.PERMISSION)
            return
        if self.scripts is not None and not folder.prefix:
            folders.append((PROJECT + b"/", os.path.dirname(self.scripts)))
        start = 0
        for name, below in sorted(folders):
            end = bisect_left(paths, folder.prefix + name, start)
            yield _Stretch(paths[start:end], facts[start * WIDTH : end * WIDTH], (name[:-1], below))
            start = end
        yield _Stretch(paths[start:], facts[start * WIDTH :])

    def _list(self, folder: Folder, place: bytes) -> tuple[list[bytes], list[tuple[bytes, bytes]]]:
        """Part the names that stay in into folders, with their places, and all else. Raises OSError."""
        names, starts, ends, name_hit = folder.names, folder.starts, folder.ends, folder.name_hit
        path_hit, prefix = folder.path_hit, folder.prefix
        files: list[bytes] = []
        folders: list[tuple[bytes, bytes]] = []
        with os.scandir(place) as entries:
            for entry in entries:
                name = entry.name
                is_folder = entry.is_dir(follow_symlinks=False)
                if (
                    name in names
                    or ((name[0] in starts or name[-1] in ends) and name_hit(name))
                    or (path_hit is not None and path_hit(prefix + name))
                ) and self._is_out(folder, name, is_folder=is_folder):
                    continue
                if is_folder:
                    folders.append((name + b"/", entry.path))
                else:
                    files.append(name)
        return files, folders

    def _is_out(self, folder: Folder, name: bytes, *, is_folder: bool) -> bool:
        index = folder.excluding(name, is_folder=is_folder)
        if index is not None:
            self.excluded.append((folder.prefix + name, index))
            return True
        if sources.WATCHED.has(name) and not is_folder:
            self.noticed.append(folder.prefix + name)
        return False

    def _look(self, prefix: bytes, place: bytes, names: list[bytes]) -> tuple[list[bytes], list[int]]:
        """Learn the facts of entries of one folder. What cannot be packed is noted, not returned."""
        paths: list[bytes] = []
        facts: list[int] = []
        handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in names:
                try:
                    status = os.stat(name, dir_fd=handle, follow_symlinks=False)
                    if status.st_mode & _PLAIN == _PLAIN_FILE or self._may_read(prefix, name, status.st_mode, handle):
                        paths.append(prefix + name)
                        facts += facts_of(status)
                    elif status.st_mode >> KIND_SHIFT == LINK:
                        self.targets[prefix + name] = os.readlink(name, dir_fd=handle)
                        paths.append(prefix + name)
                        facts += _LINK_FACTS
                except OSError as error:
                    self._miss(prefix + name, error)
        finally:
            os.close(handle)
        return paths, facts

    def _may_read(self, prefix: bytes, name: bytes, mode: int, handle: int) -> bool:
        """Whether it is a file that we may read. What is neither that nor a link is an offence."""
        kind = mode >> KIND_SHIFT
        if kind == REGULAR:
            if os.access(name, os.R_OK, dir_fd=handle, effective_ids=_EFFECTIVE):
                return True
            self.offend(prefix + name, "may not be read", Ground.PERMISSION)
        elif kind != LINK:
            self.offend(prefix + name, f"is {offence.kind(mode)}", Ground.KIND)
        return False

    def _miss(self, path: bytes, error: OSError) -> None:
        """Note an entry that cannot be looked at. One that went since the listing is not part of the tree."""
        if not isinstance(error, FileNotFoundError):
            self.offend(path, f"cannot be looked at: {error.strerror}", Ground.PERMISSION)

    def offend(self, path: bytes, reason: str, ground: Ground) -> None:
        self.offences.append(Offence(path, reason, ground))


def select(plan: CodePlan, cache_dir: Path | None = None, *, clock: Clock = SYSTEM) -> Selection:
    """Select the code of a tree. `cache_dir` is where what is known of contents is kept between calls.

    Raises UserError for a root that is no folder, and for entries that cannot be packed.
    """
    if not os.path.isdir(plan.root):
        raise _no_root(plan, "is not a folder")
    taken_at_ns = int(clock.now() * 1e9)
    found = sources.read(plan)
    walk = _Walk(plan, found.rules)
    walk.run()
    warnings = [*found.warnings, *_about_links(walk), *_about_names(walk), *_about_secrets(walk, found.ignore_file)]
    if plan.reserved and any(path in (RESERVED, RESERVED + b"/") for path in walk.paths):
        walk.offend(RESERVED, "has the name of a file that is added to the archive", Ground.KIND)
    if walk.offences:
        raise offence.error(sorted(walk.offences, key=attrgetter("path")), found.ignore_file)
    selection = Selection(
        plan=plan,
        paths=walk.paths,
        facts=column(walk.facts),
        targets=walk.targets,
        folders=walk.folders,
        rules=found.rules,
        excluded=sorted(walk.excluded),
        ignore_file=found.ignore_file,
        warnings=tuple(warnings),
        taken_at_ns=taken_at_ns,
        cache_dir=cache_dir,
    )
    return replace(selection, warnings=(*warnings, *_about_size(selection)))


def _no_root(plan: CodePlan, why: str) -> UserError:
    return UserError(f"the code root {shown(os.fsencode(plan.root))} {why}", code="no-code-root")


def _about_links(walk: _Walk) -> list[CodeWarning]:
    """Judge the links: one that leaves the tree is an offence or a note, one that leads nowhere is a warning."""
    if not walk.targets:
        return []
    selected = frozenset(walk.paths)
    found = []
    for path, target in walk.targets.items():
        boundary = scripts.PREFIX if walk.plan.scripts and path.startswith(scripts.PREFIX) else b""
        fate = links.fate(path, walk.targets, selected, boundary=boundary)
        reason = _REASONS.get(fate, "").format(shown(target))
        if fate.leaves and walk.plan.strict_links:
            walk.offend(path, reason, Ground.LINK)
        elif reason:
            found.append(
                CodeWarning(f"link-{fate}", f"`{shown(path)}` {reason}; the link is kept as it is", shown(path))
            )
    return _some(found, "links")


def _some(warnings: list[CodeWarning], noun: str) -> list[CodeWarning]:
    """Keep a screen of warnings of one kind and count the rest."""
    rest = len(warnings) - TOLD_AT_MOST
    if rest <= 0:
        return warnings
    return [*warnings[:TOLD_AT_MOST], CodeWarning(warnings[0].code, f"and {rest} more {noun} like these")]


def _about_names(walk: _Walk) -> list[CodeWarning]:
    nested = []
    for path in sorted(walk.noticed):
        if path.rpartition(b"/")[2] in ignore.FILE_NAMES and b"/" in path:
            told = f"{shown(path)} is not read: only an ignore file in the code root counts"
            nested.append(CodeWarning("ignore-file-not-read", told, shown(path)))
    return _some(nested, "ignore files")


def _about_secrets(walk: _Walk, ignore_file: str | None) -> list[CodeWarning]:
    """Name the files that are mostly secrets, all in one warning with the lines that leave them out."""
    found = {path: line for path in sorted(walk.noticed) if (line := sources.private_pattern(path.rpartition(b"/")[2]))}
    if not found:
        return []
    names = [f"`{shown(path)}`" for path in found]
    rest = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    lines = ", ".join(f"`{shown(line)}`" for line in dict.fromkeys(found.values()))
    verb = "looks like a secret and travels" if len(names) == 1 else "look like secrets and travel"
    told = f"{', '.join(names[:NAMED])}{rest} {verb} with the code; {lines} in {ignore_file or '.codeignore'} keeps "
    return [CodeWarning("private-file", told + ("it here" if len(names) == 1 else "them here"))]


def _about_size(selection: Selection) -> list[CodeWarning]:
    if selection.bytes <= MANY_BYTES and selection.files <= MANY_FILES:
        return []
    what = f"{text.plural(selection.files, 'file')}, {units.size(selection.bytes)}"
    return [CodeWarning("large-code", f"the code is large: {what}; the largest: {selection.in_words()}")]
