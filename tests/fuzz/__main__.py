"""Fuzz for as long as you like: `python -m tests.fuzz [SECONDS [SEED]]` (an hour by default).

Every case has a number of its own; a failing one is told so that it can be run again alone.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.targets import TARGETS, Bench


def fuzz(name: str, seconds: float, seed: int, folder: Path) -> int:
    """Run one target for a time and return how many cases it took. Raises whatever a case raises."""
    bench = Bench(folder)
    end, cases = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        number = seed * 1_000_000 + cases
        try:
            TARGETS[name](bench, random.Random(number))
        except BaseException:
            print(f"{name}: case {number} fails", flush=True)
            raise
        cases += 1
    return cases


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3600.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(1 << 20)
    for name in TARGETS:
        with tempfile.TemporaryDirectory() as folder:
            cases = fuzz(name, seconds / len(TARGETS), seed, Path(folder))
            print(f"{name}: {cases} cases from seed {seed}, no fault", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
