"""The sending half of `aj run`: promise the job to the daemon, and stay with it if that was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from aj.backend import registry
from aj.base.clock import rfc3339
from aj.base.errors import AjError, OptionError, UserError
from aj.base.paths import PROJECT_FOLDER
from aj.cli import forecast, leaving, managed, notify
from aj.cli import spec as specs
from aj.cli.code import notes
from aj.model.step import Kind
from aj.model.ticket import Mode, TicketState
from aj.view import job as job_view
from aj.view import submission as view
from aj.view.screen import Format
from aj.wire import errors

if TYPE_CHECKING:
    from aj.base.errors import JobFailed
    from aj.cli.context import Context
    from aj.cli.remote import Remote
    from aj.cli.run import Options
    from aj.model.job import JobSpec
    from aj.model.step import Step
    from aj.model.ticket import Ticket
    from aj.template.build import Built
    from aj.view.document import Item
    from aj.wire.messages import TicketAnswer


class Recipe(Protocol):
    """What makes the same request again for another id."""

    def built(self, aj_id: str | None = None) -> Built:
        """Make the JobSpec. Raises TemplateError, UserError or OptionError."""


class Manner(Protocol):
    """What a command line says of how to submit, and of what to do then."""

    @property
    def strict(self) -> bool: ...
    @property
    def notify(self) -> tuple[str, ...]: ...
    @property
    def queue(self) -> bool: ...
    @property
    def wait(self) -> bool: ...
    @property
    def follow(self) -> bool: ...
    @property
    def label(self) -> bool: ...
    @property
    def wait_timeout_s(self) -> float | None: ...
    @property
    def exit_status(self) -> bool: ...


def run(opts: Options, ctx: Context) -> int:
    """Submit and print what came of it. Raises what the daemon refuses, with the submission in its details."""
    return send(specs.recipe(opts, ctx, specs.draw_id()), opts, ctx)


def send(recipe: Recipe, opts: Manner, ctx: Context) -> int:
    """Submit what a recipe makes and print what came of it. Raises as `run`."""
    built = recipe.built()
    ctx.tell_issues(built.warnings)
    specs.tell_missing_file(built, ctx)
    if opts.strict:
        ctx.refuse_warnings()
    check_sendable(built.spec)
    managed.refuse_waiting(built.spec, opts)
    tell_left_out(built.spec, ctx)
    forecast.tell(built.spec, ctx)
    _check_format(opts, ctx)
    taken: list[Ticket] = []
    with leaving.telling(lambda: _tell_interrupted(built.spec, taken, opts, ctx)):
        answer, spec = _submit(recipe, built, opts, ctx, taken)
        _show(spec, answer.ticket, opts, ctx)
        if opts.wait or opts.follow:
            return _stay(spec, answer.ticket, opts, ctx)
    return 0


def _check_format(opts: Manner, ctx: Context) -> None:
    """Refuse formats that have no room for a log. Raises OptionError."""
    form = ctx.screen.format
    if opts.follow and form in (Format.NAME, Format.YAML):
        raise OptionError(
            f"`-o {form}` has no place for the log of `--follow`", hint="`--json` prints a record a line; or `--wait`"
        )


def _answers_at_the_end(opts: Manner, ctx: Context) -> bool:
    """Whether the one document of this command waits for the end of the job."""
    return opts.wait and not opts.follow and ctx.screen.format.is_machine


def _stay(spec: JobSpec, ticket: Ticket, opts: Manner, ctx: Context) -> int:
    """Stay with the job, and answer with its end where the format has a place for it."""
    from aj.cli import follow, remote

    place = remote.of_ticket(ticket)
    if place is not None:
        return _stay_elsewhere(spec, ticket, place, opts, ctx)
    watch = follow.Watch(ctx, ticket.id, opts.wait_timeout_s)
    try:
        job = follow.to_the_end(ticket, opts, watch, ctx)
    except AjError as error:
        ended = job_view.record(watch.job, ctx.clock.now()) if watch.job else None
        _tell_failure(error, spec, ticket, ended, ctx)
        return error.exit_code
    if opts.follow and ctx.screen.format is not Format.TABLE:
        ctx.screen.item(job_view.result_item(job, rfc3339(ctx.clock.now())))
    code = follow.exit_code(job, passed_on=opts.exit_status)
    failed = follow.failure(job) if code else None
    _answer(spec, ticket, failed, job_view.record(job, ctx.clock.now()), opts, ctx)
    return code


def _stay_elsewhere(spec: JobSpec, ticket: Ticket, place: Remote, opts: Manner, ctx: Context) -> int:
    """Stay with a job of a workspace, as with one of this machine."""
    from aj.cli import cloudstay
    from aj.view import cloudjob

    try:
        job = cloudstay.to_the_end(place, opts, ctx)
    except AjError as error:
        _tell_failure(error, spec, ticket, None, ctx)
        return error.exit_code
    if opts.follow and ctx.screen.format is not Format.TABLE:
        ctx.screen.item(cloudjob.result_item(place.id, job, rfc3339(ctx.clock.now())))
    failed = cloudstay.failure(place, job)
    _answer(spec, ticket, failed, job_view.ended(job, ticket), opts, ctx)
    return failed.exit_code if failed else 0


def _answer(spec: JobSpec, ticket: Ticket, failed: JobFailed | None, ended: Item, opts: Manner, ctx: Context) -> None:
    """Say how a job ended: its failure, or the submission with the end of its job where that is the answer."""
    if failed and opts.follow:
        ctx.screen.trouble(failed.message, failed.hint)
    elif failed:
        _tell_failure(failed, spec, ticket, ended, ctx)
    elif _answers_at_the_end(opts, ctx):
        ctx.screen.show(view.sent(spec, ticket, _next(ticket), ended))


def _tell_failure(error: AjError, spec: JobSpec, ticket: Ticket, ended: Item | None, ctx: Context) -> None:
    """Say what ended the waiting; in a machine format with the submission, and its job as it stands."""
    error.details["submission"] = view.item(spec, ticket, ended=ended)
    ctx.tell(error)


def check_sendable(spec: JobSpec) -> None:
    """Refuse a service that this release cannot send to. Raises UserError."""
    if registry.entry(spec.service).traits.submits:
        return
    can = ", ".join(f"`{name}`" for name, entry in registry.ENTRIES.items() if entry.traits.submits)
    raise UserError(
        f"this release checks and renders jobs for `{spec.service}`, and submits only to {can}",
        hint="`aj run -d ...` shows what would be sent",
        code="not-sendable",
    )


def tell_left_out(spec: JobSpec, ctx: Context) -> None:
    """Before a project's first submission, say which names of its root do not travel."""
    if ctx.layout.journal(ctx.key).exists() or ctx.screen.quiet or not spec.brings_code:
        return
    from aj.pack import walk

    selection = walk.select(spec.code, ctx.layout.stat_cache)
    left = [name for name in selection.excluded_top if name != PROJECT_FOLDER]
    if left:
        ctx.screen.note(f"code: left out {', '.join(left)} (`aj code stats --explain PATH` tells why)")
    notes.tell_gitignore(selection, ctx)


