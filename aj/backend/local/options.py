"""What a template may ask of this machine: CPUs, memory, GPUs, an image, and what its job sees of the shell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from aj.base.noun import dataclass
from aj.model import image
from aj.model.job import JobSpec
from aj.template import issue, sections, tree
from aj.template.issue import Issue
from aj.template.reader import Reader
from aj.template.service import Facts, SkuRule
from aj.template.tree import Section

# What a program needs of its user's shell to run as it does there. Everything else stays behind, so a secret
# that happens to be exported does not travel into records.
LENT = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH"}
    | {"XDG_RUNTIME_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"}
    | {"http_proxy", "https_proxy", "no_proxy", "all_proxy"}
)
LENT_PREFIXES = ("LC_", "CONDA_", "CUDA_", "NVIDIA_")


@dataclass(frozen=True)
class Options:
    """What one node of the job takes: `cpus` may be a fraction. None makes no claim.

    `shm_bytes` is the size of its own /dev/shm; `ipc` is `host` for that of the machine.
    """

    cpus: float | None = None
    memory_bytes: int | None = None
    gpus: int | None = None
    shm_bytes: int | None = None
    ipc: str | None = None
    facts: Facts = field(default_factory=Facts)


def parse(config: Section) -> Options:
    """Read the options of this service. Raises TemplateError with every fault."""
    reader, job = sections.config(config)
    target = reader.section("target")
    cpus, memory = target.quantity("cpus"), target.quantity("memory")
    gpus = target.whole("gpus", 0, 4096)
    found = _image(reader)
    container = job.section("submit_args").section("container_args")
    shm_bytes, ipc = sections.shm_size(container), container.one_of("ipc", ("host",))
    if shm_bytes is not None and memory is not None and shm_bytes > memory.value:
        container.wrong("shm_size", "`shm_size` counts against `memory`, and is larger", hint="raise `memory`")
    warnings = _without_effect(reader, job)
    issue.stop_at_errors(reader.issues)
    facts = Facts(
        image=found,
        sku_rule=SkuRule.UNUSED,
        sku_processes=gpus or 0,
        runs_here=image.is_host(found),
        takes_buckets=True,
        warnings=(*reader.issues, *warnings),
    )
    memory_bytes = None if memory is None else int(memory.value)
    return Options(None if cpus is None else cpus.value, memory_bytes, gpus, shm_bytes, ipc, facts)


def of(spec: JobSpec) -> Options:
    """Read the options of an accepted job. Raises TemplateError."""
    return parse(tree.section_of(spec.config))


def lent(env: Mapping[str, str], more: Sequence[str] = ()) -> dict[str, str]:
    """Return the part of a shell's environment that a job of this machine gets; `more` are names to add."""
    names = LENT | set(more)
    return {name: value for name, value in env.items() if name in names or name.startswith(LENT_PREFIXES)}


def _image(reader: Reader) -> str | None:
    """Read the image, if one is given; `local/host` is the machine itself."""
    if not reader.section("environment").has("image"):
        return None
    return sections.image(reader)


def _without_effect(reader: Reader, job: Reader) -> list[Issue]:
    """Warn of what nothing on this machine acts on."""
    found: list[Issue] = []
    if reader.section("storage").node.entries:
        place = reader.node.key_place("storage")
        found.append(issue.warning("`storage` has no effect on `local`: nothing is mounted", place, path="storage"))
    hints = {"sku": "`target: {cpus: 4, memory: 8Gi, gpus: 1}` says what the job takes of this machine"}
    for key in ("sku", "sla_tier", "priority", "identity"):
        if job.has(key):
            words, hint = f"`{key}` has no effect on `local`", hints.get(key)
            found.append(issue.warning(words, job.place(key), path=job.at(key), hint=hint, code="no-effect"))
    return found
