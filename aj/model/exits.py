"""Exit codes by which our own programs on a node end, when it is not the user's that failed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

MEANINGS: Mapping[int, str] = MappingProxyType(
    {
        110: "the node was given bad input, or has no private folder or no ranks",
        111: "the code that arrived is not the code that was sent",
        112: "the code could not be unpacked, or holds no runner",
        113: "the process that ran setup on the node died",
        114: "the code was not unpacked, or the setup not done, within the limit",
        116: "a tool that was fetched is not the one that was asked for",
        117: "the node has no program that can download",
        118: "a storage container could not be mounted",
        119: "the last outputs could not be written",
    }
)
_TOLD = re.compile(r"\b(?:exit(?:ed|code)?|status|code)\b[^0-9]{0,30}(?P<code>11[0-9])\b", re.IGNORECASE)


def meaning(words: str) -> str | None:
    """Return what one of our exit codes in a service's words means, or None when there is none."""
    found = _TOLD.search(words)
    code = int(found["code"]) if found else 0
    return f"exit code {code} of aj: {MEANINGS[code]}" if code in MEANINGS else None
