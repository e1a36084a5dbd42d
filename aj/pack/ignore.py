"""Which paths stay out: the built-in names, then the template's patterns, then the lines of one ignore file.

The meaning of a pattern is git's. The last rule that matches decides; nothing below an excluded folder comes
back. The built-in names stand after all others, so nothing brings them back either. Questions are asked folder
by folder: each folder knows the few rules that can still match in it, and most names are cleared by one look
into a dictionary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cached_property

from aj.base.noun import dataclass
from aj.model.code import IgnoreLine
from aj.pack import glob
from aj.pack.glob import Glob

PROJECT = b".azure_jobs"
SCRIPTS = b"scripts"
BUILT_IN_NAMES = (b".git", b".venv", b"node_modules", b"__pycache__", PROJECT)
BUILT_IN = "built-in"
FILE_NAMES = (b".codeignore", b".amltignore")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Rule:
    """One pattern and where it stands. `text` is the pattern as written."""

    text: bytes
    source: str
    line: int
    is_negative: bool
    folders_only: bool
    glob: Glob

    @property
    def is_built_in(self) -> bool:
        return self.source == BUILT_IN

    def matches(self, path: bytes, *, is_folder: bool) -> bool:
        """Tell whether the rule speaks of this path (relative to the root, no slash at the end)."""
        if self.glob.tokens is None or (self.folders_only and not is_folder):
            return False
        subject = path.rpartition(b"/")[2] if self.glob.by_name else path
        return self.glob.compiled.fullmatch(subject) is not None


def parse(text: bytes, source: str, line: int) -> Rule:
    """Read one line that is neither blank nor a comment."""
    negative = text.startswith(b"!")
    body = text[1:] if negative else text
    folders_only = body.endswith(b"/")
    return Rule(text, source, line, negative, folders_only, glob.read(body[:-1] if folders_only else body))


def lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Give the patterns of an ignore file with their line numbers: no byte order mark, blank line or comment."""
    for number, line in enumerate(data.removeprefix(_BOM).split(b"\n"), start=1):
        if line.startswith(b"#"):
            continue
        text = _without_final_spaces(line.removesuffix(b"\r").partition(b"\0")[0])
        if text:
            yield number, text


def _without_final_spaces(line: bytes) -> bytes:
    """Drop the spaces at the end; one that a backslash holds stays, with all before it."""
    start: int | None = None
    at = 0
    while at < len(line):
        if line[at] == ord(" "):
            start = at if start is None else start
        else:
            at += line[at] == ord("\\")
            start = None
        at += 1
    return line if start is None else line[:start]


def of_file(data: bytes, source: str) -> list[Rule]:
    """Read the rules of an ignore file."""
    return [parse(text, source, number) for number, text in lines(data)]


def of_template(patterns: Iterable[IgnoreLine]) -> list[Rule]:
    """Read the rules of a template. A pattern of several lines is several patterns."""
    found = []
    for pattern in patterns:
        file, _, number = pattern.place.rpartition(":")
        known = number.isdecimal()
        source, first = (file, int(number)) if known else (pattern.place, 0)
        for offset, text in lines(pattern.pattern.encode("utf-8", "surrogateescape")):
            found.append(parse(text, source, first + offset - 1 if known else 0))
    return found


def line_for(path: bytes, *, is_folder: bool = False) -> bytes:
    """Write the pattern that takes this path. A line break in a name, which no line can hold, becomes `?`."""
    escaped = re.sub(rb"([\\*?\[])", rb"\\\1", path)
    escaped = re.sub(rb"[\r\n\0]", b"?", escaped)
    if escaped.endswith(b" ") and not is_folder:
        escaped = escaped[:-1] + b"\\ "
    return b"/" + escaped + (b"/" if is_folder else b"")


