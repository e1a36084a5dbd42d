"""The runner, run for real: ranks, one setup for all, signals through shells, and words that mean themselves."""

from __future__ import annotations

import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from aj.model import words
from tests.azure.nodes import BASH, Ended, Node, ended, kill, until
from tests.azure.nodes import node as making

pytestmark = [pytest.mark.usefixtures("programs"), pytest.mark.rule("A-212")]

RANKS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")
SHOW = "printf '%s ' " + " ".join(f'"${name}"' for name in RANKS)
PYTHON = shlex.quote(sys.executable)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with making(tmp_path) as made:
        folder = tmp_path / "node"
        folder.mkdir(mode=0o700)
        made.env |= {"AJ_NODE_DIR": str(folder), "AJ_ATTEMPT_TOKEN": "t1", "AJ_TERM_GRACE": "20"}
        yield made


def ranks(node: Node, count: int, **env: str) -> list[subprocess.Popen[bytes]]:
    """Start all processes of a node."""
    return [
        node.run(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count), AJ_PROCESSES_PER_NODE=str(count), **env)
        for rank in range(count)
    ]


def open_pipe(path: Path) -> IO[bytes]:
    """Open a named pipe to write to, whether anybody reads it or not."""
    return open(os.open(path, os.O_RDWR), "wb", buffering=0)


def catches_term(pid: int) -> bool:
    """Whether a process has said what it does at TERM; before that the system ends it."""
    told = Path(f"/proc/{pid}/status").read_text().partition("SigCgt:")[2].split()[0]
    return bool(int(told, 16) >> (signal.SIGTERM - 1) & 1)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except OSError:
        return True


# Ranks


@pytest.mark.rule("A-140")
@pytest.mark.parametrize(
    "given, wanted",
    [
        ({}, "0 1 0 1 0 127.0.0.1 6105"),
        (
            dict(zip(RANKS, ("5", "8", "1", "4", "1", "10.0.0.4", "29500"))),
            "5 8 1 4 1 10.0.0.4 29500",
        ),
        (
            {"RANK": "5", "WORLD_SIZE": "8", "AJ_PROCESSES_PER_NODE": "4", "MASTER_ADDR": "head"},
            "5 8 1 4 1 head 6105",
        ),
        (
            {
                "OMPI_COMM_WORLD_RANK": "6",
                "OMPI_COMM_WORLD_SIZE": "8",
                "OMPI_COMM_WORLD_LOCAL_RANK": "2",
                "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
                "AZ_BATCH_MASTER_NODE": "10.0.0.9:6000",
            },
            "6 8 2 4 1 10.0.0.9 6105",
        ),
        (
            {
                "OMPI_COMM_WORLD_RANK": "1",
                "OMPI_COMM_WORLD_SIZE": "2",
                "OMPI_COMM_WORLD_LOCAL_RANK": "1",
                "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
                "AZ_BATCHAI_MPI_MASTER_NODE": "localhost",
            },
            "1 2 1 2 0 localhost 6105",
        ),
        ({"RANK": "08", "WORLD_SIZE": "16", "AJ_PROCESSES_PER_NODE": "8", "MASTER_ADDR": "h"}, "08 16 0 8 1 h 6105"),
    ],
)
def test_rank_variables_are_kept_or_found(node: Node, given: dict[str, str], wanted: str) -> None:
    found = ended(node.run(AJ_COMMAND=SHOW, **given))
    assert (found.code, found.out.strip(), found.err) == (0, wanted, "")


@pytest.mark.rule("A-140")
def test_other_variables_of_a_process(node: Node) -> None:
    show = 'echo "$NCCL_SOCKET_IFNAME" "$AJ_NODE_RANK" "$AJ_WORKDIR"'
    assert ended(node.run(AJ_COMMAND=show)).out == f"^docker0,lo 0 {node.root}\n"
    assert ended(node.run(AJ_COMMAND=show, NCCL_SOCKET_IFNAME="eth1", NODE_RANK="3")).out == f"eth1 3 {node.root}\n"
    assert ended(node.run(AJ_COMMAND="echo [$NCCL_SOCKET_IFNAME]", NCCL_SOCKET_IFNAME="")).out == "[]\n"


