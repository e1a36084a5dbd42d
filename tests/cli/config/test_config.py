"""aj config: read with its sources, write with its checks."""

from __future__ import annotations

import re

import pytest

from aj.cli import words
from aj.store import keys
from tests.cli.conftest import Shell


@pytest.mark.rule("C-046", "C-083", "C-085")
def test_every_setting_with_its_source(aj: Shell) -> None:
    aj.write(".azure_jobs/aj.toml", '# mine\n\ntemplate = "gpu"\n')
    aj("config", "set", "--user", "color", "never")
    found = {item["key"]: item for item in aj("config", "show", "--json", AJ_EXPERIMENT="e1").json["items"]}
    assert (found["template"]["source"], found["template"]["line"]) == ("project", 3)
    assert (found["color"]["value"], found["color"]["source"]) == ("never", "user")
    assert (found["experiment"]["value"], found["experiment"]["file"]) == ("e1", "AJ_EXPERIMENT")
    assert (found["output"]["value"], found["output"]["source"]) == ("table", "default")
    row = next(line for line in aj("config", "show").out.splitlines() if line.startswith("template\t"))
    assert row.split("\t")[:4] == ["template", "gpu", "project", ".azure_jobs/aj.toml:3"]


@pytest.mark.rule("C-046", "C-082")
def test_set_get_unset(aj: Shell) -> None:
    assert aj("config", "get", "experiment").out == ""
    assert aj("config", "set", "experiment", "base-line").out == "base-line\n"
    assert aj("config", "get", "experiment").out == "base-line\n"
    assert aj("config", "experiment").out == "base-line\n"
    assert aj("config", "unset", "experiment").out == "experiment is no longer set\n"
    assert aj("config", "unset", "experiment", "--json").json["status"] == "noop"


@pytest.mark.rule("C-331", "C-086", "C-087", "C-046")
@pytest.mark.parametrize(
    "words",
    [
        ("timezone", "Mars/X"),
        ("experiment", "  "),
        ("experiment", "-x"),
        ("set", "dashboard.page_size", "201"),
        ("set", "output", "xml"),
        ("set", "tempalte", "x"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_written(aj: Shell, words: tuple[str, ...]) -> None:
    seen = aj("config", *words, "--json")
    assert (seen.code, seen.json["error"]["type"]) == (2, "OptionError")
    assert not (aj.directory / ".azure_jobs/aj.toml").exists()


@pytest.mark.rule("C-046")
def test_an_unknown_setting_is_not_found(aj: Shell) -> None:
    seen = aj("config", "get", "tempalte")
    assert (seen.code, seen.err) == (3, "aj: no setting is called `tempalte`\nhint: `template` is the nearest name\n")


@pytest.mark.rule("C-085")
def test_an_unknown_key_in_a_file_is_a_warning(aj: Shell) -> None:
    aj.write(".azure_jobs/aj.toml", 'tempalte = "x"\n')
    seen = aj("config", "show")
    assert seen.code == 0
    assert seen.err == "aj: warning: .azure_jobs/aj.toml:1: unknown setting `tempalte`; did you mean `template`?\n"


@pytest.mark.rule("C-086", "C-056")
def test_the_time_zone_of_tables(aj: Shell) -> None:
    from tests.cli import seed

    seed.write_journal(aj.home, aj.home.project().key, seed.record("00000001"))
    aj("config", "timezone", "Asia/Tokyo")
    assert aj("list").rows[0][4] == "2026-09-21T23:13:20+09:00"
    aj.write(".azure_jobs/aj.toml", 'timezone = "Mars/X"\n')
    seen = aj("list")
    assert seen.code == 0
    assert "timezone: `Mars/X` is no time zone of this machine; the system's is used" in seen.err
    assert aj("config", "show").code == 2


@pytest.mark.rule("C-046")
def test_the_files(aj: Shell) -> None:
    aj.write(".azure_jobs/aj.toml", "")
    rows = aj("config", "path").rows
    assert [(row[0], row[1]) for row in rows] == [("project", "yes"), ("user", "no")]
    assert rows[0][2] == str(aj.directory / ".azure_jobs/aj.toml")


@pytest.mark.rule("C-085")
def test_a_setting_of_the_user_in_a_project_is_a_warning(aj: Shell) -> None:
    aj.write(".azure_jobs/aj.toml", "[local]\nslots = 1\n")
    aj("config", "set", "--user", "local.slots", "3")
    seen = aj("config", "show", "--json")
    slots = next(item for item in seen.json["items"] if item["key"] == "local.slots")
    assert (seen.code, slots["value"], slots["source"]) == (0, 3, "user")
    assert aj("config", "show").err == (
        "aj: warning: .azure_jobs/aj.toml:2: `local.slots` is a setting of the user: it has no effect here;"
        " `aj config set --user local.slots 1`\n"
    )


@pytest.mark.rule("C-083", "C-085")
def test_what_a_setting_means_is_told_when_it_is_set(aj: Shell) -> None:
    seen = aj("config", "set", "local.slots", "3", "--json")
    error = seen.json["error"]
    assert (seen.code, error["type"], error["hint"]) == (2, "OptionError", "`aj config set --user local.slots 3`")
    assert not (aj.directory / ".azure_jobs/aj.toml").exists()
    assert aj("config", "set", "--user", "local.slots", "3").err == (
        "a running daemon takes it after `aj daemon restart`\n"
    )
    assert aj("config", "set", "template", "nope", "--json").json["warnings"][0]["code"] == "no-template"
    aj.template("there", "base:\nconfig: {}\n")
    assert aj("config", "set", "template", "there").err == ""


@pytest.mark.rule("C-046")
def test_settings_name_commands_that_are_there() -> None:
    for key in keys.KEYS.values():
        for typed in re.findall(r"`aj ([a-z -]+)`", key.says):
            assert words.find(typed.split()).command is not None, typed
