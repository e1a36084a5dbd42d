"""One YAML file to a tree of values that know their places.

The parser's events are read one by one and counted, so a file that would be too much is refused while it is
being read. Scalars follow the core schema of YAML 1.2: `yes`, `on`, `1:30` and `2024-01-01` are text.
Anchors, aliases and the merge key `<<` work within the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field, replace

import yaml

from aj.base.errors import Place, TemplateError
from aj.base.noun import dataclass
from aj.template import issue
from aj.template.issue import Issue
from aj.template.tree import Items, Node, Plain, Scalar, Section, Unset, Value

MAX_BYTES = 1024 * 1024  # the largest template of hands is a hundredth of it
MAX_NESTING = 100
MAX_NODES = 10_000  # after alias expansion; a merge of that many takes tens of milliseconds
MAX_DIGITS = 300  # more than any number means; Python refuses to read thousands

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CORE = "tag:yaml.org,2002:"
_WORDS: dict[str, Plain] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_TAGGED: dict[str, tuple[type, ...]] = {
    _CORE + "null": (type(None),),
    _CORE + "bool": (bool,),
    _CORE + "int": (int,),
    _CORE + "float": (int, float),
}
_WHOLE = r"[-+]?[0-9]+\Z|0o[0-7]+\Z|0x[0-9a-fA-F]+\Z"
_FLOAT = r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z"
_ENDLESS = r"[-+]?\.(inf|Inf|INF)\Z|\.(nan|NaN|NAN)\Z"
_SURROGATE = "[\ud800-\udfff]"  # the parser without libyaml lets `"\\ud800"` through
_UNREADABLE = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
_TOO_NESTED = f"nested deeper than {MAX_NESTING} levels, the limit"
UNSET_HINT = "write `!unset ` with a space after it"


@dataclass(frozen=True)
class Document:
    """What one file holds: its root (None when empty), its size in nodes, and what is wrong inside it."""

    root: Node | None
    nodes: int
    faults: tuple[Issue, ...]


def read(data: bytes, file: str) -> Document:
    """Read one file. Raises TemplateError where reading cannot go on; smaller faults are collected."""
    if len(data) > MAX_BYTES:
        raise TemplateError(f"the file has more than {MAX_BYTES} bytes, the limit of a template", place=Place(file))
    text = _decoded(data, file)
    builder = _Builder(file)
    try:
        return builder.document(yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        raise _syntax(error, text, file) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # The parser without libyaml lets an impossible character code or version number through as these.
        raise TemplateError(f"not YAML: {error}", place=Place(file)) from error


def _decoded(data: bytes, file: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # the codec counts from after a byte order mark
        before = data.removeprefix(b"\xef\xbb\xbf")[: error.start].decode("utf-8", "replace")
        raise TemplateError("not UTF-8", place=_at(before, file), hint="save the file as UTF-8") from error
    if found := re.search(_UNREADABLE, text):
        place = _at(text[: found.start()], file)
        raise TemplateError(f"the character U+{ord(found[0]):04X} may not stand in YAML", place=place)
    return text


def _at(before: str, file: str) -> Place:
    """The place right after some text."""
    return Place(file, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


def _syntax(error: yaml.MarkedYAMLError, text: str, file: str) -> TemplateError:
    mark = error.problem_mark or error.context_mark
    place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file)
    lines = text.splitlines()
    line = lines[mark.line] if mark and mark.line < len(lines) else ""
    problem = " ".join(part for part in (error.problem, error.context) if part)
    if "nesting depth" in problem:  # libyaml has a limit of its own, and looks so far ahead that it speaks first
        return TemplateError(_TOO_NESTED, place=place)
    if "\t" in line[: place.column] and ("cannot start any token" in problem or "tab" in problem):
        return TemplateError("a tab cannot indent", place=place, hint="indent with spaces")
    hint = UNSET_HINT if re.search(r"!unset[^\s]", line) else None
    return TemplateError(f"not YAML: {problem}", place=place, hint=hint or _mend(problem, error, file))


def _mend(problem: str, error: yaml.MarkedYAMLError, file: str) -> str:
    """Say where to look: what the parser complains of is often the end of something that began earlier."""
    began = error.context_mark.line + 1 if error.context_mark else None
    if began and ("flow" in problem or "quoted" in problem):
        return f"close what begins on line {began}: a bracket, a brace or a quote"
    if "mapping values are not allowed" in problem:
        return (
            'quote a value with `: ` in it, as in `name: "a: b"`, and see that keys of one mapping begin in one column'
        )
    since = f", from line {began} on" if began and error.problem_mark and began != error.problem_mark.line + 1 else ""
    return f"look at the indentation and at quotes up to here{since}; a value that begins with a sign is quoted"


@dataclass(frozen=True)
class _Made:
    """A finished node, its size with aliases written out, and how deep it goes."""

    node: Node
    size: int
    height: int


@dataclass
class _Builder:
    """Turns events into nodes, and counts."""

    file: str
    nodes: int = 0
    faults: list[Issue] = field(default_factory=list)
    anchors: dict[str, _Made] = field(default_factory=dict)
    open_anchors: set[str] = field(default_factory=set)

    def document(self, events: Iterator[yaml.Event]) -> Document:
        next(events)  # the start of the stream
        if isinstance(next(events), yaml.StreamEndEvent):
            return Document(None, 0, ())
        made = self.value(next(events), events, depth=1, key=None)
        next(events)  # the end of the document
        following = next(events)
        if not isinstance(following, yaml.StreamEndEvent):
            raise TemplateError("a second document begins", place=self.place(following), hint="one file, one document")
        if isinstance(made.node, Unset):
            self.fault("`!unset` removes a key of a mapping", made.node.place)
        return Document(made.node, made.size, tuple(self.faults))

    def place(self, event: yaml.Event) -> Place:
        mark = event.start_mark
        return Place(self.file, mark.line + 1, mark.column + 1) if mark else Place(self.file)

    def fault(self, message: str, place: Place, hint: str | None = None) -> None:
        self.faults.append(issue.error(message, place, hint=hint))

    def value(self, event: yaml.Event, events: Iterator[yaml.Event], *, depth: int, key: str | None) -> _Made:
        """Make one node of its first event and those that follow. `key` is the key it stands under."""
        place = self.place(event)
        if isinstance(event, yaml.AliasEvent):
            return self.counted(self.alias(str(event.anchor), place), place, depth)
        if not isinstance(event, yaml.NodeEvent):
            raise TemplateError("a value is due", place=place)
        anchor = event.anchor
        if anchor is not None:
            self.open_anchors.add(anchor)
        self.counted(_Made(Scalar(None, "", place), 1, 1), place, depth)
        if isinstance(event, yaml.ScalarEvent):
            made = _Made(self.scalar(event, place), 1, 1)
        elif isinstance(event, yaml.SequenceStartEvent):
            made = self.items(event.tag, events, place, depth)
        else:
            made = self.section(getattr(event, "tag", None), events, place, depth, key)
        if anchor is not None:
            self.open_anchors.discard(anchor)
            self.anchors[anchor] = made
        return made

    def counted(self, made: _Made, place: Place, depth: int) -> _Made:
        self.nodes += made.size
        if self.nodes > MAX_NODES:
            raise TemplateError(f"more than {MAX_NODES} values (aliases count in full), the limit", place=place)
        if depth + made.height - 1 > MAX_NESTING:
            raise TemplateError(_TOO_NESTED, place=place)
        return made

    def alias(self, name: str, place: Place) -> _Made:
        if name in self.open_anchors:
            raise TemplateError(f"`*{name}` stands inside what it names", place=place)
        if name not in self.anchors:
            raise TemplateError(f"nothing is called `&{name}` above", place=place)
        return self.anchors[name]

    def scalar(self, event: yaml.ScalarEvent, place: Place) -> Node:
        text, tag = event.value, event.tag
        is_plain = not event.style
        if not text.isascii() and re.search(_SURROGATE, text):
            self.fault("half of a surrogate pair is no character", place)
        if tag == "!unset":
            if text or not is_plain:
                self.fault("`!unset` takes no value", place, "write `key: !unset ` to remove the key")
            return Unset(place)
        if tag == "!replace":
            self.fault("`!replace` stands before a list or a mapping; a single value replaces by itself", place)
            return Scalar(text, text, place)
        if tag is None and is_plain:
            return Scalar(self.core(text, place), text, place)
        if tag in (None, "!", _CORE + "str"):
            return Scalar(text, text, place, inset=1 if tag is None and event.style in ("'", '"') else None)
        return Scalar(self.tagged(text, tag, place), text, place)

    def core(self, text: str, place: Place) -> Plain:
        """Read a plain scalar by the core schema."""
        if text in _WORDS:
            return _WORDS[text]
        if re.match(_WHOLE, text):
            return self.whole(text, place)
        if re.match(_FLOAT, text):
            number = float(text)
            if number in (float("inf"), float("-inf")):
                self.fault(f"`{text[:40]}` is too large a number", place, "put it in quotes if it is text")
                return text
            return number
        if re.match(_ENDLESS, text):
            self.fault(f"`{text}` is no value of a template", place, "put it in quotes if it is text")
        return text

    def whole(self, text: str, place: Place) -> Plain:
        if len(text) > MAX_DIGITS:
            self.fault(f"a number of {len(text)} digits is too long", place, "put it in quotes if it is text")
            return text
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        return int(text, base)

    def tagged(self, text: str, tag: str, place: Place) -> Plain:
        """Read a scalar with a tag of the core schema, as `!!int 3`."""
        kinds: dict[str, tuple[type, ...]] = {
            "null": (type(None),),
            "bool": (bool,),
            "int": (int,),
            "float": (int, float),
        }
        due = kinds.get(tag.removeprefix(_CORE)) if tag.startswith(_CORE) else None
        if due is None:
            self.unknown_tag(tag, place)
            return text
        value = self.core(text, place)
        if not isinstance(value, due) or (isinstance(value, bool) and bool not in due):
            self.fault(f"`{text}` is no !!{tag.removeprefix(_CORE)}", place)
        return value

    def unknown_tag(self, tag: str, place: Place) -> None:
        hint = UNSET_HINT if tag.startswith("!unset") else "templates know `!replace` and `!unset `"
        self.fault(f"unknown tag `{tag.replace(_CORE, '!!')}`", place, hint)

    def replaces(self, tag: str | None, due: str, place: Place) -> bool:
        """Tell whether a list or mapping bears `!replace`; note any other tag that does not fit."""
        if tag == "!unset":
            self.fault("`!unset` takes no value", place, "write `key: !unset ` to remove the key")
        elif tag not in (None, "!", "!replace", _CORE + due):
            self.unknown_tag(tag, place)
        return tag == "!replace"

    def items(self, tag: str | None, events: Iterator[yaml.Event], place: Place, depth: int) -> _Made:
        found: list[_Made] = []
        values: list[Value] = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            made = self.value(event, events, depth=depth + 1, key=None)
            if isinstance(made.node, Unset):
                self.fault("`!unset` removes a key of a mapping, not an item of a list", made.node.place)
                continue
            found.append(made)
            values.append(made.node)
        node = Items(tuple(values), place, self.replaces(tag, "seq", place))
        return _Made(node, 1 + sum(made.size for made in found), 1 + max((made.height for made in found), default=0))

    def section(
        self, tag: str | None, events: Iterator[yaml.Event], place: Place, depth: int, key: str | None
    ) -> _Made:
        own: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        merged: Section | None = None
        size, height = 1, 1
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            is_merge = isinstance(event, yaml.ScalarEvent) and event.value == "<<" and not event.style
            name, key_size = self.key(event, events, depth + 1, numbers=key == "sku")
            made = self.value(next(events), events, depth=depth + 1, key=name)
            size, height = size + key_size + made.size, max(height, made.height + 1)
            if name is None:
                continue
            if name in keys:
                words = f"`{name}` stands twice in one mapping, first on line {keys[name].line}"
                self.fault(words, self.place(event), "join the two, or remove one")
                continue
            keys[name] = self.place(event)
            if is_merge:
                merged = self.merge_key(made.node, keys[name])
            else:
                own[name] = made.node
        node = Section(own, place, keys, self.replaces(tag, "map", place))
        return _Made(_beneath(node, merged), size, height)

    def key(
        self, event: yaml.Event, events: Iterator[yaml.Event], depth: int, *, numbers: bool
    ) -> tuple[str | None, int]:
        """Read a key; None when it cannot be one, which is then a fault. With `numbers` whole numbers may be."""
        made = self.value(event, events, depth=depth, key=None)
        node = made.node
        if not isinstance(node, Scalar):
            self.fault("a key is text", self.place(event))
            return None, made.size
        is_number = isinstance(node.value, int) and not isinstance(node.value, bool)
        if not isinstance(node.value, str) and not (numbers and is_number):
            self.fault(f"the key `{node.raw or 'null'}` is no text", node.place, f'write "{node.raw}":')
        return node.raw, made.size

    def merge_key(self, node: Node, place: Place) -> Section | None:
        """Read what `<<` names: a mapping, or several of which the first wins."""
        parts = node.items if isinstance(node, Items) else (node,)
        entries: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        for part in parts:
            if not isinstance(part, Section):
                self.fault("`<<` takes a mapping or a list of mappings", place)
                return None
            for name, item in part.entries.items():
                if name not in entries:
                    entries[name], keys[name] = item, part.key_place(name)
        return Section(entries, place, keys)


def _beneath(own: Section, merged: Section | None) -> Section:
    """Put the entries of a merge key below a mapping's own: own ones win and come after."""
    keys = {name: place for name, place in own.keys.items() if name in own.entries}
    if merged is None:
        return replace(own, keys=keys)
    below = {name: item for name, item in merged.entries.items() if name not in own.entries}
    return replace(own, entries={**below, **own.entries}, keys={**{name: merged.keys[name] for name in below}, **keys})
