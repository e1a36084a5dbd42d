"""The option `--notify` of everything that submits: the watch is kept before the job is, so that no end is missed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from aj.base.errors import AjError, OutcomeUnknown
from aj.cli.declare import Option

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.model.job import JobSpec


def way(word: str) -> str:
    """Read a way to be told, and keep it as it is written."""
    from aj.model import watch  # it reads addresses, and hardly any command names one

    watch.way(word)
    return word


Notify = Annotated[
    tuple[str, ...],
    Option("--notify", "on each change: cmd:LINE, webhook:URL or desktop", "WAY", way, repeats=True, values="notify"),
]


@contextlib.contextmanager
def watched(ctx: Context, spec: JobSpec, ways: Sequence[str]) -> Iterator[None]:
    """Watch a job that is submitted in the block; when that fails for certain, the watch goes again."""
    if not ways:
        yield
        return
    ctx.client.watches.add(spec.id, spec.name, ways=ways, ahead=True)
    try:
        yield
    except OutcomeUnknown:
        raise
    except AjError:
        with contextlib.suppress(AjError):  # it ends by itself when the job never comes
            ctx.client.watches.remove(spec.id)
        raise


def watch_instead(ctx: Context, before: str, spec: JobSpec, ways: Sequence[str]) -> None:
    """Watch the job under the id that it was given instead of one that was taken."""
    if ways:
        ctx.client.watches.add(spec.id, spec.name, ways=ways, ahead=True)
        ctx.client.watches.remove(before)
