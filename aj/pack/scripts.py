"""The project's scripts: the one part of the project folder that travels, and where it is on the disk.

The built-in names keep `.azure_jobs` out, but `.azure_jobs/scripts` in the root goes along. When the code root is
another folder than the project's, the project's scripts stand at that same place in the archive.
"""

from __future__ import annotations

import os

from aj.model.code import CodePlan
from aj.pack.ignore import PROJECT, SCRIPTS, Rules

PREFIX = PROJECT + b"/" + SCRIPTS + b"/"


def place(plan: CodePlan, path: bytes) -> bytes:
    """Return where a path of the tree is on the disk: below the root, but for scripts of another folder."""
    if plan.scripts is not None and (path + b"/").startswith(PREFIX):
        return os.fsencode(plan.scripts) + b"/" + path[len(PREFIX) :]
    return os.fsencode(plan.root) + b"/" + path


def travelling(plan: CodePlan, rules: Rules) -> bytes | None:
    """Return where the scripts are, if they are there and the rules let them in.

    In the root itself they may be a link, which is then treated as any link; from another folder they are taken
    with what a link leads to.
    """
    spot = place(plan, PREFIX[:-1])
    if not _allowed(rules):
        return None
    if plan.scripts is not None:
        return spot if os.path.isdir(spot) else None
    if os.path.islink(os.path.dirname(spot)):
        return None
    return spot if os.path.isdir(spot) or os.path.islink(spot) else None


def _allowed(rules: Rules) -> bool:
    """Whether the user's rules let the scripts in."""
    root = rules.root()
    steps = ((root, PROJECT, False), (root.below(PROJECT), SCRIPTS, True))
    deciding = [folder.decide(name, is_folder=True, built_in=built_in) for folder, name, built_in in steps]
    return all(found is None or rules.all[found].is_negative for found in deciding)
