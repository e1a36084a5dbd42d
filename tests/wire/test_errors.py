"""Errors that cross the socket arrive in their own class, with words, hint, place and details."""

from __future__ import annotations

import json

import pytest

from aj.base import errors
from aj.base.errors import AjError, Place
from aj.wire import errors as wire
from aj.wire.errors import Malformed, Unexpected


@pytest.mark.rule("C-211", "C-057")
@pytest.mark.parametrize("kind", errors.KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_arrives_as_itself(kind: type[AjError]) -> None:
    sent = kind(
        "went wrong: ü \udcff",
        hint="`aj x`",
        code="some-code",
        place=Place("a.yaml", 3, 7),
        details={"id": "1", "n": 2},
    )
    crossed = json.loads(json.dumps(wire.document(sent)))
    found = wire.from_document(crossed)
    assert type(found) is kind
    assert (found.message, found.hint, found.code, found.place) == (sent.message, sent.hint, sent.code, sent.place)
    assert found.details == sent.details
    assert crossed["error"]["retryable"] is kind.retryable
    assert found.exit_code == kind.exit_code


@pytest.mark.rule("C-211")
@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (errors.UserError, 422),
        (errors.TemplateError, 422),
        (errors.AuthError, 401),
        (errors.Refused, 409),
        (errors.NotFound, 404),
        (errors.OutcomeUnknown, 504),
        (errors.Unavailable, 503),
        (errors.DaemonError, 503),
        (errors.RemoteError, 502),
        (errors.JobFailed, 500),
        (AjError, 500),
        (Unexpected, 500),
    ],
)
def test_each_kind_has_its_status(kind: type[AjError], status: int) -> None:
    assert wire.status_of(kind("x")) == status


def test_a_kind_of_a_stranger_becomes_its_nearest_known_parent() -> None:
    class Local(errors.Refused):
        pass

    assert wire.document(Local("x"))["error"]["type"] == "Refused"  # type: ignore[index,call-overload]
    assert wire.type_of(Malformed("x")) == "UserError"
    assert wire.status_of(Malformed("x", status=413)) == 413


@pytest.mark.rule("C-211", "C-075")
def test_the_unforeseen_ends_a_command_with_70() -> None:
    found = wire.from_document(wire.document(Unexpected("KeyError: 'x'", hint="see the log")))
    assert isinstance(found, Unexpected)
    assert found.exit_code == 70


def test_a_type_of_a_later_release_keeps_its_words() -> None:
    found = wire.from_document({"error": {"type": "NewKind", "code": "c", "message": "m", "hint": None, "details": {}}})
    assert type(found) is AjError
    assert (found.message, found.code) == ("m", "c")


@pytest.mark.parametrize("value", [None, 3, [], {}, {"error": "text"}, {"item": {}}])
def test_other_documents_are_no_errors(value: object) -> None:
    assert wire.from_document(value) is None


def test_details_without_a_json_form_are_written_out() -> None:
    found = wire.fault(AjError("x", details={"place": Place("f", 1), "list": (1, {"a"}), "map": {"k": 1.5}}))
    json.dumps(dict(found.details))
    assert found.details["list"] == [1, ["a"]]
