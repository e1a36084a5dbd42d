"""The JSON schemas of everything that commands print, written beside the rows they describe.

A view says what a row holds with the few words of this room; nouns that are printed as they are get their
schema from their own fields. Keys may be added within a schema version, so objects are open.
"""

from __future__ import annotations

import dataclasses
import importlib
import types
import typing
from collections.abc import Mapping
from enum import Enum

from aj.model.json import Json
from aj.view.document import SCHEMA_VERSION

Schema = Mapping[str, Json]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer"}
YES_NO: Schema = {"type": "boolean"}
ANY: Schema = {}
NAMES: Schema = {"type": "array", "items": TEXT}

# kind -> the view that holds its schema in `schemas()`; behind a slash: of one action
KINDS: Mapping[str, str] = {
    "help": "aj.view.help",
    "version": "aj.view.version",
    "journal.list": "aj.view.journal",
    "queue.list": "aj.view.queue",
    "queue.entry": "aj.view.queue",
    "job.list": "aj.view.job",
    "status": "aj.view.job",
    "status.list": "aj.view.job",
    "job.why": "aj.view.job",
    "template.list": "aj.view.template",
    "template": "aj.view.template",
    "template.validation": "aj.view.template",
    "template.diff": "aj.view.template",
    "config": "aj.view.config",
    "config.path": "aj.view.config",
    "code.stats": "aj.view.code",
    "daemon": "aj.view.daemon",
    "doctor": "aj.view.doctor",
    "watch.list": "aj.view.watch",
    "k8s.status": "aj.view.k8s",
    "k8s.jobs": "aj.view.k8s",
    "k8s.queues": "aj.view.k8s",
    "k8s.pods": "aj.view.k8s",
    "k8s.events": "aj.view.k8s",
    "k8s.logs": "aj.view.k8s",
    "result/k8s": "aj.view.k8s",
    "result/refresh-sas": "aj.view.k8s",
    "result/login": "aj.view.k8s",
    "docs": "aj.view.docs",
    "result": "aj.view.action",
    "result/unset": "aj.view.config",
    "result/start": "aj.view.daemon",
    "result/stop": "aj.view.daemon",
    "result/init": "aj.view.init",
    "skill.list": "aj.view.skill",
    "result/pull": "aj.view.exchange",
    "result/push": "aj.view.exchange",
    "result/init-amlt": "aj.view.init",
    "result/prune": "aj.view.code",
    "logs": "aj.view.logs",
    "logs.files": "aj.view.logs",
    "job.stats": "aj.view.cloudjob",
    "auth": "aj.view.auth",
    "quota.list": "aj.view.quota",
    "sku.list": "aj.view.sku",
    "deployment": "aj.view.deployment",
    "deployment.list": "aj.view.deployment",
    "image.list": "aj.view.image",
    "ws.list": "aj.view.workspace",
    "ws": "aj.view.workspace",
    "result/set": "aj.view.workspace",
    "ds.list": "aj.view.resource",
    "ds": "aj.view.resource",
    "env.list": "aj.view.resource",
    "env": "aj.view.resource",
    "sa.list": "aj.view.resource",
    "uai.list": "aj.view.resource",
    "exp.list": "aj.view.experiment",
    "exp": "aj.view.experiment",
    "bucket.list": "aj.view.bucket",
    "bucket.objects": "aj.view.bucket",
    "result/upload": "aj.view.bucket",
    "result/download": "aj.view.bucket",
    "throttle": "aj.view.spend",
    "budget": "aj.view.spend",
    "spend": "aj.view.spend",
    "cost": "aj.view.spend",
    "credentials.list": "aj.view.credential",
    "secrets.list": "aj.view.credential",
    "submission": "aj.view.submission",
    "submission.argv": "aj.view.submission",
    "submission.body": "aj.view.submission",
    "submission.manifest": "aj.view.submission",
    "submission.files": "aj.view.submission",
}


def maybe(schema: Schema) -> Schema:
    """Allow null beside what the schema allows."""
    kind = schema.get("type")
    if isinstance(kind, str) and "enum" not in schema:
        return {**schema, "type": [kind, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def many(schema: Schema) -> Schema:
    """A list of such values."""
    return {"type": "array", "items": schema}


def table(schema: Schema) -> Schema:
    """An object with any keys and such values."""
    return {"type": "object", "additionalProperties": schema}


def one_of(*words: str) -> Schema:
    """One of these words."""
    return {"enum": list(words)}


def record(**fields: Schema) -> Schema:
    """An object that has all of these keys."""
    return {"type": "object", "required": list(fields), "properties": dict(fields)}


def listing(item: Schema, **extra: Schema) -> Schema:
    """The document of a list."""
    return record(items=many(item), truncated=YES_NO, next_cursor=maybe(TEXT), **extra)


def single(item: Schema) -> Schema:
    """The document of one thing."""
    return record(item=item)


def result(item: Schema, **extra: Schema) -> Schema:
    """The document of an action."""
    status = one_of("ok", "noop", "failed", "unknown")
    return record(action=TEXT, status=status, **extra, items=many(item))


def fields(noun: object) -> dict[str, Schema]:
    """Return the schema of each field of a noun."""
    found = of(noun)["properties"]
    assert isinstance(found, dict), "a noun has fields"
    return found


def of(kind: object) -> Schema:
    """Return the schema of a noun from the types of its fields."""
    if kind is None or kind is type(None):
        return {"type": "null"}
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        rest = [of(part) for part in parts if part is not type(None)]
        either: Schema = rest[0] if len(rest) == 1 else {"anyOf": tuple(rest)}
        return maybe(either) if len(rest) < len(parts) else either
    if origin is tuple:
        return many(of(parts[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return table(of(parts[1]))
    if isinstance(kind, type):
        return _of_type(kind)
    return ANY


def _of_type(kind: type) -> Schema:
    plain = {bool: YES_NO, str: TEXT, int: WHOLE, float: NUMBER}
    if kind in plain:
        return plain[kind]
    if issubclass(kind, Enum):
        return one_of(*(str(word.value) for word in kind))
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return record(**{field.name: of(hints[field.name]) for field in dataclasses.fields(kind)})
    return ANY


def whole(kind: str) -> Schema:
    """Return the complete JSON schema of a kind of document."""
    body: Mapping[str, typing.Any] = importlib.import_module(KINDS[kind]).schemas()[kind]
    notice = record(code=TEXT, message=TEXT, file=maybe(TEXT), line=maybe(WHOLE))
    head: Schema = {"schema_version": {"const": SCHEMA_VERSION}, "kind": {"const": kind.partition("/")[0]}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind,
        "type": "object",
        "required": [*head, *body["required"], "warnings"],
        "properties": {**head, **body["properties"], "warnings": many(notice)},
    }


def error() -> Schema:
    """Return the JSON schema of the error document, which every command may print instead."""
    told = record(type=TEXT, code=TEXT, message=TEXT, hint=maybe(TEXT), retryable=YES_NO, details={"type": "object"})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "error",
        **record(schema_version={"const": SCHEMA_VERSION}, error=told),
    }