@dataclass(frozen=True)
class Watched:
    """Names that a walk wants to look at although no rule speaks of them."""

    names: frozenset[bytes] = frozenset()
    suffixes: tuple[bytes, ...] = ()
    prefixes: tuple[bytes, ...] = ()

    def has(self, name: bytes) -> bool:
        return name in self.names or name.endswith(self.suffixes) or name.startswith(self.prefixes)


NOTHING = Watched()


class Rules:
    """All rules in order, the built-in ones last. A rule is named by its index."""

    def __init__(self, chosen: Sequence[Rule], *, watched: Watched = NOTHING) -> None:
        self.chosen = tuple(chosen)
        built_in = tuple(Rule(name, BUILT_IN, 0, False, False, glob.read(name)) for name in BUILT_IN_NAMES)
        self.all = (*self.chosen, *built_in)
        self._watched = watched

    @cached_property
    def named(self) -> dict[bytes, tuple[int, ...]]:
        """Rules for one exact name at any depth, the last rule first."""
        found: dict[bytes, list[int]] = {}
        for index, rule in enumerate(self.all):
            if rule.glob.by_name and rule.glob.is_literal:
                found.setdefault(rule.glob.literal, []).insert(0, index)
        return {name: tuple(indexes) for name, indexes in found.items()}

    @cached_property
    def names(self) -> frozenset[bytes]:
        return frozenset((*self.named, *self._watched.names))

    @cached_property
    def suffixed(self) -> tuple[tuple[int, bytes], ...]:
        """Rules for the end of a name, the last rule first."""
        found = [(index, rule.glob.suffix) for index, rule in enumerate(self.all)]
        return tuple((index, suffix) for index, suffix in reversed(found) if suffix is not None)

    @cached_property
    def by_name(self) -> tuple[int, ...]:
        """Rules for a name that need a regular expression, the last rule first."""
        return tuple(
            index
            for index in reversed(range(len(self.all)))
            if (read := self.all[index].glob).by_name
            and read.tokens is not None
            and not read.is_literal
            and read.suffix is None
        )

    @cached_property
    def by_path(self) -> tuple[int, ...]:
        """Rules for whole paths, the last rule first."""
        return tuple(
            index
            for index in reversed(range(len(self.all)))
            if not self.all[index].glob.by_name and self.all[index].glob.tokens is not None
        )

    @cached_property
    def globs(self) -> tuple[Glob, ...]:
        """Patterns of the names that some rule by name, or the caller, may care for."""
        own = (rule.glob for rule in self.all if rule.glob.by_name and not rule.glob.is_literal)
        ends = (glob.ending(suffix) for suffix in self._watched.suffixes)
        begins = (glob.beginning(prefix) for prefix in self._watched.prefixes)
        return (*(read for read in own if read.tokens is not None), *ends, *begins)

    @cached_property
    def edges(self) -> Edges:
        return _edges(self.globs)

    @cached_property
    def name_pattern(self) -> re.Pattern[bytes]:
        return _whole([read.source for read in self.globs])

    def root(self) -> Folder:
        """Return the questions to ask in the root folder."""
        return Folder(self, b"", self.by_path)


def _whole(sources: Sequence[bytes]) -> re.Pattern[bytes]:
    """One expression for any of these, matched whole; without any it matches nothing."""
    return glob.compile_once(b"(?:%b)\\Z" % (b"|".join(sources) or b"(?!)"))


Edges = tuple[frozenset[int], frozenset[int]]


def _edges(globs: Iterable[Glob]) -> Edges:
    """The first and the last bytes of names that are worth a closer look."""
    edges = [read.edges for read in globs]
    return frozenset().union(*(first for first, _ in edges)), frozenset().union(*(last for _, last in edges))


