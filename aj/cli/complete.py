"""What may come next on a half-typed command line, for the shells: `aj __complete WORDS...`.

The last word is the one being typed. The answer is a line `\\x1fbegin`, then one candidate a line with its
explanation behind a tab; `\\x1fprefix` tells what stands before every candidate in the same word, `\\x1ffiles`
that the shell should complete file names. Only files of this machine are looked at, nothing is started, and
whatever goes wrong means no candidates.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from pathlib import Path
from typing import TYPE_CHECKING

from aj.base import paths
from aj.base.errors import AjError, OptionError
from aj.cli import declare, tree, words

if TYPE_CHECKING:
    from aj.base.settings import Settings
    from aj.cli.declare import Declaration
    from aj.cli.words import Line

BEGIN, PREFIX, FILES = "\x1fbegin", "\x1fprefix", "\x1ffiles"
# What a command needs to run, and its declaration does not.
LATER = tuple(f"aj.{floor}." for floor in ("backend", "client", "model", "pack", "store", "template", "view", "wire"))
JOURNAL_END = 256 << 10  # bytes of the journal in which sessions are looked for
TEMPLATE_BEGIN = 64 << 10  # bytes of a template in which its bases are looked for
LOOKED_AT = 200  # records of jobs that are read at a press of the key, 20 ms
MOST = 500  # more candidates help nobody, and a shell shows them slowly

Candidate = tuple[str, str]


def answer(typed: Sequence[str], settings: Settings) -> str:
    """Return the whole answer for a line; the words end with the one being typed."""
    *prior, current = _merged(typed) or [""]
    try:
        found = _candidates(prior, current, settings)
    except (AjError, OSError):
        found = []
    prefix = ""
    if current.startswith("--") and "=" in current:
        prefix = current.partition("=")[0] + "="
        current = current.removeprefix(prefix)
    lines = [BEGIN] + ([f"{PREFIX}\t{prefix}"] if prefix else [])
    for name, says in found[:MOST]:
        if name == FILES:
            lines.append(FILES)
        elif name.startswith(current) and name.isprintable():
            lines.append(f"{name}\t{says}")
    return "\n".join(lines) + "\n"


def _merged(typed: Sequence[str]) -> list[str]:
    """Put `--option`, `=`, `value` together again: bash hands them over in three words."""
    merged: list[str] = []
    for word in typed:
        joins = merged and (word == "=" or merged[-1].endswith("=")) and merged[-1].startswith("--")
        if joins:
            merged[-1] += word
        else:
            merged.append(word)
    return merged


def _candidates(prior: Sequence[str], current: str, settings: Settings) -> list[Candidate]:
    try:
        found = words.find(prior)
        if found.command is None:
            return _next_word(found.path, current, settings)
        below = _next_word(found.path, current, settings) if found.path in tree.GROUPS and not found.rest else []
        declaration = _declaration(found.command.module)
        line = words.take(found.rest, declaration, found.line)
    except OptionError as error:
        values = error.details.get("values") if error.code == "missing-value" else None
        return list(_values(str(values), settings)) if values else []
    own = _within(declaration, line, current, settings)
    return own if current.startswith("-") else [*below, *own]


def _next_word(path: tuple[str, ...], current: str, settings: Settings) -> list[Candidate]:
    """Complete the name of a command, or an option before it."""
    if current.startswith("-"):
        return _options(declare.Declaration(()), current, settings)
    return [(child, tree.says((*path, child))) for child in tree.children(path)]


class _Later:
    """Finds modules whose code runs only when something of them is used: most of a command is not, here."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        if path is None or not name.startswith(LATER):
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def _declaration(module: str) -> Declaration:
    """Read what a command declares, without paying for what it does."""
    sys.meta_path.insert(0, _Later)
    try:
        return declare.read(importlib.import_module(module).Options)
    finally:
        sys.meta_path.remove(_Later)


def _within(declaration: Declaration, line: Line, current: str, settings: Settings) -> list[Candidate]:
    """Complete a word of a command: an option, or the place that comes next."""
    places = [word for _, word in declaration.places]
    taken = len(line.places)
    here = places[min(taken, len(places) - 1)] if places else None
    if here and here.freezes and taken >= len(places):
        return [(FILES, "")]
    if current.startswith("-"):
        return _options(declaration, current, settings)
    if here is None or (taken >= len(places) and not here.many):
        return []
    if here.freezes:
        return [(FILES, "")]
    return [value for value in _values(here.values, settings) if value[0] not in line.places]


