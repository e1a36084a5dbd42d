"""The journal keeps every line, folds them by id, and is read whatever became of its writer."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from aj.model.job import Shape
from aj.model.record import RecordState
from aj.model.ticket import Fault, TicketState
from aj.store import journal, lock
from aj.store.queue import Tickets
from tests.conftest import Home
from tests.store import nouns

KEY = "project-000000000000"


def read(home: Home) -> tuple[list[tuple[str, str]], list[str]]:
    damaged: list[str] = []
    found = journal.read(home.layout, KEY, damaged.append)
    return [(record.id[-1], record.state.value) for record in found], damaged


def put(home: Home, number: int, state: RecordState = RecordState.SUBMITTED, **more: object) -> str | None:
    return journal.append(home.layout, KEY, nouns.record(number, state, **more))


def test_there_is_nothing_before_the_first_submission(home: Home) -> None:
    assert read(home) == ([], [])
    assert journal.keys(home.layout) == []
    assert not home.layout.state.exists()


@pytest.mark.rule("C-231", "C-232")
def test_a_record_is_read_as_it_was_written(home: Home) -> None:
    made = nouns.record(
        1,
        shape=Shape(2, 8, 1, 8),
        code=nouns.CODE,
        git={"commit": "c0ffee", "dirty": True},
        error=Fault("Refused", "no", "said no", "ask again", {"status": 409}),
        target={"name": "pool", "queue": None},
        env_names=("A", "B"),
        command="python train.py",
        outcome="submitted",
    )
    assert journal.append(home.layout, KEY, made) is None
    assert journal.read(home.layout, KEY, lambda _: None) == [made]
    assert list(journal.newest(home.layout, KEY, lambda _: None)) == [made]
    (line,) = home.layout.journal(KEY).read_text().splitlines()
    assert set(json.loads(line)) >= {
        *("schema_version", "ts", "id", "ticket", "mode", "state", "outcome", "project", "template", "service"),
        *("name", "azure_name", "portal_url", "experiment", "target", "sku", "shape", "image", "command"),
        *("env_names", "code", "git", "error", "note", "agent", "session", "version"),
    }
    assert stat.S_IMODE(home.layout.journal(KEY).stat().st_mode) == 0o600
    assert journal.keys(home.layout) == [KEY]


@pytest.mark.rule("C-233")
def test_the_last_line_of_an_id_holds_in_the_place_of_its_first(home: Home) -> None:
    for number, state in [
        (1, RecordState.INTENDED),
        (2, RecordState.INTENDED),
        (1, RecordState.UNKNOWN),
        (2, RecordState.FAILED),
        (3, RecordState.INTENDED),
        (1, RecordState.SUBMITTED),
        (3, RecordState.SUBMITTED),
    ]:
        put(home, number, state)
    assert read(home)[0] == [("1", "submitted"), ("2", "failed"), ("3", "submitted")]
    assert [record.id[-1] for record in journal.newest(home.layout, KEY, lambda _: None)] == ["3", "2", "1"]
    found = journal.last(home.layout, KEY, [nouns.aj_id(1), nouns.aj_id(9)])
    assert {aj_id: record.state for aj_id, record in found.items()} == {nouns.aj_id(1): RecordState.SUBMITTED}
    assert len(home.layout.journal(KEY).read_bytes().splitlines()) == 7  # nothing was rewritten


@pytest.mark.rule("C-233")
def test_an_intention_without_an_end_is_unknown_unless_its_worker_lives(home: Home) -> None:
    box = Tickets(home.layout, KEY)
    box.add(nouns.ticket(1))
    box.change("q-00000001", state=TicketState.RUNNING)
    put(home, 1, RecordState.INTENDED, azure_name="there")
    assert read(home)[0] == [("1", "unknown")]
    (record,) = journal.read(home.layout, KEY, lambda _: None)
    assert record.azure_name == "there"
    assert record.note is not None
    assert "aj queue reconcile q-00000001" in record.note
    owner = lock.own(home.layout.ownership(KEY), "")
    assert read(home)[0] == [("1", "intended")]
    box.hold("q-00000001", detail="only in memory")
    box.change("q-00000001", state=TicketState.FAILED, outcome="unknown")  # type: ignore[arg-type]
    assert read(home)[0] == [("1", "unknown")]  # its worker is done
    box.change("q-00000001", detail="x")
    owner.release()
    assert read(home)[0] == [("1", "unknown")]
    put(home, 1, RecordState.SUBMITTED)
    assert read(home)[0] == [("1", "submitted")]


@pytest.mark.rule("C-279")
def test_half_a_line_at_the_end_is_no_matter(home: Home) -> None:
    put(home, 1)
    with home.layout.journal(KEY).open("ab") as out:
        out.write(b'{"id":"0000')
    assert read(home) == ([("1", "submitted")], [])
    put(home, 2)
    assert read(home) == ([("1", "submitted"), ("2", "submitted")], [])


@pytest.mark.rule("C-231", "C-280")
def test_garbage_in_the_middle_is_named_and_hides_nothing(home: Home) -> None:
    put(home, 1)
    with home.layout.journal(KEY).open("ab") as out:
        out.write(b'garbage\n{"id":5}\n{"id":"00000007","state":"dreaming"}\n')
    put(home, 2)
    found, damaged = read(home)
    assert found == [("1", "submitted"), ("2", "submitted")]
    path = home.layout.journal(KEY)
    assert sorted(damaged) == [f"{path}:{number}" for number in (2, 3, 4)]


@pytest.mark.rule("C-231", "C-280")
def test_an_end_that_cannot_be_read_leaves_the_line_before_it(home: Home) -> None:
    put(home, 1, RecordState.INTENDED)
    put(home, 1, RecordState.SUBMITTED)
    path = home.layout.journal(KEY)
    whole = path.read_bytes()
    for broken in (
        whole.splitlines()[1].replace(b'"submitted"', b'"dreaming"'),
        whole.splitlines()[1][:-25] + b"}",
        whole.splitlines()[1][:-25],
        b'{"id":"00000001"}',
        b'{"ts":"","id":"00000001",}',
    ):
        path.write_bytes(whole + broken + b"\n")
        assert read(home) == ([("1", "submitted")], [f"{path}:3"])
        assert [record.state.value for record in journal.newest(home.layout, KEY, lambda _: None)] == ["submitted"]


def test_lines_that_another_program_wrote_are_read(home: Home) -> None:
    put(home, 1)
    path = home.layout.journal(KEY)
    spaced = json.dumps(json.loads(path.read_bytes()), sort_keys=True).replace("00000001", "00000002")
    with path.open("a") as out:
        out.write(spaced + "\r\n")
    assert read(home) == ([("1", "submitted"), ("2", "submitted")], [])
    assert journal.KnownIds(home.layout).holds(nouns.aj_id(2))


@pytest.mark.rule("C-281")
def test_a_wide_journal_is_narrowed_with_a_warning(home: Home) -> None:
    put(home, 1)
    home.layout.journal(KEY).chmod(0o644)
    warning = put(home, 2)
    assert warning is not None
    assert str(home.layout.journal(KEY)) in warning
    assert put(home, 3) is None
    assert stat.S_IMODE(home.layout.journal(KEY).stat().st_mode) == 0o600


WRITER = """
import sys
from pathlib import Path
from aj.base import paths, settings
from aj.store import journal
from aj.store.layout import Layout
from tests.store import nouns

