"""Figures of the durable queue: `python -m tests.bench.queue`.

How long a submission takes from the request to the durable ticket, with few and with many tickets
waiting; the same for sixteen at once; and how long the next daemon needs to take the queue up. All at
the engine, without the socket. The budget is 10 ms, whatever waits.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from aj.base import clock
from aj.engine import compose
from aj.store import journal, tickets
from aj.store.queue import Tickets
from tests.engine import host
from tests.engine.stand import BARE, FAR, Stand
from tests.store import nouns

BUDGET_MS = 10.0
PENDING = (10, 1_000, 10_000)
TRIES = 200
WRITERS = 16
KEY = "_none"


def figures(name: str, taken_s: Sequence[float], budget_ms: float | None = BUDGET_MS) -> str:
    """One line: fastest, median and 99th percentile in milliseconds, against the budget."""
    ordered = sorted(taken_s)
    least, median = ordered[0] * 1000, statistics.median(ordered) * 1000
    late = ordered[int(len(ordered) * 0.99)] * 1000
    words = f"{name:46s} min {least:6.2f} ms   median {median:7.2f} ms   p99 {late:7.2f} ms"
    if budget_ms is None:
        return words
    return f"{words}   (budget {budget_ms:g} ms, {'met' if median <= budget_ms else 'NOT met'})"


def timed(name: str, ask: Callable[[], object]) -> str:
    """One line: how long something took once, by the clock and in CPU time."""
    began, used = time.perf_counter(), time.process_time()
    ask()
    wall, cpu = time.perf_counter() - began, time.process_time() - used
    return f"{name:46s} {wall * 1000:8.0f} ms   cpu {cpu * 1000:8.0f} ms"


class Bench:
    """One engine on folders of its own, whose service holds the first ticket, so that all others wait."""

    def __init__(self, root: Path) -> None:
        self.home = host.home(root, host.variables(root))
        self.stand = Stand(self.home, clock.SYSTEM, pack=compose.packer(self.home.layout))  # the real one
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.stand.far.before = self._hold
        self.count = 0
        for number in range(20):
            (self.stand.tree / f"module{number}.py").write_text(f"x = {number}\n" * 50)
        self.enqueue(FAR)
        self.begun.wait(20)

    def _hold(self, _: str) -> None:
        self.begun.set()
        self.may_end.wait()

    def enqueue(self, service: str) -> float:
        """Submit one and return how long that took, in seconds."""
        self.count += 1
        asked = self.stand.submission(self.count, service=service)
        began = time.perf_counter()
        self.stand.engine.submit(None, asked)
        return time.perf_counter() - began

    def fill(self, pending: int) -> None:
        """Let so many wait."""
        while self.count <= pending:
            self.enqueue(BARE)

    def at_once(self, writers: int, each: int) -> tuple[list[float], float]:
        """Submit from several threads at once; return each time, and how many went through in a second."""
        line = threading.Barrier(writers + 1)
        taken: list[float] = []
        numbers = iter(range(self.count + 1, self.count + writers * each + 1))
        guard = threading.Lock()
        self.count += writers * each

        def write() -> None:
            line.wait()
            for _ in range(each):
                with guard:
                    number = next(numbers)
                asked = self.stand.submission(number, service=BARE)
                began = time.perf_counter()
                self.stand.engine.submit(None, asked)
                taken.append(time.perf_counter() - began)

        threads = [threading.Thread(target=write) for _ in range(writers)]
        for thread in threads:
            thread.start()
        line.wait()
        began = time.perf_counter()
        for thread in threads:
            thread.join()
        return taken, writers * each / (time.perf_counter() - began)


def main() -> int:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        bench = Bench(Path(folder))
        for pending in PENDING:
            bench.fill(pending)
            print(figures(f"ticket alone, {pending} pending", [bench.enqueue(BARE) for _ in range(TRIES)]), flush=True)
            packed = [bench.enqueue(FAR) for _ in range(TRIES)]
            print(figures(f"with 21 files of code, {pending} pending", packed), flush=True)
            taken, rate = bench.at_once(WRITERS, 25)
            name = f"ticket alone, {WRITERS} at once, {pending} pending"
            print(figures(name, taken, budget_ms=None) + f"   {rate:.0f}/s", flush=True)
        restore(bench)
        lines(bench)
        bench.stand.engine.begin_drain()
        bench.may_end.set()
        bench.stand.engine.drain(10)
        bench.stand.engine.stop()
    return 0


def restore(bench: Bench) -> None:
    """How long a look at the folder takes, and taking it up."""
    layout = bench.home.layout
    box = Tickets(layout, KEY)
    print(timed(f"a look at {bench.count} tickets", lambda: tickets.scan(layout, KEY)))
    print(timed(f"{bench.count} tickets taken up", lambda: box.restore(now="")))
    assert len(box) == bench.count
    assert box.waiting == bench.count - 1


def lines(bench: Bench) -> None:
    """How long journals take."""
    layout = bench.home.layout
    taken = []
    for number in range(TRIES):
        began = time.perf_counter()
        journal.append(layout, "bench", nouns.record(number))
        taken.append(time.perf_counter() - began)
    print(figures("a line of the journal", taken))
    path = layout.journal("bench")
    line = path.read_bytes().split(b"\n")[0]
    with path.open("ab") as out:
        for number in range(TRIES, 100_000):
            out.write(line.replace(b"00000000", b"%08x" % number) + b"\n")
    newest = lambda: list(itertools.islice(journal.newest(layout, "bench", print), 20))  # noqa: E731
    print(timed("100000 lines of the journal: newest 20", newest))
    print(timed("100000 lines of the journal: all", lambda: journal.read(layout, "bench", print)))
    print(timed("100000 lines of the journal: ids", lambda: journal.KnownIds(layout).holds("ffffffff")))


if __name__ == "__main__":
    sys.exit(main())
