"""The state folder says whose it is, and every file of a project has its own place."""

from __future__ import annotations

import os
import stat

import pytest

from aj.base.errors import AjError
from tests.conftest import Home


def test_the_state_folder_is_private_and_explains_itself(home: Home) -> None:
    home.layout.prepare()
    assert stat.S_IMODE(home.layout.state.stat().st_mode) == 0o700
    note = (home.layout.state / "README").read_text()
    for name in ("queue/", "journal/", "jobs/", "code/", "locks/", "daemon.log"):
        assert name in note
    (home.layout.state / "README").write_text("mine")
    home.layout.prepare()
    assert (home.layout.state / "README").read_text() == "mine"


def test_making_a_layout_makes_no_file(home: Home) -> None:
    assert home.layout.ticket("k", "q-1").parent == home.layout.tickets("k")
    assert not home.layout.state.exists()


def test_names_of_one_project_are_apart_from_those_of_another(home: Home) -> None:
    layout = home.layout
    made = [
        make(key)
        for key in ("a", "b")
        for make in (layout.tickets, layout.project, layout.journal, layout.ownership, layout.journal_lock)
    ]
    assert len(set(made)) == len(made)


def test_a_state_folder_that_cannot_be_made_is_told(home: Home) -> None:
    os.makedirs(home.layout.state.parent, exist_ok=True)
    home.layout.state.write_text("")
    with pytest.raises(AjError, match="cannot write"):
        home.layout.prepare()
