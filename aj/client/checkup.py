"""A look at what `aj` itself stands on here: project, settings, folders, disk, locks, clock, daemon, queue.

Nothing is asked of any network and nothing is mended; the one thing written is a small file in the state
folder, to see that it can be, and it is removed again.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from aj.base import paths, text, units
from aj.base.clock import Clock
from aj.base.errors import AjError, ConfigError
from aj.base.settings import Settings
from aj.client import presence
from aj.model import finding
from aj.model.finding import Finding
from aj.model.ticket import Outcome, TicketState
from aj.store import atomic, config, lock, tickets
from aj.store.layout import Layout
from aj.store.runtime import Place
from aj.version import VERSION
from aj.wire import version
from aj.wire.daemon import Presence

LITTLE_BYTES, TOO_LITTLE_BYTES = (
    1024**3,
    64 * 1024**2,
)  # below the first large code may not fit, below the second nothing
DRIFT_S = 2.0  # between this clock and that of the disk; a disk of this very machine has none
FIRST_RELEASE = 1_735_689_600.0  # 2025-01-01: an earlier clock is wrong
SHARED = ("nfs", "cifs", "smb", "9p", "fuse.sshfs", "lustre", "gpfs", "beegfs", "ceph")  # locks may not hold there

Check = Callable[[], Finding | Iterator[Finding]]


def look(settings: Settings, layout: Layout, directory: Path, clock: Clock) -> Iterator[Finding]:
    """Yield what every check found, in an order in which the first fault explains the next."""
    for name, check in (
        ("project", lambda: _project(settings, directory)),
        ("settings", lambda: _settings(settings, layout, directory)),
        ("state folder", lambda: _folder(layout)),
        ("disk", lambda: _disk(layout)),
        ("locks", lambda: _locks(layout)),
        ("clock", lambda: _clock(layout, clock)),
        ("daemon", lambda: _daemon(settings, layout)),
        ("queue", lambda: _queue(layout)),
        ("damaged files", lambda: _damaged(layout)),
    ):
        yield from _guarded(name, check)


def _guarded(name: str, check: Check) -> Iterator[Finding]:
    """Let one broken thing hide no other."""
    try:
        found = check()
        yield from (found,) if isinstance(found, Finding) else found
    except AjError as error:
        yield finding.failed(name, error.message, error.hint)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        yield finding.failed(name, f"{where}{error.strerror or error}")


def _project(settings: Settings, directory: Path) -> Finding:
    project = paths.find_project(settings, directory)
    if project is None:
        return finding.absent("project", f"none in {directory} or above", "`aj init local`")
    if not project.directory.is_dir():
        return finding.failed("project", f"AJ_HOME leads to {project.directory}, which is not there", "`unset AJ_HOME`")
    if not os.access(project.directory, os.R_OK | os.X_OK):
        return finding.failed("project", f"{project.directory} cannot be read", f"`chmod u+rx {project.directory}`")
    return finding.ok("project", str(project.directory))


def _settings(settings: Settings, layout: Layout, directory: Path) -> Iterator[Finding]:
    found = config.read(layout, paths.find_project(settings, directory), settings)
    faults = []
    for setting in found.all():
        try:
            config.checked(setting)
        except ConfigError as error:
            faults.append(finding.failed("settings", _placed(error), error.hint))
    faults += [
        finding.warning("settings", _placed(error), error.hint) for error in (*found.unknown(), *found.misplaced())
    ]
    if strange := settings.unknown():
        faults.append(
            finding.warning("settings", f"no variable of ours: {', '.join(strange)}", "`aj help environment`")
        )
    yield from faults or [finding.ok("settings", "every value can be read")]


def _placed(error: ConfigError) -> str:
    """Write an error with the file and line of what is wrong."""
    return f"{error.place}: {error.message}" if error.place else error.message


def _folder(layout: Layout) -> Finding:
    folder = layout.state
    if not folder.exists():
        return finding.ok("state folder", f"{folder} is made when it is needed")
    about = folder.stat()
    if about.st_uid != os.getuid():
        return finding.failed("state folder", f"{folder} belongs to user {about.st_uid}", "set AJ_STATE_DIR")
    if stat.S_IMODE(about.st_mode) & 0o077:
        return finding.warning("state folder", f"{folder} is open to other users", f"`chmod 700 {folder}`")
    with _probe(folder):
        kind = _kind(folder)
    if kind.startswith(SHARED):
        words = f"{folder} lies on a file system of several machines ({kind})"
        return finding.warning("state folder", words, "set AJ_STATE_DIR to a folder on a disk of this machine")
    return finding.ok("state folder", str(folder))


@contextlib.contextmanager
def _probe(folder: Path) -> Iterator[Path]:
    path = folder / f".doctor.{os.getpid()}"
    try:
        atomic.write_bytes(path, b"can this be written\n")
        yield path
    finally:
        path.unlink(missing_ok=True)


def _kind(folder: Path) -> str:
    """Return the kind of file system a folder lies on; empty where the system does not tell."""
    try:
        mounts = Path("/proc/self/mounts").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    real, best = os.path.realpath(folder), ("", "")
    for line in mounts:
        _, at, kind, *_ = line.split(" ")
        at = at.replace("\\040", " ")
        if (real == at or real.startswith(at.rstrip("/") + "/")) and len(at) >= len(best[0]):
            best = (at, kind)
    return best[1]


def _disk(layout: Layout) -> Finding:
    there = layout.state
    while not there.exists():
        there = there.parent
    about = os.statvfs(there)
    free = about.f_bavail * about.f_frsize
    words = f"{units.size(free)} free at {there}"
    if free < TOO_LITTLE_BYTES:
        return finding.failed("disk", words, "`aj code prune --keep 0s`, or set AJ_STATE_DIR to another disk")
    if free < LITTLE_BYTES:
        return finding.warning("disk", words, "`aj code prune --keep 1d`")
    return finding.ok("disk", words)


def _locks(layout: Layout) -> Finding:
    """See that a lock that is held keeps a second one out."""
    path = layout.state / "locks" / f"doctor.{os.getpid()}.lock"
    try:
        with lock.held(path, wait_s=1):
            try:
                with lock.held(path, wait_s=0):
                    pass
            except AjError:
                return finding.ok("locks", "a second process is kept out")
        words = f"two can hold the same lock in {path.parent}"
        return finding.failed("locks", words, "set AJ_STATE_DIR to a folder on a disk of this machine")
    finally:
        path.unlink(missing_ok=True)


def _clock(layout: Layout, clock: Clock) -> Finding:
    now = clock.now()
    if now < FIRST_RELEASE:
        return finding.failed("clock", "this machine's clock is years behind", "`timedatectl set-ntp true`")
    if layout.state.exists():
        with _probe(layout.state) as path:
            drift_s = path.stat().st_mtime - clock.now()
        if abs(drift_s) > DRIFT_S:
            words = f"the disk's clock is {abs(drift_s):.0f} s {'ahead' if drift_s > 0 else 'behind'}"
            return finding.warning("clock", words, "set both by the same time server")
    return finding.ok("clock", "it agrees with the disk's")


def _daemon(settings: Settings, layout: Layout) -> Finding:
    place = Place(layout)
    place.check()
    sight = presence.look(place)
    hello = sight.hello
    if sight.presence is Presence.STOPPED:
        return finding.ok("daemon", "it does not run; a command that needs it starts it")
    if hello is None:
        return finding.failed("daemon", sight.why or sight.presence.value, "`aj daemon restart`")
    if hello.version != VERSION:
        words = f"it is version {hello.version}, this is {VERSION}"
        return finding.warning("daemon", words, "`aj daemon upgrade`")
    if drift := version.drift(settings, hello):
        words = f"it was started with other values of {', '.join(drift)}"
        return finding.warning("daemon", words, "`aj daemon restart`")
    return finding.ok("daemon", f"running, version {hello.version}, process {sight.who.pid if sight.who else '?'}")


def _queue(layout: Layout) -> Iterator[Finding]:
    unknown, waiting = [], 0
    for key in tickets.keys(layout):
        found = tickets.scan(layout, key)
        waiting += sum(ticket.state in (TicketState.QUEUED, TicketState.RUNNING) for ticket in found.tickets)
        unknown += [tickets.name_of(ticket.id) for ticket in found.tickets if ticket.outcome is Outcome.UNKNOWN]
        for words in found.warnings:
            yield finding.warning("queue", words)
    if unknown:
        words = f"{text.plural(len(unknown), 'submission')} of unknown outcome: {', '.join(sorted(unknown)[:5])}"
        yield finding.warning("queue", words, "`aj queue reconcile`")
    else:
        yield finding.ok("queue", f"{waiting} waiting or running")


def _damaged(layout: Layout) -> Finding:
    found = sorted(layout.state.rglob("*.damaged-*")) if layout.state.exists() else []
    if found:
        words = f"{text.plural(len(found), 'file')} set aside, {found[0]} first"
        return finding.warning("damaged files", words, f"look at it, then `rm {found[0]}`")
    return finding.ok("damaged files", "none")
