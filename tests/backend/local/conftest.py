"""Real jobs on the test's own folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Home
from tests.yard import Yard


@pytest.fixture
def yard(home: Home, tmp_path: Path, programs: None, real_clock: None) -> Iterator[Yard]:
    """An engine that really runs jobs; whatever it started is ended with the test."""
    found = Yard(home, tmp_path / "project")
    try:
        yield found
    finally:
        found.close()
