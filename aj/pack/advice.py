"""What a user should hear about ignore patterns: those that mean nothing, and the `!` ones that can never act."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from aj.base import text
from aj.model.code import CodeWarning
from aj.pack import glob
from aj.pack.glob import Token, Wild
from aj.pack.ignore import BUILT_IN_NAMES, PROJECT, SCRIPTS, Rule, Rules


class _Step(NamedTuple):
    """One step over a path: the bytes it takes (a bit each), how often, and how far one may go on without."""

    takes: int
    repeats: bool = False
    for_nothing: tuple[int, ...] = ()


_ANY = (1 << 256) - 1
_SLASH = _Step(1 << ord("/"))
_STAR = _Step(_ANY & ~_SLASH.takes, True, (1,))
_DEEP = _Step(_ANY, True, (1,))
_SKIP = _Step(0, False, (1, 3))  # what comes next, whole folders and a slash, may be left out
_END = _Step(0)


def about(rules: Rules) -> list[CodeWarning]:
    """Return one warning for each pattern that does not do what its writer may think."""
    found = []
    for index, rule in enumerate(rules.chosen):
        if rule.glob.flaw:
            found.append(_warn(rule, "bad-pattern", f"pattern `{shown(rule)}` {rule.glob.flaw}"))
        elif rule.is_negative and (reason := _idle(rules, index)):
            found.append(_warn(rule, "idle-negation", f"`{shown(rule)}` {reason}"))
    return found


def shown(rule: Rule) -> str:
    """Write a pattern so that it can stand on a terminal."""
    return text.cell(text.decoded(rule.text))


def _warn(rule: Rule, code: str, message: str) -> CodeWarning:
    return CodeWarning(code, message, rule.source, rule.line or None)


def _idle(rules: Rules, index: int) -> str | None:
    """Say why a negation can never bring anything back, or None when it can."""
    rule = rules.chosen[index]
    if name := _built_in(rule):
        return f"has no effect: `{text.decoded(name)}` always stays out"
    if found := _excluded_parent(rules, rule):
        parent, by = found
        path = text.cell(text.decoded(parent))
        return (
            f"has no effect: the folder `{path}` is excluded by `{shown(by)}`, and nothing below an excluded folder "
            f"comes back: {_instead(by, path)}"
        )
    before = [earlier for earlier in rules.chosen[:index] if not earlier.is_negative]
    if any(_meet(rule, earlier) for earlier in before):
        return None
    folder = next((earlier for earlier in reversed(before) if earlier.folders_only), None)
    if folder:
        instead = _instead(folder, shown(folder).strip("/"))
        return f"cannot act inside `{shown(folder)}`: nothing below an excluded folder comes back: {instead}"
    return "has no effect: no pattern before it excludes such a path"


def _instead(by: Rule, folder: str) -> str:
    """Say what to write so that a folder is empty but for what comes back."""
    if shown(by).strip("/") == folder:
        return f"write `{folder}/*` in its place"
    return f"write `!{folder}/` and `{folder}/*` before this line"


def _names(rule: Rule) -> list[bytes | None]:
    """The components of a pattern; None for one that is not a plain name."""
    return [
        b"".join(bytes(token) for token in part if not isinstance(token, Wild))
        if all(not isinstance(token, Wild) and len(token) == 1 for token in part)
        else None
        for part in glob.components(rule.glob.tokens or ())
    ]


def _built_in(rule: Rule) -> bytes | None:
    names = _names(rule)
    if names[0] == PROJECT and names[1:2] in ([], [SCRIPTS]):
        names = names[2:]  # the one place in the project folder that is not excluded for good
    return next((name for name in names if name in BUILT_IN_NAMES), None)


def _excluded_parent(rules: Rules, rule: Rule) -> tuple[bytes, Rule] | None:
    """The nearest folder to the root on the plain part of a pattern that is excluded, and by which rule."""
    if rule.glob.by_name:
        return None
    folder = rules.root()
    for name in _names(rule)[:-1]:
        if name is None:
            return None
        deciding = folder.decide(name, is_folder=True, built_in=name != PROJECT)
        if deciding is not None and not rules.all[deciding].is_negative:
            return folder.prefix + name, rules.all[deciding]
        folder = folder.below(name)
    return None


def _meet(one: Rule, other: Rule) -> bool:
    """Whether some path fits both patterns: a walk over both at once."""
    both_by_name = one.glob.by_name and other.glob.by_name
    left, right = _steps(one, bare=both_by_name), _steps(other, bare=both_by_name)
    seen = set()
    pending = [(0, 0)]
    while pending:
        at = pending.pop()
        if at in seen:
            continue
        if at == (len(left), len(right)):
            return True
        seen.add(at)
        pending += _onward(left, right, *at)
    return False


def _steps(rule: Rule, *, bare: bool) -> list[_Step]:
    """Write a pattern as steps over a path, or over a name alone when that is `bare`."""
    tokens: tuple[Token, ...] = rule.glob.tokens or (frozenset(),)
    if rule.glob.by_name and not bare:
        tokens = (Wild.FOLDERS, *tokens)
    found: list[_Step] = []
    for token in tokens:
        found += [_SKIP, _DEEP, _SLASH] if token is Wild.FOLDERS else [_step(token)]
    return found


def _step(token: Token) -> _Step:
    if isinstance(token, Wild):
        return _DEEP if token is Wild.DEEP else _STAR
    return _Step(sum(1 << code for code in token))


def _onward(left: list[_Step], right: list[_Step], i: int, j: int) -> Iterator[tuple[int, int]]:
    one = left[i] if i < len(left) else _END
    other = right[j] if j < len(right) else _END
    yield from ((i + width, j) for width in one.for_nothing)
    yield from ((i, j + width) for width in other.for_nothing)
    if one.takes & other.takes:
        yield (i + (not one.repeats), j + (not other.repeats))
