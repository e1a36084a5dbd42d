"""Nouns to JSON and back, strictly: an unknown field, a missing one or a wrong type is an error.

A file on disk is read with `lenient=True`, which only means that unknown fields are passed over:
a newer release may have written them.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum

from aj.base.errors import UserError
from aj.model.json import Json

T = typing.TypeVar("T")
Reader: typing.TypeAlias = Callable[[object], object]


class _Bad(Exception):
    """A value that does not fit. `path` grows outwards while the readers are left."""

    def __init__(self, problem: str, *path: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = list(path)

    def below(self, part: str) -> _Bad:
        self.path.insert(0, part)
        return self


def parse(raw: bytes | str, *, where: str = "body") -> Json:
    """Read one JSON document as it came from outside. Raises UserError.

    Stricter than `json.loads`: a key twice, NaN and Infinity are refused, and depth has an end.
    """
    try:
        value: Json = json.loads(raw, object_pairs_hook=_once, parse_constant=_not_a_number)
    except _Bad as bad:
        raise UserError(f"{where}: {bad.problem}", code="bad-json") from None
    except (ValueError, RecursionError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise UserError(f"{where}: not JSON: {problem}", code="bad-json") from None
    return value


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise _Bad(f"key {next(name for name in names if names.count(name) > 1)!r} stands twice")
    return found


def _not_a_number(word: str) -> typing.NoReturn:
    raise _Bad(f"{word} is not JSON")


def fields(noun: object) -> dict[str, Json]:
    """Turn a noun into the JSON values of its fields. Raises as `dump`."""
    whole = dump(noun)
    assert isinstance(whole, dict), "a noun has fields"
    return whole


def dump(value: object) -> Json:
    """Turn a noun into JSON values. Raises TypeError or ValueError on what has no JSON form."""
    if isinstance(value, Enum):
        return typing.cast(Json, value.value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"no JSON form for {value}")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: dump(getattr(value, name)) for name in _names(type(value))}
    if isinstance(value, Mapping):
        return {_key(key): dump(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [dump(item) for item in value]
    raise TypeError(f"no JSON form for {type(value).__name__}")


@functools.cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"no JSON form for the key {key!r}")
    return key.value if isinstance(key, Enum) else key


def load(kind: type[T], value: object, *, where: str = "", lenient: bool = False) -> T:
    """Turn JSON values into a noun. Raises UserError naming the field's path."""
    try:
        return typing.cast(T, _reader(typing.cast(typing.Hashable, kind), lenient)(value))
    except _Bad as bad:
        path = "".join(bad.path)
        raise UserError(f"{where or kind.__name__}{path}: {bad.problem}", code="bad-field") from None


def _unfit(due: str, value: object) -> _Bad:
    return _Bad(f"expected {due}, found {type(value).__name__}")


@functools.cache
def _reader(kind: object, lenient: bool) -> Reader:
    """Return the function that reads one kind of value; made once, since a queue reads thousands."""
    if kind is Json or kind is object:
        return lambda value: value
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _union(arguments, lenient)
    if origin is tuple:
        return _tuple(arguments, lenient)
    if isinstance(origin, type) and issubclass(origin, Mapping) and arguments[0] is str:
        return _mapping(_reader(arguments[1], lenient))
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _dataclass(kind, lenient)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enum(kind)
    if kind in _PLAIN:
        return _PLAIN[kind]
    raise TypeError(f"no way to read {kind} from JSON")


def _union(kinds: tuple[object, ...], lenient: bool) -> Reader:
    readers = [_reader(kind, lenient) for kind in kinds if kind is not type(None)]
    may_be_null = type(None) in kinds

    def read(value: object) -> object:
        if value is None and may_be_null:
            return None
        for reader in readers[:-1]:
            try:
                return reader(value)
            except _Bad:
                continue  # the last one tells what it would have liked
        return readers[-1](value)

    return read


def _tuple(kinds: tuple[object, ...], lenient: bool) -> Reader:
    same = len(kinds) == 2 and kinds[1] is Ellipsis
    readers = [_reader(kind, lenient) for kind in kinds if kind is not Ellipsis]

    def read(value: object) -> object:
        if not isinstance(value, list | tuple):
            raise _unfit("a list", value)
        if not same and len(value) != len(readers):
            raise _Bad(f"expected {len(readers)} items, found {len(value)}")
        found = []
        for at, item in enumerate(value):
            try:
                found.append(readers[0 if same else at](item))
            except _Bad as bad:
                raise bad.below(f"[{at}]") from None
        return tuple(found)

    return read


def _mapping(reader: Reader) -> Reader:
    def read(value: object) -> object:
        if not isinstance(value, Mapping):
            raise _unfit("a mapping", value)
        found = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise _unfit("text as a key", key)
            try:
                found[key] = reader(item)
            except _Bad as bad:
                raise bad.below(f".{key}") from None
        return found

    return read


def _dataclass(kind: type, lenient: bool) -> Reader:
    @functools.cache
    def fields() -> tuple[dict[str, Reader], frozenset[str]]:
        hints = typing.get_type_hints(kind)
        given = [field for field in dataclasses.fields(kind) if field.init]
        due = frozenset(
            field.name
            for field in given
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        )
        return {field.name: _reader(hints[field.name], lenient) for field in given}, due

    def read(value: object) -> object:
        if not isinstance(value, Mapping):
            raise _unfit("a mapping", value)
        readers, due = fields()
        given: dict[str, object] = {}
        for name, item in value.items():
            reader = readers.get(name)
            if reader is None:
                if lenient:
                    continue
                raise _Bad("unknown field", f".{name}")
            try:
                given[name] = reader(item)
            except _Bad as bad:
                raise bad.below(f".{name}") from None
        if missing := due - given.keys():
            raise _Bad("missing", f".{min(missing)}")
        return kind(**given)

    return read


def _enum(kind: type[Enum]) -> Reader:
    def read(value: object) -> object:
        try:
            return kind(value)
        except ValueError:
            known = ", ".join(str(item.value) for item in kind)
            raise _Bad(f"{value!r} is none of {known}") from None

    return read


def _text(value: object) -> object:
    if not isinstance(value, str):
        raise _unfit("text", value)
    return value


def _whole(value: object) -> object:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _unfit("a whole number", value)
    return value


def _truth(value: object) -> object:
    if not isinstance(value, bool):
        raise _unfit("true or false", value)
    return value


def _number(value: object) -> object:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _unfit("a number", value)
    try:
        number = float(value)
    except OverflowError:
        raise _Bad("the number is too large") from None
    if not math.isfinite(number):
        raise _Bad(f"{value} is not a number")
    return number


def _bytes(value: object) -> object:
    if not isinstance(value, str):
        raise _unfit("base64 text", value)
    try:
        return base64.b64decode(value, validate=True)
    except ValueError as error:
        raise _Bad(f"not base64: {error}") from None


_PLAIN: dict[object, Reader] = {str: _text, int: _whole, bool: _truth, float: _number, bytes: _bytes}
