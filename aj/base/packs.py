"""Parts of the single-file program that are unpacked only when they are first needed.

An installed package has all its parts at once, and there nothing happens here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, MutableMapping
from types import ModuleType
from typing import cast

from aj.base.errors import AjError

GROUPS = ("core", "cloud")


def need(group: str) -> None:
    """Make the modules of a part importable, unpacking it at its first use by this build.

    Call it before the first import of a cloud library. Raises AjError when the part cannot be unpacked.
    """
    if group not in GROUPS:
        raise ValueError(f"no part is called {group!r}")
    if group == "cloud":
        _without_aiohttp()
    opener: Callable[[str], str | None] | None = getattr(sys, "_aj_open", None)  # set by the single file's door
    if opener is None:
        return
    try:
        folder = opener(group)
    except OSError as error:
        hint = getattr(error, "hint", "start this command again")
        raise AjError(f"cannot unpack the {group} part: {error}", hint=hint) from error
    if folder is not None and folder not in sys.path:
        sys.path.insert(1, folder)  # behind the program itself, before the standard library


def _without_aiohttp() -> None:
    """Hide aiohttp from the cloud libraries: they would import it where it is installed, 0.2 s and 9 MB for nothing.

    Who has imported it already keeps it.
    """
    modules = cast(MutableMapping[str, ModuleType | None], sys.modules)
    modules.setdefault("aiohttp", None)  # the mark of a module that cannot be imported
