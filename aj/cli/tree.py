"""Finding a command by its words: paths, aliases, groups, and the headings of the help page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aj.cli import commands
from aj.cli.leaf import AZURE, COMPUTE, HEADINGS, JOBS, KUBERNETES, PROJECT, STARTED, SYSTEM, Command, Group

TOPICS: Mapping[str, str] = {
    "exit-codes": "what the exit codes mean",
    "environment": "every environment variable that is read",
    "templates": "how templates are written and merged",
    "formatting": "formats, streams, times and colours",
}
COMMANDS: Mapping[tuple[str, ...], Command] = {command.path: command for command in commands.COMMANDS}
GROUPS: Mapping[tuple[str, ...], Group] = {group.path: group for group in commands.GROUPS}

# The first words of each heading as the help page shows them.
ORDER: Mapping[str, tuple[str, ...]] = {
    STARTED: ("init", "run", "docs", "help"),
    JOBS: (
        *("job", "status", "wait", "logs", "exec", "terminate", "resubmit"),
        *("cost", "list", "exp", "queue", "watch"),
    ),
    COMPUTE: ("deployment", "bucket", "credentials", "secrets", "budget", "throttle", "spend"),
    AZURE: ("auth", "ws", "ds", "env", "image", "sku", "quota", "sa", "uai"),
    KUBERNETES: ("k8s",),
    PROJECT: ("template", "config", "code", "skill"),
    SYSTEM: ("daemon", "doctor", "completion", "schema", "version"),
}
# Other spellings of a path. They run the same code and stand in no list.
ALIASES: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("tl",): ("template", "list"),
    ("pull",): ("template", "pull"),
    ("push",): ("template", "push"),
    ("jl",): ("job", "list"),
    ("js",): ("job", "show"),
    ("jc",): ("job", "cancel"),
    ("jlogs",): ("job", "logs"),
    ("ql",): ("quota", "list"),
    ("job", "ls"): ("job", "list"),
    ("experiment",): ("exp",),
    ("k",): ("k8s",),
    ("workspace",): ("ws",),
    ("datastore",): ("ds",),
    ("job", "status"): ("job", "show"),
    ("job", "terminate"): ("job", "cancel"),
    ("api",): ("daemon",),
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
    for word in ORDER[heading]:
        if (word,) in COMMANDS or (word,) in GROUPS:
            yield (word,), says((word,))
