"""Processes with an engine that submits to the servers of another process, each forked off one that has all imported.

One JSON request a line in: folders, what to do, and where to die. Two lines out: the process, and how it ended.
Run as `python -m tests.azure.reconcile_host`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aj.azure.arm import Session
from aj.azure.submission import Means
from aj.backend.aml import backend as aml
from aj.backend.sing import backend as sing
from aj.base import clock as clocks
from aj.base.errors import OutcomeUnknown
from aj.base.settings import Settings
from aj.engine import compose
from aj.engine.engine import Engine
from aj.engine.native import Native
from aj.engine.services import Services
from aj.engine.steps import Steps
from aj.model.ticket import Mode, Outcome
from aj.net import clouds, http, pool
from aj.store.config import Config
from aj.wire.messages import Submission
from tests.backend.azure import Courier
from tests.engine import host
from tests.engine.stand import Near
from tests.servers.azure import TENANT, Issuer
from tests.template.kit import Request, built, project

__all__ = ["aml", "pool", "sing"]  # imported here, so that a fork need not
WRITES = ("fsync", "replace", "pwrite", "unlink", "ftruncate", "rename")
LIMIT_S = 60.0


class Hurrying(clocks.SystemClock):
    """The machine's clock for somebody who never waits."""

    def sleep(self, seconds: float) -> None:
        pass

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        return event.is_set()


@dataclass
class Mortal:
    """Counts what reaches the disk, and ends this process just before or just after one of these."""

    left: int
    is_after: bool

    def strike(self) -> None:
        for name in WRITES:
            setattr(os, name, self._wrapped(getattr(os, name)))

    def _wrapped(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left == 0 and not self.is_after:
                os.kill(os.getpid(), signal.SIGKILL)
            found = real(*arguments, **named)
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return found

        return call


@dataclass
class House:
    """An engine as the daemon has it, over the servers of the test."""

    asked: dict[str, Any]

    def __post_init__(self) -> None:
        self.root = Path(self.asked["root"])
        self.home = host.home(self.root, host.variables(self.root))
        self.clock = Hurrying()
        steps = Steps()
        cloud = clouds.find("small", {"small": self.asked["table"]})
        carrier = http.connect(Settings({}), self.clock)
        tokens = Issuer({})

        def session(config: Config, tenant: str | None) -> Session:
            return Session(carrier, cloud, tokens, self.clock, TENANT)

        native = Native(session, self.home.layout, self.home.settings, self.clock, steps)
        courier = Courier()

        def means() -> Means:
            return replace(native.means(), deliver=courier)

        near = self.root / "near"
        near.mkdir(exist_ok=True)
        self.engine: Engine[Near] = Engine(
            self.home.settings,
            self.home.folders,
            self.clock,
            lambda _: Near(near),
            places=Services(means),
            pack=compose.packer(self.home.layout),
            steps=steps,
        )
        self.engine.start()

    def submit(self) -> None:
        """Submit, and stay until the outcome is known."""
        one = self.asked
        template, aj_id, mode = one["template"], one["id"], Mode(one["mode"])
        where = project(self.root / "project", {"t": template})
        request = Request(aj_id, self.root / "project", ("python", "train.py"), where, name="work", experiment="aj")
        spec = replace(built(self.root / "project", template, request=request).spec, project=None)
        self.engine.submit(None, Submission(aj_id, mode, spec))
        self.engine.submission(None, aj_id, LIMIT_S)

    def settle(self) -> None:
        """Take up what was left and ask what became of it."""
        self.engine.queue_resume(None)
        for ticket in self.engine.queue_list(None, False, (), 0).tickets:
            found = self.engine.queue_wait(None, ticket.ticket, LIMIT_S).ticket
            assert found.state.is_final, found
            if found.outcome is Outcome.UNKNOWN:
                with contextlib.suppress(OutcomeUnknown):  # then somebody asks again
                    self.engine.queue_reconcile(None, ticket.ticket)


def live(asked: dict[str, Any]) -> None:
    """Do what one process does in its life."""
    if asked.get("point"):
        os.environ["AJ_TEST_CRASH"] = asked["point"]
    if asked.get("write"):
        Mortal(asked["write"], asked["is_after"]).strike()
    house = House(asked)
    house.settle() if asked["do"] == "settle" else house.submit()


def main() -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if not child:
            code = 1
            try:
                live(asked)
                code = 0
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
