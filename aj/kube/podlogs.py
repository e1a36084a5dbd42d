"""What a pod printed, read on from where the last look ended: no line twice, none left out.

A cluster tells lines from a second on, not from a line on. So each line is asked for with its moment, and those
that were read before are passed over by it; lines of the very same moment are counted, and known again by what they
say: a node that begins a new file for a log has forgotten those of the old one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import replace

from aj.base.errors import Refused
from aj.base.noun import dataclass
from aj.kube import pods
from aj.kube.client import Cluster
from aj.kube.pods import Pod

PAGE = 1024 * 1024  # bytes of one look
LARGEST = 32 * PAGE  # of one second's lines, when they are more than a page
_LINE = re.compile(rb"(?P<second>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(?P<rest>\d{1,9}))?(?P<zone>Z|[+-]\d\d:\d\d) ?")
_NOTHING_YET = re.compile(r"waiting to start|ContainerCreating|PodInitializing|does not have a host assigned")


@dataclass(frozen=True)
class Cursor:
    """Where reading goes on: after `count` lines of the moment `at` of the pod `uid`. Empty: at the beginning.

    `mark` is made of those lines; empty, they are not known again.
    """

    uid: str = ""
    at: str = ""
    count: int = 0
    mark: str = ""


@dataclass(frozen=True)
class Page:
    """Some whole lines, and where to go on; `was_reset` when another pod has taken the place."""

    data: bytes
    cursor: Cursor
    was_reset: bool = False


def read(cluster: Cluster, pod: Pod, cursor: Cursor, *, tail: int | None = None) -> Page:
    """Read what is new, or the last lines when nothing was read yet. Raises as Cluster.text."""
    was_reset = bool(cursor.uid) and cursor.uid != pod.uid
    start = Cursor(pod.uid) if was_reset or not cursor.uid else cursor
    if not start.at and tail is not None:
        return _last(cluster, pod, start, tail)
    size = PAGE
    while True:
        raw = _ask(cluster, pod, since=_second(start.at), limit=size)
        page = _new(raw, start, is_cut=len(raw) >= size)
        if page.cursor != start or len(raw) < size or size >= LARGEST:
            return replace(page, was_reset=was_reset)
        size *= 4  # all of it was read before: one second holds more than a page


def _last(cluster: Cluster, pod: Pod, start: Cursor, tail: int) -> Page:
    raw = _ask(cluster, pod, tail=max(tail, 1))
    page = _new(raw, start, is_cut=False)
    return replace(page, data=page.data if tail else b"", cursor=_whole(cluster, pod, page.cursor))


def _whole(cluster: Cluster, pod: Pod, cursor: Cursor) -> Cursor:
    """Count the lines of a cursor's moment that stand before those that were read: they are behind it, too."""
    if not cursor.at:
        return cursor
    raw = _ask(cluster, pod, since=_second(cursor.at), limit=PAGE)
    found = [words for moment, words in _told(raw, is_cut=len(raw) >= PAGE) if moment == cursor.at]
    return cursor if len(found) < cursor.count else replace(cursor, count=len(found), mark=_mark(found))


def _ask(
    cluster: Cluster, pod: Pod, *, since: str | None = None, tail: int | None = None, limit: int | None = None
) -> bytes:
    try:
        return pods.log(
            cluster,
            pod.name,
            pod.namespace,
            container=pods.MAIN if pod.aj_id else None,
            since=since,
            tail=tail,
            timestamps=True,
            limit_bytes=limit,
        )
    except Refused as error:
        if error.code == "invalid" and _NOTHING_YET.search(error.message):
            return b""
        raise


def _new(raw: bytes, start: Cursor, *, is_cut: bool) -> Page:
    """Return the lines behind a cursor, without their moments; what may go on beyond a cut waits for the next look."""
    told = _told(raw, is_cut=is_cut)
    same = [words for moment, words in told if moment == start.at]
    is_open = is_cut and bool(told) and told[-1][0] == start.at
    known = _known(same, start, is_open=is_open)
    new = [one for one in told if one[0] > start.at]
    new = [(start.at, words) for words in same[len(known) :]] + new if start.at else told
    if not new:
        return Page(b"", start)
    last = new[-1][0]
    behind = [words for moment, words in new if moment == last]
    if last == start.at:
        behind = known + behind
    data = b"".join(words + b"\n" for _, words in new)
    return Page(data, Cursor(start.uid, last, len(behind), _mark(behind)))


def _told(raw: bytes, *, is_cut: bool) -> list[tuple[str, bytes]]:
    """Return the lines of an answer with their moments; one that a cut may have shortened is left out."""
    lines = raw.split(b"\n")
    rest = lines.pop()
    if rest and not is_cut:
        lines.append(rest)
    found, last = [], ""
    for line in lines:
        last, words = _parted(line, last)
        found.append((last, words))
    return found


def _known(same: list[bytes], start: Cursor, *, is_open: bool) -> list[bytes]:
    """Return those lines of a cursor's moment that were read before; none when the log no longer has them.

    Where an answer was cut within them they cannot be told apart, and are asked for again in a longer one.
    """
    before = same[: start.count]
    if not start.mark or (is_open and len(before) < start.count):
        return before
    return before if _mark(before) == start.mark else []


def _mark(lines: Iterable[bytes]) -> str:
    return hashlib.sha256(b"\n".join(lines)).hexdigest()[:16]


def _parted(line: bytes, before: str) -> tuple[str, bytes]:
    """Return a line's moment, to nine digits so that moments sort as texts, and its words."""
    found = _LINE.match(line)
    if not found:
        return before, line  # the rest of a line that held a line end of its own
    digits = (found["rest"] or b"").ljust(9, b"0")
    return f"{found['second'].decode()}.{digits.decode()}{found['zone'].decode()}", line[found.end() :]


def _second(at: str) -> str | None:
    """Return the second of a moment, as a cluster wants it; None for the beginning."""
    return re.sub(r"\.\d{9}", "", at) or None
