"""Words of Kubernetes as a template may write them: names, labels, quantities of one container."""

from __future__ import annotations

import re

from aj.base.noun import dataclass
from aj.template import sections
from aj.template.reader import Quantity, Reader
from aj.template.sections import Scratch

SHM = "/dev/shm"
WORKDIR = "/mnt/aj-work"
SECRETS = "/mnt/aj-secrets"
OWN_FOLDERS = ((SHM, "shared memory"), (WORKDIR, "the work directory"), (SECRETS, "the secrets"))
NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")
SUBDOMAIN = re.compile(r"(?=.{1,253}\Z)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*\Z")
RESOURCE = re.compile(r"(?:[a-z0-9.-]{1,253}/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?\Z")
_LABEL_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?\Z")
_RESERVED = ("volcano.sh/", "aj-")


@dataclass(frozen=True)
class Container:
    """What one container takes besides GPUs. None is not requested."""

    shm_bytes: int | None = None
    capabilities: tuple[str, ...] = ()
    scratch: Scratch | None = None
    cpus: Quantity | None = None
    memory: Quantity | None = None


def container(arguments: Reader, taken: tuple[tuple[str, str], ...]) -> Container:
    """Read `container_args`. `taken` are folders that hold something else, each with what it is."""
    return Container(
        shm_bytes=sections.shm_size(arguments),
        capabilities=sections.capabilities(arguments),
        scratch=sections.scratch(arguments, taken=(*OWN_FOLDERS, *taken)),
        cpus=arguments.quantity("cpus"),
        memory=arguments.quantity("memory"),
    )


def check_shm(arguments: Reader, size: int | None, memory: Quantity | None) -> None:
    """Note shared memory that is larger than all memory."""
    if size is not None and memory is not None and size > memory.value:
        arguments.wrong("shm_size", f"`shm_size` is larger than the memory, {memory.text}")


def labels(reader: Reader, key: str, *, values_are_labels: bool = True) -> dict[str, str]:
    """Read labels, or annotations when their values may be any text; reserved keys are errors."""
    section = reader.section(key)
    found = section.named_texts(numbers=True)
    for name, value in found.items():
        prefix, slash, local = name.rpartition("/")
        if not _LABEL_NAME.match(local) or (slash and not SUBDOMAIN.match(prefix)):
            section.wrong(name, f"`{name}` cannot be the key of a label")
        elif name.startswith(_RESERVED):
            section.wrong(name, f"`{name}` is reserved: keys under `volcano.sh/` and `aj-` are set for the job")
        elif values_are_labels and value and not _LABEL_NAME.match(value):
            section.wrong(name, f"`{value}` cannot be the value of a label", hint="at most 63 letters, digits, `-_.`")
    return found
