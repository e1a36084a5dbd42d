"""The terminal: the answer alone on stdout, talk on stderr, and one document whatever happens."""

from __future__ import annotations

import io
import json
import os
import zoneinfo
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import pytest
import yaml

from aj.base.errors import AjError, NotFound, Place, Refused, TemplateError, UserError
from aj.base.settings import Settings
from aj.view.document import Column, Document, Form, listing, result, single
from aj.view.screen import Format, Screen, Streams, Taste

COLUMNS = (Column("id", form=Form.ID), Column("state", form=Form.STATE))
LIST = listing(
    "thing.list", [{"id": "a", "state": "failed"}, {"id": "ü", "state": "ok"}], COLUMNS, noun="things", ids="id"
)
EMPTY = listing("thing.list", [], COLUMNS, noun="things", ids="id")


@dataclass
class Captured:
    """A screen with streams that can be read."""

    screen: Screen
    stdout: io.BytesIO = field(default_factory=io.BytesIO)
    stderr: io.BytesIO = field(default_factory=io.BytesIO)

    @property
    def out(self) -> str:
        return self.stdout.getvalue().decode()

    @property
    def err(self) -> str:
        return self.stderr.getvalue().decode()


def captured(
    chosen: str = "table", *, terminal: bool = False, asks: bool = False, stdout: BinaryIO | None = None, **env: str
) -> Captured:
    out, err = io.BytesIO(), io.BytesIO()
    streams = Streams(stdout or out, err, asks=asks, out_is_terminal=terminal, err_is_terminal=terminal)
    return Captured(Screen(streams, Settings(env), Format(chosen)), out, err)


@pytest.mark.rule("C-054", "C-055", "C-052")
def test_json_is_one_document() -> None:
    seen = captured("json")
    seen.screen.show(LIST)
    assert json.loads(seen.out) == {
        "schema_version": 1,
        "kind": "thing.list",
        "items": [{"id": "a", "state": "failed"}, {"id": "ü", "state": "ok"}],
        "truncated": False,
        "next_cursor": None,
        "warnings": [],
    }
    assert "ü" in seen.out
    assert seen.out.startswith('{\n  "schema_version": 1')
    assert seen.out.endswith("}\n")
    assert seen.err == ""


@pytest.mark.rule("C-054")
def test_yaml_is_the_same_document() -> None:
    as_json, as_yaml = captured("json"), captured("yaml")
    as_json.screen.show(LIST)
    as_yaml.screen.show(LIST)
    assert yaml.safe_load(as_yaml.out) == json.loads(as_json.out)


@pytest.mark.rule("C-054", "C-063")
@pytest.mark.parametrize(
    ("chosen", "full", "empty"),
    [
        ("jsonl", '{"id":"a","state":"failed"}\n{"id":"ü","state":"ok"}\n', ""),
        ("name", "a\nü\n", ""),
        ("table", "id\tstate\na\tfailed\nü\tok\n", ""),
    ],
)
def test_lines(chosen: str, full: str, empty: str) -> None:
    seen, none = captured(chosen), captured(chosen)
    seen.screen.show(LIST)
    none.screen.show(EMPTY)
    assert (seen.out, seen.err) == (full, "")
    assert none.out == empty
    assert none.err == ("no things\n" if chosen == "table" else "")


@pytest.mark.rule("C-054")
def test_lone_surrogates_are_escaped() -> None:
    seen = captured("json")
    seen.screen.show(single("thing", {"name": "a\udcff"}))
    assert '"a\\udcff"' in seen.out
    assert json.loads(seen.out)["item"]["name"] == "a\udcff"


@pytest.mark.rule("C-055")
def test_an_action_tells_what_it_did() -> None:
    seen = captured("json")
    seen.screen.show(result("cancel", [{"id": "a"}], status="noop"))
    found = json.loads(seen.out)
    assert (found["kind"], found["action"], found["status"], found["items"]) == (
        "result",
        "cancel",
        "noop",
        [{"id": "a"}],
    )


@pytest.mark.rule("C-052", "C-055", "C-065")
def test_warnings_go_to_stderr_once_and_into_the_document() -> None:
    seen = captured("json")
    seen.screen.quiet = True
    for _ in range(2):
        seen.screen.warn("odd line", code="odd", file="f", line=3)
    seen.screen.note("not wanted")
    seen.screen.show(EMPTY)
    assert seen.err == "aj: warning: f:3: odd line\n"
    assert json.loads(seen.out)["warnings"] == [{"code": "odd", "message": "odd line", "file": "f", "line": 3}]


