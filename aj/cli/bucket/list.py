"""aj bucket list: buckets, or what is in one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli.declare import Option, Word, filled, whole
from aj.view import bucket as view

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.model.bucket import Stored

EXIT_MORE = 3  # the listing stopped at its limit


@dataclass(frozen=True)
class Options:
    """Which buckets, or which objects of one."""

    where: Annotated[
        str | None, Word("BUCKET[/PREFIX]", "a bucket, or a part of one; else all buckets", values="bucket")
    ] = None
    credentials: Annotated[
        str | None, Option("--credentials", "who opens it; else a folder of this machine", "NAME", values="credential")
    ] = None
    limit: Annotated[int, Option("-n --limit", "objects at most; more ends with exit code 3", "N", whole(1))] = 1000
    every: Annotated[bool, Option("--all", "all objects, however many")] = False
    cursor: Annotated[str | None, Option("--cursor", "go on where an earlier list stopped", "CURSOR", filled)] = None


def run(opts: Options, ctx: Context) -> int:
    """Print the list. Raises NotFound, Refused without the right. Ends with 3 when it stopped at its limit."""
    if opts.where is None:
        found = ctx.client.buckets.list(opts.credentials)
        ctx.tell_warnings(found.warnings, code="bucket-list")
        ctx.screen.show(view.buckets(found))
        return 0
    bucket, _, prefix = opts.where.partition("/")
    objects, cursor = _objects(opts, ctx, bucket, prefix)
    ctx.screen.show(view.objects(bucket, objects, cursor))
    return EXIT_MORE if cursor else 0


def _objects(opts: Options, ctx: Context, bucket: str, prefix: str) -> tuple[list[Stored], str | None]:
    """Read page after page up to the limit; return the objects, and where the next one begins."""
    objects: list[Stored] = []
    told: dict[str, None] = {}
    cursor = opts.cursor
    while True:
        left = 5000 if opts.every else opts.limit - len(objects)
        page = ctx.client.buckets.objects(bucket, opts.credentials, prefix=prefix, cursor=cursor, limit=left)
        objects += page.objects
        told.update(dict.fromkeys(page.warnings))
        cursor = page.cursor
        if cursor is None or (not opts.every and len(objects) >= opts.limit):
            ctx.tell_warnings(told, code="passed-over")
            return objects, cursor
