"""aj cost: what jobs have cost, by agent, user and provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base import units
from aj.base.errors import NotFound
from aj.base.noun import dataclass
from aj.cli.declare import Option, Word, filled
from aj.view import spend as view
from aj.wire.spend import CostQuery

if TYPE_CHECKING:
    from aj.cli.context import Context

DAY_S = 86400.0


def period(word: str) -> float:
    """Read a time from a day to 90 days, in seconds."""
    seconds = units.parse_duration(word)
    if not DAY_S <= seconds <= 90 * DAY_S:
        raise ValueError(f"`{word}` is not from 1d to 90d")
    return seconds


@dataclass(frozen=True)
class Options:
    """Whose costs, and of how long."""

    job: Annotated[str | None, Word("ID", "one job: its id, ticket or name", filled, values="job")] = None
    period_s: Annotated[
        float | None, Option("--period", "1d to 90d back from now (30d; of one job all)", "DURATION", period)
    ] = None
    agent: Annotated[str | None, Option("--agent", "made by this coding agent", "NAME", filled)] = None
    session: Annotated[str | None, Option("--session", "made in this agent session", "ID", filled)] = None
    every_project: Annotated[bool, Option("--all-projects", "of every project")] = False


def run(opts: Options, ctx: Context) -> int:
    """Print the sums. Raises NotFound for an unknown job."""
    job = None if opts.job is None else _id(opts.job, ctx)
    every = opts.every_project or job is not None
    query = CostQuery(job, opts.period_s, opts.agent, opts.session)
    answer = ctx.client.spend.cost(query, all_projects=every)
    ctx.tell_warnings(answer.warnings)
    ctx.screen.show(view.cost(answer, scope=None if every else ctx.key))
    return 0


def _id(word: str, ctx: Context) -> str:
    """Return the id of a job; of one that was removed only the id itself is known."""
    try:
        return ctx.client.jobs.find(word).id
    except NotFound:
        return word
