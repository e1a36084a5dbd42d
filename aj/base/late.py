"""What is made, and its rooms imported, when it is first asked for: a daemon with nothing to do stays small."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar, cast

T = TypeVar("T")


def late(make: Callable[[], T]) -> T:
    """Return what stands for the thing that `make` makes, and makes it once, at the first look at an attribute.

    Safe between threads. What `make` raises is raised by that look, and the next look tries again.
    """
    return cast(T, _Late(make))


class Shelf(Mapping[str, T]):
    """Things by name, each made when it is first taken; which there are is known without making any."""

    def __init__(self, makers: Mapping[str, Callable[[], T]]) -> None:
        self._once = {name: _Once(make) for name, make in makers.items()}

    def __getitem__(self, name: str) -> T:
        return self._once[name].get()

    def __contains__(self, name: object) -> bool:
        return name in self._once

    def __iter__(self) -> Iterator[str]:
        return iter(self._once)

    def __len__(self) -> int:
        return len(self._once)


class _Once(Generic[T]):
    """One thing that is made once."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: list[T] = []
        self._guard = threading.Lock()

    def get(self) -> T:
        with self._guard:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]


class _Late:
    def __init__(self, make: Callable[[], object]) -> None:
        self._once = _Once(make)

    def __getattr__(self, name: str) -> object:
        return getattr(self._once.get(), name)
