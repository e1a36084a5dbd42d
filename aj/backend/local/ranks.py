"""What each process of a local job is started with: words, directory and environment. Pure.

The environment is built from the bottom up: defaults of this machine, what the submitting shell lends,
the pairs of template and command line, then the names that always hold. The names of torch's launcher
are set only where nobody set them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aj.base.settings import INJECTED
from aj.model.job import JobSpec, injected

MASTER = "127.0.0.1"
# Output goes to files, where Python would keep lines back until some kilobytes are full.
DEFAULTS = {"PYTHONUNBUFFERED": "1"}
# In bash the words are kept aside first: a template line may change the positional parameters.
BASH_HEAD = ('aj_words=("$@")', "set -e")
BASH_TAIL = 'exec -- "${aj_words[@]}"'
SH_HEAD = ("set -e",)
SH_TAIL = 'exec "$@"'


@dataclass(frozen=True)
class Facts:
    """What only the place of the run knows. `gpus` is None on a machine without any."""

    shell: str
    workdirs: tuple[str, ...]
    port: int
    accepted_at: str
    gpus: tuple[int, ...] | None = None
    digest: str | None = None
    archive_sha256: str | None = None


@dataclass(frozen=True)
class Process:
    """One process to start, by its exact words."""

    node: int
    cwd: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)


def ranks(spec: JobSpec, facts: Facts) -> list[Process]:
    """Return the processes of the command, by rank."""
    per_node = spec.shape.processes_per_node
    argv = (facts.shell, "-c", script(spec.lines, facts.shell), "aj", *spec.argv)
    return [
        Process(node, facts.workdirs[node], argv, environment(spec, facts, node, local))
        for node in range(spec.shape.nodes)
        for local in range(per_node)
    ]


def setups(spec: JobSpec, facts: Facts) -> list[Process]:
    """Return the processes that prepare the nodes, one a node; none when there is nothing to prepare."""
    if not spec.setup:
        return []
    argv = (facts.shell, "-c", "\n".join(("set -e", *spec.setup)))
    return [Process(node, facts.workdirs[node], argv, _of_node(spec, facts, node)) for node in range(spec.shape.nodes)]


def script(lines: Sequence[str], shell: str) -> str:
    """Return shell text that runs the template's lines, stops at one that fails, and becomes the command."""
    is_bash = shell.rpartition("/")[2] == "bash"
    if not lines:
        return 'exec -- "$@"' if is_bash else SH_TAIL
    head, tail = (BASH_HEAD, BASH_TAIL) if is_bash else (SH_HEAD, SH_TAIL)
    return "\n".join((*head, *lines, tail))


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
    lent = {name: value for name, value in spec.inherited.items() if name not in INJECTED}
    return {**DEFAULTS, **lent, **_gpus(spec, facts, node), **spec.env, **always}


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
