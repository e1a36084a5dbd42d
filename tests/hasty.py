"""A daemon like the real one, but for the pauses of its engine, which are fifty times shorter.

What is asked how often, and in which order, is the same. Which pauses there are is proven where a test has the clock.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from aj.base.clock import SystemClock
from aj.base.paths import Folders
from aj.base.settings import Settings
from aj.daemon import serve
from aj.daemon.engine import Engine
from tests.conftest import RunningDaemon

HASTE = 50.0
LONG_S = 60.0  # who waits so long looks around now and then, and is not waited for


class Hasty(SystemClock):
    """The machine's clock for somebody who does not like to wait."""

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds / HASTE)

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        return super().wait(event, timeout_s if timeout_s >= LONG_S else timeout_s / HASTE)


def engine(settings: Settings, folders: Folders, clock: object) -> Engine:
    """Make the engine of the product, with that clock."""
    return serve.real_engine(settings, folders, Hasty())


@pytest.fixture
def hasty(daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> RunningDaemon:
    """A daemon that hurries, for commands that run in the test's own process; it starts with the first of them."""
    house = Path(__file__).resolve().parents[1]
    start = f"import sys; sys.path.insert(0, {str(house)!r}); from tests import hasty; hasty.main()"
    monkeypatch.setattr("aj.client.launch.places.program", lambda: [sys.executable, "-I", "-c", start])
    return daemon


def main() -> None:
    sys.exit(serve.main(sys.argv[2:], engine))
