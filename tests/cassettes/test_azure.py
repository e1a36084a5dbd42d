"""Stories with Azure from their tapes, the network blocked; `python -m tests.house record BACKEND STORY` tapes one.

They were taped from servers that check each request by Microsoft's definitions, and from Microsoft's emulator of
blob storage: the very bytes that were sent then must be sent now.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cassettes import tape as taped
from tests.cassettes.stories import STORIES
from tests.cassettes.tape import CASSETTES, Studio, Tape
from tests.conftest import MovedClock
from tests.servers import azurite as emulator


@pytest.fixture
def tape(record_mode: str) -> Tape:
    return Tape() if record_mode != "none" else Tape.replayed()


@pytest.fixture
def vcr_config(tape: Tape) -> dict[str, Any]:
    return tape.config


@pytest.fixture(scope="module")
def vcr_cassette_dir() -> str:
    return str(CASSETTES)


@pytest.fixture
def default_cassette_name(backend: str, story: str) -> str:
    return f"{backend}/{story}"


@pytest.fixture
def studio(
    request: pytest.FixtureRequest, record_mode: str, tape: Tape, clock: MovedClock, tmp_path: Path
) -> Iterator[Studio]:
    """Where the story takes place. Servers are started only to tape it."""
    if record_mode == "none":
        with taped.replaying(clock) as studio:
            yield studio
        return
    for name in ("loopback", "programs"):
        request.getfixturevalue(name)
    with emulator.running(tmp_path, tls=True) as azurite, taped.taping(tape, azurite, clock) as studio:
        yield studio


@pytest.mark.vcr
@pytest.mark.block_network
@pytest.mark.rule("A-128", "A-117", "A-119", "A-11A", "C-195")
@pytest.mark.parametrize(("backend", "story"), STORIES, ids=["-".join(names) for names in STORIES])
def test_a_story(backend: str, story: str, studio: Studio, vcr: Any, record_mode: str, tmp_path: Path) -> None:
    folder = tmp_path / "story"
    folder.mkdir()
    STORIES[backend, story](studio, folder)
    assert record_mode != "none" or vcr.all_played, "the tape holds more than was said"
