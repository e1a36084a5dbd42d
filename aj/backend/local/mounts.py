"""Folders of its own for a job that runs on the machine itself: `/mnt/output` and the like, seen by it alone.

A process that is about to become the job's enters a mount namespace, as root or as any user where the system
lets users have namespaces. What else is in `/mnt` stays visible. Where neither is possible the job finds its
folders by the variables `AJ_INPUT_DIR`, `AJ_OUTPUT_DIR` and `AJ_CHECKPOINT_DIR`, which always lead there.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Sequence
from pathlib import Path

from aj.base import proc
from aj.base.noun import dataclass

MNT = "/mnt"
SHM = "/dev/shm"
TRY_S = 10.0  # for making a namespace, which takes a millisecond
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
# A user's namespace may not drop what the mount below it has: statvfs flag -> mount flag.
KEPT_FLAGS = ((os.ST_NOSUID, 2), (os.ST_NODEV, 4), (os.ST_NOEXEC, 8), (os.ST_NOATIME, 1024), (os.ST_RELATIME, 1 << 21))


@dataclass(frozen=True)
class Mounts:
    """What a job sees beyond the machine: `folders` are names below /mnt with the folders that stand there.

    `read_only` are the names that it cannot write to. `shm_bytes` is the size of its own /dev/shm, None for the
    machine's. `stage` is an empty folder to build on.
    """

    folders: tuple[tuple[str, str], ...]
    stage: str
    read_only: tuple[str, ...] = ()
    shm_bytes: int | None = None


@functools.cache
def are_possible() -> bool:
    """Tell whether this user may make mount namespaces on this machine. Found out once, by trying."""
    flags = ["-m"] if os.geteuid() == 0 else ["-Urm"]
    unshare = proc.find("unshare", os.defpath + ":/usr/sbin:/sbin:/usr/bin")
    if unshare is None:
        return False
    try:
        return proc.run([unshare, *flags, "mount", "-t", "tmpfs", "none", MNT], timeout_s=TRY_S).code == 0
    except (OSError, TimeoutError):
        return False


def enter(mounts: Mounts) -> None:
    """Put the calling process into a namespace with these mounts. For a child before its exec. Raises OSError."""
    libc = _Libc()
    _unshare(libc)
    libc.mount("none", "/", None, MS_REC | MS_PRIVATE)
    libc.mount("none", mounts.stage, "tmpfs", 0, "mode=755,size=1m")
    for name, folder in mounts.folders:
        target = f"{mounts.stage}/{name}"
        os.mkdir(target)
        libc.mount(folder, target, None, MS_BIND)
        if name in mounts.read_only:
            libc.mount("none", target, None, MS_REMOUNT | MS_BIND | MS_RDONLY | _flags(target))
    _keep_others(libc, mounts)
    libc.mount(mounts.stage, MNT, None, MS_BIND | MS_REC)
    if mounts.shm_bytes is not None:
        libc.mount("none", SHM, "tmpfs", 0, f"mode=1777,size={mounts.shm_bytes}")
    with contextlib.suppress(OSError):
        os.chdir(os.getcwd())  # the same folder, as the namespace has it


def _keep_others(libc: _Libc, mounts: Mounts) -> None:
    """Show what stands in /mnt on this machine beside the job's own folders."""
    taken = {name for name, _ in mounts.folders}
    with os.scandir(MNT) as entries:
        for entry in entries:
            target = f"{mounts.stage}/{entry.name}"
            if entry.name in taken or entry.is_symlink():
                continue
            if entry.is_dir():
                os.mkdir(target)
            else:
                os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            libc.mount(entry.path, target, None, MS_BIND | MS_REC)


def _unshare(libc: _Libc) -> None:
    """Enter a mount namespace; as a user, also one of users in which everybody keeps his number."""
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        libc.unshare(CLONE_NEWNS)
        return
    libc.unshare(CLONE_NEWNS | CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _flags(path: str) -> int:
    found = os.statvfs(path).f_flag
    return sum(flag for known, flag in KEPT_FLAGS if found & known)


def inside(pid: int, argv: Sequence[str], cwd: str) -> tuple[str, ...]:
    """Return how to run a command in the namespace that a process is in."""
    nsenter = proc.find("nsenter", os.defpath + ":/usr/sbin:/sbin:/usr/bin") or "nsenter"
    users = () if os.geteuid() == 0 else ("-U", "--preserve-credentials")
    return (nsenter, "-t", str(pid), "-m", *users, f"--wd={cwd}", "--", *argv)


class _Libc:
    """The two calls of the system that Python lacks."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)

    def unshare(self, flags: int) -> None:
        if self._libc.unshare(flags) != 0:
            raise _error("unshare")

    def mount(self, source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
        words = [None if word is None else os.fsencode(word) for word in (source, target, kind, options)]
        if self._libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]) != 0:
            raise _error(f"mount {source} on {target}")


def _error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")
