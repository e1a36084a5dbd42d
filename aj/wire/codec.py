"""Nouns to JSON and back, strictly: an unknown field, a missing one or a wrong type is an error.

A file on disk is read with `lenient=True`, which only means that unknown fields are passed over:
a newer release may have written them.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from enum import Enum

from aj.base.errors import UserError
from aj.model.json import Json

T = typing.TypeVar("T")


def dump(value: object) -> Json:
    """Turn a noun into JSON values. Raises TypeError on what has no JSON form."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Enum):
        return typing.cast(Json, value.value)
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: dump(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): dump(item) for key, item in value.items()}
    if isinstance(value, list | tuple | frozenset | set):
        return [dump(item) for item in value]
    raise TypeError(f"no JSON form for {type(value).__name__}")


def load(kind: type[T], value: object, *, where: str = "", lenient: bool = False) -> T:
    """Turn JSON values into a noun. Raises UserError naming the field's path."""
    return typing.cast(T, _load(kind, value, where or kind.__name__, lenient))


@functools.cache
def _shape(kind: type) -> tuple[tuple[str, object, bool], ...]:
    """The fields of a dataclass: name, resolved type, whether it must be given."""
    hints = typing.get_type_hints(kind)
    return tuple(
        (
            field.name,
            hints[field.name],
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
        )
        for field in dataclasses.fields(kind)
        if field.init
    )


def _fail(where: str, due: str, value: object) -> UserError:
    return UserError(f"{where}: expected {due}, found {type(value).__name__}", code="bad-field")


def _load(kind: object, value: object, where: str, lenient: bool) -> object:
    if kind is Json or kind is object or isinstance(kind, typing.ForwardRef):
        return value
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _load_union(typing.get_args(kind), value, where, lenient)
    if origin is tuple:
        return _load_tuple(typing.get_args(kind), value, where, lenient)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return _load_mapping(typing.get_args(kind), value, where, lenient)
    if isinstance(kind, type):
        return _load_plain(kind, value, where, lenient)
    return value


def _load_union(kinds: tuple[object, ...], value: object, where: str, lenient: bool) -> object:
    if value is None and type(None) in kinds:
        return None
    rest = [kind for kind in kinds if kind is not type(None)]
    if len(rest) == 1:
        return _load(rest[0], value, where, lenient)
    problems = []
    for kind in rest:
        try:
            return _load(kind, value, where, lenient)
        except UserError as error:
            problems.append(error)
    raise problems[-1]


def _load_tuple(kinds: tuple[object, ...], value: object, where: str, lenient: bool) -> object:
    if not isinstance(value, list | tuple):
        raise _fail(where, "a list", value)
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(_load(kinds[0], item, f"{where}[{at}]", lenient) for at, item in enumerate(value))
    if len(kinds) != len(value):
        raise UserError(f"{where}: expected {len(kinds)} items, found {len(value)}", code="bad-field")
    return tuple(
        _load(kind, item, f"{where}[{at}]", lenient) for at, (kind, item) in enumerate(zip(kinds, value, strict=True))
    )


def _load_mapping(kinds: tuple[object, ...], value: object, where: str, lenient: bool) -> object:
    if not isinstance(value, Mapping):
        raise _fail(where, "a mapping", value)
    return {key: _load(kinds[1], item, f"{where}.{key}", lenient) for key, item in value.items()}


def _load_plain(kind: type, value: object, where: str, lenient: bool) -> object:
    if dataclasses.is_dataclass(kind):
        return _load_dataclass(kind, value, where, lenient)
    if issubclass(kind, Enum):
        try:
            return kind(value)
        except ValueError:
            known = ", ".join(str(item.value) for item in kind)
            raise UserError(f"{where}: {value!r} is none of {known}", code="bad-field") from None
    if kind is bytes:
        if not isinstance(value, str):
            raise _fail(where, "base64 text", value)
        return base64.b64decode(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _fail(where, kind.__name__, value)
    return value


def _load_dataclass(kind: type, value: object, where: str, lenient: bool) -> object:
    if not isinstance(value, Mapping):
        raise _fail(where, "a mapping", value)
    shape = _shape(kind)
    known = {name for name, _, _ in shape}
    unknown = [str(key) for key in value if key not in known]
    if unknown and not lenient:
        raise UserError(f"{where}.{unknown[0]}: unknown field", code="bad-field")
    missing = [name for name, _, due in shape if due and name not in value]
    if missing:
        raise UserError(f"{where}.{missing[0]}: missing", code="bad-field")
    given = {name: _load(hint, value[name], f"{where}.{name}", lenient) for name, hint, _ in shape if name in value}
    return kind(**given)
