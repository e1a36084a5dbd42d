"""Two layers of a template to one: which value wins, and where each came from.

Dictionaries merge by key; lists with a dictionary in either merge by index; other lists join; single values
and mixed kinds: the upper one. Null never overrides. `!replace` takes the place of what is below, `!unset`
takes a key away. Both marks stay in the tree until `finished`, so a base that replaces or removes does so to
everything that is merged before it, in whatever file that stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import cast

from aj.base.errors import Place
from aj.template import issue
from aj.template.issue import Issue
from aj.template.tree import Items, Node, Rule, Section, Unset, Value, is_null, kind, step

# Keys that may be one kind or another by design: a change of kind there is no accident.
_EITHER = frozenset({"sku", "command"})


def merge(lower: Section, upper: Section, notes: list[Issue]) -> Section:
    """Merge two layers of `config`. What looks like an accident is added to `notes`."""
    if upper.replaces:
        return cast(Section, _over(lower, upper, Rule.REPLACE))
    return _sections(lower, upper, "", notes)


def finished(node: Section, notes: list[Issue]) -> Section:
    """Take removed keys out of a merged tree; a removal that met nothing is added to `notes`."""
    entries: dict[str, Node] = {}
    for key, item in node.entries.items():
        mark = item if isinstance(item, Unset) else item.after
        if mark is not None and not mark.hit:
            notes.append(
                issue.warning(f"`!unset` of `{key}`, which no lower layer has", mark.place, code="unset-nothing")
            )
        if not isinstance(item, Unset):
            entries[key] = _finished(item, notes)
    return replace(node, entries=entries)


def _finished(node: Value, notes: list[Issue]) -> Value:
    if isinstance(node, Section):
        return finished(node, notes)
    if isinstance(node, Items):
        return replace(node, items=tuple(_finished(item, notes) for item in node.items))
    return node


def _sections(lower: Section, upper: Section, path: str, notes: list[Issue]) -> Section:
    entries: dict[str, Node] = dict(lower.entries)
    keys = dict(lower.keys)
    for key, item in upper.entries.items():
        below = entries.get(key)
        value = _at_key(below, item, step(path, key), notes)
        if isinstance(value, Unset) or value.after is not None:
            entries.pop(key, None)  # a key that was removed stands last when it comes back
        if value is not below:
            keys[key] = upper.key_place(key)
        entries[key] = value
    return replace(lower, entries=entries, keys=keys, place=upper.place)


def _at_key(below: Node | None, item: Node, path: str, notes: list[Issue]) -> Node:
    """Merge what two layers say at one key."""
    if isinstance(item, Unset):
        hit = below is not None and not (isinstance(below, Unset) and not below.hit)
        return Unset(item.place, hit)
    # directly below `config` a value is simply set; further down it joins a mapping that was there
    rule = Rule.MERGE if "." in path or "[" in path else Rule.SET
    if below is None:
        return _attached(item, rule)
    if isinstance(below, Unset):
        return replace(_attached(item, rule), after=item.after or below)
    if item.after is not None:
        return replace(_over(below, item, Rule.OVERRIDE), after=replace(item.after, hit=True))
    if is_null(item):
        return below
    if is_null(below):
        return replace(_attached(item, rule), after=below.after)
    return _merged(below, item, path, notes)


def _merged(below: Value, item: Value, path: str, notes: list[Issue]) -> Value:
    """Merge two values that are both there."""
    if isinstance(item, Section | Items) and item.replaces:
        return replace(_over(below, item, Rule.REPLACE), after=below.after)
    if isinstance(below, Section) and isinstance(item, Section):
        return _sections(below, item, path, notes)
    if isinstance(below, Items) and isinstance(item, Items):
        return _lists(below, item, path, notes)
    _note_kinds(below, item, path, notes)
    return replace(_over(below, item, Rule.OVERRIDE), after=below.after)


def _note_kinds(below: Value, item: Value, path: str, notes: list[Issue]) -> None:
    if type(below) is type(item) or path.rpartition(".")[2] in _EITHER:
        return
    where = f"{PurePath(below.place.file).name}:{below.place.line}"
    message = f"`{path}` is {kind(item)} here and {kind(below)} in the layer below ({where})"
    notes.append(issue.warning(message, item.place, path=path, code="mixed-kinds"))


def _lists(below: Items, item: Items, path: str, notes: list[Issue]) -> Items:
    if not any(isinstance(one, Section) for one in (*below.items, *item.items)):
        joined = tuple(_attached(one, Rule.JOIN) for one in item.items)
        return replace(below, items=below.items + joined, place=item.place)
    common = zip(below.items, item.items)
    merged = [_at_index(one, other, step(path, at), notes) for at, (one, other) in enumerate(common)]
    added = [_attached(one, Rule.INDEX) for one in item.items[len(below.items) :]]
    return replace(below, items=(*merged, *below.items[len(item.items) :], *added), place=item.place)


def _at_index(below: Value, item: Value, path: str, notes: list[Issue]) -> Value:
    """Merge two items that stand at one index of lists that hold dictionaries."""
    if is_null(item):
        return below
    if isinstance(below, Section) and isinstance(item, Section) and not item.replaces:
        return _sections(below, item, path, notes)
    if isinstance(item, Section) and item.replaces:
        return _over(below, item, Rule.REPLACE)
    if not is_null(below):
        _note_kinds(below, item, path, notes)
    return _over(below, item, Rule.INDEX)


def _attached(node: Value, rule: Rule) -> Value:
    """Say of every value below that it came by this rule, unless it already came by another within its layer."""
    return _each_leaf(node, lambda leaf: replace(leaf, rule=rule) if leaf.rule is Rule.SET else leaf)


def _over(below: Value, item: Value, rule: Rule) -> Value:
    """Put a value over another and let it remember what it hides."""
    hidden = _hidden(below)
    kept = {Rule.REPLACE, Rule.OVERRIDE}
    return _each_leaf(
        item,
        lambda leaf: replace(leaf, rule=leaf.rule if leaf.rule in kept else rule, hidden=leaf.hidden + hidden),
    )


def _hidden(below: Value) -> tuple[Place, ...]:
    return () if is_null(below) else (below.place, *below.hidden)


def _each_leaf(node: Value, change: Callable[[Value], Value]) -> Value:
    """Change every value that holds no other, and share what did not change."""
    if isinstance(node, Section) and node.entries:
        entries = {
            key: item if isinstance(item, Unset) else _each_leaf(item, change) for key, item in node.entries.items()
        }
        return replace(node, entries=entries) if _changed(entries, node.entries) else node
    if isinstance(node, Items) and node.items:
        items = tuple(_each_leaf(item, change) for item in node.items)
        return replace(node, items=items) if any(a is not b for a, b in zip(items, node.items)) else node
    return change(node)


def _changed(entries: Mapping[str, Node], before: Mapping[str, Node]) -> bool:
    return any(entries[key] is not before[key] for key in entries)
