"""aj daemon upgrade: let the running jobs end, or stop them, and start the daemon of this release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli.daemon import start
from aj.cli.declare import Option

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """How patiently."""

    force: Annotated[bool, Option("--force", "stop the running jobs; they run again after the upgrade")] = False


def run(opts: Options, ctx: Context) -> int:
    """Upgrade it. Raises DaemonError."""
    start.show(ctx, "upgrade", ctx.client.daemon.upgrade(force=opts.force))
    return 0
