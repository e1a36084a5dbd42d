"""Many questions at once: answers in the order of the questions, and each failure beside them.

A part that failed is never turned into an empty answer. A fault of our own program is no failure of a
part and goes on up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from aj.base import text
from aj.base.errors import AjError
from aj.base.noun import dataclass

WIDTH = 16  # what the service bears from one user without throttling, and what the pool keeps open
P = TypeVar("P")
V = TypeVar("V")
W = TypeVar("W")


@dataclass(frozen=True)
class Failure:
    """A part that could not be asked, by name, and why."""

    part: str
    error: AjError


@dataclass(frozen=True)
class Gathered(Generic[V]):
    """What came together: values in the order of their parts, and the parts that failed."""

    values: tuple[V, ...]
    failures: tuple[Failure, ...] = ()

    def strictly(self, doing: str) -> tuple[V, ...]:
        """Return the values when every part answered; else raise the first failure's kind, naming all parts."""
        if not self.failures:
            return self.values
        first = self.failures[0].error
        named = "; ".join(f"{failure.part}: {failure.error.message}" for failure in self.failures)
        count = text.plural(len(self.failures), "part")
        raise type_of(first)(
            f"could not {doing}: {count} gave no answer: {named}", hint=first.hint, details=first.details
        ) from first

    def made(self, change: Callable[[V], W]) -> Gathered[W]:
        """Return the same with each value changed."""
        return Gathered(tuple(change(value) for value in self.values), self.failures)


def gather(parts: Iterable[P], ask: Callable[[P], V], *, name: Callable[[P], str] = str) -> Gathered[V]:
    """Ask for every part, at most 16 at once."""
    listed = list(parts)
    if not listed:
        return Gathered(())
    with ThreadPoolExecutor(min(WIDTH, len(listed)), thread_name_prefix="azure") as threads:
        answers = list(threads.map(lambda part: _answer(part, ask, name), listed))
    values = tuple(answer.value for answer in answers if isinstance(answer, _Value))
    return Gathered(values, tuple(answer for answer in answers if isinstance(answer, Failure)))


@dataclass(frozen=True)
class _Value(Generic[V]):
    value: V


def _answer(part: P, ask: Callable[[P], V], name: Callable[[P], str]) -> _Value[V] | Failure:
    try:
        return _Value(ask(part))
    except AjError as error:
        return Failure(name(part), error)


def type_of(error: AjError) -> type[AjError]:
    """Return the plain kind of an error: one that takes nothing but words."""
    from aj.base.errors import KINDS

    return next(kind for kind in type(error).__mro__ if kind in KINDS)
