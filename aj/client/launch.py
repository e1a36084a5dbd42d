"""Find the daemon, or start it: look, lock, look again, start.

What a killed daemon left is swept under the lock by whoever meets it, and that same command goes on.
An idle daemon of an older release is replaced on the way.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from aj.base import paths as places
from aj.base import proc
from aj.base.clock import SYSTEM
from aj.base.errors import DaemonError, Refused
from aj.base.noun import dataclass
from aj.base.proc import Identity
from aj.base.settings import INJECTED, Settings
from aj.client.presence import demand, look, parsed, place_of
from aj.net.uds import Lost, Nonsense, NotSent, Wire
from aj.store import atomic, lock
from aj.store.runtime import Place
from aj.version import PROTOCOL_MAX, PROTOCOL_MIN, VERSION
from aj.wire import codec, errors, paths, version
from aj.wire.messages import Hello, Retire

LOCK_S = 10.0
STARTS = 10  # a daemon that leaves at once is odd; one that does so ten times will not stay
START_S = 30.0  # a loaded machine is slow; a child that died is seen at once
PATIENCE_S = 1.0  # nobody needs to be told of a wait that is shorter
REPLACE_S = 10.0  # an idle daemon leaves in milliseconds
LOG_LINES = 20


class Child(Protocol):
    """The process that was started."""

    def wait(self) -> int: ...

    def terminate(self) -> None: ...


def _quiet(*_: object) -> None:
    pass


@dataclass(frozen=True)
class Telling:
    """What to tell the user meanwhile; nothing, unless somebody says how."""

    starting: Callable[[], None] = _quiet
    blocked: Callable[[], None] = _quiet
    replaced: Callable[[str, str], None] = _quiet  # old version, new version
    drift: Callable[[tuple[str, ...]], None] = _quiet  # names of variables that differ
    waiting: Callable[[str], None] = _quiet  # every ten seconds of a longer wait


SILENT = Telling()


def ensure(settings: Settings, telling: Telling = SILENT) -> Hello:
    """Return the hello of a daemon that this release can talk to, started if need be. Raises DaemonError."""
    place = place_of(settings)
    hello = demand(place, look(place))
    if hello is not None and not _is_replaceable(hello):
        return _fitting(place, hello)
    place.layout.prepare()
    place.prepare()
    with starting(place, telling):
        hello = demand(place, look(place))
        if hello is not None and not _is_replaceable(hello):
            return _fitting(place, hello)
        if hello is not None:
            _replace(place, hello, telling)
        sweep(place)
        return start(place, settings, telling)


def _fitting(place: Place, hello: Hello) -> Hello:
    """Return the hello, if its daemon speaks a protocol that we speak and keeps our state. Raises DaemonError."""
    if version.speaks(hello):
        return _of_our_state(place, hello)
    theirs = version.spoken(hello.protocol_min, hello.protocol_max)
    ours = version.spoken(PROTOCOL_MIN, PROTOCOL_MAX)
    raise DaemonError(
        f"the daemon is aj {hello.version} and speaks protocol {theirs}, this is aj {VERSION} with {ours}",
        code="other-protocol",
        hint="`aj daemon restart`",
        details={"daemon": hello.version, "client": VERSION},
    )


def _of_our_state(place: Place, hello: Hello) -> Hello:
    """Return the hello, unless its daemon would keep everything where this caller never looks. Raises DaemonError."""
    if other := other_state(place, hello):
        ours = place.layout.folders.state
        raise DaemonError(
            f"the daemon (process {hello.pid}) keeps its state in {other}, this command in {ours}: nothing was done",
            code="other-state",
            hint="`aj daemon restart` takes yours; AJ_STATE_DIR, XDG_STATE_HOME and HOME say which folder it is",
            details={"pid": hello.pid, "daemon": other, "client": str(ours)},
        )
    return hello


def other_state(place: Place, hello: Hello) -> str | None:
    """Return the state folder of a daemon, if it is another one than this caller's."""
    theirs, ours = os.path.dirname(hello.log), place.layout.daemon_log.parent
    return theirs if theirs and os.path.realpath(theirs) != os.path.realpath(ours) else None


def _is_replaceable(hello: Hello) -> bool:
    return version.is_older(hello) and hello.busy.is_idle and not hello.retiring


def _replace(place: Place, hello: Hello, telling: Telling) -> None:
    """Let an idle daemon of an older release leave. The caller holds the start lock."""
    ask_to_retire(place, force=False)
    if not proc.wait_gone(Identity(hello.pid, hello.start_time, proc.boot_id()), REPLACE_S):
        raise DaemonError(
            f"the daemon of aj {hello.version} (process {hello.pid}) was asked to leave and did not",
            code="other-version",
            hint="`aj daemon restart --force`",
        )
    telling.replaced(hello.version, VERSION)


def ask_to_retire(place: Place, *, force: bool) -> bool:
    """Ask the daemon to leave; whether it heard."""
    body = json.dumps(codec.dump(Retire(force=force))).encode("ascii")
    headers = {paths.CLIENT: VERSION, "Content-Type": "application/json"}
    try:
        answer = Wire(place.socket).change("POST", paths.RETIRE.path(), headers, body, silence_s=paths.ADMIN_S)
    except (NotSent, Lost, Nonsense):
        return False
    return answer.status in (200, 202)


