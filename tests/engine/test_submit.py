"""Accepting is durable before it is told; carrying out leaves exactly one true end in the journal."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from aj.base.errors import (
    AjError,
    AuthError,
    NotFound,
    OutcomeUnknown,
    Place,
    Refused,
    RemoteError,
    TimedOut,
    Unavailable,
    UserError,
)
from aj.engine import submit
from aj.model.record import Record
from aj.model.ticket import Mode, Outcome, Ticket, TicketState
from aj.store import atomic, journal, jsonl, lock
from aj.store.tickets import Tickets
from aj.wire import codec
from tests.conftest import Home, MovedClock
from tests.engine.stand import BARE, FAR, NEAR, REFUSED, SHUT, Held, Stand, raising
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


# Accepting


@pytest.mark.rule("C-235", "C-236", "C-213", "C-150")
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("service", [FAR, NEAR, BARE])
def test_a_told_ticket_is_on_disk_with_its_code(stand: Stand, service: str, mode: Mode) -> None:
    held = Held()
    stand.far.before = stand.near.before = held
    answer = stand.engine.submit(None, stand.submission(1, service=service, mode=mode))
    ticket = answer.ticket
    assert (ticket.ticket, ticket.id, ticket.mode, ticket.state) == (f"q-{ID}", ID, mode, TicketState.QUEUED)
    assert ticket.request is None
    on_disk = json.loads(file_of(stand).read_bytes())
    assert on_disk["request"]["env"] == {"API_KEY": "hunter2"}
    assert on_disk["env_names"] == ["API_KEY"]
    assert (ticket.code is None) is (service == BARE)
    if ticket.code:
        assert stand.home.layout.archive(ticket.code.digest).read_text() == "print('hello')\n"
    held.let_go()
    end = stand.engine.submission(None, ID, 10).ticket
    assert (end.state, end.outcome) == (TicketState.COMPLETED, Outcome.SUBMITTED)
    assert end.request is None
    assert states(stand) == ["intended", "submitted"]


@pytest.mark.rule("C-236")
def test_what_was_on_disk_at_acceptance_is_what_runs(stand: Stand) -> None:
    held = Held()
    stand.far.before = held
    stand.engine.submit(None, stand.submission(1))
    held.wait_entered()
    second = stand.engine.submit(None, stand.submission(2)).ticket
    (stand.tree / "train.py").write_text("print('edited')\n")
    held.let_go()
    stand.engine.submission(None, nouns.aj_id(2), 10)
    assert second.code is not None
    job = (stand.far.folder / f"far-work_{nouns.aj_id(2)}.job").read_text()
    assert second.code.digest in job
    assert stand.home.layout.archive(second.code.digest).read_text() == "print('hello')\n"


@pytest.mark.rule("C-209", "T45")
def test_the_same_call_again_gives_the_first_ticket_and_sends_once(stand: Stand) -> None:
    asked = stand.submission(1, mode=Mode.DIRECT)
    first = stand.engine.submit(None, asked).ticket
    assert stand.engine.submit(None, asked).ticket.ticket == first.ticket
    end = stand.engine.submission(None, ID, 10).ticket
    again = stand.engine.submit(None, asked).ticket
    assert again == end
    assert len(stand.far.sent) == 1
    assert states(stand) == ["intended", "submitted"]


@pytest.mark.rule("C-209")
def test_the_same_call_again_after_a_restart_gives_the_first_ticket(stand: Stand) -> None:
    asked = stand.submission(1, mode=Mode.DIRECT)
    stand.engine.submit(None, asked)
    stand.engine.submission(None, ID, 10)
    again = stand.again()
    assert again.engine.submit(None, asked).ticket.state is TicketState.COMPLETED
    assert len(stand.far.sent) == 1
    again.engine.stop()


@pytest.mark.rule("C-209")
def test_the_same_key_with_another_body_is_refused(stand: Stand) -> None:
    stand.engine.submit(None, stand.submission(1))
    with pytest.raises(Refused) as caught:
        stand.engine.submit(None, stand.submission(1, argv=("python", "other.py")))
    assert caught.value.code == "key-reused"
    with pytest.raises(Refused):
        stand.engine.submit(None, stand.submission(1, mode=Mode.DIRECT))


@pytest.mark.rule("C-209", "T45")
def test_one_call_and_its_repetition_at_the_same_moment_are_one(stand: Stand) -> None:
    held = Held()
    stand.pack.before = held
    asked = stand.submission(1)
    answers: list[str] = []
    threads = [
        threading.Thread(target=lambda: answers.append(stand.engine.submit(None, asked).ticket.ticket))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    held.wait_entered()
    held.let_go()
    for thread in threads:
        thread.join(20)
    assert answers == [f"q-{ID}"] * 4
    stand.engine.submission(None, ID, 10)
    assert len(stand.far.sent) == 1
    assert len(held.names) == 1


@pytest.mark.rule("C-149")
@pytest.mark.parametrize("where", ["journal", "queue", "jobs"])
def test_a_taken_id_is_refused_before_anything_is_packed(stand: Stand, where: str) -> None:
    layout = stand.home.layout
    if where == "journal":
        journal.append(layout, "other", nouns.record(1))
    elif where == "queue":
        Tickets(layout, "other").add(nouns.ticket(1))
    else:
        layout.job(ID).mkdir(parents=True)
    stand.pack.before = raising(AssertionError("packed"))
    with pytest.raises(Refused) as caught:
        stand.engine.submit(None, stand.submission(1))
    assert caught.value.code == "id-taken"
    assert not file_of(stand).exists()


@pytest.mark.rule("C-209", "C-297")
@pytest.mark.parametrize("key", ["", "../x", "ABCDEF12", "0000000", "000000001", "0000000g", "00000001\n"])
def test_a_key_that_is_no_id_is_refused(stand: Stand, key: str) -> None:
    asked = stand.submission(1, id=key)
    with pytest.raises(UserError) as caught:
        stand.engine.submit(None, asked)
    assert caught.value.code == "bad-field"
    assert not stand.home.layout.tickets(KEY).exists()


def test_a_key_of_another_job_is_refused(stand: Stand) -> None:
    asked = stand.submission(1)
    with pytest.raises(UserError):
        stand.engine.submit(None, type(asked)(nouns.aj_id(2), asked.mode, asked.spec))


@pytest.mark.rule("C-297")
def test_a_service_that_does_not_exist_or_does_not_send_yet_is_refused(stand: Stand) -> None:
    with pytest.raises(UserError, match="no service is called `zzz`"):
        stand.engine.submit(None, stand.submission(1, service="zzz"))
    with pytest.raises(UserError, match="does not send them yet"):
        stand.engine.submit(None, stand.submission(1, service=SHUT))
    assert stand.engine.queue_list(None, False, (), 0).tickets == ()


@pytest.mark.rule("C-233", "C-236")
@pytest.mark.parametrize(("mode", "records"), [(Mode.DIRECT, ["failed"]), (Mode.QUEUED, [])])
def test_code_that_cannot_be_packed_makes_no_ticket(stand: Stand, mode: Mode, records: list[str]) -> None:
    stand.pack.before = raising(UserError("`fifo` is a pipe", place=Place("fifo", 1)))
    with pytest.raises(UserError, match="is a pipe"):
        stand.engine.submit(None, stand.submission(1, mode=mode))
    assert states(stand) == records
    assert stand.engine.queue_list(None, False, (), 0).tickets == ()
    assert not file_of(stand).exists()
    for record in lines(stand):
        assert record.error is not None
        assert (record.error.type, record.error.details["file"]) == ("UserError", "fifo")
        assert record.outcome == "failed"


@pytest.mark.rule("C-236", "C-275")
@pytest.mark.parametrize("was_there", [False, True])
def test_a_ticket_that_cannot_be_stored_leaves_nothing(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, was_there: bool
) -> None:
    if was_there:
        run(stand)
    number = 2 if was_there else 1
    real = atomic.write_json

    def full(path: Path, value: object) -> None:
        if path.name.startswith("q-"):
            raise AjError("no space", code="cannot-write")
        real(path, value)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "write_json", full)
        with pytest.raises(AjError, match="no space"):
            stand.engine.submit(None, stand.submission(number))
    assert [path.name for path in stand.home.layout.tickets(KEY).glob("q-*")] == ([f"q-{ID}.json"] * was_there)
    archives = list(stand.home.layout.code.glob("*.tar.gz"))
    assert len(archives) == was_there  # what was there before stays
    answer = stand.engine.submit(None, stand.submission(number))
    assert answer.ticket.state is TicketState.QUEUED


def test_what_the_user_should_know_of_the_selection_is_told(stand: Stand) -> None:
    stand.pack.warnings = ("`.codeignore:3`: can never act",)
    assert stand.engine.submit(None, stand.submission(1)).warnings == ("`.codeignore:3`: can never act",)


@pytest.mark.rule("C-222")
def test_a_daemon_that_is_about_to_leave_accepts_nothing(stand: Stand) -> None:
    stand.engine.begin_drain()
    with pytest.raises(AjError) as caught:
        stand.engine.submit(None, stand.submission(1))
    assert (type(caught.value).__name__, caught.value.code) == ("DaemonError", "retiring")


# What git knows


def git(*words: str, cwd: Path) -> str:
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    env = {**os.environ, **who, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    return subprocess.run(["git", *words], cwd=cwd, env=env, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.rule("C-232", "T26")
def test_the_commit_and_whether_the_tree_was_changed_are_recorded(stand: Stand, programs: None) -> None:
    git("init", "-q", cwd=stand.tree)
    git("add", ".", cwd=stand.tree)
    git("commit", "-qm", "x", cwd=stand.tree)
    commit = git("rev-parse", "HEAD", cwd=stand.tree)
    index = (stand.tree / ".git" / "index").read_bytes()
    assert run(stand).git == {"commit": commit, "dirty": False}
    (stand.tree / "new.py").write_text("")
    stand.engine.submit(None, stand.submission(2, mode=Mode.DIRECT))
    stand.engine.submission(None, nouns.aj_id(2), 10)
    assert [record.git for record in lines(stand)] == [
        *[{"commit": commit, "dirty": False}] * 2,
        *[{"commit": commit, "dirty": True}] * 2,
    ]
    assert (stand.tree / ".git" / "index").read_bytes() == index


def test_a_new_repository_has_no_commit(stand: Stand, programs: None) -> None:
    git("init", "-q", cwd=stand.tree)
    assert run(stand).git == {"commit": None, "dirty": True}


def test_without_git_or_with_a_broken_one_nothing_is_recorded(stand: Stand, programs: None) -> None:
    (stand.tree / ".git").write_text("nonsense")
    assert run(stand).git is None
    assert [record.git for record in lines(stand)] == [None, None]


def test_git_runs_no_program_of_the_repository(stand: Stand, programs: None) -> None:
    git("init", "-q", cwd=stand.tree)
    hook = stand.home.root / "hook.sh"
    hook.write_text(f"#!/bin/sh\ntouch {stand.home.root}/ran\n")
    hook.chmod(0o755)
    git("config", "core.fsmonitor", str(hook), cwd=stand.tree)
    assert run(stand).git is not None
    assert not (stand.home.root / "ran").exists()


# Carrying out


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


def test_errors_are_kept_without_secrets_and_with_their_place() -> None:
    error = Refused(
        "no: https://x/?sig=abcdefgh",
        place=Place("f", 3, 4),
        details={"path": Path("/x"), "n": 1, "bad": float("nan"), "said": "Bearer abcdefghijkl"},
    )
    fault = submit.fault_of(error)
    assert fault.message == "no: https://x/?sig=***"
    assert fault.details == {
        "path": "/x",
        "n": 1,
        "bad": "nan",
        "said": "Bearer ***",
        "file": "f",
        "line": 3,
        "column": 4,
    }


@pytest.mark.rule("C-238", "C-273")
def test_a_project_of_another_daemon_takes_no_submission(stand: Stand) -> None:
    other = lock.own(stand.home.layout.ownership(KEY), "socket /elsewhere")
    with pytest.raises(Refused) as caught:
        stand.engine.submit(None, stand.submission(1))
    assert caught.value.exit_code == 5
    assert {"pid", "host", "since", "note"} <= caught.value.details.keys()
    assert "/elsewhere" in caught.value.message
    assert not stand.home.layout.code.exists()
    other.release()
    assert run(stand).state is TicketState.COMPLETED
