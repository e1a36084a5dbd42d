"""Dataclasses that cost a start next to nothing: `@dataclass` and `@dataclass(frozen=True)`, meaning the standard ones.

The standard library writes and compiles six functions for every class at its import, which made a third of a
short command. Here all classes share five of them, and `__init__` is compiled when a class has many instances.
A class of this kind may only be inherited by another one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError
from reprlib import recursive_repr
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False) -> type | Callable[[type], type]:
        """Make a dataclass of a class; a frozen one is hashed by its fields too. Raises TypeError."""
        make = _frozen if frozen else _changing
        return make if cls is None else make(cls)


SLOW_INSTANCES = 8  # of a class, before it is worth the 0.1 ms of a compilation
_COMPARED: dict[type, tuple[str, ...]] = {}  # the names of the fields that make two instances equal


def _changing(cls: type) -> type:
    return _made(cls, {"__repr__": _repr, "__eq__": _eq, "__hash__": None})


def _frozen(cls: type) -> type:
    if {"__setattr__", "__delattr__"} & set(vars(cls)):
        raise TypeError(f"{cls.__name__} is frozen and cannot have a `__setattr__` or `__delattr__` of its own")
    shared = {"__repr__": _repr, "__eq__": _eq, "__hash__": _hash, "__setattr__": _setattr, "__delattr__": _delattr}
    return _made(cls, shared)


def _made(cls: type, shared: Mapping[str, object]) -> type:
    own = set(vars(cls))
    if "__eq__" in own and vars(cls)["__hash__"] is None:
        own.remove("__hash__")  # Python's answer to an `__eq__`, not the author's
    cls.__doc__ = cls.__doc__ or cls.__name__  # without one the standard decorator would compose a signature
    made: type = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    for name, function in {**shared, "__init__": _first_init(made)}.items():
        if name not in own:
            setattr(made, name, function)
    return made


def _first_init(cls: type) -> Callable[..., None]:
    left = SLOW_INSTANCES

    def __init__(self: object, *args: object, **kwargs: object) -> None:
        nonlocal left
        left -= 1
        if left >= 0 and _fill(self, cls, args, kwargs):
            return
        init = _init_of(cls)
        setattr(cls, "__init__", init)  # noqa: B010 (two threads at once compile the same twice)
        init(self, *args, **kwargs)

    return __init__


def _fill(one: object, cls: type, args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
    """Set the fields of a new instance, step by step; False, with nothing done, when the words do not fit."""
    fields = _fields(cls)
    places = [item.name for item in fields if item.init and not item.kw_only]
    given = dict(zip(places, args))
    named = {item.name for item in fields if item.init}
    if len(args) > len(places) or not given.keys().isdisjoint(kwargs) or not named.issuperset(kwargs):
        return False
    given.update(kwargs)
    values: dict[str, object] = {}
    for item in fields:
        if item.name in given:
            values[item.name] = given[item.name]
        elif item.default_factory is not MISSING:
            values[item.name] = item.default_factory()
        elif item.default is not MISSING:
            if item.init:
                values[item.name] = item.default
        elif item.init:
            return False
    for name, value in values.items():
        object.__setattr__(one, name, value)
    if hasattr(cls, "__post_init__"):
        one.__post_init__()  # type: ignore[attr-defined]
    return True


def _init_of(cls: type) -> Callable[..., None]:
    """Compile the `__init__` of a class: as fast as one written by hand, and it refuses the same words."""
    space: dict[str, object] = {"_set": object.__setattr__, "_missing": MISSING}
    places, body = ["self"], list[str]()
    named = list[str]()
    for item in _fields(cls):
        word = value = item.name
        if item.default_factory is not MISSING:
            space[f"_of_{item.name}"] = item.default_factory
            word, value = f"{word}=_missing", f"_of_{word}()"
            value = f"{value} if {item.name} is _missing else {item.name}" if item.init else value
        elif item.default is not MISSING:
            space[f"_of_{item.name}"] = item.default
            word = f"{word}=_of_{word}"
        if item.init:
            (named if item.kw_only else places).append(word)
        if item.init or item.default_factory is not MISSING:
            body.append(f" _set(self, {item.name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    head = ", ".join([*places, "*", *named] if named else places)
    exec("\n".join([f"def __init__({head}):", *(body or [" pass"])]), space)
    init: Callable[..., None] = space["__init__"]  # type: ignore[assignment]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _fields(cls: type) -> tuple[Field[object], ...]:
    return dataclasses.fields(cls)


def _values(one: object) -> tuple[object, ...]:
    """Return what makes two instances equal."""
    cls = type(one)
    if cls not in _COMPARED:
        _COMPARED[cls] = tuple(item.name for item in _fields(cls) if item.compare)
    return tuple([getattr(one, name) for name in _COMPARED[cls]])


@recursive_repr()
def _repr(self: object) -> str:
    shown = ", ".join(f"{item.name}={getattr(self, item.name)!r}" for item in _fields(type(self)) if item.repr)
    return f"{type(self).__qualname__}({shown})"


def _eq(self: object, other: object) -> bool:
    if type(other) is not type(self):
        return NotImplemented  # type: ignore[no-any-return]
    return _values(self) == _values(other)


def _hash(self: object) -> int:
    return hash(_values(self))


def _setattr(self: object, name: str, value: object) -> None:
    _refuse(self, name, "assign to")
    object.__setattr__(self, name, value)


def _delattr(self: object, name: str) -> None:
    _refuse(self, name, "delete")
    object.__delattr__(self, name)


def _refuse(self: object, name: str, act: str) -> None:
    """Refuse to change a field, or anything of an instance whose very class is frozen."""
    if "__dataclass_fields__" in vars(type(self)) or name in {item.name for item in _fields(type(self))}:
        raise FrozenInstanceError(f"cannot {act} field {name!r}")
