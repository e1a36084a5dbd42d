"""aj list: the history of submissions, newest first, from the journal alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from aj.base import clock, text
from aj.base.errors import AjError, UserError
from aj.base.noun import dataclass
from aj.cli import scope as scopes
from aj.cli import states
from aj.cli.declare import Option, duration, filled, whole
from aj.model.record import RecordState
from aj.model.state import JobState
from aj.store import jobs, journal
from aj.view import journal as view
from aj.view.scope import Scope

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.model.record import Record
    from aj.view.document import Item


@dataclass(frozen=True)
class Options:
    """Which submissions. All filters look at the whole journal; the limit comes last."""

    limit: Annotated[int, Option("-n --limit", "how many at most; 0 for all (20)", "N", whole())] = 20
    template: Annotated[str | None, Option("-t --template", "of this template", "NAME", filled, values="template")] = (
        None
    )
    status: Annotated[
        tuple[str, ...],
        Option("-s --status", "in this state", "STATE", filled, repeats=True, values="record-state", also="--state"),
    ] = ()
    service: Annotated[str | None, Option("--service", "sent to this service", "NAME", filled, values="service")] = None
    since_s: Annotated[float | None, Option("--since", "not older than this", "DURATION", duration)] = None
    agent: scopes.Agent = None
    session: scopes.Session = None
    all_projects: Annotated[bool, Option("--all-projects", "of every project")] = False


KNOWN = tuple(dict.fromkeys([*(state.value for state in RecordState), *(state.value for state in JobState), "deleted"]))


def run(opts: Options, ctx: Context) -> int:
    """Print the list. Raises UserError on a word that is no state."""
    for word in opts.status:
        if word not in KNOWN:
            raise UserError(f"`{word}` is no state", hint=f"one of {', '.join(KNOWN)}", code="unknown-state")
    found: list[Item] = []
    truncated = False
    scope = scopes.of(ctx, opts.agent, opts.session, every_project=opts.all_projects)
    for item in _items(_records(opts, ctx), opts, scope, ctx):
        if opts.limit and len(found) == opts.limit:
            truncated = True
            break
        found.append(item)
    ctx.screen.show(view.records(found, truncated=truncated, scope=scope, empty=_empty(opts, scope)))
    scopes.tell(ctx, scope, outside=not found and _is_outside(opts, scope, ctx))
    if not found:
        states.tell_alike(ctx, opts.status, lambda state: _count(replace(opts, status=(state,)), scope, ctx))
    others = _others(opts, ctx) if not found and not opts.all_projects else 0
    if others:
        where = text.plural(others, "other project has", "other projects have")
        ctx.screen.note(f"{where} some: `--all-projects`")
    return 0


def _count(opts: Options, scope: Scope, ctx: Context) -> int:
    return sum(1 for _ in _items(_records(opts, ctx), opts, scope, ctx))


def _is_outside(opts: Options, scope: Scope, ctx: Context) -> bool:
    """Whether the scope alone is why there is nothing."""
    return scope.widen is not None and any(_items(_records(opts, ctx), opts, Scope(scope.project), ctx))


def _empty(opts: Options, scope: Scope) -> str | None:
    """Say what there is none of."""
    if opts.status:
        return "no submissions in " + ("this state" if len(set(opts.status)) == 1 else "these states")
    asked = scope.widen is not None or any(word is not None for word in (opts.template, opts.service, opts.since_s))
    return "no such submissions" if asked else None


def _others(opts: Options, ctx: Context) -> int:
    """Count the other projects that have what was asked for."""
    keys = [key for key in journal.keys(ctx.layout) if key != ctx.key]
    scope = scopes.of(ctx, opts.agent, opts.session, every_project=True)
    found = (_items(journal.newest(ctx.layout, key, lambda _: None), opts, scope, ctx) for key in keys)
    return sum(next(items, None) is not None for items in found)


def _items(records: Iterable[Record], opts: Options, scope: Scope, ctx: Context) -> Iterator[Item]:
    """Yield what passes all filters, newest first."""
    oldest = None if opts.since_s is None else ctx.clock.now() - opts.since_s
    for record in records:
        if oldest is not None and _moment(record) < oldest:
            continue
        if not (scope.takes(record.agent, record.session) and _is_wanted(opts, record)):
            continue
        found = view.item(record, _job_state(ctx, record), deleted=_is_deleted(ctx, record))
        if not opts.status or record.state.value in opts.status or found["shown_state"] in opts.status:
            yield found


def _is_deleted(ctx: Context, record: Record) -> bool:
    """Whether it was a job of this machine and its folder is gone."""
    from aj.backend import registry  # names and traits only

    is_ours = record.service in registry.ENTRIES and registry.traits(record.service).is_local
    return is_ours and record.state is RecordState.SUBMITTED and not jobs.exists(ctx.layout, record.id)


def _records(opts: Options, ctx: Context) -> Iterable[Record]:
    def damaged(where: str) -> None:
        ctx.screen.warn(f"{where} is no record and is passed over", code="damaged-record")

    if not opts.all_projects:
        return journal.newest(ctx.layout, ctx.key, damaged)
    every = [record for key in journal.keys(ctx.layout) for record in journal.read(ctx.layout, key, damaged)]
    return sorted(every, key=lambda record: record.ts, reverse=True)


def _is_wanted(opts: Options, record: Record) -> bool:
    pairs = ((opts.template, record.template), (opts.service, record.service))
    return all(wanted is None or wanted == given for wanted, given in pairs)


def _moment(record: Record) -> float:
    try:
        return clock.from_rfc3339(record.ts)
    except ValueError:
        return 0.0  # a record without a readable time is older than any limit


def _job_state(ctx: Context, record: Record) -> str | None:
    """Return where the job stands when it is one of this machine's own."""
    if not jobs.exists(ctx.layout, record.id):
        return None
    try:
        return jobs.read(ctx.layout, record.id).state.value
    except AjError as error:
        ctx.screen.warn(error.message, code=error.code)
        return None
