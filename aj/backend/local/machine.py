"""What this machine has to give: cpus, memory, GPUs."""

from __future__ import annotations

import os

from aj.backend.local import limits
from aj.base import proc
from aj.base.settings import Settings
from aj.model.workload import Needs

ASK_GPUS_S = 20.0  # waking the driver of many cards takes seconds


def capacity(settings: Settings, gpus: int | None) -> Needs:
    """Return what all jobs together may take. `gpus` is a setting that holds instead of what is found."""
    return Needs(
        cpus=float(cpu_count()),
        memory_bytes=limits.memory_of_machine(),
        gpus=gpus if gpus is not None else count_gpus(settings),
    )


def cpu_count() -> int:
    """Return how many cpus this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def count_gpus(settings: Settings) -> int:
    """Count the lines of `nvidia-smi -L`; 0 where there is no such program or it fails."""
    program = proc.find("nvidia-smi", settings.get("PATH"))
    if program is None:
        return 0
    try:
        found = proc.run([program, "-L"], env=settings.env, timeout_s=ASK_GPUS_S)
    except (OSError, TimeoutError):
        return 0
    return 0 if found.code else sum(line.startswith(b"GPU ") for line in found.out.splitlines())
