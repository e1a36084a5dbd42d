"""Checks any JSON output against the schema that `aj schema` publishes, with no key beyond it."""

from __future__ import annotations

import json
from typing import Any

import jsonschema

from aj.view import schema


def closed(value: Any) -> Any:
    """The same schema without room for keys that it does not name."""
    if isinstance(value, list | tuple):
        return [closed(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: closed(item) for key, item in value.items()}
    if "properties" in found and "additionalProperties" not in found:
        found["additionalProperties"] = False
    return found


def check_document(raw: bytes) -> Any:
    """Return the one document of an output; fails when it is none, or not as published."""
    text = raw.decode()
    document = json.loads(text)
    assert text.endswith("}\n")
    if "error" in document and "kind" not in document:
        jsonschema.validate(document, closed(schema.error()))
        return document
    kind = document["kind"]
    if kind == "result":
        own = f"result/{document['action']}"
        kind = {"result/restart": "result/start", "result/upgrade": "result/start"}.get(
            own, own if own in schema.KINDS else "result"
        )
    jsonschema.validate(document, closed(schema.whole(kind)))
    return document
