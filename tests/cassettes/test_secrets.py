"""No tape holds a token, a key, a signature, or an id of anybody."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cassettes import tape as taped
from tests.cassettes.stories import STORIES
from tests.cassettes.tape import CASSETTES, NO_KEY, Tape
from tests.servers.authority import SECRET, jwt
from tests.servers.azurite import KEY

# What must not be on a tape, wherever it stands: in an address, a header or a body.
FORBIDDEN = {
    "a token": re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    "an authorization": re.compile(r"\b(?:Bearer|SharedKey|SharedAccessSignature)\s+\S{8,}"),
    "a signature": re.compile(r"[?&;](?:sig|skoid|sktid)=(?!REDACTED)[^&\s]+", re.IGNORECASE),
    "a key": re.compile(r"(?:AccountKey|accountKey)\W+[A-Za-z0-9+/]{20}|(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{86}=="),
    "a planted secret": re.compile("|".join(map(re.escape, (KEY, SECRET, "s3cret", "BEGIN PRIVATE")))),
}
HEADERS = {"authorization", "cookie", "set-cookie", "x-ms-client-request-id", "x-ms-copy-source"}
_GUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE)
_MADE_UP = re.compile(r"([0-9a-f])\1{7}-0000-0000-0000-0{11}[0-9a-f]\Z")
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]{40,}\Z")


def strings(value: object) -> Iterator[str]:
    """Every text of a tape, names included; bytes, and what is written as base64, as what they mean."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from strings(name)
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, bytes):
        yield value.decode("latin-1")
    elif isinstance(value, str):
        yield value
        if _BASE64.match(value):
            yield base64.b64decode(value + "=" * (-len(value) % 4), validate=False).decode("latin-1")


def faults(text: str) -> list[str]:
    """What is wrong with a tape."""
    tape = yaml.safe_load(text)
    every = list(strings(tape))
    found = [what for what, form in FORBIDDEN.items() if any(form.search(one) for one in every)]
    headers = {
        name.lower()
        for interaction in tape["interactions"]
        for side in ("request", "response")
        for name in interaction[side]["headers"]
    }
    found += [f"the header {name}" for name in sorted(headers & HEADERS)]
    ids = {one for text in every for one in _GUID.findall(text)}
    return found + [f"the id {one}" for one in sorted(ids) if not _MADE_UP.match(one)]


@pytest.mark.rule("A-011", "A-213", "C-179")
@pytest.mark.parametrize("path", sorted(CASSETTES.rglob("*.yaml")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_tape_holds_a_secret(path: Path) -> None:
    assert faults(path.read_text()) == []


def test_there_are_tapes_to_search() -> None:
    found = {(path.parent.name, path.stem) for path in CASSETTES.rglob("*.yaml")}
    assert set(STORIES) <= found


PLAIN = "interactions:\n- request: {method: GET, uri: 'http://x/?a=1', body: '', headers: {Accept: ['*/*']}}\n"
ANSWER = "  response: {body: {string: ''}, headers: {}, status: {code: 200, message: OK}}\n"


@pytest.mark.rule("A-011", "A-213")
@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("'*/*'", f"'{jwt(1, 'scope', 'tenant')}'", "a token"),
        ("string: ''", f"string: !!binary {base64.b64encode(jwt(1, 's', 't').encode()).decode()}", "a token"),
        ("Accept", "Authorization", "the header authorization"),
        ("'*/*'", "'SharedKey devstoreaccount1:abcdefghijk'", "an authorization"),
        ("a=1", "sv=1&sig=c2lnbmF0dXJl", "a signature"),
        ("string: ''", f"string: '{KEY}'", "a planted secret"),
        ("a=1", "s=72f988bf-86f1-41af-91ab-2d7cd011db47", "the id 72f988bf-86f1-41af-91ab-2d7cd011db47"),
    ],
)
def test_a_secret_would_be_found(old: str, new: str, what: str) -> None:
    assert faults(PLAIN + ANSWER) == []
    assert what in faults((PLAIN + ANSWER).replace(old, new))


@pytest.mark.rule("A-011")
def test_answers_are_taped_without_their_secrets_and_addresses() -> None:
    tape = Tape({"127.0.0.1:45678": taped.ARM})
    body = b'{"secretsType": "AccountKey", "key": "%s", "nextLink": "http://127.0.0.1:45678/x"}' % KEY.encode()
    headers = {"Content-Length": [str(len(body))], "x-ms-request-id": ["1"], "ETag": ["1"]}
    seen = tape.response({"headers": headers, "body": {"string": body}, "status": {"code": 200}})
    due = b'{"secretsType": "AccountKey", "key": "%s", "nextLink": "http://127.0.0.1:1/x"}' % NO_KEY.encode()
    assert seen["body"]["string"] == due
    assert seen["headers"] == {"Content-Length": [str(len(due))], "ETag": ["1"]}
