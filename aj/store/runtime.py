"""The runtime folder: who may be in it, where the daemon's socket is, and what the daemon says of itself there.

The folder is private or it is not used: a link, another owner, or a mode that lets others in is an
error that names it, and nothing is made in it. Whoever holds the lock of the one daemon owns the
socket and `daemon.json`; files that a killed daemon left are swept by whoever meets them.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from aj.base.digest import sha256
from aj.base.errors import DaemonError
from aj.base.noun import dataclass
from aj.base.proc import Identity
from aj.model.json import Json
from aj.store import atomic
from aj.store.layout import Layout

# A socket's path has 104 bytes on macOS and 108 on Linux, the closing NUL included.
MAX_SOCKET_PATH = 100


@dataclass(frozen=True)
class DaemonFile:
    """What stands in `daemon.json`: which process it is, what it speaks, where it listens."""

    who: Identity
    version: str
    protocol_min: int
    protocol_max: int
    instance: str
    socket: str


@dataclass(frozen=True)
class Place:
    """The runtime folder of one user, and the folder and path of the socket."""

    layout: Layout

    @property
    def folder(self) -> Path:
        return self.layout.folders.runtime

    @property
    def socket(self) -> Path:
        """The socket: in the folder, or at a short path when that one would be too long for the system."""
        near = self.layout.socket
        if len(os.fsencode(near)) <= MAX_SOCKET_PATH:
            return near
        digest = sha256(os.fsencode(self.folder)).hexdigest()[:16]
        return Path(f"/tmp/aj-{os.getuid()}") / f"{digest}.sock"

    @property
    def instance_lock(self) -> Path:
        """Held by a daemon for its life, so that there is one and no more."""
        return self.folder / "instance.lock"

    def check(self) -> None:
        """Look at the folders. Raises DaemonError when one exists that is not private."""
        for folder in {self.folder, self.socket.parent}:
            check_private(folder)

    def prepare(self) -> None:
        """Make the folders when they are absent. Raises DaemonError when one is not private, AjError on a full disk."""
        self.check()
        for folder in {self.folder, self.socket.parent}:
            if not folder.exists():
                atomic.make_folder(folder)
            check_private(folder)

    def read(self) -> DaemonFile | None:
        """Return what the last daemon said of itself, or None when it said nothing that can be read."""
        try:
            value = json.loads(self.layout.daemon_file.read_bytes())
            who = Identity(int(value["pid"]), str(value["start_time"]), str(value["boot_id"]))
            spoken = value["protocol"]
            return DaemonFile(
                who, str(value["version"]), int(spoken["min"]), int(spoken["max"]),
                str(value["instance"]), str(value["socket"]),
            )  # fmt: skip
        except (OSError, ValueError, RecursionError, KeyError, TypeError):
            return None

    def write(self, file: DaemonFile) -> None:
        """Say which daemon this is. Raises AjError when the disk refuses."""
        value: Mapping[str, Json] = {
            "pid": file.who.pid,
            "start_time": file.who.start_time,
            "boot_id": file.who.boot_id,
            "version": file.version,
            "protocol": {"min": file.protocol_min, "max": file.protocol_max},
            "instance": file.instance,
            "socket": file.socket,
        }
        atomic.write_json(self.layout.daemon_file, value)

    def remove(self) -> None:
        """Remove socket and `daemon.json`. Only for whoever knows that no daemon uses them."""
        for path in (self.socket, self.layout.daemon_file):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def check_private(folder: Path) -> None:
    """Raise DaemonError naming path, owner and mode unless the folder is absent or private to this user."""
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise DaemonError(f"{folder}: {error.strerror}", code="runtime-folder") from error
    what = f"owner {found.st_uid}, mode {stat.S_IMODE(found.st_mode):04o}"
    details = {"path": str(folder), "owner": found.st_uid, "mode": f"{stat.S_IMODE(found.st_mode):04o}"}
    if stat.S_ISLNK(found.st_mode):
        problem, hint = "is a link", "set AJ_RUNTIME_DIR to a folder of your own"
    elif not stat.S_ISDIR(found.st_mode):
        problem, hint = "is not a folder", f"`rm {folder}`"
    elif found.st_uid != os.getuid():
        problem, hint = (
            f"belongs to somebody else, not to user {os.getuid()}",
            "set AJ_RUNTIME_DIR to a folder of your own",
        )
    elif stat.S_IMODE(found.st_mode) & 0o077:
        problem, hint = "is open to other users", f"`chmod 700 {folder}`"
    else:
        return
    raise DaemonError(f"{folder} {problem} ({what})", hint=hint, code="runtime-folder", details=details)
