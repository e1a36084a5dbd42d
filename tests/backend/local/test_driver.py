"""Jobs of this machine, for real: what runs, in which order, with which words and environment."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from aj.base.errors import Refused, UserError
from aj.model.job import Task
from aj.model.state import JobState
from aj.store import joblogs, jobs
from aj.wire.messages import Exec
from tests.conftest import Home
from tests.jobs import shape
from tests.yard import Yard

TELL = """
import json, os, sys
names = [name for name in os.environ if name.startswith(("AJ_", "MASTER_")) or "RANK" in name or "WORLD" in name]
print(json.dumps({"argv": sys.argv[1:], "cwd": os.getcwd(), **{name: os.environ[name] for name in sorted(names)}}))
"""


def told(yard: Yard, job_id: str, rank: int = 0) -> dict[str, str]:
    found: dict[str, str] = json.loads(yard.output(job_id, rank).strip().splitlines()[-1])
    return found


@pytest.mark.rule("LC-01", "LC-03", "LC-04", "WK-01", "C-164", "C-165", "C-166", "C-167", "C-168", "C-170")
def test_a_job_goes_through_its_states_and_finds_its_names(yard: Yard) -> None:
    job_id = yard.admit(yard.spec(sys.executable, "train.py", env={"MINE": "x"}), {"train.py": TELL})
    end = yard.done(job_id)
    answer = yard.show(job_id)
    assert [event.state for event in answer.events] == [
        JobState.QUEUED,
        JobState.PROVISIONING,
        JobState.INITIALIZING,
        JobState.STARTING,
        JobState.RUNNING,
        JobState.COMPLETED,
    ]
    assert (end.exit_code, end.attempt, end.reason, end.message) == (0, 1, None, None)
    assert end.completed_at is not None and end.cleaned_at is not None and end.completed_at <= end.cleaned_at
    assert answer.workload.spec is None and answer.logs == str(yard.folder(job_id) / "logs")
    found = told(yard, job_id)
    assert end.code is not None
    expected = {
        "AJ_ID": job_id,
        "AJ_NAME": f"train_{job_id}",
        "AJ_TEMPLATE": "local",
        "AJ_SUBMIT_TIMESTAMP_UTC": "2026-01-31T12:00:00.000000+00:00",
        "AJ_NODES": "1",
        "AJ_PROCESSES": "1",
        "AJ_GPUS_PER_NODE": "0",
        "AJ_CODE_DIGEST": end.code.digest,
        "AJ_CODE_ARCHIVE_SHA256": end.code.archive_sha256,
    }
    assert {name: found[name] for name in expected} == expected
    assert [topic["state"] for _, topic in yard.published] == [event.state for event in answer.events]


@pytest.mark.rule("C-169", "C-171", "C-174")
def test_four_processes_on_two_nodes_have_the_ranks_of_torch(yard: Yard) -> None:
    job_id = yard.admit(
        yard.spec(sys.executable, "train.py", shape=shape(2, 2), env={"LOCAL_WORLD_SIZE": "mine"}), {"train.py": TELL}
    )
    yard.done(job_id)
    ports = set()
    for rank in range(4):
        found, node = told(yard, job_id, rank), rank // 2
        where = str(yard.work(job_id, node))
        assert (found["RANK"], found["LOCAL_RANK"], found["NODE_RANK"]) == (str(rank), str(rank % 2), str(node))
        assert (found["WORLD_SIZE"], found["AJ_WORLD_SIZE"], found["AJ_NODE_RANK"]) == ("4", "4", str(node))
        assert (found["AJ_WORKDIR"], found["cwd"]) == (where, where)
        assert (found["LOCAL_WORLD_SIZE"], found["AJ_PROCESSES_PER_NODE"]) == ("mine", "2")
        assert found["MASTER_ADDR"] == "127.0.0.1"
        ports.add(found["MASTER_PORT"])
    assert len(ports) == 1 and 1024 < int(ports.pop()) < 65536


@pytest.mark.rule("C-160")
def test_setup_runs_once_a_node_then_the_lines_then_the_command(yard: Yard) -> None:
    trace = yard.root / "trace"
    job_id = yard.shell(
        f'echo "run $RANK in $COLOUR, $(pwd)" >> {trace}\n'
        f"while [ $(wc -l < {trace}) -lt 6 ]; do sleep 0.02; done; exit 7",
        shape=shape(2, 2),
        setup=(f'echo "setup $AJ_NODE_RANK" >> {trace}', "echo from-setup; echo oops >&2", "true # a comment"),
        lines=("export COLOUR=red", "set -- other words", "mkdir -p sub", "cd sub"),
    )
    end = yard.done(job_id)
    lines = trace.read_text().splitlines()
    assert lines[:2] == ["setup 0", "setup 1"]
    assert sorted(lines[2:]) == [f"run {rank} in red, {yard.work(job_id, rank // 2)}/sub" for rank in range(4)]
    assert (end.state, end.exit_code) == (JobState.ERRORED, 7)
    streams = joblogs.streams(yard.folder(job_id))
    assert [(one.rank, one.source.value) for one in streams[:2]] == [(-1, "runner")] * 2
    assert yard.output(job_id, rank=-1).count("from-setup") == 2
    assert "from-setup" not in yard.output(job_id, rank=0)


@pytest.mark.rule("C-160")
def test_a_setup_line_that_fails_ends_the_job_with_its_code(yard: Yard) -> None:
    job_id = yard.shell("touch ran", setup=("echo before", "(exit 41)", "echo after"))
    end = yard.done(job_id)
    assert (end.state, end.exit_code, end.reason) == (JobState.ERRORED, 41, "setup-failed")
    assert end.message == "setup line 2: exit code 41: (exit 41)"
    assert yard.output(job_id, rank=-1) == "before\naj: setup line 2: exit code 41: (exit 41)\n"
    assert not (yard.work(job_id) / "ran").exists()


@pytest.mark.rule("C-160")
def test_a_template_line_that_fails_stops_before_the_command(yard: Yard) -> None:
    job_id = yard.shell("touch ran", lines=("echo one", "false", "echo two"))
    end = yard.done(job_id)
    assert (end.state, end.exit_code, end.message) == (
        JobState.ERRORED,
        1,
        "template command line 2: exit code 1: false",
    )
    assert yard.output(job_id) == f"one\naj: {end.message}\n"
    assert not (yard.work(job_id) / "ran").exists()


@pytest.mark.rule("T87", "C-159")
def test_the_words_of_the_command_arrive_exactly(yard: Yard) -> None:
    words = ["", " two  words ", "it's", '"quoted"', "$HOME", "*", "a\nb", "-n", "--", "ü\udcff", "\\", "x" * 100_000]
    job_id = yard.admit(
        yard.spec(sys.executable, "t.py", *words, lines=("true",)),
        {"t.py": "import os, sys\nos.write(1, b'\\0'.join(map(os.fsencode, sys.argv[1:])))\n"},
    )
    assert yard.done(job_id).exit_code == 0
    written = joblogs.log_file(yard.folder(job_id), 1, 0, "out").read_bytes()
    assert written == b"\0".join(os.fsencode(word) for word in words)


@pytest.mark.rule("C-161", "T90")
def test_values_of_the_environment_arrive_byte_for_byte(yard: Yard) -> None:
    values = {
        "A": " x ",
        "B": "q\"'$`\\",
        "C": "line\nbreak\t",
        "D": "ü€\udcfe",
        "E": "",
        "F": "a=b=c",
        "G_1": "y" * 9000,
    }
    job_id = yard.admit(
        yard.spec(sys.executable, "t.py", env=values, lines=("true",)),
        {"t.py": "import os\nos.write(1, b'\\0'.join(k + b'=' + os.environb[k] for k in sorted(os.environb)))\n"},
    )
    assert yard.done(job_id).exit_code == 0
    written = joblogs.log_file(yard.folder(job_id), 1, 0, "out").read_bytes().split(b"\0")
    assert {os.fsencode(f"{name}={value}") for name, value in values.items()} <= set(written)


def test_a_job_gets_what_the_shell_lends_and_nothing_of_the_daemon(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_DAEMON", "1")
    job_id = yard.shell(
        "env", inherited={"PATH": os.environ["PATH"], "HOME": "/h", "LANG": "C", "AJ_ID": "no"}, env={"LANG": "C.UTF-8"}
    )
    yard.done(job_id)
    found = yard.output(job_id).splitlines()
    assert {"HOME=/h", "LANG=C.UTF-8", f"AJ_ID={job_id}"} <= set(found)
    assert not [line for line in found if line.startswith(("OF_THE_DAEMON", "AJ_STATE_DIR", "LC_ALL"))]


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("exit 0", 0, None),
        ("exit 3", 3, "exit code 3"),
        ("kill -KILL $$", 137, "ended by SIGKILL"),
        ("kill -SEGV $$", 139, "ended by SIGSEGV"),
        ("exec no-such-program", 127, "exit code 127: the command was not found"),
    ],
)
@pytest.mark.rule("LC-04")
def test_the_exit_code_of_the_command_is_kept(yard: Yard, line: str, code: int, words: str | None) -> None:
    end = yard.done(yard.shell(line))
    assert (end.exit_code, end.message) == (code, words)
    assert end.state is (JobState.COMPLETED if code == 0 else JobState.ERRORED)


def test_a_command_that_cannot_be_run_says_so_in_its_own_log(yard: Yard) -> None:
    missing = yard.admit(yard.spec("./nothing-here"))
    closed = yard.admit(yard.spec("./train.py"))
    assert yard.done(missing).exit_code == 127 and "nothing-here" in yard.output(missing)
    assert yard.done(closed).exit_code == 126 and "train.py" in yard.output(closed)


@pytest.mark.rule("C-236")
def test_only_the_submitted_code_runs_and_links_and_modes_are_kept(yard: Yard) -> None:
    (yard.root / "sub").mkdir(parents=True)
    (yard.root / "run.sh").write_text("#!/bin/sh\ncat sub/link\n")
    (yard.root / "run.sh").chmod(0o755)
    (yard.root / "sub" / "link").symlink_to("../train.py")
    yard.engine.stop()  # the tree changes between acceptance and start
    job_id = yard.admit(yard.spec("./run.sh"), {"train.py": "submitted\n"})
    (yard.root / "train.py").write_text("edited\n")
    (yard.root / "run.sh").unlink()
    yard.again().adopt("_none")
    assert yard.done(job_id).exit_code == 0
    assert yard.output(job_id) == "submitted\n"


def test_what_a_job_writes_stays_and_its_output_is_marked_by_stream(yard: Yard) -> None:
    job_id = yard.shell("echo result > result.txt; echo out; echo err >&2")
    end = yard.done(job_id)
    assert end.workdir is not None and (Path(end.workdir) / "result.txt").read_text() == "result\n"
    assert joblogs.log_file(yard.folder(job_id), 1, 0, "out").read_bytes() == b"out\n"
    assert joblogs.log_file(yard.folder(job_id), 1, 0, "err").read_bytes() == b"err\n"


def test_output_of_python_is_seen_while_it_runs(yard: Yard) -> None:
    script = "import time\nprint('first')\ntime.sleep(60)\n"
    job_id = yard.admit(yard.spec(sys.executable, "t.py"), {"t.py": script})
    yard.until(job_id, JobState.RUNNING)
    chunk = next(joblogs.follow(yard.folder(job_id), lambda: False))
    assert chunk.data == b"first\n"
    yard.engine.terminate(job_id, 5)
    assert yard.done(job_id).state is JobState.TERMINATED


@pytest.mark.rule("C-096")
def test_folders_with_odd_names_are_folders(home: Home, tmp_path: Path, programs: None, real_clock: None) -> None:
    odd = tmp_path / 'it\'s "so" $HOME\n*é'
    odd.mkdir()
    yard = Yard(home.having(AJ_STATE_DIR=str(odd / "state")), odd / "my tree")
    try:
        job_id = yard.shell('cat "in put"; pwd; echo "$AJ_WORKDIR"', {"in put": "text\n"}, setup=("echo ok > s",))
        assert yard.done(job_id).state is JobState.COMPLETED
        assert yard.output(job_id) == f"text\n{yard.work(job_id)}\n{yard.work(job_id)}\n"
    finally:
        yard.close()


def test_files_get_the_modes_that_the_submitting_shell_gives_whatever_the_daemon_has(yard: Yard) -> None:
    before = os.umask(0o077)
    try:
        loose = yard.shell("umask; echo x > file", setup=("umask > of-setup",), umask=0o022)
        strict = yard.shell("umask; echo x > file", umask=0o077)
        for job_id, mask, mode in ((loose, "0022\n", 0o644), (strict, "0077\n", 0o600)):
            assert yard.done(job_id).state is JobState.COMPLETED
            assert yard.output(job_id) == mask
            assert (yard.work(job_id) / "file").stat().st_mode & 0o777 == mode
    finally:
        os.umask(before)
    assert (yard.work(loose) / "of-setup").read_text() == "0022\n"
    for path in (yard.folder(loose) / "logs" / "1").iterdir():
        assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.rule("T32")
def test_a_supervisor_holds_nothing_of_the_daemon(yard: Yard) -> None:
    (yard.home.layout.state / "held").write_text("a lock of the daemon's")
    with (yard.home.layout.state / "held").open() as held:
        os.set_inheritable(held.fileno(), True)
        job_id = yard.shell("exec sleep 60")
        yard.wait_for(jobs.attempt_folder(yard.folder(job_id), 1) / "started")
        who = yard.supervisor(job_id)
        opened = {os.readlink(f"/proc/{who.pid}/fd/{name}") for name in os.listdir(f"/proc/{who.pid}/fd")}
    own = {name for name in opened if name.startswith(str(yard.folder(job_id))) or name == "/dev/null"}
    assert all(name.startswith(("pipe:", "anon_inode")) for name in opened - own)
    assert len([name for name in opened if name.startswith("pipe:")]) == 1, "the one that wakes it"
    assert os.getsid(who.pid) == who.pid != os.getsid(0)
    yard.engine.terminate(job_id, 5)
    yard.done(job_id)


@pytest.mark.rule("C-024", "OP-06", "LX-04")
def test_exec_runs_words_or_a_line_as_a_process_of_the_job_would(yard: Yard) -> None:
    from aj.base import proc

    job_id = yard.shell("echo up > up; exec sleep 60", shape=shape(2, 1), env={"COLOUR": "red"})
    yard.wait_for(yard.work(job_id, 1) / "up")
    yard.until(job_id, JobState.RUNNING)
    plan = yard.engine.exec_plan(job_id, Exec(('echo "$COLOUR $RANK $PWD"',), 1))
    found = proc.run(plan.argv, cwd=Path(plan.cwd), env=plan.env)
    assert found.out.decode() == f"red 1 {yard.work(job_id, 1)}\n"
    plan = yard.engine.exec_plan(
        job_id,
        Exec(
            (
                "printf",
                "%s|",
                "a b",
                "$RANK",
            ),
            0,
        ),
    )
    assert proc.run(plan.argv, cwd=Path(plan.cwd), env=plan.env).out == b"a b|$RANK|"
    with pytest.raises(UserError, match="no rank 2"):
        yard.engine.exec_plan(job_id, Exec(("true",), 2))
    left = proc.spawn(["sleep", "60"], stdout=1, stderr=2, env=plan.env)
    yard.engine.terminate(job_id, 5)
    yard.done(job_id)
    assert left.wait(5) == -signal.SIGTERM, "what was begun inside ends with the job"
    with pytest.raises(Refused, match="does not run: terminated"):
        yard.engine.exec_plan(job_id, Exec(("true",), 0))


def test_gpus_are_seen_by_number_and_only_those_of_the_node(
    home: Home, tmp_path: Path, programs: None, real_clock: None
) -> None:
    yard = Yard(home, tmp_path / "project", gpus=4)
    try:
        show = 'echo "[$CUDA_VISIBLE_DEVICES]"; echo > here; while [ -e here ]; do sleep 0.05; done'
        first = yard.shell(
            show, shape=shape(2, 1, gpus=1), inherited={"PATH": os.environ["PATH"], "CUDA_VISIBLE_DEVICES": "9"}
        )
        yard.wait_for(yard.work(first, 1) / "here")
        second = yard.shell(show, shape=shape(1, 1, gpus=2))
        third = yard.shell('echo "[$CUDA_VISIBLE_DEVICES]"')
        mine = yard.shell('echo "[$CUDA_VISIBLE_DEVICES]"', env={"CUDA_VISIBLE_DEVICES": "7"})
        yard.wait_for(yard.work(second) / "here")
        assert [yard.output(first, 0), yard.output(first, 1), yard.output(second)] == ["[0]\n", "[1]\n", "[2,3]\n"]
        for path in (yard.work(first, 0), yard.work(first, 1), yard.work(second)):
            (path / "here").unlink()
        assert {yard.done(one).exit_code for one in (first, second, third, mine)} == {0}
        assert (yard.output(third), yard.output(mine)) == ("[]\n", "[7]\n")
    finally:
        yard.close()


def test_without_gpus_nobody_speaks_of_them(yard: Yard) -> None:
    job_id = yard.shell('echo "[${CUDA_VISIBLE_DEVICES-unset}]"')
    yard.done(job_id)
    assert yard.output(job_id) == "[unset]\n"


def test_what_a_job_takes_is_counted_for_all_its_nodes(yard: Yard) -> None:
    target = {"service": "local", "cpus": 0.5, "memory": "64Mi"}
    job_id = yard.shell("true", shape=shape(2, 1), config={"target": target})
    needs = yard.done(job_id).needs
    assert (needs.cpus, needs.memory_bytes, needs.gpus) == (1.0, 128 << 20, 0)
    with pytest.raises(Refused, match="needs 4096 cpus, and this place has"):
        yard.shell("true", config={"target": {"service": "local", "cpus": 4096}})
    with pytest.raises(UserError, match="task kinds"):
        yard.shell("true", tasks=(Task("a", 1, 0, 1),))
    assert yard.engine.list(None, [], 9).jobs == (yard.show(job_id).workload,)


def test_code_that_is_gone_or_damaged_makes_the_job_invalid(yard: Yard) -> None:
    yard.engine.stop()
    gone, damaged = yard.shell("true", {"a": "1"}), yard.shell("true", {"a": "2"})
    for job_id, change in ((gone, Path.unlink), (damaged, lambda path: path.write_bytes(b"x" * path.stat().st_size))):
        code = yard.show(job_id).workload.code
        assert code is not None
        change(yard.home.layout.archive(code.digest))
    yard.again().adopt("_none")
    assert "is no longer kept" in (yard.until(gone, JobState.INVALID).message or "")
    assert "is damaged" in (yard.until(damaged, JobState.INVALID).message or "")


def test_a_supervisor_that_cannot_begin_is_tried_again_later(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    from aj.base import paths

    monkeypatch.setattr(paths, "program", lambda: [sys.executable, "-c", "raise SystemExit('no luck today')"])
    job_id = yard.shell("true")
    job = yard.until(job_id, JobState.QUEUED)
    while job.retry is None or job.state is not JobState.QUEUED:
        job = yard.engine.wait(job_id, yard.show(job_id).events_total, 1).workload
    assert job.retry.message == "the supervisor did not start: no luck today"
    states = [event.state for event in yard.show(job_id).events]
    assert states[-2:] == [JobState.RETRYING, JobState.QUEUED]
    assert yard.engine.terminate(job_id, None).workload.state is JobState.TERMINATED
