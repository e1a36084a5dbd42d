"""Tables: fitted to a terminal, complete in a pipe, and never a way for data to drive the terminal."""

from __future__ import annotations

from datetime import UTC

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.view import table
from aj.view.document import Column, Form, Item, listing, single
from aj.view.table import Look
from aj.view.times import Times

NOW = 1_800_000_000.0
AT = "2027-01-15T08:00:00.000000Z"  # NOW, as machines read it
COLUMNS = (
    Column("id", form=Form.ID),
    Column("state", form=Form.STATE),
    Column("size", "size_bytes", Form.SIZE),
    Column("age", "at", Form.AGE),
    Column("words", flexible=True),
)
ROWS: list[Item] = [
    {"id": "1a2b3c4d", "state": "running", "size_bytes": 2048, "at": "2027-01-15T07:58:20.000000Z", "words": "x" * 60},
    {"id": "5e6f7a8b", "state": "failed", "size_bytes": None, "at": AT, "words": "short"},
]


def look(width: int | None, colour: bool = False) -> Look:
    return Look(Times(NOW, UTC), width, colour)


def lines(width: int | None, colour: bool = False, rows: list[Item] = ROWS) -> list[str]:
    return table.render(listing("x", rows, COLUMNS, noun="things"), look(width, colour)).split("\n")[:-1]


@pytest.mark.rule("C-060")
def test_a_terminal_shortens_the_flexible_column_only() -> None:
    assert lines(50) == [
        "id        state       size  age    words",
        "1a2b3c4d  running  2.0 KiB  1m40s  xxxxxxxxxxxxxx…",
        "5e6f7a8b  failed            0s     short",
    ]


@pytest.mark.rule("C-060")
def test_ids_are_never_shortened() -> None:
    assert lines(10)[1].startswith("1a2b3c4d  running  2.0 KiB  1m40s  xxxxxxx…")


@pytest.mark.rule("C-060")
def test_a_pipe_gets_tabs_full_values_and_iso_times() -> None:
    assert lines(None) == [
        "id\tstate\tsize\tcreated\twords",
        "1a2b3c4d\trunning\t2048\t2027-01-15T07:58:20+00:00\t" + "x" * 60,
        "5e6f7a8b\tfailed\t\t2027-01-15T08:00:00+00:00\tshort",
    ]


@pytest.mark.rule("C-061")
def test_colour_only_repeats_the_word() -> None:
    import re

    for width in (50, None):
        coloured = lines(width, colour=True)
        assert "\x1b[32mrunning\x1b[0m" in coloured[1]
        assert "\x1b[31mfailed\x1b[0m" in coloured[2]
        assert [re.sub("\x1b\\[[0-9]+m", "", line) for line in coloured] == lines(width)


@pytest.mark.rule("C-059", "C-298")
@pytest.mark.parametrize("width", [None, 100])
@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("[/x]", "[/x]"),
        ("[red]", "[red]"),
        ("[rank0]: Traceback", "[rank0]: Traceback"),
        ("a\nb\tc", "a\\x0ab\\x09c"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("\x9b2J", "\\x9b2J"),
        ("\u202eabc", "\\u202eabc"),
    ],
)
def test_data_is_never_markup(width: int | None, data: str, shown: str) -> None:
    rows: list[Item] = [{"id": data, "state": "", "size_bytes": None, "at": None, "words": data}]
    body = lines(width, rows=rows)[1]
    assert body.startswith(shown)
    assert body.endswith(shown)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(), min_size=1, max_size=4), st.integers(1, 200) | st.none())
def test_a_row_stays_one_line(words: list[str], width: int | None) -> None:
    rows: list[Item] = [{"id": word, "state": word, "size_bytes": 1, "at": word, "words": word} for word in words]
    assert len(lines(width, rows=rows)) == len(words) + 1


@pytest.mark.parametrize(("words", "cells"), [("abc", 3), ("日本", 4), ("é", 1), ("e\u0301", 1), ("", 0), ("…", 1)])
def test_width_counts_cells(words: str, cells: int) -> None:
    assert table.width(words) == cells


def test_wide_text_is_cut_by_cells() -> None:
    assert table.shortened("日本日本日本", 5) == "日本…"
    assert table.shortened("abc", 3) == "abc"


def test_one_thing_is_one_line_a_field_and_empty_fields_are_left_out() -> None:
    document = single("x", ROWS[1], COLUMNS)
    assert table.render(document, look(80)) == "id     5e6f7a8b\nstate  failed\nage    0s\nwords  short\n"
    assert table.render(document, look(None)) == (
        "id\t5e6f7a8b\nstate\tfailed\ncreated\t2027-01-15T08:00:00+00:00\nwords\tshort\n"
    )


def test_a_column_looks_into_mappings() -> None:
    column = Column("name", "target.name")
    assert column.of({"target": {"name": "a"}}) == "a"
    assert column.of({"target": None}) is None
    assert column.of({}) is None


@pytest.mark.parametrize(
    ("value", "form", "wide", "piped"),
    [
        (True, Form.TEXT, "yes", "yes"),
        (["a", "b"], Form.TEXT, "a, b", "a, b"),
        (90.0, Form.SECONDS, "1m30s", "1m30s"),
        (3, Form.NUMBER, "3", "3"),
        ("no time", Form.AGE, "no time", "no time"),
        (AT, Form.TIME, "2027-01-15T08:00:00+00:00", "2027-01-15T08:00:00+00:00"),
    ],
)
def test_values_of_one_thing_are_written_by_their_form(value: object, form: Form, wide: str, piped: str) -> None:
    for width, due in ((80, wide), (None, piped)):
        document = single("x", {"it": value}, (Column("it", form=form),))  # type: ignore[dict-item]
        assert table.render(document, look(width)).split()[1:] == due.split()


@pytest.mark.rule("C-060")
def test_a_list_off_a_terminal_keeps_whole_numbers() -> None:
    columns = (Column("took", form=Form.SECONDS), Column("size", form=Form.SIZE))
    found = listing("x", [{"took": 90.5, "size": 2048}], columns, noun="things")
    assert table.render(found, look(None)) == "took_s\tsize\n90.5\t2048\n"
    assert table.render(found, look(80)).split() == ["took", "size", "1m30s", "2.0", "KiB"]


@pytest.mark.rule("C-060")
def test_seconds_have_their_unit_in_the_title_or_in_the_cell() -> None:
    columns = (Column("id"), Column("duration", "duration_s", Form.SECONDS))
    for seconds, cell in ((0.359, "0.4s"), (9.96, "10.0s"), (10.4, "10s"), (0, "0s"), (75.2, "1m15s")):
        document = listing("x", [{"id": "a", "duration_s": seconds}], columns, noun="things")
        assert table.render(document, look(80)).splitlines()[1].split() == ["a", cell]
        assert table.render(document, look(None)).splitlines() == ["id\tduration_s", f"a\t{seconds}"]