def _options(declaration: Declaration, current: str, settings: Settings) -> list[Candidate]:
    options = [*(option for _, option in declaration.options), *words.GLOBALS.values()]
    if "=" in current:
        name = current.partition("=")[0]
        option = next((option for option in options if name in option.accepted and option.value), None)
        return list(_values(option.values, settings)) if option else []
    return [(name, option.says) for option in options for name in option.spellings if name.startswith(current)]


def _values(kind: str, settings: Settings) -> Iterable[Candidate]:
    """Return the values of a kind; unknown kinds and those without values have none."""
    if kind in ("file", "folder"):
        return [(FILES, "")]
    if kind in STATIC:
        return [(word, "") for word in STATIC[kind]]
    finder = FINDERS.get(kind)
    return finder(settings) if finder else []


def _templates(settings: Settings) -> list[Candidate]:
    project = paths.find_project(settings, paths.working_directory(settings))
    names = os.listdir(project.directory / "template") if project else []
    return [(name, "") for name in sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))]


def _leaves(settings: Settings) -> list[Candidate]:
    """The templates that a job takes: those with the key `base`."""
    project = paths.find_project(settings, paths.working_directory(settings))
    return [
        found
        for found in _templates(settings)
        if project and _is_leaf(project.directory / "template" / f"{found[0]}.yaml")
    ]


def _is_leaf(path: Path) -> bool:
    """Whether a file seems to have the key `base`. One that cannot be read is left to the command, which says why."""
    try:
        with path.open("rb") as file:
            begin = file.read(TEMPLATE_BEGIN)
    except OSError:
        return True
    return re.search(rb"^(?:\{ *)?[\"']?base[\"']?\s*:", begin, re.MULTILINE) is not None


def _tickets(settings: Settings) -> list[Candidate]:
    project = paths.find_project(settings, paths.working_directory(settings))
    key = project.key if project else paths.NO_PROJECT
    return [
        (name.removesuffix(".json"), "")
        for name in _newest_first(paths.folders(settings).state / "queue" / key)
        if name.startswith("q-") and name.endswith(".json")
    ]


def _jobs(settings: Settings) -> list[Candidate]:
    return [(name, "") for name in _newest_first(paths.folders(settings).state / "jobs") if not name.startswith(".")]


