"""aj version: which release this is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from aj.base.noun import dataclass
from aj.version import VERSION
from aj.view import version as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Nothing to say."""


def run(opts: Options, ctx: Context) -> int:
    """Print the version; with -v also the build, the Python and the platform."""
    build: object = getattr(sys, "_aj_build", None)  # set by the single-file build
    platform = f"{sys.platform}-{_machine()}"
    python = ".".join(str(number) for number in sys.version_info[:3])
    ctx.screen.show(
        view.document(
            VERSION,
            build=str(build) if build else None,
            python=python,
            platform=platform,
            verbose=ctx.found.verbose,
        )
    )
    return 0


def _machine() -> str:
    import os

    return os.uname().machine
