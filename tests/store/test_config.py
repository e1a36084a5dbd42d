"""Settings come from the nearest layer, wrong ones disturb only who needs them, and writing keeps all else."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from aj.base.errors import ConfigError, OptionError
from aj.base.paths import Project
from aj.store import config, keys
from aj.store.config import Config
from tests.conftest import Home


@pytest.fixture
def project(home: Home) -> Project:
    return home.project()


def user(home: Home, text: str) -> Path:
    home.layout.user_settings.parent.mkdir(parents=True, exist_ok=True)
    home.layout.user_settings.write_text(text)
    return home.layout.user_settings


def own(project: Project, text: str, name: str = "aj.toml") -> Path:
    (project.directory / name).write_text(text)
    return project.directory / name


def put(home: Home, project: Project, key: str, text: str) -> Path:
    """Write the file in which a key counts."""
    return user(home, text) if keys.KEYS[key].scope is keys.Scope.USER else own(project, text)


def read(home: Home, project: Project | None) -> Config:
    return config.read(home.layout, project)


# Layers


@pytest.mark.rule("C-085")
def test_every_key_has_its_default_and_a_meaning(home: Home, project: Project) -> None:
    found = read(home, project)
    assert {setting.key: setting.value for setting in found.all()} == {
        "template": None,
        "experiment": None,
        "timezone": "system",
        "output": "table",
        "color": "auto",
        "workspace.subscription_id": None,
        "workspace.resource_group": None,
        "workspace.name": None,
        "cloud": "public",
        "tenant": None,
        "quota.max_age": "10m",
        "sing.placeholder_image": None,
        "storage.allow_account_key": False,
        "template_repo": None,
        "dashboard.page_size": 50,
        "daemon.idle": "1h",
        "logs.keep": "1Mi",
        "code.max_bytes": "5000Mi",
        "retention.dry_runs": 50,
        "retention.queue": 200,
        "retention.work": "30d",
        "retention.jobs": "90d",
        "local.slots": os.cpu_count(),
        "local.gpus": None,
        "local.pass_env": [],
    }
    assert {setting.source for setting in found.all()} == {"default"}
    assert all(key.says for key in keys.KEYS.values())
    for setting in found.all():
        config.checked(setting)
    assert found.seconds("daemon.idle") == 3600
    assert found.number("code.max_bytes") == 5000 * 2**20
    assert found.words("local.pass_env") == ()
    assert not home.layout.user_settings.exists()


@pytest.mark.rule("C-083", "T92")
def test_the_nearest_layer_wins_key_by_key(home: Home, project: Project) -> None:
    file = own(project, 'template = "mine"\n[workspace]\nname = "w"\n')
    other = user(home, 'template = "yours"\noutput = "json"\n[workspace]\nresource_group = "g"\n')
    found = read(home, project)
    assert found.template == "mine"
    assert found.output == "json"
    assert (found.text("workspace.name"), found.text("workspace.resource_group")) == ("w", "g")
    assert str(found.setting("template").place) == f"{file}:1"
    assert str(found.setting("workspace.name").place) == f"{file}:3"
    assert str(found.setting("workspace.resource_group").place) == f"{other}:4"
    sources = [found.setting(key).source for key in ("template", "output", "color")]
    assert sources == ["project", "user", "default"]
    assert read(home, None).template == "yours"


@pytest.mark.rule("C-083")
def test_what_only_the_daemon_reads_is_taken_from_the_user_alone(home: Home, project: Project) -> None:
    file = own(project, '[local]\nslots = 1\npass_env = ["A"]\n[retention]\nwork = "1d"\ndry_runs = 7\n')
    other = user(home, "[local]\nslots = 3\n")
    found = read(home, project)
    setting = found.setting("local.slots")
    assert (setting.value, setting.source, str(setting.place)) == (3, "user", f"{other}:2")
    assert (found.setting("retention.work").source, found.seconds("retention.work")) == ("default", 30 * 86400)
    assert (found.words("local.pass_env"), found.number("retention.dry_runs")) == (("A",), 7)
    assert [(str(error), error.hint) for error in found.misplaced()] == [
        (
            f"{file}:2: `local.slots` is a setting of the user: it has no effect here",
            "`aj config set --user local.slots 1`",
        ),
        (
            f"{file}:5: `retention.work` is a setting of the user: it has no effect here",
            "`aj config set --user retention.work 1d`",
        ),
    ]
    assert read(home, None).misplaced() == []


@pytest.mark.rule("C-083", "C-085")
def test_a_setting_says_whose_it_is_and_whether_the_daemon_must_start_anew() -> None:
    of_user = {key for key, known in keys.KEYS.items() if known.scope is keys.Scope.USER}
    assert of_user == {
        *("daemon.idle", "logs.keep", "retention.queue", "retention.work", "retention.jobs"),
        *("local.slots", "local.gpus", "storage.allow_account_key"),
    }
    assert {key for key, known in keys.KEYS.items() if known.needs_restart} == of_user - {"storage.allow_account_key"}


@pytest.mark.rule("C-083")
def test_the_environment_stands_above_both_files(home: Home, project: Project) -> None:
    own(project, 'output = "json"\n[daemon]\nidle = "2h"\n')
    found = config.read(home.layout, project, home.having(AJ_OUTPUT="yaml", AJ_DAEMON_IDLE="5m").settings)
    assert (found.output, found.seconds("daemon.idle")) == ("yaml", 300)
    setting = found.setting("output")
    assert (setting.source, str(setting.place)) == ("environment", "AJ_OUTPUT")
    wrong = config.read(home.layout, project, home.having(AJ_DAEMON_IDLE="soon").settings)
    with pytest.raises(ConfigError, match=r'^AJ_DAEMON_IDLE: `daemon\.idle` is "soon": it takes a duration'):
        wrong.value("daemon.idle")


# Wrong values


WRONG = [
    ("output", '"xml"', "one of table"),
    ("color", "true", "one of auto"),
    ("dashboard.page_size", "0", "from 1 to 200"),
    ("dashboard.page_size", "201", "from 1 to 200"),
    ("dashboard.page_size", '"50"', "a whole number"),
    ("dashboard.page_size", "true", "a whole number"),
    ("daemon.idle", '"soon"', "a duration"),
    ("daemon.idle", "true", "a duration"),
    ("logs.keep", '"many"', "a size"),
    ("code.max_bytes", "[]", "a size"),
    ("timezone", '"Mars/X"', "an IANA time zone"),
    ("timezone", '"../etc/passwd"', "an IANA time zone"),
    ("timezone", '"/etc/localtime"', "an IANA time zone"),
    ("experiment", '"  "', "a name of letters"),
    ("experiment", '"-x"', "a name of letters"),
    ("template", '"../x"', "the name of a template"),
    ("template", '""', "the name of a template"),
    ("template_repo", '" "', "text"),
    ("local.slots", "-1", "a whole number"),
    ("local.pass_env", '"A"', "a list of names"),
    ("local.pass_env", '["A-B"]', "a list of names"),
    ("local.pass_env", "[1]", "a list of names"),
    ("workspace.name", "{ x = 1 }", "text"),
    ("storage.allow_account_key", '"true"', "true or false"),
    ("quota.max_age", '"now"', "a duration"),
]


@pytest.mark.rule("C-085", "C-086", "C-329")
@pytest.mark.parametrize(("key", "value", "due"), WRONG, ids=[f"{key}={value}" for key, value, _ in WRONG])
def test_a_wrong_value_is_told_with_its_place_by_whoever_needs_it(
    home: Home, project: Project, key: str, value: str, due: str
) -> None:
    file = put(home, project, key, f"# a\n# b\n{key} = {value}\n")
    found = read(home, project)
    assert found.setting(key).place is not None
    with pytest.raises(ConfigError) as caught:
        found.value(key)
    assert str(caught.value).startswith(f"{file}:3: `{key}` is ")
    assert due in str(caught.value)
    assert caught.value.exit_code == 2
    healthy = "retention.queue"
    assert found.number(healthy) == 200


@pytest.mark.parametrize(
    ("key", "value", "due"),
    [
        ("daemon.idle", "90", 90.0),
        ("daemon.idle", '"0"', 0.0),
        ("logs.keep", "4096", 4096),
        ("local.pass_env", '["A", "LC_*"]', ("A", "LC_*")),
        ("timezone", '"Europe/Berlin"', "Europe/Berlin"),
        ("experiment", '"a_b-1"', "a_b-1"),
    ],
)
def test_other_forms_of_a_value(home: Home, project: Project, key: str, value: str, due: object) -> None:
    put(home, project, key, f"{key} = {value}\n")
    assert read(home, project).value(key) == due


@pytest.mark.rule("C-086")
def test_whoever_shows_times_gets_the_zone_as_it_is_written(home: Home, project: Project) -> None:
    own(project, 'timezone = "Mars/X"\n')
    assert read(home, project).timezone == "Mars/X"


@pytest.mark.rule("C-085")
def test_an_unknown_key_is_told_with_the_nearest_one(home: Home, project: Project) -> None:
    file = own(project, 'templat = "x"\n[sing]\nanything = 1\n[zzz]\nqqq = 1\n[clouds.lab]\nlogin = "x"\n')
    told = read(home, project).unknown()
    assert [str(error) for error in told] == [
        f"{file}:1: unknown setting `templat`",
        f"{file}:5: unknown setting `zzz.qqq`",
    ]
    assert told[0].hint == "did you mean `template`?"
    with pytest.raises(ConfigError, match="no setting is called `outptu`") as caught:
        read(home, project).value("outptu")
    assert caught.value.hint == "did you mean `output`?"


BROKEN = [
    ("a = \n", 1),
    ('x = 1\ny = "open\n', 2),
    ("[a]\nb = 1\n[a]\nc = 2\n", 3),
    ("a = 1\na = 2\n", 2),
    ("x = [\n1,\n", 3),
]


@pytest.mark.rule("C-086", "C-329")
@pytest.mark.parametrize(("text", "line"), BROKEN, ids=[repr(text) for text, _ in BROKEN])
def test_a_broken_file_is_told_at_line_and_column_and_left_alone(
    home: Home, project: Project, text: str, line: int
) -> None:
    file = own(project, text)
    with pytest.raises(ConfigError, match=r"\d: not TOML: [a-z]") as caught:
        read(home, project)
    place = caught.value.place
    assert place is not None
    assert (place.file, place.line) == (str(file), line)
    assert place.column > 0 or text.startswith("x = [")  # the end of the file has no column of its own
    with pytest.raises(ConfigError):
        config.set_value(home.layout, project, "output", "json")
    assert file.read_text() == text
    assert config.file_of(home.layout, project) == file


def test_a_file_that_is_not_utf8_or_cannot_be_read_is_told(home: Home, project: Project) -> None:
    file = project.directory / "aj.toml"
    file.write_bytes(b'a = 1\nb = "\xff"\n')
    with pytest.raises(ConfigError, match=r"aj.toml:2:6: not UTF-8"):
        read(home, project)
    file.unlink()
    file.mkdir()
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        read(home, project)


def test_nesting_without_end_is_told(home: Home, project: Project) -> None:
    own(project, "a = " + "[" * 50_000 + "]" * 50_000)
    with pytest.raises(ConfigError, match="nested too deeply"):
        read(home, project)


# The older file

OLD = """{
  "defaults": {"template": "gpu", "other": 1},
  "workspace": {
    "subscription_id": "s", "resource_group": "g",
    "workspace_name": "w"},
  "experiment": "e", "repo_id": "owner/name", "timezone": "UTC",
  "dashboard": {"page_size": 500}
}"""


@pytest.mark.rule("C-084")
def test_the_older_file_is_the_project_layer_where_there_is_no_newer(home: Home, project: Project) -> None:
    file = own(project, OLD, "aj_config.json")
    found = read(home, project)
    due = {
        "template": "gpu",
        "workspace.subscription_id": "s",
        "workspace.resource_group": "g",
        "workspace.name": "w",
        "experiment": "e",
        "template_repo": "owner/name",
        "timezone": "UTC",
    }
    assert {key: found.value(key) for key in due} == due
    assert str(found.setting("workspace.name").place) == f"{file}:5"
    with pytest.raises(ConfigError, match=r"aj_config.json:7: `dashboard.page_size` is 500"):
        found.value("dashboard.page_size")
    own(project, "")
    assert read(home, project).template is None  # the newer file hides it whole


@pytest.mark.rule("C-084")
def test_the_first_change_takes_the_older_values_along(home: Home, project: Project) -> None:
    file = own(project, OLD, "aj_config.json")
    _, note = config.set_value(home.layout, project, "output", "json")
    assert note is not None
    assert "aj_config.json" in note
    assert file.read_text() == OLD
    found = read(home, project)
    assert (found.template, found.text("workspace.name"), found.output) == ("gpu", "w", "json")
    assert config.set_value(home.layout, project, "output", "yaml")[1] is None


@pytest.mark.rule("C-084", "C-329")
@pytest.mark.parametrize(
    ("text", "says"), [('{"a": 1,\n oops}', ":2:2: not JSON"), ("", ":1:1: not JSON"), ("[" * 100_000, ": nested")]
)
def test_a_broken_older_file_is_told(home: Home, project: Project, text: str, says: str) -> None:
    file = own(project, text, "aj_config.json")
    with pytest.raises(ConfigError) as caught:
        read(home, project)
    assert str(caught.value).startswith(f"{file}{says}")


@pytest.mark.parametrize("text", ["[]", "5", '{"defaults": 3, "workspace": []}'])
def test_an_older_file_of_another_shape_says_nothing(home: Home, project: Project, text: str) -> None:
    own(project, text, "aj_config.json")
    assert read(home, project).template is None


# Writing

COMMENTED = """# my settings
template = "gpu"   # the usual
unknown_thing = [1,
  2]  # mine

