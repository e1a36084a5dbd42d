"""aj job --deployment NAME: send a job to a deployment; it carries its id alone."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import TYPE_CHECKING

from aj.base.errors import OptionError
from aj.cli import declare, follow
from aj.view import job as view
from aj.wire.deployment import Targeting

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.cli.job.submit import Options

# What a job of a deployment may be told; everything else comes from the deployment.
OWN = frozenset({"deployment", "id", "timeout_s", "wait", "wait_timeout_s", "exit_status", "strict"})


def run(opts: Options, ctx: Context) -> int:
    """Send it; with `--wait` stay until it has ended. Raises OptionError, NotFound, Refused, TimedOut."""
    from aj.cli import spec as specs
    from aj.client.deployments import draw_nonce

    assert opts.deployment is not None, "the caller looked"
    _check(opts)
    job_id, tag = opts.id or specs.draw_id(), ctx.tag()
    asked = Targeting(job_id, draw_nonce(), opts.timeout_s, tag.agent, tag.session, tag.title)
    answer = ctx.client.deployments.submit(opts.deployment, asked)
    ctx.tell_warnings(answer.warnings)
    code = 0
    if opts.wait:
        shown = view.Shown()
        for answer in ctx.client.jobs.wait(job_id, timeout_s=opts.wait_timeout_s):
            shown, events = view.news(answer, shown, ctx.clock.now())
            for event in events:
                ctx.screen.note(view.event_line(event, ctx.screen.moment))
        code = follow.exit_code(answer.workload, passed_on=opts.exit_status)
    found = view.status(answer, ctx.clock.now(), verbose=False, moment=ctx.screen.moment)
    ctx.screen.show(replace(found, ids=[job_id]))
    return code


def _check(opts: Options) -> None:
    """Refuse what a job of a deployment cannot have. Raises OptionError."""
    if opts.image or opts.command:
        raise OptionError(
            "a job of a deployment has no image and no command of its own", hint="leave out IMAGE, or `--deployment`"
        )
    fields = {field.field: field for field in declare.read(type(opts)).fields}
    for field in dataclasses.fields(opts):
        told, option = getattr(opts, field.name), fields[field.name].option
        if option is not None and field.name not in OWN and told != fields[field.name].default:
            raise OptionError(f"`{option.name}` comes from the deployment", hint="leave it out", code="targeted")
