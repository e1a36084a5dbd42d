"""The journal: what became of every submission, one line each, never rewritten.

A submission leaves `intended` with the remote name before anything is sent, then exactly one of
`submitted`, `failed` and `unknown`; later facts are further lines with the same id, and the last one
holds. The daemon is the only writer. Anybody may read, also while the daemon hangs.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from aj.base.errors import UserError
from aj.model.record import Record, RecordState
from aj.store import atomic, jsonl, lock
from aj.store.layout import Layout
from aj.wire import codec

_ID = re.compile(rb'"id"\s*:\s*"([0-9a-f]{8})"')
# A line as it is written here: whose it is can be told without reading it, which makes a long journal quick.
_OWN = re.compile(rb'\{"ts":"[^"\\]*","id":"([^"\\]+)",.*\}\n\Z')


def append(layout: Layout, key: str, record: Record) -> str | None:
    """Write one line durably and return a warning when the file had to be made private.

    Raises AjError naming the path when the disk refuses, Refused when somebody else writes too long.
    """
    path = layout.journal(key)
    atomic.make_folder(path.parent)
    line = codec.dump(record)
    assert isinstance(line, dict)
    with lock.held(layout.journal_lock(key)):
        narrowed = jsonl.append(path, line)
    return f"{path}: others could read it; it is private now" if narrowed else None


def read(layout: Layout, key: str, damaged: Callable[[str], None]) -> list[Record]:
    """Return one record a submission as it stands now, the oldest submission first.

    `damaged` is told `FILE:N` for a line that cannot be read; all others are. An `intended` line that
    nobody works on any more is returned as `unknown`. Looks only: locks and writes nothing.
    """
    found = _by_id(layout.journal(key), damaged)
    return [record for lines in found.values() if (record := _now(layout, key, lines, damaged)) is not None]


def newest(layout: Layout, key: str, damaged: Callable[[str], None]) -> Iterator[Record]:
    """As `read`, the newest submission first, each read only when it is asked for."""
    for lines in reversed(_by_id(layout.journal(key), damaged).values()):
        record = _now(layout, key, lines, damaged)
        if record is not None:
            yield record


def last(layout: Layout, key: str, ids: Iterable[str]) -> dict[str, Record]:
    """Return the last line as it was written of each of these ids that has one."""
    path = layout.journal(key)
    found = _by_id(path, lambda _: None)
    told = {aj_id: _record(path, found[aj_id], lambda _: None) for aj_id in set(ids) & found.keys()}
    return {aj_id: record for aj_id, record in told.items() if record is not None}


def naming(layout: Layout, key: str, word: str) -> list[Record]:
    """Return the submissions, as they stand now, in whose lines a word stands; no other line is read."""
    spelled = json.dumps(word)[1:-1].encode()
    found = _by_id(layout.journal(key), lambda _: None)
    fitting = [lines for lines in found.values() if any(spelled in line for _, line in lines)]
    records = (_now(layout, key, lines, lambda _: None) for lines in fitting)
    return [record for record in records if record is not None]


def keys(layout: Layout) -> list[str]:
    """Return the projects that have a journal."""
    return sorted(path.name.removesuffix(".jsonl") for path in layout.journals.glob("*.jsonl"))


Lines: TypeAlias = "list[tuple[int, bytes]]"


def _by_id(path: Path, damaged: Callable[[str], None]) -> dict[str, Lines]:
    """The lines of every id, unread, in the order in which the ids first appeared."""
    found: dict[str, Lines] = {}
    for number, line in jsonl.lines(path):
        own = _OWN.match(line)
        aj_id = own[1].decode() if own else (jsonl.parse(line) or {}).get("id")
        if isinstance(aj_id, str):
            found.setdefault(aj_id, []).append((number, line))
        else:
            damaged(f"{path}:{number}")
    return found


def _now(layout: Layout, key: str, lines: Lines, damaged: Callable[[str], None]) -> Record | None:
    record = _record(layout.journal(key), lines, damaged)
    return record if record is None or _is_told(layout, key, record) else orphaned(record)


def _record(path: Path, lines: Lines, damaged: Callable[[str], None]) -> Record | None:
    """Read the last line of an id that can be read."""
    for number, line in reversed(lines):
        try:
            return codec.load(Record, jsonl.parse(line), lenient=True)
        except UserError:
            damaged(f"{path}:{number}")
    return None


def _is_told(layout: Layout, key: str, record: Record) -> bool:
    """Whether a record says how it ended, or its worker still works on it."""
    if record.state is not RecordState.INTENDED:
        return True
    return lock.living_holder(layout.ownership(key)) is not None and _is_running(layout.ticket(key, record.ticket))


def _is_running(ticket: Path) -> bool:
    try:
        value = json.loads(ticket.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("state") == "running"


def orphaned(record: Record) -> Record:
    """Return an `intended` record as it is read when its worker is gone: the outcome is unknown."""
    return replace(
        record,
        state=RecordState.UNKNOWN,
        outcome="unknown",
        note=record.note or f"never heard of again; `aj queue reconcile {record.ticket}` looks for it",
    )


class KnownIds:
    """Every AJ ID that a journal, a queue or the jobs folder of any project holds.

    Journals only grow, so each is read once and then only where it grew. Safe between threads.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._seen: set[bytes] = set()
        self._offsets: dict[str, int] = {}
        self._guard = threading.Lock()

    def holds(self, aj_id: str) -> bool:
        """Tell whether this id is taken."""
        return self._in_folders(aj_id) or self._in_journals(aj_id)

    def _in_folders(self, aj_id: str) -> bool:
        if self._layout.job(aj_id).exists():
            return True
        queues = self._layout.queue.iterdir() if self._layout.queue.is_dir() else iter(())
        names = (f"q-{aj_id}.json", f"q-{aj_id}.json.damaged-1")
        return any((queue / name).exists() for queue in queues for name in names)

    def _in_journals(self, aj_id: str) -> bool:
        with self._guard:
            for path in self._layout.journals.glob("*.jsonl"):
                self._take_up(path)
            return aj_id.encode() in self._seen

    def _take_up(self, path: Path) -> None:
        """Read what a journal gained since the last look."""
        offset = self._offsets.get(path.name, 0)
        if path.stat().st_size <= offset:
            return
        with path.open("rb") as lines:
            lines.seek(offset)
            for line in lines:
                if not line.endswith(b"\n"):
                    break  # being written: counted when it is whole
                offset += len(line)
                self._seen.update(_ID.findall(line))
        self._offsets[path.name] = offset