[workspace]
# where
name = "old"
"""


@pytest.mark.rule("C-083")
def test_writing_keeps_comments_order_and_what_is_not_ours(home: Home, project: Project) -> None:
    file = own(project, COMMENTED)
    file.chmod(0o644)
    setting, note = config.set_value(home.layout, project, "workspace.name", "new")
    assert (setting.key, setting.value, setting.source, note) == ("workspace.name", "new", "project", None)
    assert file.read_text() == COMMENTED.replace('"old"', '"new"')
    config.set_value(home.layout, project, "output", "json")
    config.set_value(home.layout, project, "daemon.idle", "2h")
    config.set_value(home.layout, project, "dashboard.page_size", "20")
    config.set_value(home.layout, project, "local.pass_env", "A, LC_*")
    values = tomllib.loads(file.read_text())
    assert values["output"] == "json"
    assert values["daemon"]["idle"] == "2h"
    assert values["dashboard"]["page_size"] == 20
    assert values["local"]["pass_env"] == ["A", "LC_*"]
    assert values["workspace"] == {"name": "new"}
    for comment in ("# my settings", "# the usual", "# mine", "# where"):
        assert comment in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(project.directory).count("aj.toml") == 1
    assert [name for name in os.listdir(project.directory) if name not in ("template", "aj.toml")] == []


@pytest.mark.rule("C-083")
@pytest.mark.parametrize(
    "text", ["", 'workspace = { name = "x" }\n', 'workspace.name = "x"\n', '[a]\nb = 1\n[workspace]\nname = "x"\n']
)
def test_a_key_finds_its_table_however_that_is_written(home: Home, project: Project, text: str) -> None:
    own(project, text)
    config.set_value(home.layout, project, "workspace.resource_group", "g")
    config.set_value(home.layout, project, "template", "t")
    found = read(home, project)
    assert (found.text("workspace.resource_group"), found.template) == ("g", "t")
    assert found.text("workspace.name") == ("x" if text else None)


def test_the_user_has_a_file_too_and_a_link_stays_a_link(home: Home, project: Project) -> None:
    elsewhere = home.root / "dotfiles.toml"
    elsewhere.write_text("# mine\n")
    home.layout.user_settings.parent.mkdir(parents=True)
    home.layout.user_settings.symlink_to(elsewhere)
    config.set_value(home.layout, None, "output", "yaml")
    assert home.layout.user_settings.is_symlink()
    assert elsewhere.read_text().startswith("# mine\n")
    assert read(home, project).setting("output").source == "user"


@pytest.mark.rule("C-085", "C-331")
@pytest.mark.parametrize(
    ("key", "word"),
    [
        ("timezone", "Mars/X"),
        ("experiment", "  "),
        ("dashboard.page_size", "1_0"),
        ("dashboard.page_size", "٣"),
        ("output", "xml"),
        ("daemon.idle", "soon"),
        ("local.pass_env", "A-B"),
        ("nothing", "x"),
        ("workspace", "x"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_is_written(home: Home, project: Project, key: str, word: str) -> None:
    file = own(project, COMMENTED)
    with pytest.raises(OptionError) as caught:
        config.set_value(home.layout, project, key, word)
    assert caught.value.exit_code == 2
    assert file.read_text() == COMMENTED
    assert os.listdir(project.directory).count("aj.toml") == 1


def test_a_value_in_the_place_of_a_table_is_told(home: Home, project: Project) -> None:
    file = own(project, "workspace = 5\n")
    with pytest.raises(ConfigError, match="`workspace` is 5, and not a table"):
        config.set_value(home.layout, project, "workspace.name", "x")
    assert file.read_text() == "workspace = 5\n"


def test_unset_removes_one_key_and_says_whether_it_was_there(home: Home, project: Project) -> None:
    file = own(project, COMMENTED)
    assert config.unset(home.layout, project, "template") is True
    assert config.unset(home.layout, project, "template") is False
    assert config.unset(home.layout, project, "workspace.name") is True
    assert config.unset(home.layout, None, "template") is False
    assert tomllib.loads(file.read_text()) == {"unknown_thing": [1, 2], "workspace": {}}
    assert "# where" in file.read_text()
    with pytest.raises(OptionError):
        config.unset(home.layout, project, "nothing")


SETTER = """
import sys
from pathlib import Path
from aj.base import paths, settings
from aj.base.paths import Project
from aj.store import config
from aj.store.layout import Layout

