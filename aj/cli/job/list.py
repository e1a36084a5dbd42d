"""aj job list: jobs of this machine and recorded submissions; with `--cloud` the jobs of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.errors import OptionError
from aj.base.noun import dataclass
from aj.cli import recent, remote, states
from aj.cli import scope as scopes
from aj.cli.declare import Option, choice, duration, filled, whole
from aj.cli.recent import SHOWN
from aj.model.state import JobState
from aj.view import cloudjob, told
from aj.view import job as view
from aj.view.screen import Format
from aj.wire.azure import EVERY, JobQuery

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.view.document import Item

LIMIT, CLOUD_LIMIT = 200, 30  # the second costs a request a page
STATES = (*(state.value for state in JobState), *(state.value for state in SHOWN))
KINDS = ("automl", "command", "labeling", "pipeline", "spark", "sweep")


@dataclass(frozen=True)
class Options:
    """Which jobs."""

    limit: Annotated[
        int | None, Option("-n --limit", "how many at most; 0 for all (200, of a workspace 30)", "N", whole())
    ] = None
    status: Annotated[
        tuple[str, ...],
        Option("-s --status", "in this state", "STATE", filled, repeats=True, values="job-state", also="--state"),
    ] = ()
    agent: scopes.Agent = None
    session: scopes.Session = None
    deployment: Annotated[
        str | None, Option("--deployment", "sent to this deployment", "NAME", filled, values="deployment")
    ] = None
    every_project: Annotated[bool, Option("--all-projects", "of every project")] = False
    cloud: Annotated[bool, Option("--cloud", "the jobs of the workspace instead, whoever submitted them")] = False
    experiment: Annotated[str | None, Option("-e --experiment", "of this experiment", "NAME", filled)] = None
    kind: Annotated[str | None, Option("-T --type", "of this type", "TYPE", choice(*KINDS), values="job-kind")] = None
    tags: Annotated[
        tuple[str, ...], Option("--tag", "with this tag: NAME or NAME:VALUE", "TAG", filled, repeats=True)
    ] = ()
    since_s: Annotated[float | None, Option("--since", "not older than this", "DURATION", duration)] = None
    archived: Annotated[bool, Option("-a --archived", "those that were archived")] = False
    workspace: Annotated[
        str | None, Option("--ws", "of this workspace; `*` is every one", "NAME", filled, values="workspace")
    ] = None
    every: Annotated[bool, Option("--all", "without a limit")] = False

    @property
    def is_cloud(self) -> bool:
        """Whether an option asks for what only a workspace knows."""
        asked = (self.experiment, self.kind, self.since_s, self.workspace)
        return self.cloud or self.archived or bool(self.tags) or any(word is not None for word in asked)


def run(opts: Options, ctx: Context) -> int:
    """Print the list. Raises OptionError on a word that is no state, UserError without a workspace, AuthError."""
    if opts.is_cloud:
        return _cloud(opts, ctx)
    for word in opts.status:
        if word not in STATES:
            raise OptionError(f"`--status`: `{word}` is none of {', '.join(STATES)}", hint="`--cloud` knows more")

    scope, outside = scopes.of(ctx, opts.agent, opts.session, every_project=opts.every_project), 0

    def fits(item: Item) -> bool:
        nonlocal outside
        if opts.deployment is not None and item.get("deploymentId") != opts.deployment:
            return False
        is_in = scope.takes(item["agent"], item["session"])
        outside += not is_in
        return is_in

    limit = 0 if opts.every else LIMIT if opts.limit is None else opts.limit
    items, truncated = recent.find(ctx, limit=limit, every=opts.every_project, states=opts.status, fits=fits)
    ctx.screen.show(view.jobs(items, truncated=truncated, scope=scope))
    is_outside = not items and outside > 0
    if not items:
        states.tell_alike(
            ctx,
            opts.status,
            lambda state: len(recent.find(ctx, limit=0, every=opts.every_project, states=(state,), fits=fits)[0]),
        )
    scopes.tell(ctx, scope, outside=is_outside)
    return 0


def _cloud(opts: Options, ctx: Context) -> int:
    """Print jobs of a workspace; exit code 1 when none of several could be asked is the daemon's error."""
    for name, value in (("--agent", opts.agent), ("--session", opts.session), ("--deployment", opts.deployment)):
        if value not in (None, scopes.ALL):
            raise OptionError(f"`{name}`: a workspace does not know it", hint="leave out what asks for the workspace")
    where = EVERY if opts.workspace == EVERY else remote.need_workspace(ctx, opts.workspace)
    query = JobQuery(
        states=opts.status,
        experiment=opts.experiment,
        kind=opts.kind,
        tags=opts.tags,
        since_s=opts.since_s,
        archived=opts.archived,
        limit=0 if opts.every else CLOUD_LIMIT if opts.limit is None else opts.limit,
    )
    found = ctx.client.cloud_jobs.list(where, query)
    is_table = ctx.screen.format is Format.TABLE
    if is_table:
        ctx.screen.show(cloudjob.jobs(found))
    for part in found.failures:
        ctx.screen.warn(told.failed(part), code="part-failed")
    if found.stopped:
        ctx.screen.warn(found.stopped, code="truncated")
    ctx.tell_warnings(found.warnings)
    if not is_table:
        ctx.screen.show(cloudjob.jobs(found))
    return 0