@pytest.mark.rule("C-065")
def test_details_are_for_the_verbose() -> None:
    quiet, verbose = captured(), captured()
    verbose.screen.verbose = True
    for seen in (quiet, verbose):
        seen.screen.detail("from the cache")
    assert (quiet.err, verbose.err) == ("", "from the cache\n")


@pytest.mark.rule("C-057", "C-058", "T94")
def test_an_error_is_one_line_a_hint_and_one_document() -> None:
    seen = captured("json")
    seen.screen.error(
        NotFound("no template called `a`", hint="`aj template list`", details={"name": "a"}), [{"id": "x"}]
    )
    assert seen.err == "aj: no template called `a`\nhint: `aj template list`\n"
    assert json.loads(seen.out) == {
        "schema_version": 1,
        "error": {
            "type": "NotFound",
            "code": "not-found",
            "message": "no template called `a`",
            "hint": "`aj template list`",
            "retryable": False,
            "details": {"name": "a", "partial": [{"id": "x"}]},
        },
    }


def test_an_error_in_text_leaves_stdout_empty() -> None:
    for chosen in ("table", "name"):
        seen = captured(chosen)
        seen.screen.error(AjError("no"))
        assert (seen.out, seen.err) == ("", "aj: no\n")


@pytest.mark.rule("C-058")
def test_a_place_is_relative_to_where_one_stands() -> None:
    error = TemplateError("wrong", place=Place("/p/q/a.yaml", 3, 7))
    for here, due in (("/p", "q/a.yaml:3:7"), ("/z", "/p/q/a.yaml:3:7")):
        seen = captured("json")
        seen.screen.error(error, here=Path(here))
        assert seen.err == f"aj: {due}: wrong\n"
        assert json.loads(seen.out)["error"]["details"] == {"file": "/p/q/a.yaml", "line": 3, "column": 7}


@pytest.mark.rule("C-059", "C-299")
def test_what_a_program_wrote_is_exact_in_a_pipe_and_harmless_on_a_terminal() -> None:
    data = b"\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J \xff\n"
    piped, shown = captured(), captured(terminal=True)
    piped.screen.verbatim(data)
    shown.screen.verbatim(data)
    assert piped.stdout.getvalue() == data
    assert shown.out == "\x1b[31mred\x1b[0m \\x1b]0;title\\x07 \\x1b[2J \\xff\n"


@pytest.mark.rule("C-064")
def test_a_reader_that_has_gone_is_told_upwards() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb", buffering=0) as stdout:
        seen = captured(stdout=stdout)
        with pytest.raises(BrokenPipeError):
            seen.screen.show(LIST)
    closed = captured()
    closed.screen.streams.out = None
    with pytest.raises(BrokenPipeError):
        closed.screen.show(LIST)


@pytest.mark.rule("C-064")
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full, which only Linux has")
def test_a_full_disk_is_an_error_with_the_systems_words() -> None:
    with open("/dev/full", "wb", buffering=0) as stdout:
        seen = captured("json", stdout=stdout)
        with pytest.raises(AjError, match="cannot write to stdout: No space left on device") as raised:
            seen.screen.show(LIST)
        assert raised.value.exit_code == 1


def test_nobody_listening_on_stderr_stops_nothing() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    seen = captured()
    with os.fdopen(writing, "wb", buffering=0) as stderr:
        seen.screen.streams.err = stderr
        seen.screen.note("hello")
        seen.screen.show(LIST)
    assert seen.out.startswith("id\tstate\n")


@pytest.mark.rule("C-006", "C-065", "C-072")
def test_without_a_terminal_a_question_is_a_refusal() -> None:
    seen = captured()
    with pytest.raises(Refused) as raised:
        seen.screen.confirm("delete 1a2b3c4d", yes=False)
    assert raised.value.hint == "add `--yes`"
    with pytest.raises(UserError, match="no terminal to ask on") as asked:
        seen.screen.ask("experiment", "--experiment NAME")
    assert asked.value.hint == "give `--experiment NAME`"
    seen.screen.confirm("delete 1a2b3c4d", yes=True)
    assert seen.err == ""


@pytest.mark.rule("C-065")
@pytest.mark.parametrize(
    ("typed", "agreed"), [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("", False)]
)
def test_only_a_yes_is_a_yes(monkeypatch: pytest.MonkeyPatch, typed: str, agreed: bool) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    seen = captured(asks=True)
    if agreed:
        seen.screen.confirm("delete it", yes=False)
    else:
        with pytest.raises(Refused, match="the answer was not yes"):
            seen.screen.confirm("delete it", yes=False)
    assert (seen.out, seen.err) == ("", "delete it [y/N]: ")


