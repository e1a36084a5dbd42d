"""aj deployment upgrade: change a deployment; idle copies are replaced at once, busy ones after their jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.errors import OptionError
from aj.base.noun import dataclass
from aj.cli.declare import Option, Word, filled, whole
from aj.cli.deployment import create
from aj.view import deployment as view
from aj.wire.deployment import Upgrade

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """What changes; the rest stays as it is."""

    name: Annotated[str, Word("NAME", "the deployment", filled, values="deployment")]
    command: Annotated[tuple[str, ...], Word("CMD", "another program with its words, after `--`", many=True)] = ()
    replicas: Annotated[int | None, Option("-n --replicas", "copies that run at once", "N", whole(0, create.MOST))] = (
        None
    )
    places: Annotated[
        int | None, Option("--jobs-per-replica", "jobs that one copy holds at once", "N", whole(1, create.MOST))
    ] = None
    env: Annotated[
        tuple[str, ...], Option("-e --env", "its variables anew; a name alone takes yours", "K=V", repeats=True)
    ] = ()
    env_file: Annotated[
        tuple[str, ...], Option("--env-file", "a K=V a line, taken literally", "FILE", repeats=True, values="file")
    ] = ()
    force: Annotated[bool, Option("--force", "end busy copies too; their jobs run again")] = False


def run(opts: Options, ctx: Context) -> int:
    """Change it, and say how it is. Raises OptionError without a change, NotFound, Refused."""
    has_env = bool(opts.env or opts.env_file)
    if not (opts.command or has_env or opts.replicas is not None or opts.places is not None):
        hint = f"`aj deployment upgrade {opts.name} --replicas N`, or `-- CMD`"
        raise OptionError("nothing is to be changed", hint=hint)
    asked = Upgrade(
        argv=opts.command or None,
        replicas=opts.replicas,
        directory=str(ctx.directory) if opts.command else None,
        jobs_per_replica=opts.places,
        env=create.variables(opts.env, opts.env_file, ctx) if has_env else None,
        inherited=create.lent(ctx) if opts.command else None,
        force=opts.force,
    )
    answer = ctx.client.deployments.upgrade(opts.name, asked)
    ctx.tell_warnings(answer.warnings)
    ctx.screen.show(view.status(answer.deployment))
    return 0
