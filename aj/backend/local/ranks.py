"""What each process of a local job is started with: words, directory and environment. Pure.

The environment is built from the bottom up: defaults of this machine, what the submitting shell lends,
the pairs of template and command line, then the names that always hold. The names of torch's launcher
are set only where nobody set them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from aj.backend.local import lines as watched
from aj.base.noun import dataclass
from aj.base.settings import INJECTED
from aj.model.job import JobSpec, injected

MASTER = "127.0.0.1"
# Output goes to files, where Python would keep lines back until some kilobytes are full.
DEFAULTS = {"PYTHONUNBUFFERED": "1"}
# In bash the words are kept aside first: a template line may change the positional parameters.
BASH_HEAD = 'aj_words=("$@")'
BASH_TAIL = 'exec -- "${aj_words[@]}"'
SH_TAIL = 'exec "$@"'


@dataclass(frozen=True)
class Facts:
    """What only the place of the run knows. `gpus` is None on a machine without any; `notes`, `scratch` are folders."""

    shell: str
    workdirs: tuple[str, ...]
    port: int
    accepted_at: str
    notes: str = "."
    gpus: tuple[int, ...] | None = None
    digest: str | None = None
    archive_sha256: str | None = None
    folders: Mapping[str, str] = field(default_factory=dict)
    scratch: str | None = None


@dataclass(frozen=True)
class Process:
    """One process to start, by its exact words. `mark` is the file in which it notes which of `lines` failed."""

    node: int
    cwd: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    mark: str = ""
    lines: tuple[str, ...] = ()


def ranks(spec: JobSpec, facts: Facts) -> list[Process]:
    """Return the processes of the command, by rank."""
    per_node = spec.shape.processes_per_node
    found = []
    for rank in range(spec.shape.world_size):
        node, local = divmod(rank, per_node)
        mark = f"{facts.notes}/failed-rank{rank}"
        argv = (facts.shell, "-c", script(spec.lines, facts.shell, mark), "aj", *spec.argv)
        env = environment(spec, facts, node, local)
        found.append(Process(node, facts.workdirs[node], argv, env, mark, spec.lines))
    return found


def setups(spec: JobSpec, facts: Facts) -> list[Process]:
    """Return the processes that prepare the nodes, one a node; none when there is nothing to prepare."""
    if not spec.setup:
        return []
    found = []
    for node in range(spec.shape.nodes):
        mark = f"{facts.notes}/failed-setup{node}"
        argv = (facts.shell, "-c", watched.script(spec.setup, facts.shell, mark))
        found.append(Process(node, facts.workdirs[node], argv, _of_node(spec, facts, node), mark, spec.setup))
    return found


def script(lines: Sequence[str], shell: str, mark: str) -> str:
    """Return shell text that runs the template's lines, stops at one that fails, and becomes the command."""
    is_bash = watched.is_bash(shell)
    if not lines:
        return 'exec -- "$@"' if is_bash else SH_TAIL
    before, after = (BASH_HEAD, BASH_TAIL) if is_bash else ("", SH_TAIL)
    return watched.script(lines, shell, mark, before=before, after=after)


def environment(spec: JobSpec, facts: Facts, node: int, local: int) -> dict[str, str]:
    """Return the whole environment of one process."""
    env = _of_node(spec, facts, node)
    per_node = spec.shape.processes_per_node
    torch = {
        "RANK": str(node * per_node + local),
        "LOCAL_RANK": str(local),
        "NODE_RANK": str(node),
        "WORLD_SIZE": str(spec.shape.world_size),
        "LOCAL_WORLD_SIZE": str(per_node),
        "MASTER_ADDR": MASTER,
        "MASTER_PORT": str(facts.port),
    }
    return {**torch, **env}


def _of_node(spec: JobSpec, facts: Facts, node: int) -> dict[str, str]:
    """What every process of a node has, setup included."""
    always = injected(spec, accepted_at=facts.accepted_at, digest=facts.digest, archive_sha256=facts.archive_sha256)
    always |= {"AJ_WORKDIR": facts.workdirs[node], "AJ_NODE_RANK": str(node)}
    always |= {f"AJ_{name.upper()}_DIR": where for name, where in facts.folders.items()}
    lent = {name: value for name, value in spec.inherited.items() if name not in INJECTED}
    scratch = {} if facts.scratch is None else {"TMPDIR": facts.scratch}
    return {**DEFAULTS, **lent, **scratch, **_gpus(spec, facts, node), **spec.env, **always}


def _gpus(spec: JobSpec, facts: Facts, node: int) -> dict[str, str]:
    """The GPUs of a node: its share of those that the job was given, by their numbers."""
    if facts.gpus is None:
        return {}
    share = len(facts.gpus) // spec.shape.nodes
    mine = facts.gpus[node * share : (node + 1) * share]
    return {"CUDA_VISIBLE_DEVICES": ",".join(str(index) for index in mine)}


def shell_words(argv: Sequence[str], shell: str) -> tuple[str, ...]:
    """Return how to run what was given to `exec`: one word is a line of shell, several are exact words."""
    return (shell, "-c", argv[0]) if len(argv) == 1 else tuple(argv)
