"""A daemon inside the test's own process: the real server, router and gate before a small engine."""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
from dataclasses import dataclass
from pathlib import Path

from aj.base import proc
from aj.base.clock import SYSTEM
from aj.daemon import router
from aj.daemon import server as servers
from aj.daemon.lifecycle import Gate, Lifecycle
from aj.daemon.log import Log
from aj.daemon.replay import Replays
from aj.daemon.router import Router
from aj.daemon.routes.admin import Admin, Self
from aj.daemon.routes.events import Events
from aj.daemon.routes.journal import History
from aj.daemon.routes.logs import Logs
from aj.daemon.server import Server
from aj.store.runtime import Place
from aj.wire import version
from tests.conftest import Home
from tests.daemon.small import SmallEngine


@dataclass
class Inside:
    """All parts of a daemon that a test may look into."""

    home: Home
    engine: SmallEngine
    gate: Gate
    lifecycle: Lifecycle
    server: Server
    socket: Path
    accepting: threading.Thread

    @classmethod
    def start(cls, home: Home, *, keepalive_s: float = 10.0) -> Inside:
        home.layout.prepare()
        place = Place(home.layout)
        place.prepare()
        log = Log(home.layout.daemon_log, SYSTEM, level="debug")
        engine = SmallEngine(home.settings, home.folders, SYSTEM)
        engine.start()
        gate = Gate(SYSTEM)
        lifecycle = Lifecycle(engine, gate, log, idle_s=0)
        me = Self(
            proc.identity(),
            secrets.token_hex(8),
            SYSTEM.now(),
            version.environment(home.settings),
            str(place.socket),
            str(home.layout.daemon_log),
        )
        admin = Admin(me, gate, SYSTEM, lambda force: lifecycle.retire(force=force), lifecycle.drained)
        handlers = dict(router.HANDLERS)
        for room in (admin, Events(me.instance), History(home.layout), Logs(home.layout)):
            handlers |= room.handlers()
        listener, beside = servers.bind(place.socket)
        server = Server(listener, Router(engine, gate, log, Replays(), handlers), SYSTEM, log)
        server.keepalive_s = keepalive_s
        os.rename(beside, place.socket)
        accepting = threading.Thread(target=server.accept_until_shut, daemon=True)
        accepting.start()
        return cls(home, engine, gate, lifecycle, server, place.socket, accepting)

    def close(self) -> None:
        """Let nobody in any more; requests under way end by themselves."""
        self.server.shut()
        self.accepting.join(10)
        self.server.server_close()
        self.engine.stop()

    def dial(self, timeout_s: float = 10.0) -> socket.socket:
        """Connect without any client of ours."""
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        line.settimeout(timeout_s)
        try:
            line.connect(os.fsencode(self.socket))
        except OSError:
            line.close()
            raise
        return line

    def exchange(self, raw: bytes) -> bytes:
        """Send raw bytes, say that there are no more, and return all that comes back."""
        with self.dial() as line:
            try:
                line.sendall(raw)
                line.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it was refused before all of it was sent
            found = b""
            try:
                while piece := line.recv(1 << 16):
                    found += piece
            except ConnectionResetError:
                pass  # it hung up before it had read all that was sent
            return found

    def ask(self, method: str, target: str, body: bytes | None = None, **headers: str) -> tuple[int, dict[str, object]]:
        """Send one well-formed request and return status and document."""
        lines = {
            "Host": "x",
            "Connection": "close",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        if body is not None:
            lines["Content-Length"] = str(len(body))
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        found = self.exchange(f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + (body or b""))
        while found.startswith(b"HTTP/1.1 100 "):
            found = found.partition(b"\r\n\r\n")[2]
        return int(found.split(b" ", 2)[1]), json.loads(found.partition(b"\r\n\r\n")[2])
