"""Carrying out writes the intention first and leaves exactly one true end, whatever goes wrong."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from aj.base.errors import (
    AjError,
    AuthError,
    NotFound,
    OutcomeUnknown,
    RemoteError,
    TimedOut,
    Unavailable,
    UserError,
)
from aj.model.record import Record
from aj.model.ticket import Mode, Outcome, Ticket, TicketState
from aj.store import atomic, jsonl
from aj.wire import codec
from tests.conftest import Home, MovedClock
from tests.engine.stand import FAR, NEAR, REFUSED, Held, Stand, raising
from tests.store import nouns

KEY = "_none"
ID = nouns.aj_id(1)


@pytest.fixture
def stand(home: Home, clock: MovedClock) -> Iterator[Stand]:
    made = Stand(home, clock)
    yield made
    made.engine.stop()


def lines(stand: Stand) -> list[Record]:
    """Every line of the journal as it was written."""
    read = jsonl.read(stand.home.layout.journal(KEY), lambda _: None)
    return [codec.load(Record, value) for value in read]


def states(stand: Stand) -> list[str]:
    return [record.state.value for record in lines(stand)]


def run(stand: Stand, *, service: str = FAR, mode: Mode = Mode.DIRECT) -> Ticket:
    """Submit one and wait for its end."""
    stand.engine.submit(None, stand.submission(1, service=service, mode=mode))
    return stand.engine.submission(None, ID, 10).ticket


def file_of(stand: Stand) -> Path:
    return stand.home.layout.ticket(KEY, f"q-{ID}")


@pytest.mark.rule("C-233", "C-240", "C-241")
def test_every_step_is_durable_before_the_next(stand: Stand) -> None:
    seen: list[tuple[str, str, list[str]]] = []

    def look(_: str) -> None:
        state = json.loads(file_of(stand).read_bytes())["state"]
        seen.append((state, states(stand)[-1], [record.azure_name or "" for record in lines(stand)]))

    stand.far.before = look
    end = run(stand)
    name = f"far-work_{ID}"
    assert seen == [("running", "intended", [name])]
    assert [(record.state.value, record.outcome, record.azure_name, record.handle) for record in lines(stand)] == [
        ("intended", None, name, None),
        ("submitted", "submitted", name, f"far://cluster/{name}"),
    ]
    assert end.result is not None
    assert (end.result.azure_name, end.result.handle) == (name, f"far://cluster/{name}")
    assert end.started_at is not None
    assert end.finished_at is not None
    assert b"hunter2" not in file_of(stand).read_bytes()


@pytest.mark.rule("C-232", "C-230")
def test_a_record_says_what_was_asked_and_no_value_of_the_environment(stand: Stand) -> None:
    asked = stand.submission(
        1,
        mode=Mode.DIRECT,
        argv=("train.py", "--token", "s3cr3t", "a b"),
        env={"WANDB_API_KEY": "hunter2", "B": "plain-value"},
        inherited={"PATH": "/inherited"},
        image="img",
        sku="G1",
        agent="claude",
        session="s1",
        config={"target": {"name": "pool", "queue": "q", "more": {"x": 1}, "url": "https://x/?sig=abcdefgh"}},
    )
    stand.engine.submit(None, asked)
    stand.engine.submission(None, ID, 10)
    record = lines(stand)[-1]
    assert record.command == "train.py --token *** 'a b'"
    assert record.env_names == ("B", "WANDB_API_KEY")
    assert record.target == {"name": "pool", "queue": "q", "url": "https://x/?sig=***"}
    assert (record.image, record.sku, record.agent, record.session) == ("img", "G1", "claude", "s1")
    assert (record.template, record.service, record.experiment, record.shape) == ("t", FAR, "exp", asked.spec.shape)
    assert record.code is not None
    assert record.version
    raw = stand.home.layout.journal(KEY).read_bytes()
    for value in (b"hunter2", b"plain-value", b"s3cr3t", b"/inherited", b"abcdefgh"):
        assert value not in raw


DEFINITE = [
    REFUSED,
    UserError("bad body"),
    AuthError("not signed in", hint="az login"),
    NotFound("no such cluster"),
    RemoteError("400"),
    AjError("cannot write"),
]
DOUBTFUL = [
    OutcomeUnknown("the answer was lost"),
    Unavailable("500 from the service"),
    TimedOut("no answer in 30 s"),
    ValueError("a fault of our own"),
    KeyError("another"),
    OSError(5, "Input/output error"),
]


@pytest.mark.rule("C-233", "C-242", "C-227")
@pytest.mark.parametrize("service", [FAR, NEAR])
@pytest.mark.parametrize("error", DEFINITE, ids=lambda error: type(error).__name__)
def test_a_definite_no_is_a_failure_that_keeps_its_kind_and_words(stand: Stand, error: AjError, service: str) -> None:
    stand.far.before = stand.near.before = raising(error)
    end = run(stand, service=service)
    assert (end.state, end.outcome) == (TicketState.FAILED, Outcome.FAILED)
    assert end.error is not None
    assert (end.error.type, end.error.message, end.error.hint) == (type(error).__name__, error.message, error.hint)
    assert end.error.code == error.code
    assert states(stand) == ["intended", "failed"]
    assert lines(stand)[-1].error == end.error
    assert b"hunter2" in file_of(stand).read_bytes()  # kept for a retry


@pytest.mark.rule("C-233", "C-242", "C-339", "C-340", "C-251")
@pytest.mark.parametrize("error", DOUBTFUL, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("step", ["before", "after"])
def test_anything_else_once_it_may_have_been_sent_is_unknown_and_is_not_sent_again(
    stand: Stand, error: Exception, step: str
) -> None:
    setattr(stand.far, step, raising(error))
    end = run(stand)
    assert (end.state, end.outcome) == (TicketState.FAILED, Outcome.UNKNOWN)
    assert end.error is not None
    assert (end.error.type, end.error.hint) == (
        "OutcomeUnknown",
        f"`aj queue reconcile q-{ID}` finds out what became of it",
    )
    assert states(stand) == ["intended", "unknown"]
    assert [record.azure_name for record in lines(stand)] == [f"far-work_{ID}"] * 2
    assert len(stand.far.sent) == 1
    if not isinstance(error, AjError):
        assert end.error.message == f"{type(error).__name__}: {error}"


@pytest.mark.rule("C-233")
@pytest.mark.parametrize("error", [*DEFINITE, *DOUBTFUL], ids=lambda error: type(error).__name__)
def test_whatever_goes_wrong_before_anything_is_sent_is_a_failure(stand: Stand, error: Exception) -> None:
    stand.far.planning = raising(error)
    end = run(stand)
    assert (end.state, end.outcome) == (TicketState.FAILED, Outcome.FAILED)
    assert states(stand) == ["failed"]
    assert stand.far.sent == []


@pytest.mark.rule("C-233")
def test_an_intention_that_cannot_be_written_sends_nothing(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "append", raising_twice(AjError("no space", code="cannot-write")))
    end = run(stand)
    assert (end.outcome, stand.far.sent) == (Outcome.FAILED, [])
    assert end.error is not None
    assert end.error.message == "no space"
    assert end.detail is not None
    assert "the record of it is missing" in end.detail


def raising_twice(error: AjError):
    def refuse(*_: object) -> bool:
        raise error

    return refuse


@pytest.mark.rule("C-234", "C-276")
@pytest.mark.parametrize("also_tickets", [False, True], ids=["journal", "everything"])
def test_a_disk_that_is_full_after_the_create_still_tells_the_name(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, also_tickets: bool
) -> None:
    real_append, real_write = jsonl.append, atomic.write_json
    full = threading.Event()
    stand.far.after = lambda _: full.set()

    def append(path: Path, value: object) -> bool:
        if full.is_set():
            raise AjError("no space", code="cannot-write")
        return real_append(path, value)  # type: ignore[arg-type]

    def write(path: Path, value: object) -> None:
        if full.is_set() and also_tickets:
            raise AjError("no space", code="cannot-write")
        real_write(path, value)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(jsonl, "append", append)
        patch.setattr(atomic, "write_json", write)
        end = run(stand)
    name = f"far-work_{ID}"
    assert (end.state, end.outcome) == (TicketState.FAILED, Outcome.UNKNOWN)
    assert end.result is not None
    assert end.result.azure_name == name
    assert end.detail is not None
    assert name in end.detail
    assert "the record of it is missing" in end.detail
    assert end.error is not None
    assert end.error.type == "OutcomeUnknown"
    assert states(stand) == ["intended"]
    found = stand.again()  # as after a restart with room on the disk again
    (ticket,) = found.engine.queue_list(None, False, (), 0).tickets
    assert ticket.outcome is Outcome.UNKNOWN
    settled = found.engine.queue_reconcile(None, ticket.ticket).ticket
    assert settled.state is TicketState.COMPLETED
    assert states(found) == ["intended", "submitted"]
    assert len(found.far.sent) == 1
    found.engine.stop()


@pytest.mark.rule("C-235")
def test_a_job_of_our_own_is_handed_over_with_all_it_needs(stand: Stand) -> None:
    end = run(stand, service=NEAR, mode=Mode.QUEUED)
    assert stand.near.admitted == [ID]
    kept = json.loads((stand.near.folder / f"{ID}.job").read_bytes())
    assert kept == {"ticket": f"q-{ID}", "project": KEY, "at": end.created_at}
    assert end.result is not None
    assert end.result.handle == f"near://jobs/{ID}"
    assert stand.far.sent == []


@pytest.mark.rule("C-165")
def test_the_place_is_told_the_moment_of_acceptance(stand: Stand) -> None:
    end = run(stand)
    body = (stand.far.folder / f"far-work_{ID}.job").read_text()
    assert end.created_at.endswith("Z")
    assert repr(end.created_at.removesuffix("Z") + "+00:00") in body


def test_a_request_that_vanished_is_a_failure_and_sends_nothing(stand: Stand) -> None:
    held = Held()
    stand.far.before = held
    stand.engine.submit(None, stand.submission(1))
    held.wait_entered()
    stand.engine.submit(None, stand.submission(2))
    stand.home.layout.ticket(KEY, "q-00000002").unlink()
    held.let_go()
    end = stand.engine.submission(None, nouns.aj_id(2), 10).ticket
    assert end.outcome is Outcome.FAILED
    assert end.error is not None
    assert "can no longer be read" in end.error.message
    assert len(stand.far.sent) == 1


@pytest.mark.rule("C-281")
def test_a_wide_journal_is_told_to_the_next_command(stand: Stand) -> None:
    run(stand)
    stand.home.layout.journal(KEY).chmod(0o644)
    stand.engine.submit(None, stand.submission(2))
    told = stand.engine.submission(None, nouns.aj_id(2), 10).warnings
    assert told == (f"{stand.home.layout.journal(KEY)}: others could read it; it is private now",)
    assert stand.engine.queue_list(None, False, (), 0).warnings == ()
