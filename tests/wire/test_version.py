"""Whether two releases fit, and what differs between their environments."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aj.base.settings import DAEMON_SIDE, Settings
from aj.version import PROTOCOL_MAX, VERSION
from aj.wire import version
from aj.wire.messages import Busy, Hello

HELLO = Hello("aj", VERSION, 1, 1, "i", 1, "2", "now", 0.0, False, (), Busy(), {}, "s", "l")


@pytest.mark.rule("C-204")
@pytest.mark.parametrize(
    ("low", "high", "speaks"), [(1, 1, True), (0, 9, True), (PROTOCOL_MAX + 1, PROTOCOL_MAX + 3, False), (0, 0, False)]
)
def test_an_overlap_of_protocols_is_enough(low: int, high: int, speaks: bool) -> None:
    assert version.speaks(replace(HELLO, protocol_min=low, protocol_max=high)) is speaks


@pytest.mark.rule("C-204")
@pytest.mark.parametrize(("word", "older"), [("0.0.9", True), (VERSION, False), ("0.10.0", False), ("99", False)])
def test_versions_are_compared_by_their_numbers(word: str, older: bool) -> None:
    assert version.is_older(replace(HELLO, version=word)) is older
    assert version.numbers("1.10.2rc1") == (1, 10, 2)
    assert (version.spoken(1, 1), version.spoken(1, 3)) == ("1", "1 to 3")


@pytest.mark.rule("C-206")
def test_only_what_a_daemon_keeps_counts_as_drift() -> None:
    there = Settings({"KUBECONFIG": "/a", "AJ_NAME": "x", "HTTPS_PROXY": "http://u:p@proxy:1", "TERM": "dumb"})
    hello = replace(HELLO, env=version.environment(there))
    assert version.drift(there, hello) == ()
    assert version.drift(Settings({**there.env, "AJ_NAME": "y", "TERM": "x"}), hello) == ()
    assert version.drift(Settings({**there.env, "KUBECONFIG": "/b"}), hello) == ("KUBECONFIG",)
    assert version.drift(Settings({}), hello) == ("KUBECONFIG", "HTTPS_PROXY")
    assert set(hello.env) <= set(DAEMON_SIDE)


@pytest.mark.rule("C-206")
def test_user_and_password_of_addresses_do_not_cross() -> None:
    found = version.environment(Settings({"HTTPS_PROXY": "http://user:geheim@proxy:3128"}))
    assert "geheim" not in found["HTTPS_PROXY"]
    assert "proxy:3128" in found["HTTPS_PROXY"]