def _submit(
    recipe: Recipe, built: Built, opts: Manner, ctx: Context, taken: list[Ticket]
) -> tuple[TicketAnswer, JobSpec]:
    """Promise it; a direct submission is followed to its outcome. Raises its error when it failed."""
    current = built.spec

    def again(aj_id: str) -> JobSpec:
        nonlocal current
        current = recipe.built(aj_id).spec
        notify.watch_instead(ctx, built.spec.id, current, opts.notify)
        return current

    with notify.watched(ctx, built.spec, opts.notify):
        try:
            answer = ctx.client.submissions.submit(
                built.spec,
                Mode.QUEUED if opts.queue else Mode.DIRECT,
                wait=not opts.queue,
                again=again,
                accepted=taken.append,
                told=lambda step: _tell_step(step, ctx),
            )
        except AjError as error:
            status = "unknown" if error.exit_code == 6 else "failed"
            error.details["submission"] = view.item(current, taken[0] if taken else None, status=status)
            raise
        taken.append(answer.ticket)
        ctx.tell_warnings(answer.warnings, code="code")
        _raise_failure(current, answer.ticket)
        return answer, current


def _tell_step(step: Step, ctx: Context) -> None:
    """Say what happens to the submission, a line for each stage; what a user should know is a warning."""
    if step.kind is Kind.WARNING:
        ctx.screen.warn(step.detail, code="submission")
    elif step.is_over:
        ctx.screen.note(f"{step.kind.value}: {step.detail}")


