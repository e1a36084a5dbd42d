"""Small work on words: nearest name, plural, escapes for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# Patterns stand as text: `re` compiles one at its first use, and keeps it.
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
_CELL = r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
_SGR_OR_CONTROL = r"(\x1b\[[0-9;:]*m)|([\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f])"


def plural(count: int, noun: str, many: str | None = None) -> str:
    """`1 job`, `2 jobs`, `0 entries` (with `many="entries"`)."""
    return f"{count} {noun if count == 1 else many or noun + 's'}"


def some(words: Sequence[str], most: int) -> str:
    """Name the first words of a list, and how many more there are."""
    more = len(words) - most
    return ", ".join(words[:most]) + (f" and {more} more" if more > 0 else "")


def nearest(word: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """Return the known word that a typing slip most likely meant, or None. `likeness` from 0 to 1 is the least."""
    from difflib import get_close_matches  # 3 ms, only on the way to an error

    lowered = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), list(lowered), n=1, cutoff=likeness)
    return lowered[found[0]] if found else None


def nearest_few(word: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return the known words that are nearest to a word, the nearest first, however far they are."""
    from difflib import SequenceMatcher  # 3 ms, only on the way to an error

    def likeness(name: str) -> float:
        return SequenceMatcher(None, word.lower(), name.lower()).ratio()

    return sorted(dict.fromkeys(known), key=lambda name: (-likeness(name), name))[:count]


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def visible(text: str) -> str:
    """Show control characters as `\\xNN`; tab and newline pass. Data can then not drive a terminal."""
    return text if text.isprintable() else re.sub(_CONTROL, _escape, text)


def cell(text: str) -> str:
    """As `visible`, for one table cell: tab and newline are shown too."""
    return text if text.isprintable() else re.sub(_CELL, _escape, text)


def log_line(text: str) -> str:
    """For a log on a terminal: colours pass, every other control sequence is shown as `\\xNN`."""
    return re.sub(_SGR_OR_CONTROL, lambda found: found[1] or f"\\x{ord(found[2]):02x}", text)


def decoded(raw: bytes) -> str:
    """Bytes of unknown making to text, without loss of what is UTF-8 and never an error."""
    return raw.decode("utf-8", "backslashreplace")
