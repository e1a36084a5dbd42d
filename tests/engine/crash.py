"""Killing a process that hosts an engine, and what must hold afterwards, whatever the moment.

`python -m tests.engine.crash 1000 10000` makes so many runs, killed at moments drawn from their seeds,
and tries so many histories with the power going at any write.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aj.base import clock
from aj.base.errors import AjError
from aj.model.record import RecordState
from aj.model.ticket import Outcome, Ticket
from aj.store import journal, lock, tickets
from tests.engine import host
from tests.engine.stand import FAR, NEAR, Home, Stand

HOUSE = Path(__file__).resolve().parents[2]
LIMIT_S = 60.0


@dataclass
class Hosted:
    """A process with an engine in it."""

    home: Home
    env: Mapping[str, str]
    crash: str = ""
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        env = {**self.env, "PYTHONPATH": str(HOUSE), "AJ_TEST_CRASH": self.crash}
        self.child = subprocess.Popen(
            [sys.executable, "-m", "tests.engine.host", str(self.home.root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
            cwd=HOUSE,
            bufsize=0,
        )
        assert self._line() == "ready"

    def _line(self) -> str:
        """Return the next line, empty when the process is gone."""
        assert self.child.stdout is not None
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.child.stdout, selectors.EVENT_READ)
            assert waiting.select(LIMIT_S), "the hosted engine does not answer"
        return self.child.stdout.readline().decode().strip()

    def send(self, **words: object) -> None:
        """Ask one thing and do not wait for the answer."""
        assert self.child.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it is gone: then there is no answer
            self.child.stdin.write(json.dumps(words).encode() + b"\n")

    def hear(self) -> str:
        """Return the next answer, empty when the process is gone."""
        answer = self._line()
        self.told += [answer] if answer else []
        return answer

    def ask(self, **words: object) -> str:
        """Ask one thing and return the answer, empty when the process is gone."""
        self.send(**words)
        return self.hear()

    def end(self) -> int:
        """Kill it, if it still lives, hear what it had said, and return how it ended."""
        self.child.send_signal(signal.SIGKILL)
        said, _ = self.child.communicate(timeout=LIMIT_S)
        self.told += [line for line in said.decode().splitlines() if line]
        return self.child.returncode


def work_off(stand: Stand) -> list[Ticket]:
    """Let a new engine take up what was left and work until nothing waits; return all tickets."""
    stand.engine.queue_resume(None)
    limit = time.monotonic() + LIMIT_S
    for ticket in stand.engine.queue_list(None, False, (), 0).tickets:
        found = stand.engine.queue_wait(None, ticket.ticket, limit - time.monotonic()).ticket
        assert found.state.is_final, found
    return all_tickets(stand)


def all_tickets(stand: Stand) -> list[Ticket]:
    """Every ticket, direct ones too."""
    return list(tickets.scan(stand.home.layout, "_none").tickets)


def exists(stand: Stand, ticket: Ticket) -> bool:
    """Whether the job of a ticket exists where it was sent."""
    return ticket.id in stand.near.jobs or f"far-{ticket.name}" in stand.far.jobs


def was_sent(stand: Stand, ticket: Ticket) -> int:
    """How often a ticket's job was sent."""
    return stand.near.admitted.count(ticket.id) + stand.far.sent.count(f"far-{ticket.name}")


def check(stand: Stand, told: list[str], found: list[Ticket]) -> None:
    """Say what must hold after any crash. Raises AssertionError."""
    names = [ticket.ticket for ticket in found]
    assert set(told) <= set(names), f"lost: {set(told) - set(names)}"
    records = {record.id: record for record in journal.read(stand.home.layout, "_none", lambda _: None)}
    for ticket in found:
        sent = was_sent(stand, ticket)
        assert sent <= 1, f"{ticket.ticket} was sent {sent} times"
        if ticket.outcome is Outcome.SUBMITTED:
            assert exists(stand, ticket), ticket
            assert records[ticket.id].state is RecordState.SUBMITTED
        elif ticket.outcome is not Outcome.UNKNOWN:
            assert not exists(stand, ticket), ticket
        if sent:
            assert ticket.id in records
            assert records[ticket.id].state is not RecordState.INTENDED
    left = [path.name for path in stand.home.layout.tickets("_none").iterdir() if path.name.endswith(".part")]
    assert left == []


def settle(stand: Stand, found: list[Ticket]) -> list[Ticket]:
    """Reconcile every unknown outcome; each must become what is true."""
    for ticket in found:
        if ticket.outcome is Outcome.UNKNOWN:
            settled = stand.engine.queue_reconcile(None, ticket.ticket).ticket
            due = Outcome.SUBMITTED if exists(stand, ticket) else Outcome.NEVER_ARRIVED
            assert settled.outcome is due, settled
    return all_tickets(stand)


def submit_some(hosted: Hosted, service: str, count: int) -> None:
    """Queue some, and wait for their ends, until the process is gone."""
    numbers = range(1, count + 1)
    for number in numbers:
        if not hosted.ask(number=number, service=service, mode="queued"):
            return
    for number in numbers:
        if not hosted.ask(wait=number):
            return


def random_run(seed: int, home: Home, env: Mapping[str, str], make_clock: type[clock.SystemClock]) -> str:
    """Kill an engine at moments drawn from the seed, several times on the same folders, and check each time."""
    dice = random.Random(seed)
    told: list[str] = []
    number = 1
    for _ in range(2):
        hosted = Hosted(home, env)
        for _ in range(20):
            service, mode = dice.choice((FAR, NEAR)), dice.choice(("queued", "queued", "direct"))
            hosted.send(number=number, service=service, mode=mode)
            number += 1
        for _ in range(dice.randint(2, 19)):
            hosted.hear()
        limit = time.monotonic() + dice.uniform(0.0, 0.005)
        while time.monotonic() < limit:
            pass  # any moment between two answers
        hosted.end()
        told += hosted.told
    assert lock.living_holder(home.layout.ownership("_none")) is None
    stand = Stand(home, make_clock())
    try:
        found = work_off(stand)
        check(stand, told, found)
        settled = settle(stand, found)
        check(stand, told, settled)
    finally:
        stand.engine.stop()
    states = sorted(f"{ticket.state}/{ticket.outcome}" for ticket in found)
    return f"seed {seed}: {len(told)} told, " + ", ".join(f"{states.count(one)} {one}" for one in sorted(set(states)))


class Hurrying(clock.SystemClock):
    """The machine's clock for somebody who does not wait between two looks at a service."""

    def wait(self, event: object, timeout_s: float) -> bool:
        return False


def main(argv: list[str]) -> int:
    runs, histories = (int(word) for word in [*argv, "1000", "0"][:2])
    bad = 0
    for seed in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            env = {**os.environ, **host.variables(place), "HOME": folder}
            try:
                print(random_run(seed, host.home(place, env), env, Hurrying), flush=True)
            except (AssertionError, AjError) as error:
                bad += 1
                print(f"seed {seed}: FAILED: {error}", flush=True)
    print(f"{runs} runs, {bad} failed; two kills at random moments in each")
    if histories:
        long_proof(histories)
    return 1 if bad else 0


def long_proof(histories: int) -> None:
    """Try that many histories with a crash at any write. Raises AssertionError with the shortest bad one."""
    from hypothesis import HealthCheck, settings
    from hypothesis.stateful import run_state_machine_as_test

    from tests.engine.histories import Queue

    every = list(HealthCheck)
    chosen = settings(max_examples=histories, stateful_step_count=40, deadline=None, suppress_health_check=every)
    run_state_machine_as_test(Queue, settings=chosen)
    print(f"{histories} histories, none bad")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
