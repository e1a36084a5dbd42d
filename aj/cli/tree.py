"""Every command of `aj`, as data: where it stands, what it does in one line, how it can end.

Nothing of a command is imported to list it. The help, the man pages and the completion read this room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ALL = ("table", "json", "jsonl", "yaml", "name")
NO_IDS = ("table", "json", "jsonl", "yaml")
TEXT_ONLY = ("table",)

STARTED, JOBS, PROJECT, SYSTEM = "Getting started", "Jobs", "Project", "System"
HEADINGS = (STARTED, JOBS, PROJECT, SYSTEM)


@dataclass(frozen=True)
class Command:
    """One command. `module` holds its `Options`, `command` and `run`; `exits` are its codes beside 0 and 70.

    `local` commands read the state on this machine only: no daemon, no network. `streams` commands print
    records as they come, so that `json` is `jsonl` there. `kind` names the document that it prints.
    """

    path: tuple[str, ...]
    module: str
    says: str
    examples: tuple[str, ...]
    exits: tuple[int, ...] = (2,)
    formats: tuple[str, ...] = ALL
    heading: str = ""
    local: bool = False
    streams: bool = False
    kind: str = ""

    @property
    def name(self) -> str:
        return " ".join(self.path)


@dataclass(frozen=True)
class Group:
    """A word that has commands below it."""

    path: tuple[str, ...]
    says: str
    heading: str


def _command(
    path: str,
    says: str,
    *examples: str,
    exits: tuple[int, ...] = (2,),
    formats: tuple[str, ...] = ALL,
    heading: str = "",
    module: str = "",
    local: bool = False,
    streams: bool = False,
    kind: str = "",
) -> Command:
    where = module or "aj.cli." + path.replace(" ", ".")
    return Command(tuple(path.split()), where, says, examples, exits, formats, heading, local, streams, kind)


_GROUPS = (
    Group(("init",), "make a project", STARTED),
    Group(("job",), "jobs of this machine", JOBS),
    Group(("queue",), "submissions that wait, run or ended", JOBS),
    Group(("template",), "templates: what a job needs", PROJECT),
    Group(("config",), "settings of the project and of the user", PROJECT),
    Group(("code",), "the code that travels with a job", PROJECT),
    Group(("daemon",), "the process that submits and runs", SYSTEM),
)

_COMMANDS = (
    _command(
        "init local",
        "make a project that runs on this machine",
        "aj init local",
        "aj init local --yes",
        exits=(2, 5),
        formats=NO_IDS,
        kind="result/init",
    ),
    _command(
        "run",
        "submit a command with the settings of a template",
        "aj run -t local train.py",
        "aj run -t local -n 2 --ppn 4 --wait train.py --lr 1e-3",
        "aj run -t gpu -d train.py",
        "aj run -t gpu --queue bash -c 'make data && make train'",
        exits=(1, 2, 3, 4, 5, 6, 7, 124, 130),
        heading=STARTED,
        kind="submission",
    ),
    _command(
        "help",
        "the help of a command, or of a topic",
        "aj help run",
        "aj help exit-codes",
        "aj help environment",
        formats=NO_IDS,
        heading=STARTED,
        local=True,
        kind="help",
    ),
    _command(
        "docs",
        "the documentation, page by page",
        "aj docs",
        "aj docs templates",
        formats=NO_IDS,
        heading=STARTED,
        local=True,
        kind="docs",
    ),
    _command(
        "status",
        "where a job stands, and what happened to it",
        "aj status",
        "aj status 1a2b3c4d",
        exits=(1, 2, 3, 7),
        heading=JOBS,
        kind="status",
    ),
    _command(
        "wait",
        "wait until jobs have ended",
        "aj wait 1a2b3c4d && echo trained",
        "aj wait 1a2b3c4d 5e6f7a8b --timeout 2h",
        exits=(1, 2, 3, 6, 7, 124, 130),
        formats=("table", "json", "jsonl"),
        heading=JOBS,
        streams=True,
    ),
    _command(
        "logs",
        "what a job printed",
        "aj logs 1a2b3c4d",
        "aj logs 1a2b3c4d -f --rank 0",
        exits=(1, 2, 3, 7, 130),
        formats=("table", "json", "jsonl"),
        heading=JOBS,
        kind="logs",
    ),
    _command(
        "exec",
        "run a command inside a running job",
        'aj exec 1a2b3c4d "nvidia-smi -L"',
        "aj exec 1a2b3c4d python -c 'import os; print(os.getcwd())'",
        exits=(1, 2, 3, 5, 7),
        formats=TEXT_ONLY,
        heading=JOBS,
    ),
    _command(
        "terminate",
        "ask jobs to end",
        "aj terminate 1a2b3c4d",
        "aj terminate 1a2b3c4d --grace 5s --wait",
        exits=(1, 2, 3, 5, 6, 7, 124),
        heading=JOBS,
        kind="result",
    ),
    _command(
        "resubmit",
        "run an ended job again under its own id",
        "aj resubmit 1a2b3c4d",
        "aj resubmit 1a2b3c4d --when-clean",
        exits=(1, 2, 3, 5, 7),
        heading=JOBS,
        kind="result",
    ),
    _command(
        "list",
        "the history of submissions, newest first",
        "aj list",
        "aj list -s failed --since 1d",
        exits=(2,),
        heading=JOBS,
        local=True,
        kind="journal.list",
    ),
    _command(
        "job list",
        "jobs of this machine, newest first",
        "aj job list",
        "aj job list -s running -o name",
        exits=(1, 2, 7),
        kind="job.list",
    ),
    _command(
        "job show",
        "the same as `aj status`",
        "aj job show 1a2b3c4d",
        exits=(1, 2, 3, 7),
        module="aj.cli.status",
        kind="status",
    ),
    _command(
        "job why",
        "why a job does not run yet",
        "aj job why 1a2b3c4d",
        exits=(1, 2, 3, 7),
        formats=NO_IDS,
        kind="job.why",
    ),
    _command(
        "job logs",
        "the same as `aj logs`",
        "aj job logs 1a2b3c4d --tail 20",
        exits=(1, 2, 3, 7, 130),
        formats=("table", "json", "jsonl"),
        module="aj.cli.logs",
        kind="logs",
    ),
    _command(
        "job cancel",
        "the same as `aj terminate`",
        "aj job cancel 1a2b3c4d",
        exits=(1, 2, 3, 5, 6, 7, 124),
        module="aj.cli.terminate",
        kind="result",
    ),
    _command(
        "job delete",
        "remove an ended job with its logs and files",
        "aj job delete 1a2b3c4d --yes",
        exits=(1, 2, 3, 5, 7),
        kind="result",
    ),
    _command(
        "queue list",
        "tickets of this project, oldest first",
        "aj queue list",
        "aj queue list --all -s failed",
        local=True,
        kind="queue.list",
    ),
    _command(
        "queue show",
        "one ticket with its times, outcome and error",
        "aj queue show q-1a2b3c4d",
        exits=(2, 3),
        local=True,
        kind="queue.entry",
    ),
    _command(
        "queue wait",
        "wait until tickets have ended",
        "aj queue wait q-1a2b3c4d",
        "aj queue wait q-1a2b3c4d --timeout 10m",
        exits=(1, 2, 3, 7, 124, 130),
        kind="queue.list",
    ),
    _command(
        "queue cancel",
        "take waiting tickets out of the queue",
        "aj queue cancel q-1a2b3c4d",
        "aj queue cancel --all-pending --yes",
        exits=(1, 2, 3, 5, 7),
        kind="result",
    ),
    _command(
        "queue resume",
        "go on with waiting tickets",
        "aj queue resume",
        "aj queue resume --all",
        exits=(1, 2, 5, 7),
        kind="result",
    ),
    _command(
        "queue retry",
        "submit a failed ticket once more",
        "aj queue retry q-1a2b3c4d",
        exits=(1, 2, 3, 5, 6, 7),
        kind="result",
    ),
    _command(
        "queue reconcile",
        "find out what became of submissions with an unknown outcome",
        "aj queue reconcile",
        "aj queue reconcile q-1a2b3c4d",
        exits=(1, 2, 3, 5, 6, 7),
        kind="result",
    ),
    _command(
        "template list",
        "templates of this project",
        "aj template list",
        "aj template list --json",
        local=True,
        kind="template.list",
    ),
    _command(
        "template show",
        "a template with everything it inherits",
        "aj template show gpu",
        "aj template show gpu --origin",
        "aj template show gpu --why target.name",
        exits=(2, 3),
        formats=NO_IDS,
        local=True,
        kind="template",
    ),
    _command(
        "template validate",
        "check templates, one or all",
        "aj template validate",
        "aj template validate gpu --strict",
        exits=(2, 3),
        formats=NO_IDS,
        local=True,
        kind="template.validation",
    ),
    _command(
        "template compare",
        "the difference between two resolved templates",
        "aj template compare local gpu",
        exits=(2, 3),
        formats=NO_IDS,
        local=True,
        kind="template.diff",
    ),
    _command(
        "config show",
        "all settings and where they come from",
        "aj config show",
        formats=NO_IDS,
        local=True,
        kind="config",
    ),
    _command(
        "config path", "the files that hold settings", "aj config path", formats=NO_IDS, local=True, kind="config.path"
    ),
    _command(
        "config get", "one setting", "aj config get template", exits=(2, 3), formats=NO_IDS, local=True, kind="config"
    ),
    _command(
        "config set",
        "change a setting of this project, or of the user",
        "aj config set template local",
        "aj config set --user color never",
        exits=(1, 2, 5),
        formats=NO_IDS,
        local=True,
        kind="config",
    ),
    _command(
        "config unset",
        "take a setting back",
        "aj config unset template",
        exits=(1, 2, 5),
        formats=NO_IDS,
        local=True,
        kind="result/unset",
    ),
    _command(
        "config experiment",
        "show or set the experiment of this project",
        "aj config experiment",
        "aj config experiment baseline",
        exits=(1, 2, 5),
        formats=NO_IDS,
        local=True,
        kind="config",
    ),
    _command(
        "config timezone",
        "show or set the time zone of tables",
        "aj config timezone",
        "aj config timezone Europe/Berlin",
        exits=(1, 2, 5),
        formats=NO_IDS,
        local=True,
        kind="config",
    ),
    _command(
        "code stats",
        "which files would travel, and why others would not",
        "aj code stats -t gpu",
        "aj code stats --explain data/train.bin",
        exits=(2, 3),
        formats=NO_IDS,
        local=True,
        kind="code.stats",
    ),
    _command(
        "daemon start", "start the daemon", "aj daemon start", exits=(1, 2, 7), formats=NO_IDS, kind="result/start"
    ),
    _command(
        "daemon status",
        "whether the daemon runs",
        "aj daemon status",
        exits=(2, 3, 7),
        formats=NO_IDS,
        local=True,
        kind="daemon",
    ),
    _command(
        "daemon stop",
        "end the daemon when its running submission is done",
        "aj daemon stop",
        "aj daemon stop --force",
        exits=(1, 2, 7, 124),
        formats=NO_IDS,
        local=True,
        kind="result/stop",
    ),
    _command(
        "daemon restart",
        "end the daemon and start it with this environment",
        "aj daemon restart",
        exits=(1, 2, 7, 124),
        formats=NO_IDS,
        kind="result/start",
    ),
    _command(
        "daemon logs",
        "what the daemon wrote into its log",
        "aj daemon logs --tail 50",
        exits=(2, 3, 130),
        formats=TEXT_ONLY,
        local=True,
    ),
    _command(
        "completion",
        "the completion script of a shell",
        'eval "$(aj completion bash)"',
        "aj completion zsh --install",
        exits=(1, 2),
        formats=TEXT_ONLY,
        heading=SYSTEM,
        local=True,
    ),
    _command(
        "schema",
        "the JSON schema of a command's answer",
        "aj schema queue list",
        "aj schema",
        formats=("table", "json", "yaml"),
        heading=SYSTEM,
        local=True,
    ),
    _command(
        "version",
        "the version of this program",
        "aj version",
        "aj version -v",
        formats=NO_IDS,
        heading=SYSTEM,
        local=True,
        kind="version",
    ),
)

TOPICS: Mapping[str, str] = {
    "exit-codes": "what the exit codes mean",
    "environment": "every environment variable that is read",
    "templates": "how templates are written and merged",
    "formatting": "formats, streams, times and colours",
}
COMMANDS: Mapping[tuple[str, ...], Command] = {command.path: command for command in _COMMANDS}
GROUPS: Mapping[tuple[str, ...], Group] = {group.path: group for group in _GROUPS}

# Other spellings of a path. They run the same code and stand in no list.
ALIASES: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("tl",): ("template", "list"),
    ("jl",): ("job", "list"),
    ("js",): ("job", "show"),
    ("jc",): ("job", "cancel"),
    ("jlogs",): ("job", "logs"),
    ("job", "ls"): ("job", "list"),
    ("job", "status"): ("job", "show"),
    ("job", "terminate"): ("job", "cancel"),
}


def resolve(path: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the path that these words mean, or None when no command begins with them."""
    path = ALIASES.get(path, path)
    return path if path in COMMANDS or path in GROUPS else None


def children(path: tuple[str, ...]) -> list[str]:
    """Return the words that may follow a group's path, in the order of the help page; aliases not among them."""
    if not path:
        return [name[0] for heading in HEADINGS for name, _ in under(heading)]
    depth = len(path)
    found = [*GROUPS, *COMMANDS]
    return list(dict.fromkeys(name[depth] for name in found if len(name) > depth and name[:depth] == path))


def says(path: tuple[str, ...]) -> str:
    """Return the line of a command or a group."""
    return COMMANDS[path].says if path in COMMANDS else GROUPS[path].says


def under(heading: str) -> Iterable[tuple[tuple[str, ...], str]]:
    """Yield the first words of a heading with their lines, in order."""
    order = {
        STARTED: ("init", "run", "docs", "help"),
        JOBS: ("job", "status", "wait", "logs", "exec", "terminate", "resubmit", "list", "queue"),
        PROJECT: ("template", "config", "code"),
        SYSTEM: ("daemon", "completion", "schema", "version"),
    }[heading]
    for word in order:
        yield (word,), says((word,))
