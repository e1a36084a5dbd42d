"""What a line of text says of a machine: vendor, accelerator, memory of each GPU, links, scratch space.

No list of models stands here: the model is whatever word follows the vendor's, so one that nobody has
heard of yet is understood. Memory is what the text says; only where it is silent, and only for a model
of which exactly one size exists, a table fills it in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from aj.base.noun import dataclass

# GB of each GPU, for models that were built with one size only. A100 and V100 were not.
MEMORY_GB: Mapping[str, int] = MappingProxyType(
    {"A10": 24, "H200": 141, "K80": 12, "L4": 24, "L40S": 48, "M60": 8, "MI25": 16, "MI300X": 192, "P40": 24, "T4": 16}
)
_VENDOR = re.compile(r"\b(?P<vendor>NVIDIA|AMD)\b(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_FAMILY = re.compile(r"N[CD][A-Za-z0-9_]*\Z", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z0-9_]+")
_MEMORY = re.compile(r"\b(?P<size>[0-9]+) ?(?:GB|GiB)\b", re.IGNORECASE)
_NVLINK = re.compile(r"\bNVLink", re.IGNORECASE)
_INFINIBAND = re.compile(r"\b(?:IB|InfiniBand)\b", re.IGNORECASE)
_SCRATCH = re.compile(r"\bScratch Storage \(GiB\): *(?P<size>[0-9]+)", re.IGNORECASE)


@dataclass(frozen=True)
class Hardware:
    """What is known. None means that the text does not tell."""

    vendor: str | None = None
    model: str | None = None
    memory_gb: int | None = None
    has_nvlink: bool = False
    has_infiniband: bool = False
    scratch_gib: int | None = None

    def or_else(self, other: Hardware) -> Hardware:
        """Return the same, with what is not known taken from another text about the same machine."""
        if self.model is not None and other.model is not None and self.model.lower() != other.model.lower():
            other = replace(other, memory_gb=None)  # the memory of another model tells nothing here
        return Hardware(
            self.vendor or other.vendor,
            self.model or other.model,
            self.memory_gb if self.memory_gb is not None else other.memory_gb,
            self.has_nvlink or other.has_nvlink,
            self.has_infiniband or other.has_infiniband,
            self.scratch_gib if self.scratch_gib is not None else other.scratch_gib,
        )

    def with_known_memory(self, sizes: Mapping[str, int]) -> Hardware:
        """Return the same, with the memory of its model by a table when the text was silent."""
        if self.memory_gb is not None or self.model is None:
            return self
        known = {name.lower(): size for name, size in sizes.items()}
        return replace(self, memory_gb=known.get(self.model.lower()))


def known(*texts: str, sizes: Mapping[str, int] = MEMORY_GB) -> Hardware:
    """Read several texts about one machine, the first being the best; a table fills in the memory at last."""
    found = Hardware()
    for words in texts:
        found = found.or_else(read(words))
    return found.with_known_memory(sizes)


def read(words: str) -> Hardware:
    """Read the text of a catalogue row or of a quota."""
    found = _VENDOR.search(words)
    scratch = _SCRATCH.search(words)
    vendor, model, memory = (None, None, None) if found is None else _accelerator(found)
    return Hardware(
        vendor,
        model,
        memory,
        has_nvlink=bool(_NVLINK.search(words)),
        has_infiniband=bool(_INFINIBAND.search(words)),
        scratch_gib=int(scratch["size"]) if scratch else None,
    )


def _accelerator(found: re.Match[str]) -> tuple[str, str | None, int | None]:
    """Vendor, model and memory: the memory stands between the model and the next comma."""
    vendor = "NVIDIA" if found["vendor"].upper() == "NVIDIA" else "AMD"
    about = found["rest"].partition(",")[0]
    words = [word for word in _WORD.findall(about) if not _MEMORY.fullmatch(word)]
    if len(words) > 1 and _FAMILY.match(words[0]):
        words = words[1:]  # `NVIDIA ND H100`: the family of virtual machines stands before the model
    memory = _MEMORY.search(about)
    return vendor, (words[0] if words else None), (int(memory["size"]) if memory else None)
