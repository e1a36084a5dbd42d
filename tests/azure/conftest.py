"""A small Azure of each test's own, and a real emulator of blob storage for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from aj.base.settings import Settings
from tests.conftest import MovedClock
from tests.servers import azurite as emulator
from tests.servers.azure import SmallAzure, running
from tests.servers.azurite import Azurite


@pytest.fixture
def azure(loopback: None, clock: MovedClock) -> Iterator[SmallAzure]:
    """Servers that check each request, and a session that reaches them. Pauses pass by the moved clock."""
    with running(Settings({}), clock) as small:
        yield small


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    """Blob storage by plain http, opened by key or signature."""
    with emulator.running(tmp_path_factory.mktemp("azurite")) as running:
        yield running


@pytest.fixture(scope="session")
def secure_azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    """Blob storage by https, opened by tokens too."""
    with emulator.running(tmp_path_factory.mktemp("azurite"), tls=True) as running:
        yield running