class Folder:
    """The rules as they stand within one folder. `prefix` is its path with a final slash, empty for the root.

    A walk asks of every name whether it is in `names`; if not, whether its first byte is in `starts` or its last
    in `ends`, and only then whether `name_hit` matches; and `path_hit` of the whole path, where there is one.
    Without a hit no rule speaks of the name.
    """

    def __init__(self, rules: Rules, prefix: bytes, alive: tuple[int, ...]) -> None:
        self.rules = rules
        self.prefix = prefix
        depth = prefix.count(b"/")
        self._alive = tuple(index for index in alive if _lives_below(rules.all[index].glob, prefix, depth))
        self._by_name, self._by_path = _resolve(rules, self._alive, prefix, depth)
        self.names: Set[bytes] = rules.names
        self.starts, self.ends = rules.edges
        self.name_hit = rules.name_pattern.match
        if self._by_name:
            self._add([read for _, read in self._by_name])
        whole = [rules.all[index].glob.source for index in self._by_path]
        self.path_hit = _whole(whole).match if whole else None

    def _add(self, more: Sequence[Glob]) -> None:
        """Let the rules for paths that end in this very folder be asked by name too."""
        self.names = self.rules.names | {read.literal for read in more if read.is_literal}
        globs = [read for read in more if not read.is_literal]
        if globs:
            starts, ends = _edges(globs)
            self.starts, self.ends = self.starts | starts, self.ends | ends
            self.name_hit = _whole([read.source for read in (*self.rules.globs, *globs)]).match

    def may_hit(self, name: bytes) -> bool:
        """Tell whether an entry of this folder is worth a closer look. The walk has this in its loop."""
        if name in self.names or (self.path_hit is not None and self.path_hit(self.prefix + name)):
            return True
        return (name[0] in self.starts or name[-1] in self.ends) and self.name_hit(name) is not None

    def below(self, name: bytes) -> Folder:
        """Return the questions to ask in a folder of this one."""
        return Folder(self.rules, self.prefix + name + b"/", self._alive)

    def decide(self, name: bytes, *, is_folder: bool, built_in: bool = True) -> int | None:
        """Return the index of the rule that decides about an entry of this folder, or None."""
        every = self.rules.all
        last = len(every) if built_in else len(self.rules.chosen)
        path = self.prefix + name

        def speaks(index: int) -> bool:
            return index < last and (is_folder or not every[index].folders_only)

        found = [next((index for index in self.rules.named.get(name, ()) if speaks(index)), -1)]
        found.append(next((at for at, end in self.rules.suffixed if name.endswith(end) and speaks(at)), -1))
        found.append(
            next((at for at in self.rules.by_name if speaks(at) and every[at].glob.compiled.fullmatch(name)), -1)
        )
        found.append(next((at for at, tail in self._by_name if speaks(at) and tail.compiled.fullmatch(name)), -1))
        found.append(next((at for at in self._by_path if speaks(at) and every[at].glob.compiled.fullmatch(path)), -1))
        best = max(found)
        return None if best < 0 else best

    def excluding(self, name: bytes, *, is_folder: bool) -> int | None:
        """Return the index of the rule that keeps an entry out, or None when it stays in."""
        found = self.decide(name, is_folder=is_folder)
        return None if found is None or self.rules.all[found].is_negative else found


def _lives_below(read: Glob, prefix: bytes, depth: int) -> bool:
    """Whether a path rule can match anything in this folder or deeper."""
    if not read.is_deep and read.slashes < depth:
        return False
    return prefix.startswith(read.literal) or read.literal.startswith(prefix)


def _resolve(
    rules: Rules, alive: Iterable[int], prefix: bytes, depth: int
) -> tuple[tuple[tuple[int, Glob], ...], tuple[int, ...]]:
    """Part the rules for paths that may match an entry of this folder: what they ask of its name, or of its path."""
    by_name: list[tuple[int, Glob]] = []
    by_path: list[int] = []
    for index in alive:
        read = rules.all[index].glob
        if read.slashes > depth or (not read.is_deep and read.slashes != depth):
            continue
        if read.split is None:
            by_path.append(index)
        elif read.split[0].fullmatch(prefix):
            by_name.append((index, read.split[1]))
    return tuple(by_name), tuple(by_path)
