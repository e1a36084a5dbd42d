"""A small Azure for the rooms that ask one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from aj.base.settings import Settings
from tests.conftest import Home, MovedClock
from tests.engine.cloud import Sky
from tests.servers.azure import running


@pytest.fixture
def sky(loopback: None, home: Home, clock: MovedClock) -> Iterator[Sky]:
    """A project, a small Azure, and the cloud of the engine over both."""
    with running(Settings({}), clock) as azure:
        yield Sky.over(azure, home, clock)
