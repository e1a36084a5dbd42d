"""aj config timezone: show or set the time zone of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli.config import get, set
from aj.cli.declare import Option, Word

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """What to write; without it the value is shown."""

    value: Annotated[str | None, Word("TZ", "the new value")] = None
    user: Annotated[bool, Option("--user", "for this user, in every project")] = False


def run(opts: Options, ctx: Context) -> int:
    """Show or write the setting. Raises OptionError on a wrong value, before anything is written."""
    if opts.value is None:
        return get.run(get.Options("timezone"), ctx)
    return set.write(ctx, "timezone", opts.value, user=opts.user)