def _open_jobs(settings: Settings) -> list[Candidate]:
    """The jobs that have not ended, among the newest; a record that cannot be read is left out."""
    import json

    folder = paths.folders(settings).state / "jobs"
    found = []
    for name, _ in _jobs(settings)[:LOOKED_AT]:
        try:
            state = json.loads((folder / name / "record.json").read_bytes())["state"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        found += [] if state in ENDED else [(name, str(state))]
    return found


def _newest_first(folder: Path) -> list[str]:
    with os.scandir(folder) as listed:
        entries = [(entry.stat().st_mtime, entry.name) for entry in listed]
    return [name for _, name in sorted(entries, reverse=True)]


def _kept(noun: str) -> Callable[[Settings], list[Candidate]]:
    """Return what finds the names that a list of Azure had when it was last asked for."""

    def names(settings: Settings) -> list[Candidate]:
        import json

        kept = (paths.folders(settings).state / "cache" / "names" / f"{noun}.json").read_bytes()
        try:
            return [(name, "") for name in json.loads(kept)["value"] if isinstance(name, str)]
        except (ValueError, KeyError, TypeError):
            return []

    return names


def _deployments(settings: Settings) -> list[Candidate]:
    return [found for found in _below(paths.folders(settings).state / "deployments") if not found[0].startswith(".")]


def _buckets(settings: Settings) -> list[Candidate]:
    return _below(paths.folders(settings).state / "buckets")


def _credentials(settings: Settings) -> list[Candidate]:
    named = _below(paths.folders(settings).state / "credentials")
    return [("local", ""), *((name.removesuffix(".json"), "") for name, _ in named if name.endswith(".json"))]


def _secrets(settings: Settings) -> list[Candidate]:
    return _below(paths.folders(settings).state / "secrets")


def _callers(settings: Settings) -> list[Candidate]:
    from aj.base import agents

    said = [str(line["agent"]) for line in _said_by_agents(settings) if line["agent"]]
    names = dict.fromkeys([*agents.AGENTS, *said])
    return [*((name, "") for name in names), ("all", "")]


def _sessions(settings: Settings) -> list[Candidate]:
    titles: dict[str, str] = {}
    for line in _said_by_agents(settings):
        titles.setdefault(str(line["session"]), " ".join(str(line.get("session_title") or line["agent"] or "").split()))
    return [*titles.items(), ("all", "")]


def _said_by_agents(settings: Settings) -> list[dict[str, object]]:
    """Return what the end of the project's journal says of sessions, the newest first."""
    import json

    project = paths.find_project(settings, paths.working_directory(settings))
    key = project.key if project else paths.NO_PROJECT
    path = paths.folders(settings).state / "journal" / f"{key}.jsonl"
    if not path.is_file():
        return []
    with path.open("rb") as journal:
        journal.seek(max(0, os.fstat(journal.fileno()).st_size - JOURNAL_END))
        lines = journal.read(JOURNAL_END).split(b"\n")
    found: list[dict[str, object]] = []
    for line in reversed(lines):
        if b'"session":"' in line:
            try:
                value = json.loads(line)
            except ValueError:
                continue  # cut off at its beginning, or damaged
            if isinstance(value, dict) and isinstance(value.get("session"), str):
                found.append({"agent": None, **value})
    return found


def _below(folder: Path) -> list[Candidate]:
    if not folder.is_dir():
        return []
    return [(name, "") for name in sorted(os.listdir(folder)) if not name.startswith(".")]


def _services(_: Settings) -> list[Candidate]:
    from aj.backend import registry

    return [(name, entry.says) for name, entry in registry.ENTRIES.items()]


def _setting_keys(_: Settings) -> list[Candidate]:
    from aj.store import keys

    return [(name, key.says) for name, key in keys.KEYS.items()]


def _docs(_: Settings) -> list[Candidate]:
    folder = Path(__file__).parents[1] / "docs"
    return [(path.stem, "") for path in sorted(folder.glob("*.md"))]


def _pages(_: Settings) -> list[Candidate]:
    first = [(child, tree.says((child,))) for child in tree.children(())]
    return [*first, *tree.TOPICS.items()]


ENDED = ("completed", "errored", "failed", "invalid", "terminated")
JOB_STATES = (
    *("queued", "provisioning", "initializing", "downloading", "syncing", "starting", "running", "finalizing"),
    *("retrying", "recovering", *ENDED),
)
STATIC = {
    "format": words.FORMATS,
    "shell": ("bash", "zsh", "fish"),
    "agent": ("all", "copilot", "codex", "claude"),
    "ticket-state": ("queued", "running", "completed", "failed", "canceled", "unknown", "never-arrived"),
    "record-state": ("intended", "submitted", "unknown", *JOB_STATES, "deleted"),
    "job-state": JOB_STATES,
    "job-kind": ("automl", "command", "labeling", "pipeline", "spark", "sweep"),
    "storage": ("azure", "dir"),
    "window": ("day", "week", "month"),
    "by": ("key", "sas", "sign-in"),
    "show": ("argv", "files", "body", "manifest"),
    "notify": ("desktop", "cmd:", "webhook:https://"),
    "source": ("user", "runner", "platform"),
}
FINDERS = {
    "template": _templates,
    "leaf": _leaves,
    "bucket": _buckets,
    "deployment": _deployments,
    "credential": _credentials,
    "secret": _secrets,
    "caller": _callers,
    "session": _sessions,
    "ticket": _tickets,
    "job": _jobs,
    "open-job": _open_jobs,
    "service": _services,
    "setting": _setting_keys,
    "workspace": _kept("workspaces"),
    "datastore": _kept("datastores"),
    "environment": _kept("environments"),
    "experiment": _kept("experiments"),
    "help": _pages,
    "docs": _docs,
}
