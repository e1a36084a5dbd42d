"""Processes with an engine, each forked off one that has imported all, that die where they are told.

The first process reads one JSON request a line (folders, what to do, where to die) and writes two: the process that
does it, and how that ended. What both proofs of submissions share stands here, too: how long runs of them are made.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from aj.base import clock as clocks
from aj.base.errors import OutcomeUnknown
from aj.engine.engine import Engine
from aj.model.job import JobSpec
from aj.model.record import RecordState
from aj.model.ticket import Mode, Outcome, Ticket, TicketState
from aj.store import journal, tickets
from aj.wire.messages import Submission
from tests.engine import host

HOUSE = Path(__file__).resolve().parents[1]
WRITES = ("fsync", "replace", "pwrite", "unlink", "ftruncate", "rename")
LIMIT_S = 60.0
POINTS = tuple(
    f"worker.{name}"
    for name in (
        *("before-running", "after-running", "after-intended"),
        *("after-submit", "after-submitted", "after-completed"),
    )
)


class Hurrying(clocks.SystemClock):
    """The machine's clock for somebody who never waits. `later_s` is by how much it is ahead."""

    def __init__(self, later_s: float = 0.0) -> None:
        self._later_s = later_s

    def now(self) -> float:
        return time.time() + self._later_s

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


# In a process that lives once


def submit(engine: Engine[Any], spec: JobSpec, mode: str) -> None:
    """Submit, and stay until the outcome is known."""
    engine.submit(None, Submission(spec.id, Mode(mode), spec))
    engine.submission(None, spec.id, LIMIT_S)


def settle(engine: Engine[Any]) -> None:
    """Take up what was left and ask what became of it."""
    engine.queue_resume(None)
    for ticket in engine.queue_list(None, False, (), 0).tickets:
        found = engine.queue_wait(None, ticket.ticket, LIMIT_S).ticket
        assert found.state.is_final, found
        if found.outcome is Outcome.UNKNOWN:
            with contextlib.suppress(OutcomeUnknown):  # then somebody asks again
                engine.queue_reconcile(None, ticket.ticket)


def serve(live: Callable[[dict[str, Any]], None]) -> None:
    """Fork off a process for each request; `live` is what it does in its life."""
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if not child:
            _live(live, asked)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _live(live: Callable[[dict[str, Any]], None], asked: dict[str, Any]) -> None:
    code = 1
    try:
        if asked.get("point"):
            os.environ["AJ_TEST_CRASH"] = asked["point"]
        if asked.get("write"):
            Mortal(asked["write"], asked["is_after"]).strike()
        live(asked)
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


# In the process that looks on


class Watched(Protocol):
    """Who is told which process lives now."""

    victim: int
    known: threading.Event


class Zygote:
    """The process that others are forked off. `module` is run as a program and calls `serve`."""

    def __init__(self, module: str) -> None:
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(HOUSE), "HOME": "/dev/null/nowhere"}
        words = [sys.executable, "-m", module]
        self._child = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=HOUSE, env=env, text=True, bufsize=1
        )
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self._child.stdout is not None
        return self._child.stdout.readline().strip()

    def run(self, service: Watched | None = None, **asked: object) -> int:
        """Let one process live; return how it ended."""
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(asked) + "\n")
        pid = int(self._line())
        if service is not None:
            service.victim = pid
            service.known.set()
        code = int(self._line())
        if service is not None:
            service.victim = 0
            service.known.clear()
        return code

    def close(self) -> None:
        self._child.kill()
        self._child.communicate()


def kill(service: Watched) -> None:
    """End the process that lives now, if one does."""
    if service.known.wait(10) and service.victim:
        with contextlib.suppress(ProcessLookupError):
            os.kill(service.victim, signal.SIGKILL)


def told(root: Path, aj_id: str, *, is_there: bool, was_sent: bool, name: str | None) -> str:
    """Check that ticket and journal tell whether a job is there, and return in a few words what they tell.

    `name` is what the job is called where it is. Raises AssertionError.
    """
    layout = host.home(root, host.variables(root)).layout
    found = list(tickets.scan(layout, "_none").tickets)
    records = [record for record in journal.read(layout, "_none", lambda _: None) if record.id == aj_id]
    if not found:
        assert not is_there and not records, "it is there, and nobody knows of it"
        return "never accepted"
    (ticket,) = found
    _check_ticket(ticket, is_there, name)
    for record in records:
        assert record.state is (RecordState.SUBMITTED if is_there else RecordState.FAILED), record
    assert records or not was_sent, "it was sent, and the journal has no line"
    return f"{ticket.state}/{ticket.outcome}"


def _check_ticket(ticket: Ticket, is_there: bool, name: str | None) -> None:
    assert ticket.state.is_final, ticket
    if is_there:
        assert (ticket.state, ticket.outcome) == (TicketState.COMPLETED, Outcome.SUBMITTED), ticket
        assert ticket.result is not None and ticket.result.azure_name == name
    else:
        assert ticket.outcome in (Outcome.FAILED, Outcome.NEVER_ARRIVED), ticket


def many(argv: list[str], run: Callable[[int, Path], str], drawn: Callable[[int], object]) -> int:
    """Make as many runs as the words of a command line say (`1000 [FIRST]`), and tell how they ended."""
    runs, first = int(argv[0]) if argv else 1000, int(argv[1]) if len(argv) > 1 else 1
    bad, seen, began = 0, Counter[str](), time.monotonic()
    for seed in range(first, first + runs):
        with tempfile.TemporaryDirectory() as folder:
            try:
                seen[run(seed, Path(folder))] += 1
            except AssertionError as error:
                bad += 1
                print(f"seed {seed}: FAILED: {drawn(seed)}: {error}", flush=True)
    for words, count in seen.most_common():
        print(f"{count:6d} {words}")
    print(f"{runs} runs, {bad} failed, {time.monotonic() - began:.0f} s")
    return 1 if bad else 0


def sample(
    proof: str,
    run: Callable[[int, Path], str],
    drawn: Callable[[int], object],
    folder: Path,
    seconds: float,
    sure: int = 4,
) -> None:
    """Make runs of a proof from a seed that nobody chose, for so long and some in any case; say how to repeat them."""
    first = random.SystemRandom().randrange(2**31)
    print(f"python -m {proof} 1 SEED, with seeds from {first} on")
    until, seed = time.monotonic() + seconds, first
    while seed < first + sure or time.monotonic() < until:
        place = folder / str(seed)
        place.mkdir()
        print(f"{seed}: {drawn(seed)}", end=": ", flush=True)
        print(run(seed, place), flush=True)
        seed += 1
