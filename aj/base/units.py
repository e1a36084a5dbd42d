"""Sizes, durations and whole numbers: how people write them, what they mean.

Durations: `90s`, `30m`, `2h`, `1d`, combined as `1h30m`; a bare number is seconds.
Sizes: `Ki Mi Gi Ti` are powers of 1024; `k M G T` and `kB MB GB TB` powers of 1000.
Docker-style sizes (`shm_size`): lower-case `k m g t` are powers of 1024.
"""

from __future__ import annotations

import re

_DURATION = r"(?a)(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?\Z"
_SIZE = r"(?a)(\d+(?:\.\d+)?)\s*(B|[KMGT]i|[KMGT]iB|k|K|M|G|T|kB|KB|MB|GB|TB)?\Z"
_SHM = r"(?a)(\d+(?:\.\d+)?)([kmgt])\Z"
_POWER = {"k": 1, "m": 2, "g": 3, "t": 4}
_WHOLE = r"(?a)[0-9]{1,9}\Z"


def parse_whole(text: str) -> int:
    """Read a whole number: ASCII digits only, at most nine. Raises ValueError."""
    if not re.match(_WHOLE, text):
        raise ValueError(f"`{text}` is not a whole number")
    return int(text)


def parse_duration(text: str) -> float:
    """Read a duration in seconds. Raises ValueError naming the accepted forms."""
    if re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII):
        return float(text)
    found = re.match(_DURATION, text)
    if not text or not found:
        raise ValueError(f"`{text}` is not a duration: write 90s, 30m, 2h, 1d or 1h30m")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def parse_size(text: str) -> int:
    """Read a size in bytes. Raises ValueError naming the accepted forms."""
    if found := re.match(_SHM, text):
        return int(float(found[1]) * 1024 ** _POWER[found[2]])
    found = re.match(_SIZE, text.strip())
    if not found:
        raise ValueError(f"`{text}` is not a size: write 512Mi, 64Gi, 500MB or a number of bytes")
    unit = (found[2] or "").removesuffix("B")
    if not unit:
        return int(float(found[1]))
    base = 1024 if unit.endswith("i") else 1000
    return int(float(found[1]) * base ** _POWER[unit[0].lower()])


def size(count: int) -> str:
    """Write a number of bytes for people: `512 B`, `1.5 MiB`."""
    if count < 1024:
        return f"{count} B"
    value = float(min(count, 1 << 100))  # a damaged file may hold any number
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        value /= 1024
        if value < 1024 or unit == "TiB":
            return f"{value:.1f} {unit}"
    raise AssertionError("the last unit always answers")


def duration(seconds: float) -> str:
    """Write a duration for people, in at most two units: `4s`, `3m20s`, `2h05m`, `6d4h`."""
    total = max(0, int(seconds))
    minutes, secs = divmod(total, 60)
    hours, mins = divmod(minutes, 60)
    days, hrs = divmod(hours, 24)
    if days:
        return f"{days}d{hrs}h"
    if hours:
        return f"{hours}h{mins:02d}m"
    if minutes:
        return f"{minutes}m{secs:02d}s"
    return f"{secs}s"
