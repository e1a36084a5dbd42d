"""What people type when they mean one of our words: the hint of a wrong command or option.

Words of other programs are in tables; otherwise a hint is given only when the word is really near.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from aj.base import text
from aj.cli import tree

if TYPE_CHECKING:
    from aj.base.errors import OptionError

NEAR = 0.75  # likeness of two words, 0 to 1: a slip of one or two keys, not another word
MOST = 3  # more commands than this are a list, not a hint

# Words of other programs below a path, and what they are called here (from the root).
COMMANDS: Mapping[tuple[str, ...], Mapping[str, str]] = {
    (): {
        "ls": "list",
        "history": "list",
        "jobs": "job list",
        "submit": "run",
        "launch": "run",
        "start": "run",
        "kill": "terminate",
        "stop": "terminate",
        "cancel": "terminate",
        "delete": "job delete",
        "rm": "job delete",
        "ps": "status",
        "top": "status",
        "show": "status",
        "tail": "logs",
        "log": "logs",
        "ssh": "exec",
        "attach": "exec",
        "shell": "exec",
        "retry": "resubmit",
        "restart": "resubmit",
        "doc": "docs",
        "man": "docs",
        "templates": "template list",
    },
    ("job",): {"kill": "job cancel", "stop": "job cancel", "rm": "job delete", "log": "job logs", "tail": "job logs"},
    ("deployment",): {
        "ls": "deployment list",
        "show": "deployment status",
        "get": "deployment status",
        "update": "deployment upgrade",
        "scale": "deployment upgrade",
        "apply": "deployment create",
        "rm": "deployment delete",
        "stop": "deployment delete",
    },
    ("bucket",): {
        "ls": "bucket list",
        "show": "bucket list",
        "rm": "bucket delete",
        "make": "bucket create",
        "mb": "bucket create",
        "put": "bucket upload",
        "push": "bucket upload",
        "get": "bucket download",
        "pull": "bucket download",
        "sync": "bucket download",
    },
    ("credentials",): {"ls": "credentials list", "add": "credentials create", "rm": "credentials delete"},
    ("secrets",): {
        "ls": "secrets list",
        "add": "secrets create",
        "set": "secrets create",
        "rm": "secrets delete",
    },
    ("queue",): {
        "ls": "queue list",
        "rm": "queue cancel",
        "delete": "queue cancel",
        "kill": "queue cancel",
        "stop": "queue cancel",
        "status": "queue show",
        "get": "queue show",
    },
    ("template",): {
        "ls": "template list",
        "get": "template show",
        "cat": "template show",
        "check": "template validate",
    },
    ("config",): {"ls": "config show", "list": "config show", "rm": "config unset", "delete": "config unset"},
    ("code",): {"ls": "code stats --list-all", "list": "code stats --list-all", "show": "code stats"},
    ("daemon",): {"kill": "daemon stop", "log": "daemon logs", "tail": "daemon logs", "ps": "daemon status"},
}
_NAME = "the name comes from the environment: `AJ_NAME=NAME aj run ...`"
_TARGET = "the template says it: `target: {cpus: 4, memory: 8Gi, gpus: 1}`"
_TAIL = "`--tail N`"
_RENTED = "`local` is this machine as it is; a template of `aml` or `sing` chooses a machine by `sku` (`aj run -t`)"
_RUNS = {
    **dict.fromkeys(("--region", "--zone", "--vm-type", "--gpu-type", "--disk-size", "--disk-tier"), _RENTED),
    "--credentials": f"nothing is rented: {_RENTED}",
    "--name": "the name comes from the environment: `AJ_NAME=NAME aj job ...`",
    "-t": "`aj run -t TEMPLATE` takes a template",
    "--bind": "a job sees no folder of the machine: `--input-bucket`, or `local/host` as the image",
    "--runtime": "podman's own setting chooses it",
    "--network": "a job on `local` has the machine's network",
    "--image": "the image is the first word: `aj job IMAGE -- CMD`",
}
# Options of other programs, and what says the same here.
OPTIONS: Mapping[tuple[str, ...], Mapping[str, str]] = {
    ("run",): {
        "--name": _NAME,
        "--job-name": _NAME,
        "--gpus": "`-p N`",
        "--cpus": _TARGET,
        "--mem": _TARGET,
        "--memory": _TARGET,
        "--image": "the template says it: `environment: {image: ...}`",
        "--spot": "the template says it: `target: {spot: true}`; or `aj job IMAGE --spot`",
        "--detach": "without `--wait` it returns at once",
    },
    ("job",): _RUNS,
    ("job", "submit"): _RUNS,
    ("logs",): {"-n": _TAIL, "--lines": _TAIL, "--last": _TAIL},
    ("job", "logs"): {"-n": _TAIL, "--lines": _TAIL, "--last": _TAIL},
    ("daemon", "logs"): {"-n": _TAIL, "--lines": _TAIL},
    ("terminate",): {"--force": "`--grace 0`", "-9": "`--grace 0`"},
}


def command(path: Sequence[str], word: str) -> str | None:
    """Return the command that a wrong word below a path most likely means, as it is typed after `aj`."""
    meant = COMMANDS.get(tuple(path), {}).get(word)
    if meant is not None:
        return meant
    near = slip(word, tree.children(tuple(path)))
    return " ".join([*path, near]) if near else None


def slip(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that a word is a slip of: really near, or with two letters in each other's place."""
    words = tuple(known)
    return text.nearest(word, words, NEAR) or next((name for name in words if _is_swapped(word, name)), None)


def _is_swapped(word: str, name: str) -> bool:
    """Whether two neighbours stand in each other's place: `rnu`."""
    differing = [at for at, pair in enumerate(zip(word, name, strict=False)) if pair[0] != pair[1]]
    if len(word) != len(name) or len(differing) != 2 or differing[1] != differing[0] + 1:
        return False
    at = differing[0]
    return word[at : at + 2] == name[at + 1] + name[at]


def option(name: str, known: Iterable[str]) -> str | None:
    """Return the known option that a wrong one is a slip of."""
    spelled = {spelling.lstrip("-"): spelling for spelling in known if spelling.startswith("--")}
    near = slip(name.lstrip("-"), spelled) if name.startswith("--") else None
    return spelled[near] if near else None


def behind_command(error: OptionError, path: tuple[str, ...]) -> OptionError:
    """Give a wrong option of a command the hint of what says the same there."""
    hint = OPTIONS.get(path, {}).get(str(error.details.get("option")))
    error.hint = hint or error.hint
    return error


def behind_group(error: OptionError, path: tuple[str, ...]) -> OptionError:
    """Give an option that stands before the command's name the hint of where it belongs."""
    name = str(error.details.get("option"))
    if error.code != "unknown-option":
        return error
    having = [found for found in _leaves(path) if name in _spellings(found)]
    if not path and having:
        error.hint = "options of a command stand behind its name"
    elif having:
        error.hint = ", ".join(f"`aj {' '.join(found)} {name}`" for found in having[:MOST])
    return error


def _leaves(path: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [found for found in tree.COMMANDS if found[: len(path)] == path]


def _spellings(path: tuple[str, ...]) -> Iterable[str]:
    from aj.cli import app, declare  # the rooms of the commands, only on the way to an error

    return declare.read(app.room(tree.COMMANDS[path]).Options).by_spelling