layout = Layout(paths.folders(settings.read()))
first = int(sys.argv[1])
sys.stdin.readline()
for number in range(first, first + 10):
    journal.append(layout, sys.argv[2], nouns.record(number))
"""


@pytest.mark.rule("C-231")
def test_sixteen_processes_at_once_lose_no_line(home: Home, programs: None) -> None:
    house = Path(__file__).resolve().parents[2]
    children = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(first), KEY],
            stdin=subprocess.PIPE,
            cwd=house,
            env={**os.environ, **home.env, "PYTHONPATH": str(house)},
        )
        for first in range(0, 160, 10)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.flush()
    assert [child.wait(60) for child in children] == [0] * 16
    for child in children:
        assert child.stdin is not None
        child.stdin.close()
    damaged: list[str] = []
    found = journal.read(home.layout, KEY, damaged.append)
    assert damaged == []
    assert sorted(int(record.id, 16) for record in found) == list(range(160))
    for first in range(0, 160, 10):  # each writer's lines stand in its own order
        own = [int(record.id, 16) for record in found if first <= int(record.id, 16) < first + 10]
        assert own == list(range(first, first + 10))


@pytest.mark.rule("C-149")
def test_an_id_is_taken_wherever_it_stands(home: Home) -> None:
    known = journal.KnownIds(home.layout)
    assert not known.holds(nouns.aj_id(1))
    put(home, 1)
    assert known.holds(nouns.aj_id(1))
    assert not known.holds(nouns.aj_id(2))
    journal.append(home.layout, "another", nouns.record(2))
    put(home, 3, RecordState.FAILED)
    assert known.holds(nouns.aj_id(2))
    assert known.holds(nouns.aj_id(3))
    with home.layout.journal(KEY).open("ab") as out:
        out.write(b'{"id":"00000004"')  # not a whole line yet
    assert not known.holds(nouns.aj_id(4))
    put(home, 5)
    assert known.holds(nouns.aj_id(5))
    Tickets(home.layout, "third").add(nouns.ticket(6))
    assert known.holds(nouns.aj_id(6))
    home.layout.ticket("third", "q-00000006").rename(home.layout.tickets("third") / "q-00000006.json.damaged-1")
    assert known.holds(nouns.aj_id(6))
    home.layout.job(nouns.aj_id(7)).mkdir(parents=True)
    assert known.holds(nouns.aj_id(7))


def test_a_journal_is_read_only_where_it_grew(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    known = journal.KnownIds(home.layout)
    put(home, 1)
    known.holds("0" * 8)
    opened: list[str] = []
    real = Path.open

    def spy(path: Path, *arguments: object, **more: object) -> object:
        opened.append(path.name)
        return real(path, *arguments, **more)  # type: ignore[call-overload]

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", spy)
        known.holds("0" * 8)
        assert opened == []
        put(home, 2)
        assert known.holds(nouns.aj_id(2))
        assert opened == [f"{KEY}.jsonl"]
