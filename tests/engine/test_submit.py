"""Accepting is durable before it is told, happens once for a call however often it is made, or not at all."""

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
    Place,
    Refused,
    UserError,
)
from aj.model.record import Record
from aj.model.ticket import Mode, Outcome, Ticket, TicketState
from aj.store import atomic, journal, jsonl, lock
from aj.store.queue import Tickets
from aj.wire import codec
from tests.conftest import Home, MovedClock
from tests.engine.stand import BARE, FAR, NEAR, SHUT, Held, Stand, raising
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


@pytest.mark.rule("C-191")
def test_whether_the_very_same_code_was_kept_already_is_told(stand: Stand) -> None:
    asked = [stand.submission(at, service=service) for at, service in enumerate((NEAR, NEAR, BARE, FAR), start=1)]
    assert [stand.engine.submit(None, one).ticket.code_reused for one in asked] == [False, True, None, None]
    (stand.tree / "train.py").write_text("print('edited')\n")
    assert stand.engine.submit(None, stand.submission(5, service=NEAR)).ticket.code_reused is False
    assert stand.engine.submission(None, nouns.aj_id(2), 10).ticket.code_reused is True


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
