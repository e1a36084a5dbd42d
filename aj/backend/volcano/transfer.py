"""A file into a pod, part by part, and no further than the other side says it is there.

The program on the other side is `scripts/receive.sh`. It is told how many bytes follow and reads exactly these, so
nothing depends on an end of the input. It answers each part with the size of what it has and the hash of the part:
a part that is not what was sent is cut off and sent again. When the line breaks, the next one goes on at the size
that the other side reports. Nothing is limited but standing still.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import deque
from collections.abc import Callable
from dataclasses import field
from typing import Protocol

from aj.base import redact, text, units
from aj.base.clock import Clock
from aj.base.errors import AjError, RemoteError, Unavailable
from aj.base.noun import dataclass

MIB = 1024 * 1024
HELD = 256 * 1024  # bytes that wait for the line at most: more would only lie in memory
LOOK_S = 0.25  # how long one look at a silent line takes
PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0)  # before the next line is opened; the last of them is for all that follow
NOTHING_MORE = 3  # how the program ends when its input does
Progress = Callable[[int, int, int], None]  # bytes that are there, of how many, and how many of them were before


KILLED = (137, 143)  # by KILL or TERM: what ended it was the node, the pod or the line, and not the code


@dataclass(frozen=True)
class Source:
    """What is sent. `read` returns bytes from an offset, all that were asked for unless the source ends."""

    size: int
    sha256: str
    read: Callable[[int, int], bytes] = field(repr=False)


@dataclass(frozen=True)
class Limits:
    """Bytes of a part; seconds without word of the other side; tries in a row that may bring nothing."""

    part: int = 32 * MIB
    stall_s: float = 60.0
    tries: int = 5


LIMITS = Limits()


@dataclass(frozen=True)
class Sent:
    """A file that is in its place. `skipped_bytes` were there before."""

    size_bytes: int
    sent_bytes: int
    skipped_bytes: int

    @property
    def is_reused(self) -> bool:
        return self.skipped_bytes == self.size_bytes


class _Said(Protocol):
    """What a program wrote."""

    @property
    def out(self) -> bytes: ...

    @property
    def err(self) -> bytes: ...


class _End(Protocol):
    """How a program ended; `code` None means that it could not be run."""

    @property
    def code(self) -> int | None: ...

    @property
    def words(self) -> str: ...


class Line(Protocol):
    """A running program: see `aj.kube.exec`."""

    @property
    def ended(self) -> _End | None: ...

    @property
    def unsent(self) -> int: ...

    def write(self, data: bytes) -> None: ...

    def poll(self, wait_s: float) -> _Said: ...

    def close(self) -> None: ...


def send(
    source: Source,
    open_line: Callable[[], Line],
    *,
    where: str,
    clock: Clock,
    check: Callable[[], None] = lambda: None,
    progress: Progress | None = None,
    limits: Limits = LIMITS,
) -> Sent:
    """Bring a source to the program that `open_line` starts, or find it there.

    `where` names the other side in errors; `check` is asked before each further try and raises when there can be
    none. Raises Unavailable (code `stalled`, `line-broke`) when another try may help, RemoteError when the other
    side cannot take it, and what `open_line`, `check` and `progress` raise.
    """
    return _Sending(source, open_line, where, clock, check, progress, limits).carry_out()


@dataclass
class _Sending:
    source: Source
    open_line: Callable[[], Line]
    where: str
    clock: Clock
    check: Callable[[], None]
    progress: Progress | None
    limits: Limits
    reached: int = -1  # bytes that were there when a try ended, the most of them
    skipped: int = 0
    is_first: bool = True

    def carry_out(self) -> Sent:
        """Try until it is there, or nothing moves any more."""
        fruitless = 0
        while True:
            before = self.reached
            try:
                return self._try()
            except Unavailable as error:
                if error.code == "stalled":
                    raise
                fruitless = 0 if self.reached > before else fruitless + 1
                if fruitless > self.limits.tries:
                    raise self._given_up(error) from error
            self.clock.sleep(PAUSES_S[min(fruitless, len(PAUSES_S) - 1)])
            self.check()

    def _try(self) -> Sent:
        with contextlib.closing(self.open_line()) as line:
            talk = _Talk(line, self.clock, self.limits.stall_s, self._is_at, self._stalled)
            if (answer := talk.answer())[0] == "have":
                self._skip(self.source.size)
            else:
                self._skip(_number(answer))
                self._send_from(_number(answer), talk)
                self._finish(talk)
        return Sent(self.source.size, self.source.size - self.skipped, self.skipped)

    def _skip(self, count: int) -> None:
        """What is there at the very first was there before."""
        if self.is_first:
            self.is_first = False
            self.skipped = count
        self._is_at(count)

    def _is_at(self, count: int) -> None:
        self.reached = max(self.reached, count)
        if self.progress is not None:
            self.progress(count, self.source.size, self.skipped)

    def _send_from(self, at: int, talk: _Talk) -> None:
        wrong = 0
        while at < self.source.size:
            part = self.source.read(at, min(self.limits.part, self.source.size - at))
            talk.write(b"put %d\n" % len(part), part)
            answer = talk.answer("part")
            expected = ["part", str(at + len(part)), hashlib.sha256(part).hexdigest()]
            if answer == expected:
                at += len(part)
                wrong = 0
                continue
            wrong += 1
            if wrong > self.limits.tries:
                raise RemoteError(f"{self.where} got another part than was sent, {wrong} times", code="damaged")
            talk.write(b"cut %d\n" % at)
            talk.answer("at")

    def _finish(self, talk: _Talk) -> None:
        talk.write(b"end\n")
        answer = talk.answer("done", "wrong")
        if answer[0] == "wrong":
            raise RemoteError(
                f"{self.where} has a file with the SHA-256 {answer[-1]} where {self.source.sha256} was sent",
                code="damaged",
                hint="run again: it was removed, and is sent from its beginning",
            )

    def _stalled(self) -> Unavailable:
        done, total = max(self.reached, 0), self.source.size
        words = f"the upload stood still for {self.limits.stall_s:g} s at {of(done, total)} ({self.where})"
        return Unavailable(words, code="stalled", hint="run again: it resumes")

    def _given_up(self, error: Unavailable) -> Unavailable:
        done, total = max(self.reached, 0), self.source.size
        words = f"the upload broke at {of(done, total)}, and {self.limits.tries} more tries brought nothing"
        return Unavailable(f"{words} ({self.where}): {error.message}", code="line-broke", hint="run again: it resumes")


def of(done: int, total: int) -> str:
    """Write how far something has come: `1.2 of 3.4 GiB`."""
    whole, part = units.size(total), units.size(done)
    unit = whole.partition(" ")[2]
    return f"{part.removesuffix(f' {unit}')} of {whole}"


class _Talk:
    """One conversation with the program: lines go both ways, and bytes one way."""

    def __init__(
        self,
        line: Line,
        clock: Clock,
        stall_s: float,
        is_at: Callable[[int], None],
        stalled: Callable[[], Unavailable],
    ) -> None:
        self._line = line
        self._clock = clock
        self._stall_s = stall_s
        self._is_at = is_at
        self._stalled = stalled
        self._waiting: deque[memoryview] = deque()
        self._lines: deque[str] = deque()
        self._rest = b""
        self._err = b""
        self._heard_at = clock.monotonic()

    def write(self, *pieces: bytes) -> None:
        """Hand over bytes; they leave while an answer is waited for."""
        self._waiting.extend(memoryview(piece) for piece in pieces)

    def answer(self, *wanted: str) -> list[str]:
        """Wait for a line and return its words; only for one of these words, when they are named.

        Raises Unavailable when nothing is heard for too long or the line broke, RemoteError when the program ended.
        """
        while True:
            while self._lines:
                words = self._lines.popleft().split()
                if not words or words[0] == "busy":
                    continue
                if words[0] == "at":
                    self._is_at(_number(words))
                if not wanted or words[0] in wanted:
                    return words
            self._move()

    def _move(self) -> None:
        while self._waiting and self._line.unsent < HELD:
            piece = self._waiting.popleft()
            self._line.write(bytes(piece[:HELD]))
            if len(piece) > HELD:
                self._waiting.appendleft(piece[HELD:])
        said = self._line.poll(LOOK_S)
        self._err = (self._err + said.err)[-4096:]
        *whole, self._rest = (self._rest + said.out).split(b"\n")
        if whole:
            self._heard_at = self._clock.monotonic()
            self._lines.extend(text.decoded(line) for line in whole)
        elif self._line.ended is not None:
            raise self._over(self._line.ended)
        elif self._clock.monotonic() - self._heard_at >= self._stall_s:
            raise self._stalled()

    def _over(self, end: _End) -> AjError:
        """Say why there will be no answer."""
        if end.code == NOTHING_MORE:
            return Unavailable("the line to the pod broke: the other side heard no more", code="line-broke")
        if end.code in KILLED:
            return Unavailable(f"the program in the pod was ended from outside ({end.code})", code="line-broke")
        words = redact.text(text.visible(text.decoded(self._err))).strip().splitlines()
        what = words[-1] if words else end.words or f"the program there ended with {end.code}"
        return RemoteError(f"the code could not be brought there: {what}", code="not-taken")


def _number(words: list[str]) -> int:
    """Return the number of a line. Raises RemoteError when there is none."""
    if len(words) > 1 and words[1].isdecimal():
        return int(words[1])
    raise RemoteError(f"the pod said what nobody understands: {text.visible(' '.join(words))[:200]}", code="bad-answer")
