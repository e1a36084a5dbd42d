"""aj run: submit a command with the settings of a template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.errors import OptionError
from aj.base.noun import dataclass
from aj.cli import buckets, declare, words
from aj.cli.declare import Option, Word, choice, dollars, duration, filled
from aj.cli.notify import Notify

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.cli.submit import Manner

SHOWS = ("argv", "files", "body", "manifest")


@dataclass(frozen=True)
class Options:
    """What to submit, with which sizes, and what to do then."""

    command: Annotated[
        tuple[str, ...], Word("COMMAND", "a program or a .py or .sh file, with its words", many=True, freezes=True)
    ]
    template: Annotated[
        str | None,
        Option("-t --template", "the template, a file with `base:`; else the default one", "NAME", values="leaf"),
    ] = None
    nodes: Annotated[str | None, Option("-n --nodes", "nodes; else the template's", "N")] = None
    processes: Annotated[
        str | None,
        Option("-p --processes --gpn --gpus-per-node", "GPUs of a node (G SKU), or the size tier (C SKU)", "N"),
    ] = None
    per_node: Annotated[
        str | None, Option("--ppn --processes-per-node", "processes that are started on each node (1)", "N")
    ] = None
    env: Annotated[
        tuple[str, ...], Option("-e --env", "a variable of the job; a name alone takes yours", "K=V", repeats=True)
    ] = ()
    env_file: Annotated[
        tuple[str, ...],
        Option(
            "--env-file", "a K=V a line, taken literally: no quotes, no expansion", "FILE", repeats=True, values="file"
        ),
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
    dry_run: Annotated[bool, Option("-d --dry-run", "send nothing; check, and print the path of the YAML")] = False
    show: Annotated[
        str | None, Option("--show", "with -d: argv, files, body or manifest", "VIEW", choice(*SHOWS), values="show")
    ] = None
    show_env: Annotated[bool, Option("--show-env", "with -d: do not mask values with secret names")] = False
    strict: Annotated[bool, Option("--strict", "a warning is an error")] = False
    notify: Notify = ()
    queue: Annotated[bool, Option("--queue", "stand in line, and return as soon as that is certain")] = False
    wait: Annotated[bool, Option("--wait", "until the job has ended")] = False
    follow: Annotated[bool, Option("--follow", "as --wait, with its log on stdout")] = False
    label: Annotated[bool, Option("--label", "with --follow: `[rank 2]` before each line")] = False
    wait_timeout_s: Annotated[
        float | None, Option("--wait-timeout", "give up waiting after this long", "DURATION", duration)
    ] = None
    exit_status: Annotated[bool, Option("--exit-status", "end with the job's own exit code")] = False
    timeout_s: Annotated[
        float | None, Option("--timeout", "fail unless it has started within this long", "DURATION", duration)
    ] = None
    max_cost: Annotated[int | None, Option("--max-cost", "end it when it has cost so many dollars", "USD", dollars)] = (
        None
    )
    experiment: Annotated[str | None, Option("--experiment", "the experiment", "NAME")] = None
    workspace: Annotated[str | None, Option("--ws", "the Azure ML workspace", "NAME", filled, values="workspace")] = (
        None
    )
    require_clean: Annotated[bool, Option("--require-clean", "refuse a changed git tree")] = False
    amlt: Annotated[bool, Option("--amlt", "render for the external amlt program")] = False


def run(opts: Options, ctx: Context) -> int:
    """Submit, or render with `-d`. Raises what is wrong before anything is sent."""
    _check(opts)
    _tell_misplaced(opts, ctx)
    if opts.dry_run:
        from aj.cli import dryrun

        return dryrun.run(opts, ctx)
    from aj.cli import submit

    return submit.run(opts, ctx)


def _tell_misplaced(opts: Options, ctx: Context) -> None:
    """Say which words behind COMMAND look like options of `aj run` and are the program's."""
    found = words.behind_program(opts.command[1:], declare.read(Options))
    if found:
        belong = "belongs" if len(found) == 1 else "belong"
        ctx.screen.note(f"{', '.join(found)} {belong} to {opts.command[0]}: options of `aj run` stand before COMMAND")


def _check(opts: Options) -> None:
    """Refuse options that contradict each other. Raises OptionError."""
    if not opts.command[0]:
        raise OptionError("COMMAND is empty", hint="`aj run -t TEMPLATE train.py`")
    if opts.queue and opts.dry_run:
        raise OptionError("`-d` sends nothing that could stand in line", hint="leave out `--queue`")
    if (opts.show or opts.show_env) and not opts.dry_run:
        raise OptionError("`--show` and `--show-env` belong to a dry run", hint="add `-d`")
    if opts.dry_run and opts.notify:
        raise OptionError("`-d` sends nothing of which one could be told", hint="leave out `--notify`")
    if opts.dry_run and (opts.wait or opts.follow):
        raise OptionError("`-d` sends nothing that one could wait for", hint="leave out `--wait` and `--follow`")
    check_manner(opts)


def check_manner(opts: Manner) -> None:
    """Refuse ways of submitting that contradict each other. Raises OptionError."""
    if opts.queue and (opts.wait or opts.follow):
        raise OptionError(
            "`--queue` returns at once: not with `--wait` or `--follow`",
            hint="leave out `--queue`; or submit with it, then `aj wait TICKET`, and `aj logs TICKET -f` once it runs",
        )
    if opts.label and not opts.follow:
        raise OptionError("`--label` belongs to `--follow`", hint="add `--follow`")
    if (opts.exit_status or opts.wait_timeout_s is not None) and not (opts.wait or opts.follow):
        raise OptionError("`--exit-status` and `--wait-timeout` belong to `--wait`", hint="add `--wait`")
