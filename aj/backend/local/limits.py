"""How much a job may use: control groups where the machine lets us make them, else what is left.

A group of its own also names every process of a job for certain, whatever sessions and parents it
made for itself. With version 2 a group is made where the controllers are already switched on for
children and we may move processes (a delegated subtree, or root); with version 1 below our own group
of each controller. Without a group a claim on cpus is kept by pinning, and one on memory is not kept.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aj.base.errors import AjError
from aj.base.noun import dataclass

if TYPE_CHECKING:  # the supervisor starts with every job and has no use for the nouns of the daemon
    from aj.model.workload import Needs

PREFIX = "aj-"  # of the names of our groups
PERIOD_US = 100_000  # the kernel's own default for cpu quotas
SMALLEST_QUOTA_US = 1_000  # the kernel refuses less
NO_GROUP = "no writable cgroup"


@dataclass(frozen=True)
class Limits:
    """What was made for a job: its groups, the cpus it is pinned to, and notes on what is not kept."""

    groups: tuple[str, ...] = ()
    cpus: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


def setup(name: str, needs: Needs) -> Limits:
    """Make the groups of a job, or find them again, and set its limits. Never fails: notes tell what is missing."""
    groups, kept = _version2(name, needs) or _version1(name, needs)
    notes: list[str] = []
    cpus: tuple[int, ...] = ()
    if needs.memory_bytes is not None and "memory" not in kept:
        notes.append(f"memory: not enforced ({NO_GROUP})")
    if needs.cpus is not None and "cpu" not in kept:
        cpus = _pinned(name, needs.cpus)
        notes.append(
            f"cpus: kept to {len(cpus)} by pinning ({NO_GROUP})" if cpus else f"cpus: not enforced ({NO_GROUP})"
        )
    return Limits(tuple(str(group) for group in groups), cpus, tuple(notes))


def _pinned(name: str, cpus: float) -> tuple[int, ...]:
    """Choose whole cpus; the name decides where to begin, so that jobs do not all share the first ones."""
    if not hasattr(os, "sched_getaffinity"):
        return ()
    usable = sorted(os.sched_getaffinity(0))
    count = min(len(usable), max(1, math.ceil(cpus)))
    first = zlib.crc32(name.encode()) % len(usable)
    return tuple(sorted((usable + usable)[first : first + count]))


def join(groups: Sequence[str]) -> None:
    """Put the calling process into the groups. Raises OSError."""
    for group in groups:
        handle = os.open(f"{group}/cgroup.procs", os.O_WRONLY)
        try:
            os.write(handle, b"0")
        finally:
            os.close(handle)


def members(groups: Sequence[str]) -> set[int]:
    """Return the living processes in the groups."""
    found: set[int] = set()
    for group in groups:
        try:
            found.update(int(line) for line in Path(group, "cgroup.procs").read_bytes().split())
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENODEV):
                raise
    return found


def release(groups: Sequence[str], pid: int) -> None:
    """Move a process out of the groups, up into what contains them."""
    for group in groups:
        with contextlib.suppress(OSError):  # it ended meanwhile
            Path(group).parent.joinpath("cgroup.procs").write_text(str(pid))


def oom_kills(groups: Sequence[str]) -> int:
    """Return how many processes the kernel has killed because the job was over its memory limit."""
    count = 0
    for group in groups:
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError):
                for line in Path(group, name).read_text().splitlines():
                    key, _, value = line.partition(" ")
                    count += int(value) if key == "oom_kill" else 0
    return count


def remove(groups: Sequence[str]) -> None:
    """Remove the groups. Raises AjError while a process is left in one."""
    for group in groups:
        try:
            os.rmdir(group)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENODEV):
                raise AjError(f"cannot remove {group}: {error.strerror}", code="cannot-remove") from error


def memory_of_machine() -> int | None:
    """Return how much memory jobs can have together: the machine's, or our own group's limit if less."""
    found = [total] if (total := _total_memory()) else []
    for mount in _mounts():
        name = "memory.max" if mount.version == 2 else "memory.limit_in_bytes"
        if mount.version == 2 or "memory" in mount.controllers:
            with contextlib.suppress(OSError, ValueError):  # `max`: no limit
                found.append(int(mount.own.joinpath(name).read_text()))
    return min(found, default=None)


def _total_memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


@dataclass(frozen=True)
class _Mount:
    """A mounted hierarchy: where, of which version, for which controllers, and our own group in it."""

    version: int
    top: Path
    own: Path
    controllers: frozenset[str]


def _mounts() -> Iterator[_Mount]:
    try:
        table = Path("/proc/self/mountinfo").read_text()
        ours = dict(_own_groups(Path("/proc/self/cgroup").read_text()))
    except OSError:
        return  # not Linux
    for line in table.splitlines():
        left, _, right = line.partition(" - ")
        words, kind = left.split(), right.split()
        if len(words) < 5 or len(kind) < 3 or kind[0] not in ("cgroup", "cgroup2"):
            continue
        root, top = words[3], Path(words[4])
        version = 2 if kind[0] == "cgroup2" else 1
        options = frozenset(kind[2].split(","))
        names, own = next(
            ((known, path) for known, path in ours.items() if known <= options and bool(known) == (version == 1)),
            (frozenset(), None),
        )
        yield _Mount(version, top, _below(top, root, own), names)


def _own_groups(text: str) -> Iterator[tuple[frozenset[str], str]]:
    for line in text.splitlines():
        _, names, path = line.split(":", 2)
        yield frozenset(name for name in names.split(",") if name), path


def _below(top: Path, root: str, own: str | None) -> Path:
    """Return our own group as it is seen below a mount, not counting a group that we made for a job."""
    relative = os.path.relpath(own, root) if own else "."
    path = top / relative if not relative.startswith("..") else top
    if not path.is_dir():
        path = top  # inside a container the table names a path of the outside
    while path.name.startswith(PREFIX) and path != top:
        path = path.parent
    return path


def _version2(name: str, needs: Needs) -> tuple[list[Path], set[str]] | None:
    for mount in _mounts():
        if mount.version != 2 or "memory" not in _words(mount.top / "cgroup.controllers"):
            continue
        for parent in (mount.own, *mount.own.parents):
            made = _group2(parent, name, needs)
            if made is not None:
                return made
            if parent == mount.top:
                break
    return None


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _group2(parent: Path, name: str, needs: Needs) -> tuple[list[Path], set[str]] | None:
    """Make a group where children have a memory controller and processes may be moved to."""
    if "memory" not in _words(parent / "cgroup.subtree_control"):
        return None
    if not os.access(parent / "cgroup.procs", os.W_OK):
        return None
    group = parent / f"{PREFIX}{name}"
    try:
        group.mkdir(exist_ok=True)
    except OSError:
        return None
    kept = set()
    if needs.memory_bytes is not None and _write(group / "memory.max", needs.memory_bytes):
        _write(group / "memory.swap.max", 0)
        kept.add("memory")
    if needs.cpus is not None and _write(group / "cpu.max", f"{_quota(needs.cpus)} {PERIOD_US}"):
        kept.add("cpu")
    return [group], kept


def _version1(name: str, needs: Needs) -> tuple[list[Path], set[str]]:
    groups, kept = [], set()
    for mount in _mounts():
        if mount.version != 1 or not mount.controllers & {"memory", "cpu"}:
            continue
        if "memory" not in mount.controllers and needs.cpus is None:
            continue  # nothing to limit, and the memory group already names the processes
        group = mount.own / f"{PREFIX}{name}"
        try:
            group.mkdir(exist_ok=True)
        except OSError:
            continue
        groups.append(group)
        kept |= _limit1(group, mount.controllers, needs)
    return groups, kept


def _limit1(group: Path, controllers: frozenset[str], needs: Needs) -> set[str]:
    kept = set()
    memory, cpus = needs.memory_bytes, needs.cpus
    if "memory" in controllers and memory is not None and _write(group / "memory.limit_in_bytes", memory):
        kept.add("memory")
        _write(group / "memory.memsw.limit_in_bytes", memory)  # not on every kernel
    if "cpu" in controllers and cpus is not None and _write(group / "cpu.cfs_period_us", PERIOD_US):
        kept.update({"cpu"} if _write(group / "cpu.cfs_quota_us", _quota(cpus)) else ())
    return kept


def _quota(cpus: float) -> int:
    return max(SMALLEST_QUOTA_US, round(cpus * PERIOD_US))


def _write(path: Path, value: object) -> bool:
    try:
        path.write_text(str(value))
    except OSError:
        return False
    return True
