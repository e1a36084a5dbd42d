"""Why a path is in the code or not: the source, line and pattern that decide."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from aj.base.errors import UserError
from aj.base.noun import dataclass
from aj.model.code import CodePlan
from aj.pack import advice, scripts, sources
from aj.pack.ignore import PROJECT, SCRIPTS, Rules
from aj.pack.selection import shown

DEFAULT = "default"
LINK = "link"


@dataclass(frozen=True)
class Explanation:
    """The verdict about one path.

    `source` is a template file, the ignore file, `built-in`, `default` when no pattern speaks of the path, or
    `link` when a folder above it is a link, which is packed as a link. `folder` is the folder above it that
    decided, if one did.
    """

    path: str
    included: bool
    source: str = DEFAULT
    line: int | None = None
    pattern: str | None = None
    folder: str | None = None


def explain(plan: CodePlan, paths: Sequence[str]) -> list[Explanation]:
    """Explain paths, also missing ones; relative ones start at the root. Raises UserError for one outside."""
    rules = sources.read(plan).rules
    return [_explain(plan, rules, path) for path in paths]


def _explain(plan: CodePlan, rules: Rules, path: str) -> Explanation:
    parts = _parts(plan, path)
    spelled = shown(b"/".join(parts)) or "."
    folder = rules.root()
    verdict: int | None = None
    for at, name in enumerate(parts):
        here = folder.prefix + name
        spot = scripts.place(plan, here)
        is_last = at == len(parts) - 1
        is_folder = not is_last or path.endswith(os.sep) or _is_folder(spot)
        spared = is_folder and at == 0 and _leads_to_scripts(plan, rules, parts)
        verdict = folder.decide(name, is_folder=is_folder, built_in=not spared)
        above = None if is_last else shown(here)
        if verdict is not None and not rules.all[verdict].is_negative:
            return _verdict(rules, verdict, spelled, above)
        if not is_last and os.path.islink(spot) and here != scripts.PREFIX[:-1]:
            return Explanation(spelled, False, LINK, folder=above)
        folder = folder.below(name)
    return Explanation(spelled, True) if verdict is None else _verdict(rules, verdict, spelled, None)


def _verdict(rules: Rules, index: int, spelled: str, above: str | None) -> Explanation:
    rule = rules.all[index]
    return Explanation(spelled, rule.is_negative, rule.source, rule.line or None, advice.shown(rule), above)


def _leads_to_scripts(plan: CodePlan, rules: Rules, parts: list[bytes]) -> bool:
    """Whether a path is within the one exception of the built-in names."""
    if parts == [PROJECT]:
        return scripts.travelling(plan, rules) is not None
    return parts[:2] == [PROJECT, SCRIPTS]


def _parts(plan: CodePlan, path: str) -> list[bytes]:
    """Cut a path into components below the root. Raises UserError when it is not below."""
    whole = os.path.normpath(Path(plan.root) / path)
    below = os.path.relpath(whole, plan.root)
    if below == os.pardir or below.startswith(os.pardir + os.sep):
        raise UserError(f"`{path}` is not in the code root {plan.root}", hint="give a path relative to the code root")
    return [] if below == os.curdir else os.fsencode(below).split(b"/")


def _is_folder(path: bytes) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)
