"""Daemons for the proofs of this floor and of the client's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aj.base import paths
from tests.conftest import Home, RunningDaemon
from tests.daemon.inside import Inside

SMALL = Path(__file__).with_name("small.py")


@pytest.fixture
def inside(home: Home, real_clock: None) -> Iterator[Inside]:
    """A daemon in this very process."""
    running = Inside.start(home)
    yield running
    running.close()


@pytest.fixture
def hasty(home: Home, real_clock: None) -> Iterator[Inside]:
    """A daemon in this very process that shows signs of life very often."""
    running = Inside.start(home, keepalive_s=0.05)
    yield running
    running.close()


@pytest.fixture
def small(daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> RunningDaemon:
    """A real daemon process with the small engine."""
    monkeypatch.setattr(paths, "program", lambda: [sys.executable, str(SMALL)])
    return daemon
