"""Routes of the daemon itself: who it is, whether it lives, how it is, and the wish that it leave."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

from aj.base.clock import Clock, from_rfc3339, rfc3339
from aj.base.noun import dataclass
from aj.base.proc import Identity
from aj.daemon.call import Answer, Call, Handler, reply
from aj.daemon.lifecycle import Gate
from aj.model.ticket import Ticket, TicketState
from aj.version import PROTOCOL_MAX, PROTOCOL_MIN, VERSION
from aj.wire import paths
from aj.wire.messages import Done, Health, Hello, Retire
from aj.wire.paths import Route


@dataclass(frozen=True)
class Self:
    """What a daemon knows of itself from its start."""

    who: Identity
    instance: str
    started_at: float
    env: Mapping[str, str]
    socket: str
    log: str


@dataclass(frozen=True)
class Admin:
    """The answers about the daemon itself."""

    me: Self
    gate: Gate
    clock: Clock
    retire_daemon: Callable[[bool], None]
    drained: threading.Event

    def hello(self, call: Call) -> Answer:
        """Say who answers here and how busy it is, this question not counted."""
        busy = replace(call.engine.busy(), requests=self.gate.requests - 1)
        return reply(
            Hello(
                name="aj",
                version=VERSION,
                protocol_min=PROTOCOL_MIN,
                protocol_max=PROTOCOL_MAX,
                instance=self.me.instance,
                pid=self.me.who.pid,
                start_time=self.me.who.start_time,
                started_at=rfc3339(self.me.started_at),
                uptime_s=max(0.0, self.clock.now() - self.me.started_at),
                retiring=self.gate.retiring.is_set(),
                capabilities=paths.CAPABILITIES,
                busy=busy,
                env=self.me.env,
                socket=self.me.socket,
                log=self.me.log,
                projects=tuple(call.engine.projects()),
            )
        )

    def ping(self, call: Call) -> Answer:
        """Answer at once, whatever else goes on."""
        return reply(Done())

    def retire(self, call: Call) -> Answer:
        """Begin to leave. With a time, the answer waits that long for the running submission."""
        asked = call.decode(Retire)
        self.retire_daemon(asked.force)
        drained = not asked.force and self.clock.wait(self.drained, asked.timeout_s or 0.0)
        return reply(Done("drained" if drained else "retiring"), 202)

    def health(self, call: Call) -> Answer:
        """Tell how long things have been waiting."""
        queued = call.engine.queue_list(None, True, (TicketState.QUEUED,), 1).tickets
        running = call.engine.queue_list(None, True, (TicketState.RUNNING,), 1).tickets
        return reply(
            Health(
                threads=threading.active_count(),
                requests=self.gate.requests,
                oldest_request_s=self.gate.oldest_s(),
                oldest_queued_s=self._age_s(queued),
                longest_running_s=self._age_s(running),
                busy=call.engine.busy(),
            )
        )

    def _age_s(self, tickets: tuple[Ticket, ...]) -> float | None:
        """Return the age in seconds of the ticket that has stood so the longest."""
        since = min((ticket.started_at or ticket.created_at for ticket in tickets), default=None)
        return None if since is None else max(0.0, self.clock.now() - from_rfc3339(since))

    def handlers(self) -> Mapping[Route, Handler]:
        """Return which of these answers which route."""
        return {
            paths.HELLO: self.hello,
            paths.PING: self.ping,
            paths.RETIRE: self.retire,
            paths.HEALTH: self.health,
        }
