"""aj deployment create: run copies of a program on this machine, which take jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.noun import dataclass
from aj.cli.declare import Option, Word, duration, filled, whole
from aj.view import deployment as view
from aj.wire.deployment import Create

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aj.cli.context import Context

MOST = 48  # more replicas than one daemon can serve


@dataclass(frozen=True)
class Options:
    """What runs, how often, and what its programs get."""

    name: Annotated[str, Word("NAME", "the new deployment", filled)]
    command: Annotated[tuple[str, ...], Word("CMD", "the program with its words, after `--`", many=True)] = ()
    replicas: Annotated[int, Option("-n --replicas", "copies that run at once (1)", "N", whole(0, MOST))] = 1
    places: Annotated[
        int, Option("--jobs-per-replica", "jobs that one copy holds at once (1)", "N", whole(1, MOST))
    ] = 1
    env: Annotated[
        tuple[str, ...], Option("-e --env", "a variable of the program; a name alone takes yours", "K=V", repeats=True)
    ] = ()
    env_file: Annotated[
        tuple[str, ...], Option("--env-file", "a K=V a line, taken literally", "FILE", repeats=True, values="file")
    ] = ()
    grace_s: Annotated[float, Option("--grace", "time between TERM and KILL (30s)", "DURATION", duration)] = 30.0


def run(opts: Options, ctx: Context) -> int:
    """Make it, and say how it is. Raises UserError, Refused when there is one of this name."""
    from aj.cli import spec as specs

    asked = Create(
        name=opts.name,
        argv=opts.command,
        replicas=opts.replicas,
        directory=str(ctx.directory),
        jobs_per_replica=opts.places,
        grace_s=opts.grace_s,
        env=variables(opts.env, opts.env_file, ctx),
        inherited=lent(ctx),
        umask=specs.umask(),
    )
    answer = ctx.client.deployments.create(asked)
    ctx.tell_warnings(answer.warnings)
    ctx.screen.show(view.status(answer.deployment))
    return 0


def variables(pairs: tuple[str, ...], files: tuple[str, ...], ctx: Context) -> Mapping[str, str]:
    """Return the variables that the options give. Raises OptionError."""
    from aj.cli import spec as specs
    from aj.template import env

    return {**specs.env_files(files, ctx.directory), **env.pairs(pairs, ctx.settings.env)}


def lent(ctx: Context) -> Mapping[str, str]:
    """Return what this shell lends to a program of this machine."""
    from aj.backend.local import options as local

    return local.lent(ctx.settings.env, ctx.config.words("local.pass_env"))
