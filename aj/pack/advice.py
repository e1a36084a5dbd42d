"""What a user should hear about ignore patterns: those that mean nothing, and the `!` ones that can never act."""

from __future__ import annotations

from collections.abc import Iterator

from aj.base import text
from aj.model.code import CodeWarning
from aj.pack import glob
from aj.pack.glob import SLASH, Token, Wild
from aj.pack.ignore import BUILT_IN_NAMES, PROJECT, SCRIPTS, Rule, Rules

_ANY = frozenset(range(256))
_SKIP = object()  # the next two tokens may be left out together
_Step = Token | object


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
        return (
            f"has no effect: the folder `{text.cell(text.decoded(parent))}` is excluded by `{shown(by)}`, "
            "and nothing below an excluded folder comes back"
        )
    before = [earlier for earlier in rules.chosen[:index] if not earlier.is_negative]
    if any(_meet(rule, earlier) for earlier in before):
        return None
    folder = next((earlier for earlier in reversed(before) if earlier.folders_only), None)
    if folder:
        return f"cannot act inside `{shown(folder)}`: nothing below an excluded folder comes back"
    return "has no effect: no pattern before it excludes such a path"


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
    left, right = _steps(one), _steps(other)
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


def _steps(rule: Rule) -> list[_Step]:
    tokens = rule.glob.tokens or (frozenset(),)
    found: list[_Step] = []
    for token in (Wild.FOLDERS, *tokens) if rule.glob.by_name else tokens:
        found += [_SKIP, Wild.DEEP, SLASH] if token is Wild.FOLDERS else [token]
    return found


def _onward(left: list[_Step], right: list[_Step], i: int, j: int) -> Iterator[tuple[int, int]]:
    yield from ((at, j) for at in _for_nothing(left, i))
    yield from ((i, at) for at in _for_nothing(right, j))
    if i < len(left) and j < len(right) and _bytes(left[i]) & _bytes(right[j]):
        yield (i + (not isinstance(left[i], Wild)), j + (not isinstance(right[j], Wild)))


def _for_nothing(steps: list[_Step], at: int) -> tuple[int, ...]:
    """Where one may go from a step without a byte of the path."""
    if at == len(steps):
        return ()
    if steps[at] is _SKIP:
        return (at + 1, at + 3)
    return (at + 1,) if isinstance(steps[at], Wild) else ()


def _bytes(step: _Step) -> frozenset[int]:
    if isinstance(step, frozenset):
        return step
    if step is Wild.STAR:
        return _ANY - SLASH
    return _ANY if step is Wild.DEEP else frozenset()
