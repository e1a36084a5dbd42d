"""aj cost: what jobs have cost, by agent, user and provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base import units
from aj.base.errors import NotFound
from aj.base.noun import dataclass
from aj.cli import scope as scopes
from aj.cli.declare import Option, Word, filled
from aj.view import spend as view
from aj.wire.spend import CostAnswer, CostQuery

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.view.scope import Scope

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
    agent: scopes.Agent = None
    session: scopes.Session = None
    every_project: Annotated[bool, Option("--all-projects", "of every project")] = False


def run(opts: Options, ctx: Context) -> int:
    """Print the sums. Raises NotFound for an unknown job."""
    job = None if opts.job is None else _id(opts.job, ctx)
    every = opts.every_project or job is not None
    scope = scopes.of(ctx, opts.agent, opts.session, every_project=every)
    query = CostQuery(job, opts.period_s, scope.agent, scope.session)
    answer = ctx.client.spend.cost(query, all_projects=every)
    ctx.tell_warnings(answer.warnings)
    ctx.screen.show(view.cost(answer, scope=scope))
    scopes.tell(ctx, scope, outside=_is_outside(answer, scope, ctx))
    return 0


def _is_outside(answer: CostAnswer, scope: Scope, ctx: Context) -> bool:
    """Whether the scope alone is why there is nothing."""
    if answer.total.jobs or scope.widen is None:
        return False
    wider = ctx.client.spend.cost(CostQuery(), all_projects=scope.project is None)
    return wider.total.jobs > 0


def _id(word: str, ctx: Context) -> str:
    """Return the id of a job; of one that was removed only the id itself is known."""
    try:
        return ctx.client.jobs.find(word).id
    except NotFound:
        return word
