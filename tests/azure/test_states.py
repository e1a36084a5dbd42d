"""The service's words for states, and ours."""

from __future__ import annotations

import json

import pytest

from aj.azure import jobs, states
from aj.model.state import JobState
from tests.servers.spec import SPECS


@pytest.mark.rule("A-161")
@pytest.mark.parametrize(
    ("words", "state"),
    [
        (["NotStarted", "Queued", "Scheduled", "Paused"], JobState.QUEUED),
        (["Starting", "Provisioning", "Preparing"], JobState.STARTING),
        (["Running", "Finalizing", "CancelRequested", "NotResponding"], JobState.RUNNING),
        (["Completed"], JobState.COMPLETED),
        (["Failed"], JobState.ERRORED),
        (["Canceled"], JobState.TERMINATED),
        (["Unknown", "Dreaming", "", "completed"], None),
    ],
)
def test_each_word_means_one_of_ours(words: list[str], state: JobState | None) -> None:
    assert [states.state_of(word) for word in words] == [state] * len(words)


@pytest.mark.rule("A-161")
def test_every_published_word_is_known_and_the_ends_agree() -> None:
    found = json.loads((SPECS / "ml-arm-2023-10-01.definitions.json").read_text())
    published = found["enums"]["JobStatus"] if "enums" in found else found["definitions"]["JobStatus"]["enum"]
    assert set(published) <= set(states.WORDS)
    assert {word for word, state in states.WORDS.items() if state is not None and state.is_final} == jobs.FINAL
