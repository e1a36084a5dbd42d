"""One command as data: where it stands, what it does in one line, how it can end. Nothing of it is imported."""

from __future__ import annotations

from aj.base.noun import dataclass

ALL = ("table", "json", "jsonl", "yaml", "name")
NO_IDS = ("table", "json", "jsonl", "yaml")
TEXT_ONLY = ("table",)

STARTED, JOBS, COMPUTE, AZURE = "Getting started", "Jobs", "Compute", "Azure"
KUBERNETES, PROJECT, SYSTEM = "Kubernetes", "Project", "System"
HEADINGS = (STARTED, JOBS, COMPUTE, AZURE, KUBERNETES, PROJECT, SYSTEM)


@dataclass(frozen=True)
class Command:
    """One command. `module` holds its `Options` and `run`; `exits` are its codes beside 0, 1 and 70.

    `local` commands read the state on this machine only: no daemon, no network. `streams` commands print
    records as they come, so that `json` is `jsonl` there. `kind` names the document that it prints.
    """

    path: tuple[str, ...]
    module: str
    says: str
    examples: tuple[str, ...]
    exits: tuple[int, ...] = (2,)
    formats: tuple[str, ...] = ALL
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


def command(
    path: str,
    says: str,
    *examples: str,
    exits: tuple[int, ...] = (2,),
    formats: tuple[str, ...] = ALL,
    module: str = "",
    local: bool = False,
    streams: bool = False,
    kind: str = "",
) -> Command:
    where = module or "aj.cli." + path.replace(" ", ".")
    return Command(tuple(path.split()), where, says, examples, exits, formats, local, streams, kind)
