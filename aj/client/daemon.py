"""The daemon as a noun: how it is, start it, stop it, start it anew with this environment.

Works with daemons of every version, and with one that hangs. Only a process whose start time matches
is ever signalled.
"""

from __future__ import annotations

import signal
from pathlib import Path

from aj.base import proc, text
from aj.base.clock import SYSTEM
from aj.base.errors import AjError, DaemonError, TimedOut
from aj.base.paths import Project
from aj.base.proc import Identity
from aj.client import launch, presence
from aj.client.line import AnswerLost, Line
from aj.client.presence import Sight
from aj.store.runtime import Place
from aj.wire import paths, version
from aj.wire.daemon import Presence, Started, Status, Stopped
from aj.wire.messages import Busy, Done, Health, Hello, Hold

GRACE_S = 5.0  # from TERM to KILL
LEAVING_S = 10.0  # how long one that is on its way out may take
LEASE_S = 60.0  # for so long nothing starts after the last word of who waits for an upgrade
LOOK_S = 0.5  # how often the end of the running jobs is looked for
TELL_S = 10.0  # how often a longer wait is told


class Daemon:
    """What a caller can do with the daemon itself."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def status(self) -> Status:
        """Look how the daemon is; starts nothing. Raises DaemonError when the runtime folder is not private."""
        place = self._line.place
        sight = presence.look(place)
        if sight.presence is Presence.STOPPED and (who := presence.lingering(place)) is not None:
            sight = Sight(Presence.LEAVING, who=who, why="it answers no more and has not ended yet")
        hello = sight.hello
        return Status(
            sight.presence,
            place.socket,
            place.layout.daemon_log,
            hello,
            sight.who.pid if sight.who else None,
            sight.why,
            version.drift(self._line.settings, hello) if hello else (),
        )

    def health(self) -> Health:
        """Ask how long things have been waiting there. Raises DaemonError."""
        return self._line.read(Health, paths.HEALTH)

    def start(self) -> Started:
        """Start the daemon unless it runs. Raises DaemonError."""
        before = presence.look(self._line.place).hello
        self._line.forget()
        hello = self._line.hello()
        runs = before is not None and before.instance == hello.instance
        return Started("noop" if runs else "ok", hello)

    def stop(self, *, force: bool = False, timeout_s: float | None = None) -> Stopped:
        """End the daemon and return when the process is gone; without `force` after its running submission.

        Raises DaemonError when a stranger has the socket, TimedOut when it still runs at the end of the time.
        """
        place = self._line.place
        sight = presence.look(place)
        self._line.forget()
        if sight.presence is Presence.FOREIGN:
            raise presence.foreign(place, sight)
        who = sight.who or presence.lingering(place)
        if who is None:
            return Stopped("noop", swept=self._sweep(place))
        killed = self._end(place, sight, who, force=force, timeout_s=timeout_s)
        self._sweep(place)
        lost = ("a submission that was running has an unknown outcome now: `aj queue list -s failed` shows it",)
        return Stopped("ok", who.pid, killed=killed, warnings=lost if killed else ())

    def restart(self, *, force: bool = False, timeout_s: float | None = None) -> Started:
        """Stop the daemon and start it with this environment; what waited in its queues goes on. Raises as both."""
        before = presence.look(self._line.place).hello
        stopped = self.stop(force=force, timeout_s=timeout_s)
        hello = self._line.hello()
        return Started("ok", hello, (*stopped.warnings, *self._resume(before)))

    def upgrade(self, *, force: bool = False) -> Started:
        """Restart the daemon once no job runs; none starts meanwhile. With `force` the running ones are stopped.

        What was stopped runs again under the new daemon. Raises as `restart`.
        """
        told_at = 0.0
        while (running := self._held(stop=force)) > 0:
            now = SYSTEM.monotonic()
            if now - told_at >= TELL_S:
                told_at = now
                jobs = text.plural(running, "running job")
                self._line.telling.waiting(f"{jobs} {'are being stopped' if force else 'to wait for'}")
            SYSTEM.sleep(LOOK_S)
        return self.restart()

    def _held(self, *, stop: bool) -> int:
        """Let no job start for a while; return how many still run, 0 where no daemon answers."""
        if presence.look(self._line.place).hello is None:
            return 0
        try:
            return self._line.change(Busy, paths.JOBS_HOLD, body=Hold(LEASE_S, stop)).jobs_running
        except AnswerLost:
            return self._held(stop=stop)  # saying it again does no harm

    def _end(self, place: Place, sight: Sight, who: Identity, *, force: bool, timeout_s: float | None) -> bool:
        """End a living daemon; whether it had to be killed. Raises TimedOut."""
        if sight.presence is Presence.HUNG:
            self._line.telling.waiting(f"process {who.pid} does not answer: it is ended")
            return _kill(who)
        if force:
            launch.ask_to_retire(place, force=True)
            return _kill(who)
        if not launch.ask_to_retire(place, force=False):
            proc.send(who, signal.SIGTERM)
        self._wait(who, timeout_s)
        return False

    def _wait(self, who: Identity, timeout_s: float | None) -> None:
        begun = SYSTEM.monotonic()
        while True:
            left_s = TELL_S if timeout_s is None else begun + timeout_s - SYSTEM.monotonic()
            if proc.wait_gone(who, max(0.0, min(TELL_S, left_s))):
                return
            if timeout_s is not None and SYSTEM.monotonic() - begun >= timeout_s:
                raise TimedOut(
                    f"the daemon (process {who.pid}) still runs after {timeout_s:g} s; it takes no new work and"
                    f" {'leaves when its submission is done' if self._submits(who) else 'is leaving'}",
                    hint="`aj daemon stop --force`",
                    details={"pid": who.pid},
                )
            doing = "finishes the running submission" if self._submits(who) else "is leaving"
            self._line.telling.waiting(f"process {who.pid} {doing}")

    def _submits(self, who: Identity) -> bool:
        """Ask whether a submission is what keeps this process."""
        hello = presence.look(self._line.place).hello
        return hello is not None and hello.pid == who.pid and hello.busy.tickets_running > 0

    def _sweep(self, place: Place) -> bool:
        """Remove what a killed daemon left; whether there was anything."""
        if not place.folder.exists():
            return False
        with launch.starting(place, self._line.telling):
            return launch.sweep(place)

    def _resume(self, before: Hello | None) -> list[str]:
        """Open the projects in which tickets waited; return what did not work."""
        warnings = []
        for queue in before.projects if before is not None else ():
            if not queue.queued or queue.path is None:
                continue
            line = Line(self._line.settings, Project(Path(queue.path)))
            try:
                line.change(Done, paths.QUEUE_RESUME)
            except (AjError, AnswerLost) as error:
                warnings.append(f"{queue.path}: {error}")
            finally:
                line.forget()
        return warnings


def _kill(who: Identity) -> bool:
    """End a process now: TERM, and KILL after the grace; whether KILL was needed. Raises DaemonError."""
    proc.send(who, signal.SIGTERM)
    if proc.wait_gone(who, GRACE_S):
        return False
    proc.send(who, signal.SIGKILL)
    if not proc.wait_gone(who, GRACE_S):
        raise DaemonError(f"process {who.pid} cannot be ended", code="unkillable", details={"pid": who.pid})
    return True
