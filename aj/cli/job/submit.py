"""aj job IMAGE -- CMD: submit an image with its command, without a template and without code of one's own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from aj.base import units
from aj.base.errors import OptionError, UserError
from aj.base.noun import dataclass
from aj.cli import buckets, hints
from aj.cli.declare import Option, Word, choice, dollars, duration, filled, whole
from aj.cli.notify import Notify

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.model.json import Json
    from aj.template.build import Built, Request

ALL_GPUS = "all"
SCRIPTS = (".py", ".sh")  # of a word that means a file of this directory, not an image


def gpus(word: str) -> str:
    """Read a count of GPUs, or `all`."""
    if word != ALL_GPUS:
        whole(0, 4096)(word)
    return word


def size(word: str) -> str:
    """Read a size, and keep it as it is written."""
    units.parse_size(word)
    return word


def cpus(word: str) -> str:
    """Read a count of CPUs, which may have a fraction."""
    try:
        fits = 0 < float(word) < 100_000
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"`{word}` is no count of CPUs")
    return word


@dataclass(frozen=True)
class Options:
    """What to submit, with what it may take, and what to do then."""

    image: Annotated[str, Word("IMAGE", "an image, or `local/host`: the machine itself", filled)] = ""
    command: Annotated[tuple[str, ...], Word("CMD", "the words for the image's entrypoint, after `--`", many=True)] = ()
    cpus: Annotated[str | None, Option("--cpus", "CPUs; may have a fraction", "N", cpus)] = None
    memory: Annotated[str | None, Option("--memory", "memory", "SIZE", size)] = None
    gpus: Annotated[str | None, Option("--gpus", "GPUs, or `all` that the machine has", "N", gpus)] = None
    shm_size: Annotated[str | None, Option("--shm-size", "its own /dev/shm; counts against --memory", "SIZE", size)] = (
        None
    )
    ipc: Annotated[str | None, Option("--ipc", "`host`: the machine's shared memory", "MODE", choice("host"))] = None
    spot: Annotated[bool, Option("--spot", "it may lose its host, and goes on at another from its checkpoint")] = False
    env: Annotated[
        tuple[str, ...], Option("-e --env", "a variable of the job; a name alone takes yours", "K=V", repeats=True)
    ] = ()
    env_file: Annotated[
        tuple[str, ...], Option("--env-file", "a K=V a line, taken literally", "FILE", repeats=True, values="file")
    ] = ()
    input_bucket: buckets.Input = None
    output_bucket: buckets.Output = None
    checkpoint_bucket: buckets.Checkpoint = None
    input_credentials: buckets.InputCredentials = None
    output_credentials: buckets.OutputCredentials = None
    checkpoint_credentials: buckets.CheckpointCredentials = None
    input_region: buckets.InputRegion = None
    output_region: buckets.OutputRegion = None
    checkpoint_region: buckets.CheckpointRegion = None
    checkpoint_keep: buckets.CheckpointKeep = None
    require_output: buckets.RequireOutput = False
    secret: buckets.Secrets = ()
    deployment: Annotated[
        str | None,
        Option("--deployment", "send it to a deployment, instead of IMAGE", "NAME", filled, values="deployment"),
    ] = None
    id: Annotated[str | None, Option("--id", "with --deployment: the job's id; else one is drawn", "ID", filled)] = None
    timeout_s: Annotated[
        float | None, Option("--timeout", "fail unless it has started within this long", "DURATION", duration)
    ] = None
    max_runtime_s: Annotated[
        float | None,
        Option("--max-runtime", "end it when it has run so long, over all its starts", "DURATION", duration),
    ] = None
    max_cost: Annotated[int | None, Option("--max-cost", "end it when it has cost so many dollars", "USD", dollars)] = (
        None
    )
    queue: Annotated[bool, Option("--queue", "stand in line, and return as soon as that is certain")] = False
    notify: Notify = ()
    wait: Annotated[bool, Option("--wait", "until the job has ended")] = False
    follow: Annotated[bool, Option("--follow", "as --wait, with its log on stdout")] = False
    label: Annotated[bool, Option("--label", "with --follow: `[rank 2]` before each line")] = False
    wait_timeout_s: Annotated[
        float | None, Option("--wait-timeout", "give up waiting after this long", "DURATION", duration)
    ] = None
    exit_status: Annotated[bool, Option("--exit-status", "end with the job's own exit code")] = False
    strict: Annotated[bool, Option("--strict", "a warning is an error")] = False


def run(opts: Options, ctx: Context) -> int:
    """Submit it. Raises OptionError on words that do not fit, and what the daemon refuses."""
    from aj.cli import run as plain
    from aj.cli import spec as specs
    from aj.cli import submit

    if opts.deployment is not None:
        from aj.cli import targeted

        return targeted.run(opts, ctx)
    _check_image(opts)
    plain.check_manner(opts)
    from aj.model import image

    if not image.is_host(opts.image):
        ctx.screen.note(f"looking up the image {opts.image}")
    return submit.send(Recipe(_request(opts, ctx, specs.draw_id())), opts, ctx)


@dataclass(frozen=True)
class Recipe:
    """A request, which can be made again for another id."""

    request: Request

    def built(self, aj_id: str | None = None) -> Built:
        """Make the JobSpec. Raises TemplateError, UserError."""
        from aj.backend import registry
        from aj.cli import spec as specs
        from aj.template import build

        request = self.request if aj_id is None else replace(self.request, id=aj_id)
        found = build.build(None, request, options_of=registry.options)
        return replace(found, spec=replace(found.spec, umask=specs.umask()))


def _check_image(opts: Options) -> None:
    """Tell a word that was to be a command from an image, and refuse what is neither. Raises OptionError, UserError."""
    from aj.model import image

    word = opts.image
    if not word:
        raise OptionError("IMAGE is missing", hint="`aj job IMAGE -- CMD`, or `--deployment NAME`", code="missing-word")
    if opts.id is not None:
        raise OptionError("`--id` is for a job of a deployment", hint="add `--deployment NAME`, or leave it out")
    meant = hints.command(("job",), word) if word.isalpha() else None
    if meant:
        raise OptionError(
            f"`{word}` is no command of `aj job`",
            hint=f"`aj {meant}`; for an image of that name write `aj job {word}:latest`",
            code="unknown-command",
        )
    found = image.parse(word)
    if word.endswith(SCRIPTS) and "/" not in word:
        full = f"{found.registry}/{found.repository}"
        raise OptionError(
            f"`{word}` looks like a file, and an image is due",
            hint=f"did you mean `aj run {word}`? For an image of that name write `aj job {full}`",
            code="not-an-image",
        )
    if image.is_host(word) and not opts.command:
        raise OptionError(
            "CMD is missing: the machine itself has no command of its own", hint=f"`aj job {word} -- CMD`"
        )


def _request(opts: Options, ctx: Context, aj_id: str) -> Request:
    from aj.backend.local import options as local
    from aj.cli import spec as specs
    from aj.template import env
    from aj.template.build import Request
    from aj.template.shape import Asked, Given

    tag = ctx.tag()
    return Request(
        id=aj_id,
        directory=ctx.directory,
        argv=opts.command,
        project=ctx.project,
        name=ctx.settings.get("AJ_NAME") or _name(opts.image),
        asked=Asked(Given("", "1"), None, Given("", "1")),
        env=env.pairs(opts.env, ctx.settings.env),
        env_file=specs.env_files(opts.env_file, ctx.directory),
        caller=local.lent(ctx.settings.env, ctx.config.words("local.pass_env")),
        config=_config(opts, ctx),
        brings_code=False,
        buckets=buckets.asked(opts),
        secrets=opts.secret,
        start_timeout_s=opts.timeout_s,
        max_runtime_s=opts.max_runtime_s,
        max_cost=opts.max_cost,
        agent=tag.agent,
        session=tag.session,
        session_title=tag.title,
    )


def _name(image: str) -> str:
    """The last part of an image, without tag and digest."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def _config(opts: Options, ctx: Context) -> dict[str, Json]:
    """Say the same as a template would."""
    target: dict[str, Json] = {"service": "local", "spot": opts.spot}
    given: dict[str, Json] = {"cpus": opts.cpus, "memory": opts.memory, "gpus": _gpus(opts, ctx)}
    target |= {name: value for name, value in given.items() if value is not None}
    container: dict[str, Json] = {"shm_size": opts.shm_size, "ipc": opts.ipc}
    arguments: dict[str, Json] = {name: value for name, value in container.items() if value is not None}
    return {
        "target": target,
        "environment": {"image": opts.image},
        "jobs": [{"submit_args": {"container_args": arguments}}],
    }


def _gpus(opts: Options, ctx: Context) -> int | None:
    """Count the GPUs. Raises UserError when `all` is none."""
    if opts.gpus != ALL_GPUS:
        return None if opts.gpus is None else int(opts.gpus)
    from aj.backend.local import machine

    known = ctx.config.setting("local.gpus").value
    count = int(str(known)) if known is not None else machine.count_gpus(ctx.settings)
    if count == 0:
        raise UserError("`--gpus all`: this machine has no GPU", hint="`aj config set --user local.gpus N` if it has")
    return count