def _raise_failure(spec: JobSpec, ticket: Ticket) -> None:
    if ticket.state not in (TicketState.FAILED, TicketState.CANCELED):
        return
    if ticket.error is not None:
        error = errors.error(ticket.error)
    else:
        error = AjError(f"{ticket.ticket} is {ticket.state}: {ticket.detail or 'nothing more is known'}")
    error.details["submission"] = view.item(spec, ticket)
    raise error


def _show(spec: JobSpec, ticket: Ticket, opts: Manner, ctx: Context) -> None:
    """Print the submission; where stdout belongs to the job's log, say it beside."""
    in_table = ctx.screen.format is Format.TABLE and not opts.follow and ticket.mode is not Mode.QUEUED
    if ticket.code and not in_table:
        ctx.screen.note(f"code: {view.code_text(ticket.code, ticket)}")
    following = _next(ticket)
    if opts.follow and ctx.screen.format is Format.TABLE:
        ctx.screen.note(f"submitted {spec.name} as {spec.id}")
        return
    if opts.follow:
        ctx.screen.format = Format.JSONL  # the log follows, a line at a time
        ctx.screen.item({"type": "submission", **view.item(spec, ticket), "next": following})
        return
    if _answers_at_the_end(opts, ctx):
        ctx.screen.note(f"submitted {spec.name} as {spec.id}")
        return
    ctx.screen.show(view.sent(spec, ticket, following))
    if not (opts.wait or opts.follow):
        ctx.screen.note("next: " + ", ".join(f"`{words}`" for words in following))


def _next(ticket: Ticket) -> tuple[str, ...]:
    if ticket.mode is Mode.QUEUED:
        return f"aj queue show {ticket.ticket}", f"aj queue wait {ticket.ticket}", f"aj queue cancel {ticket.ticket}"
    if theirs := managed.commands(ticket):
        return f"aj status {ticket.id}", *theirs
    return f"aj wait {ticket.id}", f"aj logs {ticket.id} -f", f"aj status {ticket.id}"


def _tell_interrupted(spec: JobSpec, taken: list[Ticket], opts: Manner, ctx: Context) -> None:
    """Say what goes on without us: `taken` are the ticket as it was accepted, then as it ended.

    Nothing is written: the daemon alone knows the outcome.
    """
    if not taken:
        ctx.screen.note(f"interrupted; not confirmed, so perhaps not submitted: `aj queue show q-{spec.id}`")
        return
    ticket = taken[-1]
    if ticket.state.is_final:
        what, ways = f"job {ticket.id} (ticket {ticket.ticket})", ("status", "terminate")
        name = ticket.id
    else:
        what, ways, name = ticket.ticket, ("queue show", "queue cancel"), ticket.ticket
    ctx.screen.note(f"{what} goes on without this command: " + ", ".join(f"`aj {way} {name}`" for way in ways))
    if _answers_at_the_end(opts, ctx):
        ctx.screen.show(view.sent(spec, ticket, _next(ticket)))
