"""aj job list: the jobs of this machine, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from aj.cli.declare import Option, choice, filled, whole
from aj.model.state import JobState
from aj.view import job as view

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Which jobs."""

    limit: Annotated[int, Option("-n --limit", "how many at most; 0 for all (200)", "N", whole())] = 200
    status: Annotated[
        tuple[str, ...],
        Option(
            "-s --status",
            "in this state",
            "STATE",
            choice(*(state.value for state in JobState)),
            repeats=True,
            values="job-state",
        ),
    ] = ()
    agent: Annotated[str | None, Option("--agent", "made by this coding agent", "NAME", filled)] = None
    session: Annotated[str | None, Option("--session", "made in this agent session", "ID", filled)] = None
    every: Annotated[bool, Option("--all-projects", "of every project")] = False


def run(opts: Options, ctx: Context) -> int:
    """Print the list."""
    states = tuple(JobState(word) for word in opts.status)
    found = ctx.client.jobs.list(all_projects=opts.every, states=states, limit=0)
    ctx.tell_warnings(found.warnings)
    fitting = [
        job
        for job in found.jobs
        if (opts.agent is None or job.agent == opts.agent) and (opts.session is None or job.session == opts.session)
    ]
    shown = fitting[: opts.limit or None]
    ctx.screen.show(
        view.jobs(
            shown,
            ctx.clock.now(),
            truncated=found.truncated or len(shown) < len(fitting),
            scope=None if opts.every else ctx.key,
        )
    )
    return 0
