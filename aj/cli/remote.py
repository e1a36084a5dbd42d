"""What a word names beyond this machine: the job of a recorded submission, else one of the chosen workspace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from aj.backend import registry
from aj.base.errors import AuthError, NotFound, UserError
from aj.base.noun import dataclass
from aj.cli import managed, named
from aj.client.jobs import choose
from aj.model import handle, names
from aj.store import journal, tickets
from aj.wire.azure import HERE

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.client.jobs import Found
    from aj.model.cloudjob import CloudJob
    from aj.model.record import Record
    from aj.model.ticket import Ticket


@dataclass(frozen=True)
class Remote:
    """A job of a workspace or a cluster. `id` is how it is told: its AJ ID, or its name where we did not submit it.

    A namespace of a cluster stands in the place of the workspace: `volcano://context/namespace`.
    """

    workspace: str
    name: str
    id: str
    ticket: Ticket | None = None
    is_recorded: bool = True
    job: CloudJob | None = None

    @property
    def is_on_cluster(self) -> bool:
        return "://" in self.workspace


def find(ctx: Context, word: str, workspace: str | None) -> Found | Remote:
    """Find a job of this machine or a ticket, then a job of Azure: recorded, or of the workspace that is meant.

    Raises NotFound, UserError listing them when several fit, AuthError when only Azure could tell.
    """
    try:
        found = named.find(ctx, word)
    except NotFound as error:
        return beyond(ctx, word, workspace, error)
    submitted = of_ticket(found.ticket) if found.job is None and found.ticket else None
    return submitted or found


def beyond(ctx: Context, word: str, workspace: str | None, missing: NotFound) -> Remote:
    """Find a job of Azure when this machine has none of that name, for which `missing` stands. Raises as `find`."""
    if missing.code != "no-such-job":
        raise missing
    known = recorded(ctx, word, missing)
    if known is not None:
        return known
    where = chosen(ctx, workspace)
    if where is None:
        raise missing
    try:
        job = ctx.client.cloud_jobs.show(where, word).job
    except AuthError as error:
        words = f"{missing.message} on this machine, and Azure cannot be asked: {error.message}"
        raise AuthError(words, hint=error.hint, details=error.details) from error
    except NotFound as error:
        if error.code != NotFound.default_code:
            raise  # the workspace itself is not there
        name = "the chosen workspace" if where == HERE else f"workspace {where.replace(':', '/')}"
        raise NotFound(
            f"{missing.message}, and none in {name}", code=missing.code, hint=missing.hint, details=missing.details
        ) from error
    return Remote(where, job.name, job.aj_id or job.name, is_recorded=False, job=job)


def recorded(ctx: Context, word: str, missing: NotFound) -> Remote | None:
    """Find the job of a submission that tickets or journals of any project remember.

    Raises `missing` for a submission that has no job, UserError when several fit.
    """
    there = [one for key in tickets.keys(ctx.layout) for one in tickets.scan(ctx.layout, key).tickets]
    try:
        promised = choose(word, [], there).ticket
    except NotFound:
        return _journaled(ctx, word)
    if promised:
        managed.refuse(promised)
    found = of_ticket(promised) if promised else None
    if found is None:
        raise missing
    return found


def _journaled(ctx: Context, word: str) -> Remote | None:
    """Look where tickets have been pruned already."""
    keys = dict.fromkeys([ctx.key, *journal.keys(ctx.layout)])
    every = [record for key in keys for record in journal.naming(ctx.layout, key, word)]
    spelled: tuple[Callable[[Record], bool], ...] = (
        lambda record: word in (record.id, record.ticket),
        lambda record: word == record.azure_name,
        lambda record: word == record.name,
        lambda record: names.is_begin(word, record.id),
    )
    for is_named in spelled:
        fitting = [record for record in every if is_named(record)]
        if fitting:
            return _only(word, fitting)
    return None


def _only(word: str, fitting: Sequence[Record]) -> Remote | None:
    if len(fitting) == 1:
        return _of(fitting[0].handle, fitting[0].id, None)
    ids = sorted(record.id for record in fitting)
    raise UserError(
        f"`{word}` names {len(ids)} jobs: {', '.join(ids)}",
        code="ambiguous",
        hint="use one of these ids",
        details={"ids": ids},
    )


def of_ticket(ticket: Ticket) -> Remote | None:
    """Return the job that a ticket was submitted as; None when there is none at Azure."""
    return _of(ticket.result.handle, ticket.id, ticket) if ticket.result else None


def refuse(found: Found, verb: str, hint: str) -> None:
    """Refuse what reaches only jobs of this machine. Raises UserError for a job that runs elsewhere."""
    if found.job is None and found.ticket:
        managed.refuse(found.ticket)
    elsewhere = of_ticket(found.ticket) if found.job is None and found.ticket else None
    if elsewhere is not None:
        assert found.ticket is not None, "a job elsewhere has a ticket"
        words = f"{elsewhere.id} is run by `{found.ticket.service}`: `aj {verb}` reaches jobs of this machine alone"
        raise UserError(words, hint=hint, code="runs-elsewhere", details={"id": elsewhere.id})


def _of(written: str | None, aj_id: str, ticket: Ticket | None) -> Remote | None:
    try:
        found = handle.parse(written or "")
    except ValueError:
        return None
    known = registry.ENTRIES.get(found.service)
    if known is None or known.traits.driven or not known.traits.answers:
        return None  # of this machine, or of a program that alone tells
    return Remote(known.traits.spelled(found), found.name, aj_id, ticket)


def chosen(ctx: Context, workspace: str | None) -> str | None:
    """Return the word for the workspace that is meant: `--ws`, AJ_WORKSPACE, the settings; None without any.

    A place on a cluster is a word of its own: `volcano://context/namespace`.
    """
    if workspace is not None:
        return workspace if "://" in workspace else workspace.replace("/", ":")
    setting = ctx.config.setting("workspace.name")
    if ctx.config.text("workspace.name") is None:
        return None
    return str(setting.value) if setting.source == "environment" else HERE


def need_workspace(ctx: Context, workspace: str | None) -> str:
    """Return the word for the workspace that is meant. Raises UserError when none is."""
    where = chosen(ctx, workspace)
    if where is None:
        raise UserError(
            "no workspace is chosen",
            hint=ctx.missed("workspace.name", "`--ws NAME`, or `aj config set workspace.name NAME`"),
            code="no-workspace-chosen",
        )
    return where
