"""Why a path is in the code or not: the source, line and pattern that decide."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aj.base.errors import UserError
from aj.model.code import CodePlan
from aj.pack import advice, sources
from aj.pack.ignore import PROJECT, SCRIPTS, Rules
from aj.pack.selection import place, shown

DEFAULT = "default"


@dataclass(frozen=True)
class Explanation:
    """The verdict about one path.

    `source` is a template file, the ignore file, `built-in`, or `default` when no pattern speaks of the path.
    `folder` is the excluded folder above it when that one decided.
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
        is_last = at == len(parts) - 1
        is_folder = not is_last or path.endswith(os.sep) or _is_folder(place(plan, here))
        verdict = folder.decide(name, is_folder=is_folder, built_in=not _is_way_to_scripts(parts, is_folder=is_folder))
        if verdict is not None and not rules.all[verdict].is_negative:
            return _verdict(rules, verdict, spelled, above=None if is_last else shown(here))
        folder = folder.below(name)
    return Explanation(spelled, True) if verdict is None else _verdict(rules, verdict, spelled, above=None)


def _verdict(rules: Rules, index: int, spelled: str, *, above: str | None) -> Explanation:
    rule = rules.all[index]
    return Explanation(spelled, rule.is_negative, rule.source, rule.line or None, advice.shown(rule), above)


def _is_way_to_scripts(parts: list[bytes], *, is_folder: bool) -> bool:
    return parts[0] == PROJECT and is_folder and parts[1:2] in ([], [SCRIPTS])


def _parts(plan: CodePlan, path: str) -> list[bytes]:
    """Cut a path into components below the root. Raises UserError when it is not below."""
    whole = os.path.normpath(Path(plan.root) / path)
    below = os.path.relpath(whole, plan.root)
    if below == os.pardir or below.startswith(os.pardir + os.sep):
        raise UserError(f"`{path}` is not in the code root {plan.root}", hint="give a path relative to the code root")
    return [] if below == os.curdir else os.fsencode(below).split(b"/")


def _is_folder(path: bytes) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def scripts_allowed(rules: Rules) -> bool:
    """Tell whether the user's rules let `.azure_jobs/scripts` in, which the built-in names spare."""
    root = rules.root()
    steps = ((root, PROJECT, False), (root.below(PROJECT), SCRIPTS, True))
    deciding = [folder.decide(name, is_folder=True, built_in=built_in) for folder, name, built_in in steps]
    return all(found is None or rules.all[found].is_negative for found in deciding)
