"""Secrets on disk: private, exact, and never told."""

from __future__ import annotations

import stat

import pytest

from aj.base.errors import NotFound, Refused, UserError
from aj.store import secrets
from tests.conftest import Home


@pytest.mark.rule("C-174")
def test_a_value_comes_back_exactly_and_its_file_is_private(home: Home) -> None:
    secrets.save(home.layout, "HF_TOKEN", "  hf_ü\nsecond line ")
    assert secrets.values(home.layout, ["HF_TOKEN"]) == {"HF_TOKEN": "  hf_ü\nsecond line "}
    assert stat.S_IMODE((home.layout.secrets / "HF_TOKEN").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.layout.secrets.stat().st_mode) == 0o700
    assert [one.name for one in secrets.listing(home.layout)] == ["HF_TOKEN"]


def test_a_name_is_used_once_and_is_a_variable(home: Home) -> None:
    secrets.save(home.layout, "A", "1")
    with pytest.raises(Refused):
        secrets.save(home.layout, "A", "2")
    for name in ("", "1A", "A-B", "../A", "a b", "A\n"):
        with pytest.raises(UserError):
            secrets.save(home.layout, name, "1")
    for value in ("", "a\0b", "x" * (secrets.LARGEST + 1)):
        with pytest.raises(UserError):
            secrets.save(home.layout, "B", value)
    secrets.delete(home.layout, "A")
    with pytest.raises(NotFound):
        secrets.delete(home.layout, "A")
    with pytest.raises(NotFound, match="no secret `A`"):
        secrets.values(home.layout, ["A"])
