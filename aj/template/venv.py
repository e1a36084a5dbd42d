"""The virtual environment of the invocation directory: how a job of this machine comes to use it.

With `uv` on the job's PATH it is named to `uv`. Without, its programs stand first on the PATH, as if it were
activated, unless the user has activated another one or gave the job a PATH.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from aj.base.noun import dataclass
from aj.template import script

NAME = ".venv"
NOTE = "no `uv` on the job's PATH: `.venv/bin` of this directory stands first on it"


@dataclass(frozen=True)
class Lent:
    """What a job inherits from its user's shell, and what its user should know about it."""

    env: Mapping[str, str]
    notes: tuple[str, ...] = ()


def lent(caller: Mapping[str, str], env: Mapping[str, str], directory: Path) -> Lent:
    """Return what a job of this machine inherits. `env` is what template and command line set; it wins."""
    venv = directory / NAME
    if not venv.is_dir():
        return Lent(caller)
    named = {"UV_PROJECT_ENVIRONMENT": str(venv), "UV_NO_SYNC": "1", **caller}
    path = caller.get("PATH", os.defpath)
    if "PATH" in env or script.is_found("uv", path) or _is_in_another(caller, env):
        return Lent(named)
    programs = venv / "bin"
    if not (programs / "python").is_file():
        return Lent(named)
    return Lent({**named, "VIRTUAL_ENV": str(venv), "PATH": f"{programs}{os.pathsep}{path}"}, (NOTE,))


def _is_in_another(caller: Mapping[str, str], env: Mapping[str, str]) -> bool:
    """Tell whether an environment is active: any that `activate` made, or one of conda's that is not its base."""
    found = {**caller, **env}
    return bool(found.get("VIRTUAL_ENV")) or found.get("CONDA_DEFAULT_ENV", "base") != "base"