@pytest.mark.rule("C-065", "C-091")
def test_nobody_is_asked_who_does_not_want_it() -> None:
    for seen in (captured(asks=True, AJ_NO_INPUT="1"), captured(asks=True)):
        seen.screen.no_input = seen.screen.settings.get("AJ_NO_INPUT") is None
        assert not seen.screen.may_ask


@pytest.mark.rule("C-062")
@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_a_line_and_never_moves_the_cursor(terminal: bool) -> None:
    seen, quiet = captured(terminal=terminal), captured(terminal=terminal)
    quiet.screen.quiet = True
    for one in (seen, quiet):
        one.screen.progress("packing")
        one.screen.progress("sending\x1b[1A")
    assert seen.err == "packing\nsending\\x1b[1A\n"
    assert quiet.err == ""


@pytest.mark.rule("C-061")
@pytest.mark.parametrize(
    ("terminal", "env", "no_color", "taste", "due"),
    [
        (True, {}, False, "auto", True),
        (False, {}, False, "auto", False),
        (True, {"NO_COLOR": "1"}, False, "auto", False),
        (True, {"NO_COLOR": ""}, False, "auto", True),
        (True, {"TERM": "dumb"}, False, "auto", False),
        (True, {}, False, "never", False),
        (True, {}, True, "auto", False),
        (False, {"FORCE_COLOR": "1"}, False, "auto", True),
        (False, {"CLICOLOR_FORCE": "1"}, False, "auto", True),
        (False, {"FORCE_COLOR": "1"}, True, "auto", False),
    ],
)
def test_colour(terminal: bool, env: dict[str, str], no_color: bool, taste: str, due: bool) -> None:
    seen = captured(terminal=terminal, COLUMNS="80", **env)
    seen.screen.no_color = no_color
    seen.screen.taste = lambda: Taste(None, taste)
    seen.screen.show(LIST)
    assert ("\x1b[" in seen.out) is due


@pytest.mark.rule("C-061")
@pytest.mark.parametrize("chosen", ["json", "jsonl", "yaml", "name"])
def test_machines_get_no_colour(chosen: str) -> None:
    seen = captured(chosen, terminal=True, FORCE_COLOR="1")
    seen.screen.show(LIST)
    assert "\x1b" not in seen.out


@pytest.mark.rule("C-060")
def test_the_width_is_that_of_the_terminal() -> None:
    assert captured(terminal=True, COLUMNS="61").screen.look().width == 61
    assert captured(terminal=True, COLUMNS="nonsense").screen.look().width == 80
    assert captured(terminal=False, COLUMNS="61").screen.look().width is None


@pytest.mark.rule("C-066")
@pytest.mark.usefixtures("programs")
def test_a_long_page_goes_through_the_pager_of_a_terminal(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    pager = tmp_path / "my pager"
    pager.write_text(f'#!/bin/sh\ncat "$1" > {kept}\n')
    pager.chmod(0o755)
    page = Document("help", {}, text="\n".join(["line"] * 200))
    seen = captured(terminal=True, PAGER=f"'{pager}'", PATH=os.environ["PATH"])
    seen.screen.page(page)
    assert (seen.out, kept.read_text()) == ("", page.text)


@pytest.mark.rule("C-066")
@pytest.mark.parametrize(("terminal", "pager"), [(False, "less"), (True, "cat"), (True, ""), (True, "no-such-program")])
def test_elsewhere_a_page_is_printed(terminal: bool, pager: str) -> None:
    seen = captured(terminal=terminal, PAGER=pager, PATH=os.environ["PATH"])
    seen.screen.page(Document("help", {}, text="\n".join(["line"] * 200)))
    assert seen.out.count("line\n") == 200


@pytest.mark.rule("C-056")
def test_moments_are_local_on_a_terminal_only() -> None:
    at = "2027-01-15T08:00:00.123456Z"
    zone = zoneinfo.ZoneInfo("Asia/Tokyo")
    for terminal, form, due in (
        (True, Format.TABLE, "2027-01-15T17:00:00+09:00"),
        (False, Format.TABLE, at),
        (True, Format.JSONL, at),
    ):
        streams = Streams(io.BytesIO(), io.BytesIO(), out_is_terminal=terminal)
        assert Screen(streams, Settings(), form, taste=lambda: Taste(zone)).moment(at) == due
