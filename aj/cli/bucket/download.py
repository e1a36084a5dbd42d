"""aj bucket download: a bucket, a part of it or one object to this machine; what is here already stays."""

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
    """What comes where."""

    where: Annotated[str, Word("BUCKET[/PREFIX]", "a bucket, a part of one, or one object", filled, values="bucket")]
    path: Annotated[str, Word("PATH", "the folder, or for one object the file", filled, values="folder")] = "."
    credentials: Annotated[
        str | None, Option("--credentials", "who opens it; else a folder of this machine", "NAME", values="credential")
    ] = None


def run(opts: Options, ctx: Context) -> int:
    """Download it. Raises NotFound, Refused without the right; ends with 1 when something did not come over."""
    return transfers.carry(ctx, Direction.DOWNLOAD, opts.where, opts.path, opts.credentials)
