"""Whether two sides fit: an overlap of protocol numbers, which is the older, and what differs in their environment."""

from __future__ import annotations

import re

from aj.base import redact
from aj.base.settings import DAEMON_SIDE, Settings
from aj.version import PROTOCOL_MAX, PROTOCOL_MIN, VERSION
from aj.wire.messages import Hello


def speaks(hello: Hello) -> bool:
    """Tell whether this release and the one that said hello share a protocol number."""
    return max(hello.protocol_min, PROTOCOL_MIN) <= min(hello.protocol_max, PROTOCOL_MAX)


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version in order: `1.10.2` is (1, 10, 2)."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def is_older(hello: Hello) -> bool:
    """Tell whether the one that said hello is an older release than this one."""
    return numbers(hello.version) < numbers(VERSION)


def spoken(low: int, high: int) -> str:
    """Write a range of protocol numbers: `1`, or `1 to 3`."""
    return str(low) if low == high else f"{low} to {high}"


def environment(settings: Settings) -> dict[str, str]:
    """Return the variables that a daemon keeps from its start, with user and password of addresses hidden."""
    found = {name: settings.get(name) for name in DAEMON_SIDE}
    return {name: redact.text(value) for name, value in found.items() if value is not None}


def drift(settings: Settings, hello: Hello) -> tuple[str, ...]:
    """Return the names of those variables that are other here than where the daemon was started."""
    here = environment(settings)
    return tuple(name for name in DAEMON_SIDE if here.get(name) != hello.env.get(name))
