"""Who asks: remembered for when there is no network, and what was kept for somebody else is dropped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aj.azure import asker
from aj.base.errors import AuthError, Unavailable
from aj.net.token import Token
from aj.store import cache
from tests.servers.azure import SmallAzure


class Nobody:
    """A source of tokens that has none."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def get(self, scope: str, *, tenant: str | None = None, claims: str | None = None) -> Token:
        raise self.error

    def drop(self, token: Token) -> None:
        """Nothing is kept."""


def sign_in_as(azure: SmallAzure, person: str) -> None:
    azure.issuer.kept.clear()
    azure.issuer.person = person


@pytest.mark.rule("A-023")
def test_what_was_found_out_is_dropped_when_somebody_else_signs_in(azure: SmallAzure, tmp_path: Path) -> None:
    quota, compute, sent = tmp_path / "quota/a.json", tmp_path / "azure/compute/b.json", tmp_path / "azure/sent/c.json"
    first = asker.known(azure.session, tmp_path)
    for file in (quota, compute, sent):
        cache.put(file, "kept")
    assert asker.known(azure.session, tmp_path) == first
    assert quota.exists() and compute.exists()
    sign_in_as(azure, "99999999-0000-0000-0000-000000000002")
    other = asker.known(azure.session, tmp_path)
    assert other.key != first.key
    assert not quota.exists() and not compute.exists()
    assert sent.exists()  # where a submission went does not depend on who looks
    sign_in_as(azure, "99999999-0000-0000-0000-000000000001")
    assert asker.known(azure.session, tmp_path) == first


@pytest.mark.rule("A-023", "A-170")
def test_without_a_network_it_is_who_asked_last(azure: SmallAzure, tmp_path: Path) -> None:
    offline = replace(azure.session, tokens=Nobody(Unavailable("no network")))
    with pytest.raises(Unavailable):
        asker.known(offline, tmp_path)
    first = asker.known(azure.session, tmp_path)
    seen = asker.known(offline, tmp_path)
    assert (seen.key, seen.is_offline, first.is_offline) == (first.key, True, False)
    with pytest.raises(Unavailable):  # in another tenant nobody asked yet
        asker.known(replace(offline, tenant="bbbbbbbb-0000-0000-0000-00000000000b"), tmp_path)
    with pytest.raises(AuthError):  # whoever signed out has no answers
        asker.known(replace(azure.session, tokens=Nobody(AuthError("signed out"))), tmp_path)


@pytest.mark.rule("A-011", "A-023")
def test_a_token_that_tells_nothing_is_told_from_another_and_kept_nowhere(azure: SmallAzure, tmp_path: Path) -> None:
    def opaque(value: str) -> str:
        azure.issuer.kept[azure.cloud.arm_scope] = Token(value, 4_000_000_000.0, "managed")
        return asker.known(azure.session, tmp_path).key

    assert opaque("opaque-token-one") != opaque("opaque-token-two")
    assert not any(b"opaque-token" in file.read_bytes() for file in tmp_path.rglob("*.json"))
