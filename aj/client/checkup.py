"""A look at what `aj` itself stands on here: project, settings, folders, disk, locks, clock, daemon, queue.

Nothing is asked of any network and nothing is mended; the one thing written is a small file in the state
folder, to see that it can be, and it is removed again.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from aj.base import paths, text, units
from aj.base.clock import Clock
from aj.base.errors import AjError, ConfigError
from aj.base.paths import Project
from aj.base.settings import Settings
from aj.client import launch, outfit, presence
from aj.model import finding
from aj.model.finding import Finding
from aj.model.ticket import Outcome, TicketState
from aj.store import atomic, config, credentials, deployments, jobs, journal, lock, tickets, watches
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

MOST = 10  # of the records that cannot be read: the first tell what kind of fault it is

Check = Callable[[], Finding | Iterator[Finding]]


def look(settings: Settings, directory: Path, clock: Clock) -> Iterator[Finding]:
    """Yield what every check found, in an order in which the first fault explains the next.

    It comes to its end whatever is broken: a check that fails is itself a finding.
    """
    settings, wrong = _grounded(settings)
    layout = Layout(paths.folders(settings))
    yield from wrong
    checks: tuple[tuple[str, Check], ...] = (
        ("project", lambda: _project(settings, directory)),
        ("settings", lambda: _settings(settings, layout, directory)),
        ("variables", lambda: _variables(settings)),
        ("state folder", lambda: _folder(layout)),
        ("disk", lambda: _disk(layout)),
        ("locks", lambda: _locks(layout)),
        ("clock", lambda: _clock(layout, clock)),
        ("daemon", lambda: _daemon(settings, layout)),
        ("queue", lambda: _queue(layout)),
        ("damaged files", lambda: _damaged(layout)),
        *outfit.checks(settings),
    )
    for name, check in checks:
        yield from _guarded(name, check)


def _guarded(name: str, check: Check) -> Iterator[Finding]:
    """Let one broken thing hide no other: neither what was foreseen, nor what nobody expected."""
    try:
        found = check()
        yield from (found,) if isinstance(found, Finding) else found
    except AjError as error:
        yield finding.failed(name, str(error), error.hint)
    except OSError as error:
        where = f"{os.fsdecode(error.filename)}: " if error.filename else ""
        hint = f"see who owns it and who may read it: `ls -ld {where[:-2]}`" if where else None
        yield finding.failed(name, f"{where}{error.strerror or error}", hint)
    except Exception as error:  # noqa: BLE001 (this command is for when nothing else runs)
        words = f"it cannot be looked at: {type(error).__name__}: {error}"
        yield finding.failed(name, words, "a fault of `aj` itself: report it with this line")


def _grounded(settings: Settings) -> tuple[Settings, list[Finding]]:
    """Return the settings without the variables that lead to no folder, and a finding for each of those."""
    wrong: list[Finding] = []
    while True:
        try:
            paths.folders(settings)
        except ConfigError as error:
            name = error.message.partition("=")[0]
            wrong.append(finding.failed("variables", f"{error.message}; the default is looked at", error.hint))
            settings = Settings({key: value for key, value in settings.env.items() if key != name})
        else:
            return settings, wrong


def _project(settings: Settings, directory: Path) -> Finding:
    if not directory.is_dir():
        return finding.failed("project", f"the working directory {directory} is not there any more", "`cd` elsewhere")
    project = paths.find_project(settings, directory)
    if project is None:
        return finding.absent("project", f"none in {directory} or above", "`aj init local`")
    if not project.directory.is_dir():
        return finding.failed("project", f"AJ_HOME leads to {project.directory}, which is not there", "`unset AJ_HOME`")
    if not os.access(project.directory, os.R_OK | os.X_OK):
        return finding.failed("project", f"{project.directory} cannot be read", f"`chmod u+rx {project.directory}`")
    return finding.ok("project", str(project.directory))


def _settings(settings: Settings, layout: Layout, directory: Path) -> Iterator[Finding]:
    found, broken = config.survey(layout, _found_project(settings, directory), settings)
    # the way here is no news here
    faults = [
        finding.failed("settings", str(error), (error.hint or "").partition("; `aj doctor`")[0]) for error in broken
    ]
    for setting in found.all():
        try:
            config.checked(setting)
        except ConfigError as error:
            faults.append(finding.failed("settings", str(error), error.hint or _how_to_set(setting)))
    faults += [finding.warning("settings", str(error), error.hint) for error in (*found.unknown(), *found.misplaced())]
    yield from faults or [finding.ok("settings", "every value can be read")]


def _found_project(settings: Settings, directory: Path) -> Project | None:
    """Return the project; None also when there is something wrong with it, which another check tells."""
    try:
        return paths.find_project(settings, directory)
    except ConfigError:
        return None


def _how_to_set(setting: config.Setting) -> str:
    variable = config.VARIABLES.get(setting.key)
    if setting.source == "environment" and variable:
        return f"`unset {variable}`"
    return f"`aj config unset {'--user ' if setting.source == 'user' else ''}{setting.key}`"


def _variables(settings: Settings) -> Iterator[Finding]:
    """See that every variable of ours has a value that can be read, whoever reads it."""
    faults = []
    for ask in (
        lambda: settings.flag("AJ_DEBUG"),
        lambda: settings.flag("AJ_NO_INPUT"),
        lambda: settings.log_level,
        lambda: settings.seconds("AJ_AMLT_TIMEOUT", 0),
        lambda: settings.credential,
    ):
        try:
            ask()
        except ConfigError as error:
            faults.append(finding.failed("variables", error.message, error.hint))
    if strange := settings.unknown():
        words = f"no variable of ours: {', '.join(strange)}"
        faults.append(finding.warning("variables", words, "`aj help environment`"))
    yield from faults or [finding.ok("variables", "every value can be read")]


def _folder(layout: Layout) -> Finding:
    folder = layout.state
    if not os.path.lexists(folder):
        return finding.ok("state folder", f"{folder} is made when it is needed")
    if not folder.is_dir():
        return finding.failed("state folder", f"{folder} is no folder", f"move {folder} away, or set AJ_STATE_DIR")
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
    if other := launch.other_state(place, hello):
        return finding.failed("daemon", f"it keeps its state in {other}, not in {layout.state}", "`aj daemon restart`")
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
    if unknown:
        words = f"{text.plural(len(unknown), 'submission')} of unknown outcome: {', '.join(sorted(unknown)[:5])}"
        yield finding.warning("queue", words, "`aj queue reconcile`")
    else:
        yield finding.ok("queue", f"{waiting} waiting or running")


def _damaged(layout: Layout) -> Iterator[Finding]:
    """Read every record there is. One that cannot be read is passed over by all commands, which few notice."""
    aside = sorted(layout.state.rglob("*.damaged-*")) if layout.state.is_dir() else []
    told = list(_unread(layout, aside))
    if aside:
        words = f"{text.plural(len(aside), 'file')} set aside, {aside[0]} first"
        yield finding.warning("damaged files", words, f"look at it, then `rm {aside[0]}`")
    for words in told[:MOST]:
        yield finding.warning("damaged files", words, "it is passed over; restore the file, or move it away")
    if len(told) > MOST:
        yield finding.warning("damaged files", f"{len(told) - MOST} more of them", None)
    if not aside and not told:
        yield finding.ok("damaged files", "none")


def _unread(layout: Layout, aside: Sequence[Path]) -> Iterator[str]:
    """Say which records cannot be read, but for those that were set aside."""
    told: list[str] = []
    reads: tuple[Callable[[], object], ...] = (
        lambda: told.extend(words for key in tickets.keys(layout) for words in tickets.scan(layout, key).warnings),
        lambda: [
            journal.read(layout, key, lambda where: told.append(f"{where}: no line of the journal"))
            for key in journal.keys(layout)
        ],
        lambda: jobs.listing(layout, told.append),
        lambda: deployments.listing(layout, told.append),
        lambda: list(watches.each(layout, told.append)),
        lambda: told.extend(credentials.listing(layout)[1]),
    )
    for read in reads:
        try:
            read()
        except (AjError, OSError, ValueError, RecursionError) as error:
            told.append(str(error))
    yield from (words for words in dict.fromkeys(told) if not any(str(path) in words for path in aside))
