"""The started process: one daemon per user and runtime folder, from its first breath to its last.

It owns the instance lock for its life; socket and `daemon.json` appear only while it holds it, and the
socket appears last, already listening, so that whoever sees it can use it. It is started by a command
that waits at a pipe for the word that it is ready, or for the error that it died of.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable

from aj.base import paths as places
from aj.base import proc
from aj.base import settings as environment
from aj.base.clock import SYSTEM, Clock
from aj.base.errors import AjError, ConfigError, DaemonError, Refused
from aj.base.noun import dataclass
from aj.base.paths import Folders
from aj.base.settings import Settings
from aj.daemon import router, server
from aj.daemon.engine import Engine
from aj.daemon.lifecycle import Gate, Lifecycle
from aj.daemon.log import Log
from aj.daemon.replay import Replays
from aj.daemon.router import Router
from aj.daemon.routes.admin import Admin, Self
from aj.daemon.routes.events import Events
from aj.daemon.routes.journal import History
from aj.daemon.routes.logs import Logs
from aj.daemon.server import Server
from aj.store import config, lock
from aj.store.layout import Layout
from aj.store.runtime import DaemonFile, Place
from aj.version import PROTOCOL_MAX, PROTOCOL_MIN, VERSION
from aj.wire import errors, version

IDLE_S = 3600.0
PREDECESSOR_S = 10.0  # how long one that is leaving may still hold the instance lock
LAST_CHANGES_S = 30.0  # how long a change under way may hold up an orderly end
LAST_ANSWERS_S = 1.0  # answers that are being written; who waits for news is cut off and asks the next daemon
DOOR_S = 0.2  # for those who had come before the door was closed
LAST_WORK_S = 20.0  # whatever of the engine hangs then is left as it is
FORCED_END_S = 4.0  # less than the 5 s after which the one who forces sends KILL

MakeEngine = Callable[[Settings, Folders, Clock], Engine]


def main(argv: list[str], make_engine: MakeEngine | None = None) -> int:
    """Be the daemon until it is time to leave; return the exit code. `--ready-fd N` names the starter's pipe."""
    starter = Starter(int(argv[argv.index("--ready-fd") + 1]) if "--ready-fd" in argv else None)
    os.umask(0o077)
    os.chdir("/")
    try:
        daemon = Daemon.of(environment.read(), SYSTEM, make_engine or real_engine)
        daemon.open()
    except AjError as error:
        starter.tell(errors.document(error))
        return error.exit_code
    starter.tell({"ready": True})
    # Everything is put away then; Python itself would still wait for questions that some cloud does not answer.
    os._exit(daemon.run())


def real_engine(settings: Settings, folders: Folders, clock: Clock) -> Engine:
    """Make the engine of the product."""
    from aj.engine import compose

    return compose.engine(settings, folders, clock)


@dataclass
class Starter:
    """Whoever started this process and waits for a word at the other end of a pipe."""

    handle: int | None

    def tell(self, value: object) -> None:
        """Say one thing and hang up."""
        if self.handle is None:
            return
        with contextlib.suppress(OSError):  # the starter may be gone: then nobody has to know
            os.write(self.handle, json.dumps(value).encode() + b"\n")
            os.close(self.handle)
        self.handle = None