@pytest.mark.rule("A-140")
def test_several_nodes_without_a_master_are_told(node: Node) -> None:
    found = ended(node.run(AJ_COMMAND=SHOW, RANK="1", WORLD_SIZE="2"))
    assert found.err == "aj: the platform named no master for several nodes: MASTER_ADDR is 127.0.0.1\n"


@pytest.mark.rule("A-140", "A-148")
@pytest.mark.parametrize(
    "changed, words",
    [
        ({"RANK": "x"}, "RANK is not a whole number: x"),
        ({"RANK": "a[$(touch owned)]"}, "RANK is not a whole number: a[$(touch owned)]"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK is 2, which is not below WORLD_SIZE, 2"),
        ({"LOCAL_RANK": "-1"}, "LOCAL_RANK is not a whole number: -1"),
        ({"AJ_COMMAND": ""}, "AJ_COMMAND is not set"),
        ({"AJ_NODE_DIR": ""}, "AJ_NODE_DIR is not set"),
        ({"AJ_NODE_DIR": "/proc/1"}, "/proc/1 is not a folder of ours"),
        ({"AJ_ATTEMPT_TOKEN": "../x"}, "AJ_ATTEMPT_TOKEN is not a word"),
        ({"AJ_TERM_GRACE": "long"}, "AJ_TERM_GRACE is not a whole number: long"),
        ({"AJ_SETUP_TIMEOUT": "1h"}, "AJ_SETUP_TIMEOUT is not a whole number: 1h"),
    ],
)
def test_wrong_input_is_named(node: Node, changed: dict[str, str], words: str) -> None:
    if changed.get("AJ_NODE_DIR") == "/proc/1" and os.geteuid() == 0:
        changed, words = {"AJ_NODE_DIR": "/nowhere"}, "/nowhere is not a folder of ours"
    assert ended(node.run(**{"AJ_COMMAND": "echo ran", **changed})) == Ended(110, "", f"aj: {words}\n")
    assert not (node.root / "owned").exists()


# Setup


@pytest.mark.rule("A-141", "A-140")
def test_setup_runs_once_for_all_processes_of_a_node_with_ranks_set(node: Node) -> None:
    setup = f'echo "rank $RANK of $WORLD_SIZE" >>{node.root}/setups; touch made'
    found = [ended(child) for child in ranks(node, 8, AJ_SETUP=setup, AJ_COMMAND="test -e made && echo $RANK")]
    assert [(one.code, one.out) for one in found] == [(0, f"{rank}\n") for rank in range(8)]
    assert (node.root / "setups").read_text() == "rank 0 of 8\n"
    # The same attempt again, as after a restart of the processes alone: it is done. Another attempt does it anew.
    assert ended(node.run(AJ_SETUP=setup, AJ_COMMAND="true")).code == 0
    assert (node.root / "setups").read_text().count("rank") == 1
    assert ended(node.run(AJ_SETUP=setup, AJ_COMMAND="true", AJ_ATTEMPT_TOKEN="t2")).code == 0
    assert (node.root / "setups").read_text().count("rank") == 2


@pytest.mark.rule("A-142", "A-148")
@pytest.mark.parametrize(
    "setup, code, line",
    [
        ("true\nfalse # no\ntrue", 1, " at its line 2"),
        ("exit 7", 7, ""),
        ("nosuchprogram", 127, " at its line 1"),
        ("kill -9 $$", 137, ""),
        ("if", 2, ""),
    ],
)
def test_a_setup_that_fails_ends_all_with_its_status(node: Node, setup: str, code: int, line: str) -> None:
    os.mkfifo(node.root / "go")
    children = ranks(node, 4, AJ_SETUP=f"read -r go <{node.root}/go; {setup}", AJ_COMMAND="echo ran")
    until((Path(node.env["AJ_NODE_DIR"]) / "setup-t1.owner").exists, "the setup")
    failed_at = time.monotonic()
    with open_pipe(node.root / "go") as go:
        go.write(b"\n")
        found = [ended(child) for child in children]
    assert [one.code for one in found] == [code] * 4
    words = f"aj: the setup ended with status {code}{line}"
    assert [one.err.splitlines()[-1] for one in found] == [words] * 4 and {one.out for one in found} == {""}
    assert time.monotonic() - failed_at < 10  # two seconds of this, and a machine that does other things as well


@pytest.mark.rule("A-142")
def test_when_who_runs_the_setup_is_killed_the_others_end(node: Node) -> None:
    first, *others = ranks(node, 4, AJ_SETUP=f"touch {node.root}/at; sleep 600", AJ_COMMAND="echo ran")
    until((node.root / "at").exists, "the setup")
    kill(first)
    found = [ended(child) for child in others]
    assert [(one.code, one.out) for one in found] == [(113, "")] * 3
    assert {one.err for one in found} == {f"aj: process {first.pid} of this node died while it ran the setup\n"}


@pytest.mark.rule("A-142")
def test_without_a_first_process_the_others_do_not_wait_for_ever(node: Node) -> None:
    found = ended(node.run(LOCAL_RANK="1", AJ_SETUP="true", AJ_COMMAND="echo ran", AJ_BOOTSTRAP_TIMEOUT="0"))
    assert found == Ended(113, "", "aj: no process with LOCAL_RANK 0 came to this node within 0 s\n")


# What every shell reads first: with each command a minute goes by, by its own clock.
FAST = "set -T; trap 'SECONDS=$((SECONDS + 60))' DEBUG\n"


@pytest.mark.rule("A-142")
def test_a_long_setup_has_no_limit_unless_one_was_set(node: Node) -> None:
    clock = node.root / "clock.sh"
    clock.write_text(FAST)
    os.mkfifo(node.root / "go")
    # The setup itself lives by the usual clock; whoever waits for it sees days go by.
    setup = f"read -r go <{node.root}/go"
    first, *others = ranks(node, 3, AJ_SETUP=setup, AJ_COMMAND="echo $RANK", BASH_ENV=str(clock))
    with open_pipe(node.root / "go") as go:
        until(lambda: _turns(others[0].pid) > 10, "some looks of who waits")
        go.write(b"\n")
    assert [ended(child).out for child in (first, *others)] == ["0\n", "1\n", "2\n"]
    env = {"AJ_SETUP": "sleep 600", "AJ_COMMAND": "echo ran", "BASH_ENV": str(clock), "AJ_SETUP_TIMEOUT": "3600"}
    found = [ended(child) for child in ranks(node, 3, AJ_ATTEMPT_TOKEN="t2", **env)]
    assert [(one.code, one.out) for one in found] == [(114, "")] * 3
    # The setup's own shell may say that its program was ended.
    assert {one.err.splitlines()[-1] for one in found} == {"aj: the setup took longer than 3600 s"}


def _turns(pid: int) -> int:
    """How often a process has waited for something: it grows with each look."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("voluntary_ctxt_switches:")[2].split()[0])


@pytest.mark.rule("A-143")
def test_what_setup_exports_reaches_every_process(node: Node) -> None:
    setup = textwrap.dedent(
        """\
        export NEW=$'two\\nlines' EMPTY= PATH="/opt/x:$PATH" QUOTES="'\\"\\$HOME\\`"
        KEPT=changed
        plain=not-exported
        unset DROPPED
        export RANK=99 MASTER_PORT=1 AJ_ID=other OMPI_X=1
        cd /
        """
    )
    command = f"{PYTHON} -c 'import json, os; print(json.dumps([dict(os.environ), os.getcwd()]))'"
    env = {"AJ_SETUP": setup, "AJ_COMMAND": command, "KEPT": "as it was", "DROPPED": "x", "OWN": "y"}
    found = [ended(child) for child in ranks(node, 3, **env)]
    assert {one.err for one in found} == {""}
    for rank, one in enumerate(found):
        names, folder = json.loads(one.out)
        assert (names["NEW"], names["EMPTY"], names["KEPT"]) == ("two\nlines", "", "changed")
        assert names["QUOTES"] == "'\"$HOME`" and names["PATH"] == f"/opt/x:{node.env['PATH']}"
        assert "DROPPED" not in names and "plain" not in names and names["OWN"] == "y"
        assert (names["RANK"], names["MASTER_PORT"], names["AJ_ID"]) == (str(rank), "6105", node.env["AJ_ID"])
        assert "OMPI_X" not in names and folder == str(node.root)
    (handed,) = Path(node.env["AJ_NODE_DIR"]).glob("*.env")
    assert stat.S_IMODE(handed.stat().st_mode) == 0o600
    assert sorted(pair.split("=")[0] for pair in handed.read_text().split("\0") if pair) == [
        "DROPPED",
        "EMPTY",
        "KEPT",
        "NEW",
        "PATH",
        "QUOTES",
    ]
    assert sorted(path.name for path in handed.parent.iterdir()) == ["setup-t1.end", "setup-t1.env", "setup-t1.owner"]


@pytest.mark.rule("A-143")
@pytest.mark.parametrize(
    "setup", ["export A=b; exit 0", "set -u; f() { export A=b; }; f", "umask 0; IFS=x; export A=b"]
)
def test_exports_are_handed_on_however_the_setup_ends_well(node: Node, setup: str) -> None:
    found = ended(node.run(AJ_SETUP=setup, AJ_COMMAND="echo $A"))
    assert (found.code, found.out, found.err) == (0, "b\n", "")


@pytest.mark.rule("A-143")
def test_a_setup_with_its_own_last_word_is_told_that_nothing_is_handed_on(node: Node) -> None:
    found = ended(node.run(AJ_SETUP="trap 'echo bye' EXIT; export A=b", AJ_COMMAND="echo [$A]"))
    assert (found.code, found.out) == (0, "bye\n[]\n")
    assert found.err.startswith("aj: the setup has a trap on EXIT of its own, or became another program: ")


def test_a_service_that_setup_started_lives_as_long_as_the_command(node: Node) -> None:
    setup = f"sleep 600 >/dev/null 2>&1 & echo $! >{node.root}/pid"
    command = f"kill -0 $(cat {node.root}/pid) && echo served"
    assert ended(node.run(AJ_SETUP=setup, AJ_COMMAND=command)).out == "served\n"
    assert gone(int((node.root / "pid").read_text()))


# The command


@pytest.mark.rule("A-144", "A-146")
@pytest.mark.parametrize(
    "command, code, out",
    [
        ("exit 3", 3, ""),
        ("echo a\nfalse\necho b", 1, "a\n"),
        ("export X=1; x=2\necho $X$x", 0, "12\n"),
        ("kill -TERM $$", 143, ""),
        ("kill -SEGV $$", 139, ""),
        ("nosuchprogram", 127, ""),
        ("exec sh -c 'exit 255'", 255, ""),
        ("read -r line || echo no stdin", 0, "no stdin\n"),
    ],
)
def test_the_status_is_that_of_the_command(node: Node, command: str, code: int, out: str) -> None:
    found = ended(node.run(AJ_COMMAND=command))
    assert (found.code, found.out) == (code, out)
    if code != 127:
        assert found.err == ""


WAITS = textwrap.dedent(
    """
    import os, signal, sys, time
    def told(number, frame):
        os.write(1, f"got {signal.Signals(number).name}\\n".encode())  # printing may not be interrupted by printing
        if number != signal.SIGUSR1:
            sys.exit(9)
    for one in ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2"):
        signal.signal(getattr(signal, "SIG" + one), told)
    open(sys.argv[1], "w").close()
    time.sleep(600)
    """
)


@pytest.fixture
def waits(node: Node) -> str:
    """Words that run a Python which waits for signals, and says so by a file `ready`."""
    (node.root / "waits.py").write_text(WAITS)
    return f"{PYTHON} waits.py ready"


@pytest.mark.rule("A-145", "A-146")
@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT", "USR2"])
def test_a_signal_reaches_the_command(node: Node, waits: str, name: str) -> None:
    child = node.run(AJ_COMMAND=waits)
    until((node.root / "ready").exists, "the command")
    child.send_signal(getattr(signal, f"SIG{name}"))
    found = ended(child)
    assert (found.code, found.out, found.err) == (9, f"got SIG{name}\n", "")


@pytest.mark.rule("A-145")
def test_a_signal_that_asks_for_no_end_may_come_first(node: Node, waits: str) -> None:
    child = node.run(AJ_COMMAND=waits)
    until((node.root / "ready").exists, "the command")
    child.send_signal(signal.SIGUSR1)
    assert child.stdout is not None and child.stdout.readline() == b"got SIGUSR1\n"
    child.send_signal(signal.SIGTERM)
    assert ended(child).code == 9


@pytest.mark.rule("A-145")
@pytest.mark.parametrize("name", ["TERM", "INT"])
def test_a_signal_reaches_a_program_below_a_script(node: Node, waits: str, name: str) -> None:
    (node.root / "train.sh").write_text(f"{waits}\necho after\n")
    child = node.run(AJ_COMMAND="cd .\nbash train.sh")
    until((node.root / "ready").exists, "the program")
    child.send_signal(getattr(signal, f"SIG{name}"))
    found = ended(child)
    assert found.out.splitlines()[0] == f"got SIG{name}"
    if name == "TERM":  # after INT a shell goes on when its program had an answer to it
        assert found.code in (9, 143) and "after" not in found.out


@pytest.mark.rule("A-145", "A-146")
def test_a_program_that_will_not_end_is_made_to(node: Node) -> None:
    deaf = "echo $$ >pid; trap '' TERM; touch ready; while :; do sleep 1; done"
    child = node.run(AJ_COMMAND=deaf, AJ_TERM_GRACE="1")
    until((node.root / "ready").exists, "the command")
    started = time.monotonic()
    child.send_signal(signal.SIGTERM)
    found = ended(child)
    assert (found.code, found.err) == (137, "") and time.monotonic() - started >= 0.9
    assert gone(int((node.root / "pid").read_text()))


@pytest.mark.rule("A-145")
def test_a_program_below_a_script_has_the_whole_grace(node: Node) -> None:
    slow = "import signal, time\nsignal.signal(15, lambda *_: (time.sleep(1), open('saved', 'w').close(), exit(0)))\n"
    (node.root / "slow.py").write_text(slow + "open('ready', 'w').close()\ntime.sleep(600)\n")
    (node.root / "train.sh").write_text(f"{PYTHON} slow.py\n")
    child = node.run(AJ_COMMAND="bash train.sh\ntrue")
    until((node.root / "ready").exists, "the program")
    child.send_signal(signal.SIGTERM)
    assert ended(child).code in (0, 143)
    assert (node.root / "saved").exists()


@pytest.mark.rule("A-145")
def test_nothing_of_the_group_outlives_the_runner(node: Node) -> None:
    command = "(trap '' TERM; exec sleep 600) & echo $! >deaf; sleep 600 & echo $! >left; echo done"
    assert ended(node.run(AJ_COMMAND=command)).out == "done\n"
    assert gone(int((node.root / "left").read_text())) and gone(int((node.root / "deaf").read_text()))


@pytest.mark.rule("A-145", "A-142")
def test_a_signal_while_setup_runs_ends_all_of_it(node: Node, waits: str) -> None:
    first, second = ranks(node, 2, AJ_SETUP=waits, AJ_COMMAND="echo ran")
    until((node.root / "ready").exists, "the setup")
    first.send_signal(signal.SIGUSR1)  # a word for the command: setup does not hear it
    first.send_signal(signal.SIGTERM)
    found = [ended(first), ended(second)]
    assert [one.code for one in found] == [143, 143] and found[0].out == "got SIGTERM\n"
    assert {one.err for one in found} == {"aj: the setup ended with status 143\n"}


@pytest.mark.rule("A-145")
def test_who_waits_for_setup_ends_at_once_when_asked(node: Node) -> None:
    first, second = ranks(node, 2, AJ_SETUP="touch ready; sleep 600", AJ_COMMAND="echo ran")
    until((node.root / "ready").exists, "the setup")
    until(lambda: catches_term(second.pid), "a runner that has come so far that it can wait")
    second.send_signal(signal.SIGTERM)
    assert ended(second).code == 143
    first.send_signal(signal.SIGTERM)
    assert ended(first).code == 143


@pytest.mark.rule("A-145")
def test_a_signal_at_any_moment_is_not_lost(node: Node) -> None:
    """However early it comes, the runner ends, and nothing of it stays."""
    children = []
    for number in range(20):
        child = node.run(AJ_COMMAND="exec sleep 600", AJ_ATTEMPT_TOKEN=f"t{number}", AJ_TERM_GRACE="1")
        time.sleep(number * 0.003)  # not to wait for something: to come at another moment each time
        child.send_signal(signal.SIGTERM)
        children.append(child)
    assert {ended(child).code for child in children} <= {143, -signal.SIGTERM}


@pytest.mark.rule("A-139")
def test_the_folder_of_a_process_goes_with_it(node: Node) -> None:
    folder = node.root / "rank"
    folder.mkdir()
    assert ended(node.run(AJ_COMMAND="touch $AJ_RANK_DIR/x", AJ_RANK_DIR=str(folder))).code == 0
    assert not folder.exists()


def test_no_name_of_the_runner_is_one_of_the_job(node: Node) -> None:
    given = {"status": "a", "code": "b", "line": "c", "pid": "d", "name": "e", "limit": "f", "i": "g", "SECONDS_": "h"}
    found = ended(node.run(AJ_SETUP="true", AJ_COMMAND="env", **given))
    lines = found.out.splitlines()
    assert [f"{name}={value}" in lines for name, value in given.items()] == [True] * len(given)
    assert not [one for one in lines if one.startswith("aj_")]


# Words that mean themselves


ODD = ["", " ", "\n", "'", '"', "\\", "$HOME", "$(touch owned)", "`touch owned`", "*", "~", "!x", "-e", "a=b", "#", ";"]


@pytest.mark.rule("A-144", "A-147")
def test_the_words_of_a_command_arrive_as_they_were_typed(node: Node) -> None:
    argv = [sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))", *ODD, "".join(ODD)]
    for lines in ([], ["cd .", "set -- x y"]):
        found = ended(node.run(AJ_COMMAND="\n".join([*lines, words.line(argv)])))
        assert (found.code, json.loads(found.out)) == (0, argv[3:])
    assert not (node.root / "owned").exists()


WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=12)


@pytest.mark.rule("A-147")
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(WORDS | st.sampled_from(ODD), max_size=4), min_size=1, max_size=20), WORDS)
@example([ODD], "$(touch owned)\n'\"")
def test_any_words_and_values_arrive(node: Node, calls: list[list[str]], value: str) -> None:
    """Many commands of odd words in one run, with an odd value beside them, through setup and command."""
    reader = node.root / "read.py"
    reader.write_text(
        "import json, os, sys; print(json.dumps([os.environ['VALUE'], os.environ['SET'], *sys.argv[1:]]))\n"
    )
    command = "\n".join(words.line([sys.executable, "-S", "-E", str(reader), *argv]) for argv in calls[:3])
    token = f"t{time.monotonic_ns()}"
    setup = f"export SET={words.quote(value)}"
    found = ended(node.run(AJ_SETUP=setup, AJ_COMMAND=command, VALUE=value, AJ_ATTEMPT_TOKEN=token))
    assert (found.code, found.err) == (0, "")
    assert [json.loads(line) for line in found.out.splitlines()] == [[value, value, *argv] for argv in calls[:3]]
    assert not (node.root / "owned").exists()


def test_it_runs_where_no_program_is_but_bash_and_a_few(node: Node) -> None:
    for name in ("mv", "rm"):
        (node.bin / name).symlink_to(f"/bin/{name}")
    node.env["PATH"] = str(node.bin)
    found = ended(node.run(AJ_SETUP="export A=b", AJ_COMMAND="echo $A", BASH=BASH))
    assert (found.code, found.out, found.err) == (0, "b\n", "")
