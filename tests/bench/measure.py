"""Measure whole processes: CPU seconds of the child as the system counts them, medians of several runs."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """Medians (and minimum wall) of one command: seconds, and peak memory in MiB."""

    cpu_s: float
    wall_s: float
    wall_min_s: float
    peak_mib: float


def once(argv: Sequence[str], env: Mapping[str, str], cwd: str | None = None) -> tuple[float, float, float]:
    """Run a command and return its CPU seconds, wall seconds and peak MiB, children included."""
    started = time.perf_counter()
    child = subprocess.Popen(
        argv, env=dict(env), cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, _, used = os.wait4(child.pid, 0)
    child.returncode = 0
    wall = time.perf_counter() - started
    return used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024


def figure(argv: Sequence[str], env: Mapping[str, str], *, runs: int = 10, cwd: str | None = None) -> Figure:
    """Measure a command after one warm-up."""
    once(argv, env, cwd)
    taken = [once(argv, env, cwd) for _ in range(runs)]
    cpu, wall, peak = zip(*taken)
    return Figure(statistics.median(cpu), statistics.median(wall), min(wall), max(peak))


def row(name: str, value: Figure, base: Figure | None = None, budget: float | None = None) -> str:
    """One line of a table: CPU, wall, and the ratio to a base with its budget."""
    words = f"{name:44s} cpu {value.cpu_s * 1000:7.1f} ms   wall {value.wall_s * 1000:7.1f} ms"
    words += f"   peak {value.peak_mib:6.1f} MiB"
    if base is not None:
        ratio = value.cpu_s / base.cpu_s
        words += f"   {ratio:5.2f} x"
        if budget is not None:
            words += f" (budget {budget:g} x{', met' if ratio <= budget else ', NOT met'})"
    return words


def here() -> resource.struct_rusage:
    """Return what this process used so far."""
    return resource.getrusage(resource.RUSAGE_SELF)