class Daemon:
    """All parts of one daemon, put together."""

    def __init__(self, place: Place, engine: Engine, log: Log, clock: Clock, settings: Settings, owner: lock.Ownership):
        self._place = place
        self._engine = engine
        self._log = log
        self._owner = owner
        self._gate = Gate(clock)
        self._clock = clock
        self._lifecycle = Lifecycle(
            engine,
            self._gate,
            log,
            idle_s=idle_s(place.layout, settings, log),
            is_reachable=self._owns_the_socket,
        )
        self._me = Self(
            who=proc.identity(),
            instance=os.urandom(8).hex(),
            started_at=clock.now(),
            env=version.environment(settings),
            socket=str(place.socket),
            log=str(place.layout.daemon_log),
        )
        self._server: Server | None = None
        self._accepting: threading.Thread | None = None
        self._socket_id: tuple[int, int] | None = None

    @classmethod
    def of(cls, settings: Settings, clock: Clock, make_engine: MakeEngine) -> Daemon:
        """Make the folders, the log and the engine, and become the only one. Raises AjError."""
        layout = Layout(places.folders(settings))
        place = Place(layout)
        place.check()
        layout.prepare()
        place.prepare()
        log = Log(layout.daemon_log, clock, level=settings.log_level, debug=settings.debug)
        log.become_output()
        log.hear_others()
        owner = become_the_only_one(place, clock)
        engine = make_engine(settings, layout.folders, clock)
        return cls(place, engine, log, clock, settings, owner)

    def open(self) -> None:
        """Start the engine, say who we are, and listen. Raises AjError."""
        self._engine.start()
        self._lifecycle.obey_signals()
        listener, beside = server.bind(self._place.socket)
        me = self._me
        self._place.write(DaemonFile(me.who, VERSION, PROTOCOL_MIN, PROTOCOL_MAX, me.instance, me.socket))
        self._server = Server(listener, self._router(), self._clock, self._log)
        os.rename(beside, self._place.socket)
        found = os.stat(self._place.socket)
        self._socket_id = (found.st_dev, found.st_ino)
        self._accepting = threading.Thread(target=self._server.accept_until_shut, name="accept", daemon=True)
        self._accepting.start()
        self._log.info(f"aj {VERSION} listens at {self._place.socket} as process {self._me.who.pid}")

    def _router(self) -> Router:
        life = self._lifecycle
        admin = Admin(self._me, self._gate, self._clock, lambda force: life.retire(force=force), life.drained)
        layout = self._place.layout
        rooms = (admin, Events(self._me.instance), History(layout), Logs(layout))
        handlers = dict(router.HANDLERS)
        for room in rooms:
            handlers |= room.handlers()
        return Router(self._engine, self._gate, self._log, Replays(), handlers)

    def _owns_the_socket(self) -> bool:
        try:
            found = os.stat(self._place.socket)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._socket_id

    def run(self) -> int:
        """Serve until it is time to leave, then leave nothing behind. Returns the exit code."""
        why = self._lifecycle.wait()
        self._log.info(f"{why}: leaving")
        self._remove_own_files()
        self._let_nobody_in()
        if self._lifecycle.is_forced:
            return self._end_now()
        self._let_end(lambda: self._gate.changes, LAST_CHANGES_S)
        self._let_end(lambda: self._gate.requests, LAST_ANSWERS_S)
        if not self._stop_engine(LAST_WORK_S):
            self._log.warning(f"not everything ended within {LAST_WORK_S:g} s: it is left as it is")
        self._owner.release()
        return 0

    def _let_nobody_in(self) -> None:
        """Close the door; who stands before it already is still told that we leave."""
        door, accepting = self._server, self._accepting
        if door is None or accepting is None:
            return
        door.shut()
        accepting.join(LAST_ANSWERS_S)
        self._let_end(lambda: door.connections, DOOR_S)

    def _remove_own_files(self) -> None:
        """Remove socket and `daemon.json`, unless they are another daemon's by now."""
        said = self._place.read()
        if self._owns_the_socket() and said is not None and said.instance == self._me.instance:
            self._place.remove()

    def _let_end(self, count: Callable[[], int], limit_s: float) -> None:
        """Wait until nothing of a kind is under way, or the time is over."""
        limit = self._clock.monotonic() + limit_s
        while count() and self._clock.monotonic() < limit:
            self._clock.sleep(0.01)

    def _stop_engine(self, limit_s: float) -> bool:
        """Stop the engine; False when it has not stopped at the end of the time."""
        ending = threading.Thread(target=self._engine.stop, name="stop", daemon=True)
        ending.start()
        ending.join(limit_s)
        return not ending.is_alive()

    def _end_now(self) -> int:
        """Stop the engine as far as it can be done in time, then end whatever still runs here."""
        self._stop_engine(FORCED_END_S)
        self._log.info("ended at once")
        os._exit(0)


def idle_s(layout: Layout, settings: Settings, log: Log) -> float:
    """Return how long an idle daemon stays, in seconds. Raises ConfigError on a malformed AJ_DAEMON_IDLE."""
    if settings.get("AJ_DAEMON_IDLE"):
        return settings.seconds("AJ_DAEMON_IDLE", IDLE_S)
    try:
        return config.read(layout, None).seconds("daemon.idle")
    except ConfigError as error:
        log.warning(f"settings are not used: {error}")
        return IDLE_S


def become_the_only_one(place: Place, clock: Clock) -> lock.Ownership:
    """Take the instance lock, waiting for one that is just leaving. Raises DaemonError naming its holder."""
    limit = clock.monotonic() + PREDECESSOR_S
    while True:
        try:
            return lock.own(place.instance_lock, "daemon")
        except Refused as error:
            if clock.monotonic() >= limit:
                raise DaemonError(
                    f"another daemon lives: {error.message}", code="instance-held", details=error.details
                ) from error
        clock.sleep(0.05)
