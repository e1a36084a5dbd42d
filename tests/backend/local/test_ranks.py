"""What each process is started with, without starting any."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.backend.local import ranks, states
from aj.backend.local.ranks import Facts
from aj.model.state import JobState
from tests.jobs import shape, spec

FACTS = Facts(
    shell="/bin/bash",
    workdirs=("/w/node0", "/w/node1"),
    port=4711,
    accepted_at="2026-01-31T12:00:00.000000+00:00",
    digest="d" * 64,
    archive_sha256="a" * 64,
)


@pytest.mark.rule("C-169", "C-171", "C-174")
@given(st.integers(1, 2), st.integers(1, 9))
@settings(max_examples=18, deadline=None)
def test_ranks_count_through_all_nodes_and_agree_with_each_other(nodes: int, per_node: int) -> None:
    found = ranks.ranks(spec("1a2b3c4d", "x", shape=shape(nodes, per_node)), FACTS)
    assert [process.env["RANK"] for process in found] == [str(rank) for rank in range(nodes * per_node)]
    for process in found:
        env = process.env
        assert int(env["NODE_RANK"]) * per_node + int(env["LOCAL_RANK"]) == int(env["RANK"])
        assert env["WORLD_SIZE"] == env["AJ_WORLD_SIZE"] == str(nodes * per_node)
        assert env["AJ_NODE_RANK"] == env["NODE_RANK"] == str(process.node)
        assert env["AJ_WORKDIR"] == process.cwd == FACTS.workdirs[process.node]


@pytest.mark.rule("C-162")
def test_whose_value_holds() -> None:
    request = spec(
        "1a2b3c4d",
        "x",
        inherited={"A": "lent", "B": "lent", "AJ_ID": "lent", "PYTHONUNBUFFERED": ""},
        env={"B": "mine", "AJ_NODES": "mine", "RANK": "mine"},
    )
    env = ranks.environment(request, FACTS, 0, 0)
    assert {name: env[name] for name in ("A", "B", "AJ_ID", "AJ_NODES", "RANK", "PYTHONUNBUFFERED")} == {
        "A": "lent",
        "B": "mine",
        "AJ_ID": "1a2b3c4d",
        "AJ_NODES": "1",
        "RANK": "mine",
        "PYTHONUNBUFFERED": "",
    }


def test_gpus_are_divided_between_the_nodes() -> None:
    request = spec("1a2b3c4d", "x", shape=shape(2, 1, gpus=2))
    facts = replace(FACTS, gpus=(1, 4, 5, 7))
    assert [process.env["CUDA_VISIBLE_DEVICES"] for process in ranks.ranks(request, facts)] == ["1,4", "5,7"]
    assert "CUDA_VISIBLE_DEVICES" not in ranks.environment(request, FACTS, 0, 0)


@pytest.mark.rule("C-160", "C-159")
@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/sh"])
def test_the_script_becomes_the_command_with_its_exact_words(programs: None, tmp_path: Path, shell: str) -> None:
    words = ["printf", "%s|", "", "a b", "$HOME", "it's", "x\ny"]
    for lines in ((), ("greeting=hello", "true && cd /")):
        argv = [shell, "-c", ranks.script(lines, shell, str(tmp_path / "it is")), "aj", *words]
        assert subprocess.run(argv, capture_output=True, check=True).stdout == b"|a b|$HOME|it's|x\ny|"
    failing = [shell, "-c", ranks.script(("(exit 9)",), shell, str(tmp_path / "it is")), "aj", *words]
    found = subprocess.run(failing, capture_output=True)
    assert (found.returncode, found.stdout) == (9, b"")


def test_setup_is_one_process_a_node_without_a_rank() -> None:
    request = spec("1a2b3c4d", "x", shape=shape(2, 3), setup=("a", "b"))
    found = ranks.setups(request, FACTS)
    assert [(process.node, process.cwd) for process in found] == [(0, "/w/node0"), (1, "/w/node1")]
    assert all(process.argv[:2] == ("/bin/bash", "-c") for process in found)
    assert all(process.argv[2].split("\n")[1:] == ["a", "b"] for process in found)
    assert [process.mark for process in found] == ["./failed-setup0", "./failed-setup1"]
    assert all("RANK" not in process.env and process.env["AJ_ID"] == "1a2b3c4d" for process in found)
    assert ranks.setups(spec("1a2b3c4d", "x"), FACTS) == []


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (0, 0, "exit code 0"),
        (1, 1, "exit code 1"),
        (-9, 137, "ended by SIGKILL"),
        (-15, 143, "ended by SIGTERM"),
        (126, 126, "exit code 126: the command cannot be executed"),
        (127, 127, "exit code 127: the command was not found"),
        (255, 255, "exit code 255"),
    ],
)
def test_an_end_is_said_as_a_shell_says_it(status: int, code: int, words: str) -> None:
    assert states.exit_code(status) == code
    assert states.words(code) == words
    assert states.state(code) is (JobState.COMPLETED if code == 0 else JobState.ERRORED)


def test_one_word_for_exec_is_a_line_of_shell() -> None:
    assert ranks.shell_words(["nvidia-smi -L"], "/bin/bash") == ("/bin/bash", "-c", "nvidia-smi -L")
    assert ranks.shell_words(["ls", "a b"], "/bin/bash") == ("ls", "a b")