@contextlib.contextmanager
def starting(place: Place, telling: Telling) -> Iterator[None]:
    """Hold the start lock. Raises DaemonError naming who holds it when that takes too long."""
    note = place.folder / "starter.json"
    with contextlib.ExitStack() as stack:
        _take(stack, place, note, telling)
        atomic.write_json(note, {"pid": os.getpid()})
        try:
            yield
        finally:
            note.unlink(missing_ok=True)


def _take(stack: contextlib.ExitStack, place: Place, note: Path, telling: Telling) -> None:
    path = place.layout.daemon_lock
    try:
        stack.enter_context(lock.held(path, wait_s=PATIENCE_S))
        return
    except Refused:
        telling.blocked()
    try:
        stack.enter_context(lock.held(path, wait_s=LOCK_S - PATIENCE_S))
    except Refused as error:
        who = parsed(_content(note))
        name = f"process {who['pid']}" if isinstance(who, dict) and "pid" in who else "another process"
        raise DaemonError(
            f"{name} has been starting the daemon for more than {LOCK_S:g} s",
            code="start-locked",
            hint="try again; `aj daemon logs` tells more",
        ) from error


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def sweep(place: Place) -> bool:
    """Remove what a killed daemon left; whether there was anything. The caller holds the start lock.

    A daemon that lives owns its files, whatever the socket says, so nothing is removed then.
    """
    said = place.read()
    if lock.living_holder(place.instance_lock) is not None:
        return False
    existed = said is not None or place.socket.exists()
    place.remove()
    return existed


def start(place: Place, settings: Settings, telling: Telling) -> Hello:
    """Start the daemon and wait until it answers. The caller holds the start lock. Raises DaemonError.

    One that was ready and has left again (a very short idle time, a machine under load) is followed by another.
    """
    for _ in range(STARTS):
        hello = _start(place, settings, telling)
        if hello is not None:
            return _fitting(place, hello)
        sweep(place)
    raise DaemonError(
        f"the daemon started {STARTS} times and left before it was asked anything",
        code="start-failed",
        hint="AJ_DAEMON_IDLE says how long it stays",
        details={"log": str(place.layout.daemon_log)},
    )


def _start(place: Place, settings: Settings, telling: Telling) -> Hello | None:
    """Start it once; None when it was ready and then left. Raises DaemonError when it was never ready."""
    log = place.layout.daemon_log
    before = log.stat().st_size if log.exists() else 0
    reading, writing = os.pipe()
    try:
        try:
            child = _spawn(place, settings, writing)
        finally:
            os.close(writing)
        said = _await(reading, telling)
    except OSError as error:
        raise DaemonError(f"cannot start the daemon: {error.strerror}", code="start-failed") from error
    finally:
        os.close(reading)
    # The daemon is a child of whoever started it: somebody has to take note of its end.
    threading.Thread(target=child.wait, name="daemon", daemon=True).start()
    if said is None:
        child.terminate()
        raise DaemonError(f"the daemon was not ready within {START_S:g} s", code="not-ready", details={"log": str(log)})
    sight = look(place)
    if sight.hello is None and parsed(said) != {"ready": True}:
        raise _start_failure(said, log, before)
    return sight.hello


def _spawn(place: Place, settings: Settings, ready: int) -> Child:
    argv = [*places.program(), "__daemon", "--ready-fd", str(ready)]
    # A job may call `aj`; the daemon it starts is not a part of that job and must not look like one.
    env = {name: value for name, value in settings.env.items() if name not in INJECTED}
    output = os.open(place.layout.daemon_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, atomic.FILE_MODE)
    try:
        return proc.spawn(argv, stdout=output, stderr=output, env=env, pass_fds=[ready])
    finally:
        os.close(output)


def _await(reading: int, telling: Telling) -> bytes | None:
    """Wait for the child's word: what it said, empty when it died without one, None when the time is over."""
    begun, told, said = SYSTEM.monotonic(), False, b""
    while (left_s := begun + START_S - SYSTEM.monotonic()) > 0:
        if not told and SYSTEM.monotonic() - begun >= PATIENCE_S:
            telling.starting()
            told = True
        ready, _, _ = select.select([reading], [], [], min(left_s, PATIENCE_S))
        if not ready:
            continue
        piece = os.read(reading, 1 << 16)
        said += piece
        if not piece or said.endswith(b"\n"):
            return said
    return None


def _start_failure(said: bytes, log: Path, before: int) -> DaemonError:
    error = errors.from_document(parsed(said)) if said else None
    lines = _content(log)[before:].decode("utf-8", "backslashreplace").splitlines()[-LOG_LINES:]
    reason = error.message if error else "it ended at once"
    tail = "".join(f"\n  {line}" for line in lines)
    return DaemonError(
        f"the daemon did not start: {reason}{tail}",
        code=error.code if error else "start-failed",
        hint=(error.hint if error else None) or f"the log is {log!s}",
        details={"log": str(log), "lines": lines},
    )
