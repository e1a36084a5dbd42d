"""Caps, and what jobs cost that are no longer on record.

    spend/caps.json         the caps; replaced as a whole
          YYYY-MM.jsonl     hosts of removed jobs, by the month in which each ended, a line each

A job's record tells what its hosts cost for as long as it is there. Its hosts are written here before it is
removed; a host that stands here twice, or here and in a record, counts once. The daemon alone writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from aj.base.errors import AjError, UserError
from aj.base.noun import dataclass
from aj.model.spend import Cap, Charge
from aj.store import atomic, jsonl, lock
from aj.store.layout import Layout
from aj.wire import codec

_MONTH = re.compile(r"\d{4}-\d{2}\.jsonl\Z", re.ASCII)

Told = Callable[[str], None]


@dataclass(frozen=True)
class _Caps:
    caps: tuple[Cap, ...] = ()


def caps(layout: Layout) -> tuple[Cap, ...]:
    """Read the caps. Raises AjError when the file cannot be read: nobody may take that for no caps."""
    path = layout.caps
    try:
        return codec.load(_Caps, json.loads(path.read_bytes()), where=str(path), lenient=True).caps
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise AjError(f"{path}: {error.strerror}", code="unreadable-record") from error
    except (ValueError, UserError) as error:
        raise AjError(
            f"{path} is damaged: {error}", code="damaged-record", hint="remove it, and set caps anew"
        ) from error


def save_caps(layout: Layout, found: Iterable[Cap]) -> None:
    """Replace the caps, durably. Raises AjError when the disk refuses; the old ones then stay."""
    atomic.make_folder(layout.spend)
    atomic.write_json(layout.caps, codec.dump(_Caps(tuple(found))))


def settle(layout: Layout, found: Iterable[Charge]) -> None:
    """Add hosts that have ended, durably. Raises AjError when the disk refuses."""
    ended = [charge for charge in found if charge.ended_at is not None]
    if not ended:
        return
    atomic.make_folder(layout.spend)
    with lock.held(layout.ledger_lock):
        for charge in ended:
            line = codec.dump(charge)
            assert isinstance(line, dict) and charge.ended_at is not None
            jsonl.append(layout.spend / f"{charge.ended_at[:7]}.jsonl", line)


def settled(layout: Layout, told: Told, since_month: str = "") -> list[Charge]:
    """Return the hosts of removed jobs that ended in that month or later, each once; a damaged line is told."""
    found: dict[tuple[str, str], Charge] = {}
    for path in _months(layout):
        if path.name[:7] >= since_month:
            found |= {charge.key: charge for charge in _lines(path, told)}
    return list(found.values())


def _months(layout: Layout) -> list[Path]:
    if not layout.spend.is_dir():
        return []
    return sorted(path for path in layout.spend.iterdir() if _MONTH.match(path.name))


def _lines(path: Path, told: Told) -> Iterator[Charge]:
    for value in jsonl.read(path, lambda where: told(f"{where} is not a line of spending")):
        try:
            yield codec.load(Charge, value, where=str(path), lenient=True)
        except UserError as error:
            told(f"{path}: {error.message}")
