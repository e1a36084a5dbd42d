"""The root of one test's tree, and a clock that is far from the times of its files."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.conftest import MovedClock


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty folder to plant a tree in."""
    folder = tmp_path / "code"
    folder.mkdir()
    return folder


@pytest.fixture
def later(clock: MovedClock) -> MovedClock:
    """A clock an hour after now, when all that was planted is old."""
    clock.at = time.time() + 3600
    return clock


@pytest.fixture
def umask() -> object:
    """Set a umask for the rest of the test."""
    before = os.umask(0o022)
    os.umask(before)
    yield os.umask
    os.umask(before)
