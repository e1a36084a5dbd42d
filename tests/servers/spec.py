"""Published definitions, and what is wrong with a value or a request by them.

A sent value is checked strictly: unknown fields, fields that only the service may write, missing ones,
wrong types, enumerations, patterns and bounds. An answered one may hold what only the service writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import unquote

SPECS = Path(__file__).resolve().parents[1] / "specs" / "azure"
SCALARS: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "long": (int,),
    "bool": (bool,),
    "float": (int, float),
    "object": (object,),
}
DURATION = re.compile(r"P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?\Z")
# Which field has which enumeration: the extracted definitions keep the two apart.
ENUMS = (
    ("*JobInput", "mode", "InputDeliveryMode"),
    ("*JobOutput", "mode", "OutputDeliveryMode"),
    ("*Job", "status", "JobStatus"),
    ("QueueSettings", "jobTier", "JobTier"),
    ("EnvironmentVersionProperties", "osType", "OperatingSystemType"),
    ("AmlComputeProperties", "osType", "OperatingSystemType"),
    ("AmlComputeProperties", "vmPriority", "VmPriority"),
    ("AmlComputeProperties", "allocationState", "AllocationState"),
    ("*Compute", "provisioningState", "ProvisioningState"),
    ("CommandJobLimits", "jobLimitsType", "JobLimitsType"),
    ("*Secrets", "secretsType", "SecretsType"),
    ("Usage", "unit", "UsageUnit"),
    ("QueryRequestOptions", "resultFormat", "ResultFormat"),
)


class Definitions:
    """The definitions of some files."""

    def __init__(self, *names: str) -> None:
        self.kinds: dict[str, dict] = {}
        self.enums: dict[str, list[str]] = {}
        for name in names:
            found = json.loads((SPECS / name).read_text())
            for kind, definition in {**found, **found.get("definitions", {})}.items():
                if isinstance(definition, dict) and "enum" in definition:
                    self.enums[kind] = definition["enum"]
                elif isinstance(definition, dict) and "fields" in definition:
                    self.kinds[kind] = definition
            self.enums |= found.get("enums", {})

    def faults(self, kind: str, value: object, *, sent: bool, at: str = "") -> list[str]:
        """Say what is wrong with a value of a kind; nothing when it is right."""
        return list(self._faults(kind, value, sent, at or kind))

    def _faults(self, kind: str, value: object, sent: bool, at: str) -> Iterator[str]:
        kind = _plain(kind)
        if kind.startswith("["):
            yield from self._list(kind[1:-1], value, sent, at)
        elif kind.startswith("{"):
            yield from self._map(kind[1:-1], value, sent, at)
        elif kind == "iso-8601":
            yield from () if _is_moment(value) else (f"{at}: {value!r} is no moment",)
        elif kind == "duration":
            yield from () if isinstance(value, str) and DURATION.match(value) else (f"{at}: {value!r} is no duration",)
        elif kind in self.enums:
            yield from () if value in self.enums[kind] else (f"{at}: {value!r} is none of {self.enums[kind]}",)
        elif kind in SCALARS:
            # True is an int to Python, and a fault here
            is_right = isinstance(value, SCALARS[kind]) and (kind in ("bool", "object") or not isinstance(value, bool))
            yield from () if is_right else (f"{at}: {value!r} is no {kind}",)
        else:
            yield from self._object(kind, value, sent, at)

    def _list(self, kind: str, value: object, sent: bool, at: str) -> Iterator[str]:
        if not isinstance(value, list):
            yield f"{at}: {value!r} is no list"
            return
        for number, item in enumerate(value):
            yield from self._faults(kind, item, sent, f"{at}[{number}]")

    def _map(self, kind: str, value: object, sent: bool, at: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield f"{at}: {value!r} is no object"
            return
        for name, item in value.items():
            yield from self._faults(kind, item, sent, f"{at}.{name}")

    def _object(self, kind: str, value: object, sent: bool, at: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield f"{at}: {value!r} is no {kind}"
            return
        definition = self.kinds[kind]
        if "discriminator" in definition:
            chosen = value.get(definition["discriminator"]["property"])
            narrower = definition["discriminator"]["mapping"].get(chosen)
            if narrower is None:
                yield f"{at}: {chosen!r} is none of {list(definition['discriminator']['mapping'])}"
                return
            if narrower not in self.kinds:
                if sent:
                    yield f"{at}: nothing is published about {narrower}"
                return
            kind, definition = narrower, self.kinds[narrower]
        fields = _nested(definition["fields"])
        yield from self._fields(kind, fields, value, sent, at)

    def _fields(self, kind: str, fields: Mapping[str, dict], value: dict, sent: bool, at: str) -> Iterator[str]:
        for name in value:
            if name not in fields:
                yield f"{at}.{name}: {kind} has no such field"
        for name, field in fields.items():
            if "fields" in field:  # a flattened object
                if isinstance(inner := value.get(name, {}), dict):
                    yield from self._fields(kind, field["fields"], inner, sent, f"{at}.{name}")
                else:
                    yield f"{at}.{name}: {inner!r} is no object"
            elif value.get(name) is None:
                if field.get("required"):
                    yield f"{at}.{name}: missing"
                elif name in value and sent:
                    yield f"{at}.{name}: null"
            elif sent and field.get("readonly"):
                yield f"{at}.{name}: only the service writes this"
            else:
                yield from self._faults(field["type"], value[name], sent, f"{at}.{name}")
                yield from self._bounds(kind, name, field, value[name], f"{at}.{name}")

    def _bounds(self, kind: str, name: str, field: dict, value: object, at: str) -> Iterator[str]:
        if "pattern" in field and isinstance(value, str) and not re.search(field["pattern"], value):
            yield f"{at}: {value!r} does not match {field['pattern']}"
        if "min_length" in field and isinstance(value, str) and len(value) < field["min_length"]:
            yield f"{at}: too short"
        if isinstance(value, int) and not field.get("minimum", value) <= value <= field.get("maximum", value):
            yield f"{at}: {value} is out of bounds"
        for kinds, word, enum in ENUMS:
            if word == name and fnmatch(kind, kinds) and value not in self.enums[enum]:
                yield f"{at}: {value!r} is none of {self.enums[enum]}"


@dataclass(frozen=True)
class Route:
    """One published route. `version` is the api-version that must be sent, None for none."""

    method: str
    path: str
    query: frozenset[str]
    version: str | None = None

    def match(self, method: str, path: str) -> dict[str, str] | None:
        """Return the names in a path, decoded; None when it is another route."""
        found = re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", self.path), path)
        return (
            {name: unquote(part) for name, part in found.groupdict().items()}
            if method == self.method and found
            else None
        )


def routes(name: str, *, version: str | None, folder: Path = SPECS) -> list[Route]:
    """Read the routes of a file."""
    found = json.loads((folder / name).read_text())
    listed = found.get("routes") or [{**found["route"], "query": ["api-version"]}]
    return [Route(route["method"], route["path"], frozenset(route["query"]), version) for route in listed]


def _plain(kind: str) -> str:
    """`Optional[Union[str, State]]` and `Optional[list[X]]`, as one of the files writes them, in the other form."""
    if found := re.fullmatch(r"Optional\[(.*)\]", kind):
        return _plain(found[1])
    if found := re.fullmatch(r"Union\[str, (.*)\]", kind):
        return found[1]
    if found := re.fullmatch(r"list\[(.*)\]", kind):
        return f"[{found[1]}]"
    if found := re.fullmatch(r"dict\[str, (.*)\]", kind):
        return f"{{{found[1]}}}"
    return kind


def _nested(fields: Mapping[str, dict | str]) -> dict[str, dict]:
    """Fields with dotted names, as objects in objects."""
    found: dict[str, dict] = {}
    for name, field in fields.items():
        outer, dot, inner = name.partition(".")
        whole = {"type": field} if isinstance(field, str) else field
        if dot:
            found.setdefault(outer, {"fields": {}})["fields"][inner] = whole
        else:
            found[name] = whole
    return found


def _is_moment(value: object) -> bool:
    try:
        datetime.fromisoformat(str(value))
    except ValueError:
        return False
    return isinstance(value, str)
