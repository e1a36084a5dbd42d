"""aj logs: the part of a log that was asked for, or what there is instead of it."""

from __future__ import annotations

import threading

import pytest

from aj.client import logs
from tests.cli.conftest import Ran, Shell
from tests.conftest import RunningDaemon


@pytest.mark.rule("C-023")
@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_log_is_followed_to_the_job_s_end_though_the_daemon_goes(
    live: Shell, daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(logs, "CARE_S", 0.2)
    live.write("go.sh", 'echo begun; while [ ! -e "$GO" ]; do sleep 0.05; done; echo done\n')
    job = live("run", "-n", "1", "-e", f"GO={live.directory}/go", "-o", "name", "go.sh").out.strip()
    assert live("wait", job, "--running").code == 0
    heard: list[Ran] = []
    thread = threading.Thread(target=lambda: heard.append(live("logs", job, "-f")))
    thread.start()
    if how == "killed":
        daemon.kill()
    else:
        assert live("daemon", "stop").code == 0
    live.write("go")
    thread.join(50)
    assert heard and (heard[0].code, heard[0].out) == (0, "begun\ndone\n")
    assert live("wait", job).code == 0


@pytest.mark.rule("C-023", "C-070")
def test_a_part_that_is_not_there_is_named(live: Shell) -> None:
    live.write("say.sh", "echo here\n")
    aj_id = live("run", "--ppn", "2", "--wait", "-o", "name", "say.sh").out.strip()
    for words, message, hint in (
        (("--rank", "9"), f"{aj_id} has no rank 9", "it has ranks 0-1"),
        (("--attempt", "7"), f"{aj_id} has no attempt 7", "it has attempt 1"),
        (("--rank", "2", "-f"), f"{aj_id} has no rank 2", "it has ranks 0-1"),
    ):
        seen = live("logs", aj_id, *words, "--json")
        error = seen.json["error"]
        assert (seen.code, error["type"], error["message"], error["hint"]) == (3, "NotFound", message, hint)
    assert live("logs", aj_id, "--rank", "1", "--attempt", "1").out == "here\n"


@pytest.mark.rule("C-023")
def test_whole_lines_are_labelled_with_their_process(live: Shell) -> None:
    live.write("say.sh", "printf 'one\\ntwo'\n")
    aj_id = live("run", "--ppn", "2", "--wait", "-o", "name", "say.sh").out.strip()
    due = sorted(f"[rank {rank}] {word}" for rank in (0, 1) for word in ("one", "two"))
    assert sorted(live("logs", aj_id, "--label").out.splitlines()) == due
    assert sorted(live("logs", aj_id, "--label", "-f").out.splitlines()) == due
    followed = live("run", "--ppn", "2", "--follow", "--label", "say.sh")
    assert (followed.code, sorted(followed.out.splitlines())) == (0, due)
    assert live("run", "--label", "say.sh").code == 2
