"""A small Azure of each test's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from aj.base.settings import Settings
from tests.conftest import MovedClock
from tests.servers.azure import SmallAzure, running


@pytest.fixture
def azure(loopback: None, clock: MovedClock) -> Iterator[SmallAzure]:
    """Servers that check each request, and a session that reaches them. Pauses pass by the moved clock."""
    with running(Settings({}), clock) as small:
        yield small
