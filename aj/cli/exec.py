"""aj exec: run a command inside a running job, on this terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from aj.base import proc
from aj.base.errors import AjError, OptionError, Refused
from aj.base.noun import dataclass
from aj.cli import declare, named, remote
from aj.cli.declare import Option, Word, filled, whole

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Which job, and what."""

    job: Annotated[str, Word("ID", "the job, its ticket or its name", filled, values="open-job")]
    command: Annotated[
        tuple[str, ...], Word("CMD", "one word is a shell line, several are the exact words", many=True, freezes=True)
    ]
    rank: Annotated[int, Option("--rank", "beside which process (0)", "N", whole())] = 0
    stdin: Annotated[bool, Option("-i --stdin", "hand this stdin on")] = False
    tty: Annotated[bool, Option("--tty", "hand this terminal on, stdin too")] = False


def run(opts: Options, ctx: Context) -> int:
    """Run it and return its own exit code. Raises OptionError, NotFound, Refused when the job does not run."""
    first = opts.command[0].partition("=")[0]
    if first in declare.read(Options).by_spelling:
        raise OptionError(f"`{first}` is no command: options stand before ID", hint=f"`aj exec {first} ... ID CMD`")
    found = named.find(ctx, opts.job)
    remote.refuse(found, "exec", f"`aj logs {found.id}` shows what it prints, `aj status {found.id}` its portal")
    if found.job is None:
        words, hint = named.no_job(opts.job, found.ticket, yet="does not run yet")
        raise Refused(words, hint=hint, code="not-running")
    plan = ctx.client.jobs.exec_plan(
        found.job.id, opts.command, rank=opts.rank, stdin=opts.stdin or opts.tty, tty=opts.tty
    )
    try:
        return proc.run_here(plan.argv, cwd=Path(plan.cwd), env=plan.env, reads=opts.stdin or opts.tty)
    except OSError as error:
        raise AjError(f"cannot run {plan.argv[0]}: {error.strerror}", code="cannot-run") from error
