"""Files of one start that were damaged: what they said is not known, and nothing breaks on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from aj.backend.local import attempt, driver
from aj.base import proc

DAMAGE = ("", "[]", "null", "7", '{"a": ', "\n\n\n", '{"groups": null}', '{"pid": "x"}', '{"exit_code": []}', "\udcff")


def damaged(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    return folder


@pytest.mark.parametrize("text", DAMAGE)
def test_how_it_ended_is_not_known(tmp_path: Path, text: str) -> None:
    assert attempt.exit_record(damaged(tmp_path, "exit.json", text)) is None


@pytest.mark.parametrize("text", DAMAGE)
def test_a_start_with_an_unreadable_supervisor_is_taken_up_and_dead(tmp_path: Path, text: str) -> None:
    who = attempt.supervisor(damaged(tmp_path, "supervisor.json", text))
    assert who is not None, "somebody had taken it up: it is never started a second time"
    assert not proc.is_alive(who)


@pytest.mark.parametrize("text", DAMAGE)
def test_an_unreadable_wish_is_still_a_wish_to_end(tmp_path: Path, text: str) -> None:
    assert attempt.end_asked(damaged(tmp_path, "terminate.json", text)) == attempt.GRACE_S


@pytest.mark.parametrize("text", DAMAGE)
def test_an_unreadable_arrangement_is_made_anew(tmp_path: Path, text: str) -> None:
    assert driver._arranged(damaged(tmp_path, "arranged.json", text)) is None


@pytest.mark.parametrize("text", DAMAGE)
def test_an_unreadable_request_is_told_as_such(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError):
        attempt.take_request(damaged(tmp_path, "request.json", text))


def test_what_is_missing_is_not_there(tmp_path: Path) -> None:
    assert attempt.exit_record(tmp_path) is None
    assert attempt.supervisor(tmp_path) is None
    assert attempt.end_asked(tmp_path) is None
    assert attempt.take_request(tmp_path) is None
