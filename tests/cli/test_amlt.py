"""Jobs through the external program amlt, from the command line to a strict program of that name."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from aj.base import proc
from aj.cli import spec
from tests.cli.conftest import Ran, Shell
from tests.conftest import RunningDaemon
from tests.servers import amlt
from tests.servers.amlt import Amlt

TEMPLATE = """base:
config:
  target: {service: sing, name: vc, gpus_per_node: 8}
  environment: {image: train:1}
  code: {local_dir: $CONFIG_DIR/../.., ignore: [data/]}
  _extra: {mine: 1}
  jobs:
  - sku: "{nodes}xG{processes}"
    instance_count: 1
    submit_args: {env: {API_TOKEN: sesame-open-1, LEVEL: 1.10}}
"""
LINK = "https://ml.azure.com/runs/calm_sky_x1?wsid=/subscriptions/s/resourcegroups/g/workspaces/w"


class Person:
    """Somebody with amlt on the PATH and a project with the template `gpu`."""

    def __init__(self, shell: Shell, program: Amlt, daemon: RunningDaemon) -> None:
        self.amlt, self.daemon = program, daemon
        self.shell = Shell(shell.home.having(PATH=program.path), shell.directory)

    def __call__(self, *words: str, code: int = 0, **variables: str) -> Ran:
        ran = self.shell(*words, **variables)
        assert ran.code == code, (ran.err, ran.out)
        return ran

    def run(self, *words: str, code: int = 0, template: str = "gpu", **variables: str) -> Ran:
        """Submit through amlt."""
        return self("run", "--amlt", "-t", template, "--experiment", "exp", *words, code=code, **variables)

    @property
    def states(self) -> list[tuple[str, str | None]]:
        """What the journal says, line by line: the state and the name over there."""
        key = self.shell.home.project().key
        lines = self.shell.home.layout.journal(key).read_text().splitlines()
        return [(one["state"], one["azure_name"]) for one in map(json.loads, lines)]


@pytest.fixture
def person(aj: Shell, daemon: RunningDaemon, tmp_path: Path) -> Iterator[Person]:
    aj.template("gpu", TEMPLATE)
    aj.write("train.py", "print('hello')\n")
    yield Person(aj, amlt.make(tmp_path / "amlt"), daemon)


def until(is_so: Callable[[], object], what: str) -> None:
    """Wait for something that another process does."""
    limit = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < limit, what
        time.sleep(0.02)


@pytest.mark.rule("C-254", "C-255", "C-256", "C-177", "A-190", "A-192", "A-194", "C-156", "C-233")
def test_amlt_gets_the_file_in_a_clean_room(person: Person) -> None:
    person.amlt.acts(prints=["\x1b[32mpacking\x1b[0m, token sesame-open-1", f"job at {LINK}.", "Job name: other_one"])
    seen = person.run("--json", "train.py", "--lr", "a b", AJ_NAME="pre", AMLT_X="kept")
    item = seen.json["item"]
    assert (item["status"], item["backend"], item["azure_name"], item["code"]) == (
        "submitted",
        "amlt",
        "calm_sky_x1",
        None,
    )
    assert item["portal_url"] == LINK
    name = f"pre_{item['id']}"
    assert item["note"] == f"managed by amlt: `amlt status exp :{name}`"
    assert item["next"] == [f"aj status {item['id']}", *(f"amlt {v} exp :{name}" for v in ("status", "logs", "cancel"))]
    assert "log: packing, token ***\n" in seen.err and "limit 30m" in seen.err
    assert [warning["message"] for warning in seen.json["warnings"]] == [
        "amlt chooses files by its own rules: `code.ignore` has no effect"
    ]
    (call,) = person.amlt.calls
    file = person.shell.directory / ".azure_jobs" / "submission" / f"{item['id']}.yaml"
    assert call["argv"] == ["run", str(file), "exp", "-y"]
    assert (call["cwd"], call["group"], call["env"]["HOME"]) == (
        str(person.shell.directory),
        True,
        str(person.shell.home.root),
    )
    document = yaml.safe_load(call["yaml"])
    assert list(document) == ["target", "environment", "code", "jobs"]
    job = document["jobs"][0]
    assert (job["name"], job["sku"], job["command"]) == (name, "1xG8", ["uv run train.py --lr 'a b'"])
    env = job["submit_args"]["env"]
    assert (env["API_TOKEN"], env["LEVEL"], env["AJ_ID"]) == ("sesame-open-1", "1.10", item["id"])
    assert "sesame" not in " ".join(call["argv"]) and file.read_text() == call["yaml"]
    assert person.states == [("intended", None), ("submitted", "calm_sky_x1")]
    state = b"".join(path.read_bytes() for path in person.shell.home.folders.state.rglob("*") if path.is_file())
    assert b"sesame" not in state


@pytest.mark.rule("C-177", "C-178", "C-255", "C-258")
def test_a_dry_run_is_the_file_itself(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = iter(("abcdef12", "abcdef13"))  # digits alone would be quoted
    monkeypatch.setattr(spec, "draw_id", lambda: next(ids))
    person.shell.template("own", TEMPLATE.replace("service: sing", "service: amlt"))
    person.run("true", template="own")
    (call,) = person.amlt.calls
    sent = yaml.safe_load(call["yaml"])
    assert sent["target"]["service"] == "amlt"
    words = ("run", "-d", "-t", "own", "--experiment", "exp", "-o", "json", "true")
    rendered = person(*words).json["item"]
    text = Path(rendered["path"]).read_text()
    ours, theirs = sent["jobs"][0], yaml.safe_load(text)["jobs"][0]
    for key in ("AJ_ID", "AJ_NAME", "AJ_SUBMIT_TIMESTAMP_UTC"):
        text = text.replace(theirs["submit_args"]["env"][key], ours["submit_args"]["env"][key])
    assert text == call["yaml"]  # byte for byte, but for id and time
    assert person.shell.directory.joinpath(".azure_jobs/submission").exists()


@pytest.mark.rule("A-192", "C-156", "C-253")
def test_what_amlt_did_not_name_is_told_as_managed_by_it(person: Person) -> None:
    item = person.run("--json", "true").json["item"]
    assert (item["azure_name"], item["portal_url"]) == (None, None)
    assert person.states == [("intended", None), ("submitted", None)]
    name = item["name"]
    seen = person("status", item["id"])
    assert f"managed by amlt: `amlt status exp :{name}`" in seen.err
    for words in (("wait",), ("logs",), ("terminate",), ("resubmit",), ("job", "why")):
        told = person(*words, item["id"], code=2)
        assert f"{item['id']} is managed by amlt" in told.err, told.err
        assert f"`amlt logs exp :{name}`, `amlt cancel exp :{name}`" in told.err
    assert "managed by amlt" in person("exec", item["id"], "ls", code=2).err
    assert "managed by amlt" in person("queue", "show", f"q-{item['id']}").out
    for word in ("--wait", "--follow"):
        refused = person.run(word, "true", code=2)
        assert f"`{word}`: amlt does not tell when a job has ended" in refused.err
    assert len(person.amlt.calls) == 1


@pytest.mark.rule("C-256", "A-191")
def test_a_failure_is_one_unless_a_job_was_named(person: Person) -> None:
    lines = [f"line {number}" for number in range(30)]
    person.amlt.acts(prints=lines, code=3)
    error = person.run("--json", "true", code=1).json["error"]
    assert error["message"] == "amlt ended with exit status 3: line 29"
    assert error["details"]["last_lines"] == lines[-20:]
    assert error["details"]["submission"]["status"] == "failed"
    shown = person("queue", "show", error["details"]["submission"]["ticket"]).out
    assert "line 10\n" in shown and "line 9\n" not in shown
    person.amlt.acts(prints=["Job name: calm_sky", "the connection broke"], code=1)
    error = person.run("--json", "true", code=6).json["error"]
    assert error["message"] == "amlt ended with exit status 1 after it had named a job: the connection broke"
    assert error["details"]["azure_name"] == "calm_sky"
    assert error["hint"].startswith("`amlt status exp` tells; if it is not there, `aj queue retry q-")
    assert [state for state, _ in person.states] == ["intended", "failed", "intended", "unknown"]
    ticket = error["details"]["submission"]["ticket"]
    told = person("queue", "reconcile", ticket, code=6)
    assert "amlt does not tell aj what it has submitted" in told.err
    assert len(person.amlt.calls) == 2


@pytest.mark.rule("C-256", "C-341", "A-191", "A-193")
def test_over_its_limit_it_is_ended_with_all_that_it_started(person: Person) -> None:
    person.amlt.acts(hangs="yes", prints=[])
    seen = person.run("--json", "true", code=6, AJ_AMLT_TIMEOUT="2s")
    error = seen.json["error"]
    assert error["message"].startswith("amlt did not end within 2s, and was ended")  # it may not have said a word yet
    assert "limit 2s" in seen.err
    assert [state for state, _ in person.states] == ["intended", "unknown"]
    until(lambda: not any(proc.start_time(pid) for pid in person.amlt.pids), "the whole group is gone")


@pytest.mark.rule("C-254", "A-193", "A-190")
def test_what_can_be_known_before_is_refused_before(person: Person) -> None:
    seen = person("run", "--amlt", "-t", "gpu", "true", code=2)
    assert "no experiment" in seen.err
    (person.amlt.folder / "amlt").rename(person.amlt.folder / "away")
    error = person.run("--json", "true", code=2).json["error"]
    assert (error["type"], error["code"]) == ("ConfigError", "no-amlt")
    assert person.amlt.path in error["message"] and "aj init amlt" in error["hint"]
    assert not (person.shell.directory / ".azure_jobs" / "submission").exists()
    assert [state for state, _ in person.states] == ["failed", "failed"]
    (person.amlt.folder / "away").rename(person.amlt.folder / "amlt")
    for bad in ("0", "soon"):
        person("daemon", "stop")
        assert "AJ_AMLT_TIMEOUT" in person.run("true", code=2, AJ_AMLT_TIMEOUT=bad).err


@pytest.mark.rule("C-254", "C-235", "C-256")
def test_in_the_queue_it_is_the_same(person: Person) -> None:
    person.amlt.acts(prints=[f"see {LINK}"])
    ticket = person.run("--queue", "-o", "name", "true").out.strip()
    person("queue", "wait", ticket, "--timeout", "60")
    entry = person("queue", "show", ticket, "--json").json["item"]
    assert (entry["outcome"], entry["submission"]["azure_name"]) == ("submitted", "calm_sky_x1")


@pytest.mark.rule("C-256", "C-226", "C-223", "C-251")
def test_a_forced_end_of_the_daemon_ends_it_and_nobody_runs_it_again(person: Person) -> None:
    person.amlt.acts(hangs="yes")
    ticket = person.run("--queue", "-o", "name", "true").out.strip()
    until(lambda: len(person.amlt.pids) == 2, "amlt runs")
    person("daemon", "stop", "--force")
    until(lambda: not any(proc.start_time(pid) for pid in person.amlt.pids), "the whole group is gone")
    person("daemon", "start")
    shown = person("queue", "show", ticket, "--json").json["item"]
    assert (shown["state"], shown["outcome"]) == ("failed", "unknown")
    assert len(person.amlt.calls) == 1


@pytest.mark.rule("C-256", "C-278", "C-251")
def test_a_killed_daemon_leaves_the_outcome_unknown(person: Person) -> None:
    person.amlt.acts(hangs="yes")
    ticket = person.run("--queue", "-o", "name", "true").out.strip()
    until(lambda: len(person.amlt.pids) == 2, "amlt runs")
    person.daemon.kill()
    person("queue", "resume")
    shown = person("queue", "show", ticket, "--json").json["item"]
    assert (shown["state"], shown["outcome"]) == ("failed", "unknown")
    assert len(person.amlt.calls) == 1
    for pid in person.amlt.pids:
        os.kill(pid, 9)


@pytest.mark.rule("C-259")
def test_only_the_newest_files_of_settled_attempts_stay(person: Person) -> None:
    folder = person.shell.directory / ".azure_jobs" / "submission"
    folder.mkdir(mode=0o700)
    for number in range(205):
        path = folder / f"{number:08x}.yaml"
        path.write_text("x")
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
    item = person.run("--json", "true").json["item"]
    left = sorted(path.stem for path in folder.iterdir())
    assert len(left) == 200 and item["id"] in left
    assert "00000005" not in left and "00000006" in left
