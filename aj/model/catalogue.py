"""Instance types: the machines that a series of quota can be spent on, one row a type and region."""

from __future__ import annotations

from collections.abc import Iterable

from aj.base.noun import dataclass

PREFIX = "Singularity."


@dataclass(frozen=True)
class InstanceType:
    """One type in one region. `memory_gib` is that of the machine, `gpu_memory_gb` that of each GPU.

    `vendor`, `accelerator`, `gpu_memory_gb` and `scratch_gib` are None where nobody published them, and for
    machines without GPUs.
    """

    name: str
    series: str
    region: str
    gpus: int = 0
    cores: int = 0
    memory_gib: float = 0.0
    vendor: str | None = None
    accelerator: str | None = None
    gpu_memory_gb: int | None = None
    has_nvlink: bool = False
    has_infiniband: bool = False
    scratch_gib: int | None = None

    @property
    def is_gpu(self) -> bool:
        return self.gpus > 0

    @property
    def short(self) -> str:
        """Its name without the service's prefix."""
        return self.name.removeprefix(PREFIX)

    @property
    def full(self) -> str:
        """Its name as a job writes it."""
        return PREFIX + self.short

    @property
    def size(self) -> str:
        """Its size in words."""
        return f"{self.cores} cores {self.memory_gib:g} GiB"


def sizes(types: Iterable[InstanceType], series: str, region: str) -> tuple[InstanceType, ...]:
    """Return the machines without GPUs of a series in a region, the smallest first: the first is `C1`."""
    here = (
        kind
        for kind in types
        if not kind.is_gpu and kind.series.lower() == series.lower() and kind.region.lower() == region.lower()
    )
    return tuple(sorted(here, key=lambda kind: (kind.cores, kind.memory_gib, kind.name)))


def shorthand(kind: InstanceType, types: Iterable[InstanceType]) -> str:
    """Return the SKU of one node of a type, as `80G8-H100-NvLink` or `C3`. `types` is the whole catalogue."""
    if not kind.is_gpu:
        return f"C{sizes(types, kind.series, kind.region).index(kind) + 1}"
    memory = "" if kind.gpu_memory_gb is None else str(kind.gpu_memory_gb)
    parts = [kind.accelerator.upper() if kind.accelerator else "", "NvLink" if kind.has_nvlink else ""]
    return "-".join([f"{memory}G{kind.gpus}", *(part for part in parts if part)])
