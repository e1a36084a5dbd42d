"""Stories with a cluster from their tapes, the network blocked; `python -m tests.house record volcano STORY` tapes one.

They were taped from a real API server of Kubernetes with Volcano's definitions. The same stories happen on the cluster
that `AJ_TEST_KUBECONFIG` names when pytest is told `--cluster`; else those are skipped, and say so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import conftest
from tests.cassettes import kube_tape as taped
from tests.cassettes.kube_stories import STORIES
from tests.cassettes.kube_tape import Ground, KubeTape
from tests.cassettes.tape import CASSETTES
from tests.conftest import MovedClock


@pytest.fixture
def tape(record_mode: str) -> KubeTape:
    return KubeTape() if record_mode != "none" else KubeTape.replayed()


@pytest.fixture
def vcr_config(tape: KubeTape) -> dict[str, Any]:
    return tape.config


@pytest.fixture(scope="module")
def vcr_cassette_dir() -> str:
    return str(CASSETTES)


@pytest.fixture
def default_cassette_name(backend: str, story: str) -> str:
    return f"{backend}/{story}"


@pytest.fixture
def ground(record_mode: str, tape: KubeTape, clock: MovedClock, tmp_path: Path) -> Iterator[Ground]:
    """Where the story takes place. A cluster is needed only to tape it."""
    if record_mode == "none":
        with taped.replaying(clock, tmp_path) as ground:
            yield ground
        return
    kubeconfig = os.environ.get("AJ_TEST_KUBECONFIG")
    assert kubeconfig, "name the cluster that is to be taped: AJ_TEST_KUBECONFIG"
    conftest.GUARD.reset(active=False)
    with taped.living(Path(kubeconfig), clock, tmp_path, tape) as ground:
        yield ground


@pytest.mark.vcr
@pytest.mark.block_network
@pytest.mark.rule("V-039", "V-100", "V-101", "V-102", "V-104", "V-116", "V-127", "C-195")
@pytest.mark.parametrize(("backend", "story"), [("volcano", name) for name in STORIES])
def test_a_story(backend: str, story: str, ground: Ground, vcr: Any, record_mode: str) -> None:
    STORIES[story](ground)
    assert record_mode != "none" or vcr.all_played, "the tape holds more than was said"


@pytest.mark.parametrize("story", STORIES)
def test_a_story_on_a_cluster(story: str, real_cluster: Path, clock: MovedClock, tmp_path: Path) -> None:
    with taped.living(real_cluster, clock, tmp_path) as ground:
        STORIES[story](ground)
