"""aj bucket upload: a file or a folder into a bucket; what is there already stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli import transfers
from aj.cli.declare import Option, Word, filled
from aj.wire.bucket import Direction

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """What goes where."""

    path: Annotated[str, Word("PATH", "a file or a folder", filled, values="file")]
    where: Annotated[str, Word("BUCKET[/PREFIX]", "where it goes", filled, values="bucket")]
    credentials: Annotated[
        str | None, Option("--credentials", "who opens it; else a folder of this machine", "NAME", values="credential")
    ] = None


def run(opts: Options, ctx: Context) -> int:
    """Upload it. Raises NotFound, Refused without the right; ends with 1 when something did not go over."""
    return transfers.carry(ctx, Direction.UPLOAD, opts.where, opts.path, opts.credentials)