layout = Layout(paths.folders(settings.read()))
sys.stdin.readline()
config.set_value(layout, Project(Path(sys.argv[1])), sys.argv[2], sys.argv[3])
"""


@pytest.mark.rule("C-083", "C-330")
def test_sixteen_processes_that_set_different_keys_all_succeed(home: Home, project: Project, programs: None) -> None:
    file = own(project, "# keep me\nmine = 1  # and me\n")
    words = {
        **{key: "x" for key in keys.KEYS if key.startswith("workspace.") or key == "template_repo"},
        "template": "t",
        "experiment": "e",
        "timezone": "UTC",
        "output": "json",
        "color": "never",
        "dashboard.page_size": "7",
        "cloud": "c",
        "tenant": "u",
        "quota.max_age": "3h",
        "code.max_bytes": "9Mi",
        "retention.dry_runs": "8",
        "sing.placeholder_image": "i",
    }
    assert len(words) == 16
    children = [
        subprocess.Popen(
            [sys.executable, "-c", SETTER, str(project.directory), key, word],
            stdin=subprocess.PIPE,
            env={**os.environ, **home.env},
        )
        for key, word in words.items()
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.close()
    assert [child.wait(60) for child in children] == [0] * 16
    found = read(home, project)
    assert {key: str(found.setting(key).value) for key in words} == words
    assert "# keep me" in file.read_text()
    assert "# and me" in file.read_text()


def test_a_file_of_settings_that_is_a_pipe_is_told_and_waited_for_by_nobody(home: Home) -> None:
    file = home.layout.user_settings
    file.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(file)
    with pytest.raises(ConfigError, match="it is no plain file"):
        config.read(home.layout, None, home.settings)
