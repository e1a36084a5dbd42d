"""Signed addresses: the key is a real emulator's, which itself does not know so new a form of signature."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import parse_qs, urlsplit

import pytest

from aj.azure import signatures
from aj.azure.line import ByToken, Place
from aj.base import redact
from aj.base.clock import SYSTEM
from aj.base.errors import ConfigError, Refused, UserError
from aj.base.settings import Settings
from tests.servers.azure import Issuer
from tests.servers.azurite import ACCOUNT, Accepted, Azurite

pytestmark = [pytest.mark.usefixtures("loopback"), pytest.mark.rule("A-024")]

DAY_S = 24 * 3600.0


def fields(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def moment(words: str) -> float:
    return datetime.fromisoformat(words).timestamp()


@pytest.mark.rule("A-011")
@pytest.mark.parametrize("lifetime_s", [3600.0, 7 * DAY_S])
def test_a_blob_is_signed_for_a_while_and_for_https_alone(secure_azurite: Azurite, lifetime_s: float) -> None:
    issuer, now = Accepted({}), SYSTEM.now()
    place = secure_azurite.place("code")
    signer = signatures.signer(place, ByToken(issuer, "t"), secure_azurite.settings, SYSTEM, lifetime_s=lifetime_s)
    one = signer.blob("uploads/a b.tgz")
    assert one.url.startswith(f"{place.url}/code/uploads/a%20b.tgz?")
    found = fields(one.url)
    assert (found["sr"], found["sp"], found["spr"]) == ("b", "r", "https")
    assert "skoid" in found and "sig" in found  # signed by a user's key, not by the account's
    assert moment(found["se"]) == pytest.approx(now + lifetime_s, abs=30) == pytest.approx(one.expires_at, abs=30)
    early_s = 300 if lifetime_s < 7 * DAY_S else 0
    assert moment(found["st"]) == pytest.approx(now - early_s, abs=30)
    assert moment(found["ske"]) - moment(found["skt"]) <= 7 * DAY_S
    assert [scope for scope, _, _ in issuer.asked] == ["https://storage.azure.com/.default"]
    whole = fields(signer.container("rl").url)
    assert (whole["sr"], whole["sp"]) == ("c", "rl") and whole["sig"] != found["sig"]
    shown = redact.text(f"curl {one.url}")
    assert found["sig"] not in shown and found["sig"] not in repr(one) and str(signer.key.value) not in repr(signer)


@pytest.mark.parametrize("lifetime_s", [0.0, -1.0, 7 * DAY_S + 1])
def test_no_signature_lives_longer_than_a_week(lifetime_s: float) -> None:
    place = Place(ACCOUNT, "code", f"https://127.0.0.1:1/{ACCOUNT}")
    with pytest.raises(UserError, match="a signature cannot live for"):
        signatures.signer(place, ByToken(Issuer({})), Settings({}), SYSTEM, lifetime_s=lifetime_s)


def test_who_may_not_sign_is_told_the_role(secure_azurite: Azurite) -> None:
    place, stranger = secure_azurite.place("code"), ByToken(Issuer({}))
    with pytest.raises(Refused) as caught:
        signatures.signer(place, stranger, secure_azurite.settings, SYSTEM, lifetime_s=60)
    assert caught.value.hint == f"role Storage Blob Data Contributor on {ACCOUNT}"


def test_no_key_is_asked_for_by_plain_http() -> None:
    place = Place(ACCOUNT, "code", f"http://127.0.0.1:1/{ACCOUNT}")
    with pytest.raises(ConfigError):
        signatures.signer(place, ByToken(Issuer({})), Settings({}), SYSTEM, lifetime_s=60)
