"""What an API server of Kubernetes finds wrong with an object by its published schema, in its own words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

SPECS = Path(__file__).resolve().parents[1] / "specs"
CORE = SPECS / "kube" / "core-v1.36.json"
BOUNDS = {"int32": 2**31, "int64": 2**63}
TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}
_WORDS = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}


@dataclass(frozen=True)
class Cause:
    """One fault of one field. `decoding` is what a decoder says, who meets a wrong type before any check."""

    field: str
    reason: str
    message: str
    decoding: str = ""

    @property
    def document(self) -> dict[str, str]:
        return {"reason": self.reason, "message": self.message, "field": self.field}


def invalid(field: str, value: object, why: str) -> Cause:
    """A value that is not allowed."""
    return Cause(field, "FieldValueInvalid", f"Invalid value: {shown(value)}: {why}")


def required(field: str, why: str = "") -> Cause:
    """A value that is missing."""
    return Cause(field, "FieldValueRequired", "Required value" + (f": {why}" if why else ""))


def unsupported(field: str, value: object, known: list[str]) -> Cause:
    """A value that is none of those that are known."""
    listed = ", ".join(f'"{one}"' for one in known)
    return Cause(field, "FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {listed}")


def duplicate(field: str, value: object) -> Cause:
    """A value that stands twice."""
    return Cause(field, "FieldValueDuplicate", f"Duplicate value: {shown(value)}")


def shown(value: object) -> str:
    """A value as the server writes it into a message."""
    return json.dumps(value)


class Schema:
    """One schema. `words` are the definitions that it refers to."""

    def __init__(self, schema: Mapping, words: Mapping[str, Mapping]) -> None:
        self._schema = schema
        self._words = words

    def unknown(self, value: object) -> list[str]:
        """The paths of the fields that the schema does not know."""
        return list(self._unknown(self._schema, value, ""))

    def causes(self, value: object) -> list[Cause]:
        """What is wrong by type, bounds, pattern, enumeration and missing fields."""
        return list(self._causes(self._schema, value, "", ""))

    def shaped(self, value: object) -> object:
        """A copy with unknown fields left out and defaults filled in."""
        return self._shaped(self._schema, value)

    def _open(self, schema: Mapping) -> Mapping:
        name = schema.get("$ref")
        return self._words[name] if name else schema

    def _children(self, schema: Mapping, value: dict) -> Iterator[tuple[str, object, Mapping | None, bool]]:
        """Each field of an object with its schema (None: unknown), and whether it is an entry of a map."""
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        is_loose = (not known and others is None) or schema.get("x-kubernetes-preserve-unknown-fields")
        for name, item in value.items():
            if name in known:
                yield name, item, known[name], False
            elif isinstance(others, Mapping):
                yield name, item, others, True
            else:
                yield name, item, {} if is_loose else None, False

    def _unknown(self, schema: Mapping, value: object, at: str) -> Iterator[str]:
        schema = self._open(schema)
        if isinstance(value, dict) and schema.get("type", "object") == "object":
            for name, item, inner, is_entry in self._children(schema, value):
                path = _inside(at, name, is_entry)
                if inner is None:
                    yield path
                else:
                    yield from self._unknown(inner, item, path)
        elif isinstance(value, list):
            for number, item in enumerate(value):
                yield from self._unknown(schema.get("items", {}), item, f"{at}[{number}]")

    def _causes(self, schema: Mapping, value: object, at: str, owner: str) -> Iterator[Cause]:
        inside = schema.get("$ref", owner)
        schema = self._open(schema)
        if value is None:
            return  # null stands for a field that is not there
        wrong = _type_fault(schema, value, at, owner)
        if wrong is not None:
            yield wrong
            return
        yield from _bounds(schema, value, at)
        if isinstance(value, dict):
            for name in schema.get("required", ()):
                if value.get(name) is None:
                    yield required(_inside(at, name, False))
            for name, item, inner, is_entry in self._children(schema, value):
                if inner is not None:
                    yield from self._causes(inner, item, _inside(at, name, is_entry), inside)
        elif isinstance(value, list):
            for number, item in enumerate(value):
                yield from self._causes(schema.get("items", {}), item, f"{at}[{number}]", inside)
            yield from _doubles(schema, value, at)

    def _shaped(self, schema: Mapping, value: object) -> object:
        schema = self._open(schema)
        if "oneOf" in schema and isinstance(value, int) and schema.get("format") != "int-or-string":
            return str(value)  # a quantity is kept as words
        if isinstance(value, list):
            return [self._shaped(schema.get("items", {}), item) for item in value]
        if not isinstance(value, dict):
            return value
        children = self._children(schema, value)
        found = {name: self._shaped(inner, item) for name, item, inner, _ in children if inner is not None}
        found = {name: item for name, item in found.items() if item is not None}
        for name, inner in schema.get("properties", {}).items():
            default = inner.get("default")
            if name not in found and default not in (None, "", {}):
                found[name] = default
        return found


@cache
def core(kind: str) -> Schema:
    """The schema of a kind of Kubernetes itself."""
    words = _core()
    return Schema({"$ref": kind}, words)


@cache
def custom(crd: str) -> Schema:
    """The schema of the one version of a custom resource definition of Volcano, its metadata as everybody's."""
    document = yaml.load((SPECS / "volcano" / f"{crd}.yaml").read_text(), _LOADER)
    (version,) = document["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    schema = {**schema, "properties": {**schema["properties"], "metadata": {"$ref": "ObjectMeta"}}}
    return Schema(schema, _core())


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def _core() -> Mapping[str, Mapping]:
    return json.loads(CORE.read_text())


def _inside(at: str, name: str, is_entry: bool) -> str:
    if is_entry and not re.fullmatch(r"\w+", name):
        return f"{at}[{name}]"
    return f"{at}.{name}" if at else name


def _type_fault(schema: Mapping, value: object, at: str, owner: str) -> Cause | None:
    if schema.get("x-kubernetes-int-or-string") or "oneOf" in schema:
        wanted = ["integer", "string"]
    elif "type" in schema:
        wanted = [schema["type"]]
    else:
        return None
    if any(isinstance(value, TYPES[one]) and isinstance(value, bool) == (one == "boolean") for one in wanted):
        return None
    word = _WORDS[type(value)]
    message = f'Invalid value: "{word}": {at} in body must be of type {",".join(wanted)}: "{word}"'
    found = {"integer": "number", "boolean": "bool"}.get(word, word)
    go = schema.get("format", "int32") if wanted == ["integer"] else {"boolean": "bool"}.get(wanted[0], wanted[0])
    path = re.sub(r"\[\d+\]", "", at)
    decoding = f"json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {go}"
    return Cause(at, "FieldValueTypeInvalid", message, decoding)


def _bounds(schema: Mapping, value: object, at: str) -> Iterator[Cause]:
    if "enum" in schema and value not in schema["enum"]:
        yield unsupported(at, value, schema["enum"])
    if isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"].removesuffix("$") + r"\Z", value):
            yield invalid(at, value, f"{at} in body should match '{schema['pattern']}'")
        if len(value) > schema.get("maxLength", len(value)):
            yield Cause(at, "FieldValueTooLong", f"Too long: may not be more than {schema['maxLength']} bytes")
        if len(value) < schema.get("minLength", 0):
            yield invalid(at, value, f"{at} in body should be at least {schema['minLength']} chars long")
    elif isinstance(value, int):
        if value < schema.get("minimum", value):
            yield invalid(at, value, f"{at} in body should be greater than or equal to {schema['minimum']}")
        bound = BOUNDS.get(schema.get("format", ""))
        if bound and not -bound <= value < bound:
            words = f"Checked value must be of type integer with format {schema['format']} in {at}"
            yield Cause("<nil>", "FieldValueInvalid", f'Invalid value: "": {words}')
    elif isinstance(value, list) and len(value) < schema.get("minItems", 0):
        yield invalid(at, len(value), f"{at} in body should have at least {schema['minItems']} items")


def _doubles(schema: Mapping, value: list, at: str) -> Iterator[Cause]:
    """Entries of a list that is a map by some of their fields, and stand twice."""
    kind = schema.get("x-kubernetes-list-type")
    if kind not in ("map", "set"):
        return
    keys = schema.get("x-kubernetes-list-map-keys", [])
    seen: list[object] = []
    for number, item in enumerate(value):
        own = {key: item[key] for key in keys if key in item} if kind == "map" and isinstance(item, dict) else item
        if own in seen:
            yield duplicate(f"{at}[{number}]", own)
        seen.append(own)


class _Doubled(dict):
    """An object whose text named fields twice."""

    doubles: tuple[str, ...] = ()


def parsed(text: bytes) -> tuple[object, list[str]]:
    """Read JSON; returns the paths of fields that stand twice, too. Raises ValueError."""

    def gathered(pairs: list[tuple[str, object]]) -> dict:
        found = _Doubled(pairs)
        names = [name for name, _ in pairs]
        found.doubles = tuple(dict.fromkeys(name for name in names if names.count(name) > 1))
        return found

    document = json.loads(text, object_pairs_hook=gathered)
    return document, list(_doubled(document, ""))


def _doubled(value: object, at: str) -> Iterator[str]:
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _doubled(item, f"{at}[{number}]")
    elif isinstance(value, dict):
        yield from (_inside(at, name, False) for name in getattr(value, "doubles", ()))
        for name, item in value.items():
            yield from _doubled(item, _inside(at, name, False))
