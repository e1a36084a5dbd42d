"""What a template may ask of this machine: CPUs, memory, GPUs, and the environment of the submitting shell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from aj.base.noun import dataclass
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
    """What one node of the job takes: `cpus` may be a fraction. None makes no claim."""

    cpus: float | None = None
    memory_bytes: int | None = None
    gpus: int | None = None
    facts: Facts = field(default_factory=Facts)


def parse(config: Section) -> Options:
    """Read the options of this service. Raises TemplateError with every fault."""
    reader, _ = sections.config(config)
    target = reader.section("target")
    cpus, memory = target.quantity("cpus"), target.quantity("memory")
    gpus = target.whole("gpus", 0, 4096)
    _no_image(reader)
    warnings = _without_effect(reader)
    issue.stop_at_errors(reader.issues)
    facts = Facts(
        sku_rule=SkuRule.UNUSED, sku_processes=gpus or 0, runs_here=True, warnings=(*reader.issues, *warnings)
    )
    memory_bytes = None if memory is None else int(memory.value)
    return Options(None if cpus is None else cpus.value, memory_bytes, gpus, facts)


def of(spec: JobSpec) -> Options:
    """Read the options of an accepted job. Raises TemplateError."""
    return parse(tree.section_of(spec.config))


def lent(env: Mapping[str, str], more: Sequence[str] = ()) -> dict[str, str]:
    """Return the part of a shell's environment that a job of this machine gets; `more` are names to add."""
    names = LENT | set(more)
    return {name: value for name, value in env.items() if name in names or name.startswith(LENT_PREFIXES)}


def _no_image(reader: Reader) -> None:
    """Refuse an image: jobs of this machine run as plain processes."""
    environment = reader.section("environment")
    if environment.text("image"):
        hint = "take the image out, or write `image: !unset ` in this template, to run on the machine itself"
        environment.wrong("image", "an image cannot run on `local` yet: its jobs are plain processes", hint=hint)


def _without_effect(reader: Reader) -> list[Issue]:
    """Warn of a section that nothing on this machine acts on."""
    if not reader.section("storage").node.entries:
        return []
    place = reader.node.key_place("storage")
    return [issue.warning("`storage` has no effect on `local`: nothing is mounted", place, path="storage")]
