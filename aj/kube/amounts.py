"""Amounts as a cluster writes them: `96`, `500m`, `512Gi`; and maps of them by the name of a resource."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal

from aj.net.document import Document

Amounts = Mapping[str, Decimal]
_FORM = re.compile(
    r"(?P<number>[+-]?[0-9]+(?:\.[0-9]*)?)(?:(?P<unit>m|u|n|k|[KMGTPE]i?)|[eE](?P<power>[+-]?[0-9]+))?\Z"
)
_UNITS = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(1000),
    **{letter: Decimal(1000) ** power for power, letter in enumerate("KMGTPE", start=1)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
}


def parse(words: str) -> Decimal | None:
    """Return the amount in its base unit (bytes, cores, pieces); None when it is none."""
    found = _FORM.match(words.strip())
    if not found:
        return None
    number = Decimal(found["number"])
    return number * Decimal(10) ** int(found["power"]) if found["power"] else number * _UNITS.get(found["unit"], 1)


def of(document: Document, *path: str) -> dict[str, Decimal]:
    """Return the amounts that stand there by resource; a whole number may stand for its text."""
    found: dict[str, Decimal] = {}
    for name, value in document.inner(*path).values.items():
        amount = parse(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else None
        if amount is not None:
            found[name] = amount
    return found


def total(several: Iterable[Amounts]) -> dict[str, Decimal]:
    """Add amounts up, resource by resource."""
    found: dict[str, Decimal] = {}
    for one in several:
        for name, amount in one.items():
            found[name] = found.get(name, Decimal(0)) + amount
    return found


def shown(name: str, amount: Decimal) -> str:
    """Write an amount for a person: memory and storage in GiB, everything else as a number."""
    if name.endswith(("memory", "storage")) or name.startswith("hugepages-"):
        return f"{_plain(amount / 1024**3)} GiB"
    return _plain(amount)


def _plain(amount: Decimal) -> str:
    return f"{round(amount, 2).normalize():f}"
