"""Buckets of every kind: folders of the test's own, and containers of a real emulator."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aj.bucket.azure import Container
from aj.bucket.folder import Folder
from aj.bucket.storage import Storage
from aj.bucket.transfer import Pace
from tests.conftest import MovedClock
from tests.servers import azurite as emulator
from tests.servers.azurite import Azurite

NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    """Blob storage by plain http, opened by key."""
    with emulator.running(tmp_path_factory.mktemp("azurite")) as running:
        yield running


Make = Callable[[str], Storage]


@pytest.fixture(params=["dir", "azure"])
def bucket_of(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Return what opens a bucket of one kind; the name is made the test's own."""
    mine = next(NUMBERS)
    if request.param == "dir":
        return lambda name: Folder(tmp_path / "buckets", name)
    request.getfixturevalue("loopback")
    request.getfixturevalue("programs")  # the emulator is started with the first test that needs it
    azurite: Azurite = request.getfixturevalue("azurite")
    return lambda name: Container(azurite.place(f"{name}-{mine}"), azurite.key, azurite.settings)


@pytest.fixture
def bucket(bucket_of: Make) -> Storage:
    """A bucket that is there."""
    made = bucket_of("results")
    assert made.create()
    return made


@pytest.fixture
def pace(clock: MovedClock) -> Pace:
    """Retries without a pause."""
    return Pace(clock, threading.Event())
