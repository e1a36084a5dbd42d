"""Credentials on disk: private, whole, and never told."""

from __future__ import annotations

import json
import stat

import pytest

from aj.base import redact
from aj.base.errors import AjError, NotFound, Refused, UserError
from aj.model.bucket import HERE, Kind
from aj.store import credentials
from aj.store.credentials import Credential
from aj.wire import codec
from tests.conftest import Home

VALUE = "c2VjcmV0LXRoYXQtbXVzdC1ub3QtYmUtc2Vlbg=="


def made(name: str = "work") -> Credential:
    return Credential(name, Kind.AZURE, "account key", account="store", value=VALUE, created_at="2026-01-01T00:00:00Z")


@pytest.mark.rule("C-174")
def test_what_is_kept_comes_back_to_the_daemon_alone(home: Home) -> None:
    layout = home.layout
    credentials.save(layout, made())
    assert credentials.read(layout, "work") == made()
    path = layout.credentials / "work.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(layout.credentials.stat().st_mode) == 0o700
    assert VALUE not in repr(made()) + repr(made().facts) + json.dumps(codec.dump(made().facts))
    told, warnings = credentials.listing(layout)
    assert [one.name for one in told] == [HERE, "work"] and not warnings
    assert redact.text(f"the key is {VALUE}") == "the key is ***"


def test_a_name_is_used_once_and_is_a_file_of_ours(home: Home) -> None:
    credentials.save(home.layout, made())
    with pytest.raises(Refused):
        credentials.save(home.layout, made())
    with pytest.raises(Refused):
        credentials.save(home.layout, made(HERE))
    for name in ("../x", "", ".key", "a/b", "x" * 64):
        with pytest.raises(UserError):
            credentials.read(home.layout, name)
    credentials.delete(home.layout, "work")
    for act in (credentials.read, credentials.delete):
        with pytest.raises(NotFound):
            act(home.layout, "work")


def test_a_damaged_one_is_told_and_hides_no_other(home: Home) -> None:
    credentials.save(home.layout, made())
    credentials.save(home.layout, made("other"))
    (home.layout.credentials / "work.json").write_text("{")
    told, warnings = credentials.listing(home.layout)
    assert [one.name for one in told] == [HERE, "other"] and "work.json is damaged" in warnings[0]
    with pytest.raises(AjError):
        credentials.read(home.layout, "work")


def test_the_word_of_this_state_directory_is_always_the_same_and_nobody_elses(home: Home) -> None:
    first = credentials.nonce(home.layout, "job 1")
    assert credentials.nonce(home.layout, "job 1") == first != credentials.nonce(home.layout, "job 2")
    (home.layout.credentials / ".key").write_bytes(b"another")
    assert credentials.nonce(home.layout, "job 1") != first
    assert credentials.names(home.layout) == []
