"""The end of a job: every process hears of it, nothing survives it, and the outcome is never lost."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from aj.backend.local import attempt, limits, supervisor
from aj.base import clock as clocks
from aj.base import proc
from aj.model.state import JobState
from aj.store import atomic, joblogs, jobs
from tests.jobs import shape
from tests.yard import Yard, has_groups, is_gone

# Leaves its session, its parent and its group as a daemon does; with `bare` its environment as well.
DAEMON = """
import os, signal, sys, time
path, how = sys.argv[1:]
if how != 'stay':
    if os.fork(): os._exit(0)
    os.setsid()
    if os.fork(): os._exit(0)
if how == 'bare': os.execve(sys.executable, [sys.executable, sys.argv[0], path, 'stay'], {})
if how == 'deaf': signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(path, 'w') as out: out.write(f'{os.getpid()}\\n')
time.sleep(300)
"""
UNTIL_IT_IS = "while ! [ -s pid ]; do sleep 0.02; done"


@pytest.mark.rule("T48")
def test_when_one_process_fails_the_others_are_ended_and_its_code_is_the_jobs(yard: Yard) -> None:
    job_id = yard.shell(
        'echo $$ > pid$RANK; trap "exit 5" TERM; [ $RANK = 2 ] && exit 9; while :; do sleep 0.05; done',
        shape=shape(1, 4),
    )
    end = yard.done(job_id)
    assert (end.state, end.exit_code, end.message) == (JobState.ERRORED, 9, "rank 2: exit code 9")
    for rank in (0, 1, 3):
        pid = yard.work(job_id) / f"pid{rank}"
        if pid.exists():  # else it was told before it had said anything
            assert is_gone(int(pid.read_text()))


@pytest.mark.rule("C-025", "T52", "C-160")
def test_terminate_tells_every_process_and_the_state_changes_when_all_are_gone(yard: Yard) -> None:
    line = """
        (trap 'sleep 0.4; echo child > child; exit' TERM; echo > child-up; while :; do sleep 0.02; done) &
        trap 'echo told > told; exit 3' TERM
        echo > up
        while :; do sleep 0.02; done
    """
    job_id = yard.shell(line, shape=shape(2, 1))
    for node in range(2):
        yard.wait_for(yard.work(job_id, node) / "up")
        yard.wait_for(yard.work(job_id, node) / "child-up")
    yard.until(job_id, JobState.RUNNING)
    answer = yard.engine.terminate(job_id, 20)
    assert answer.workload.state is JobState.RUNNING and answer.workload.terminating_since is not None
    end = yard.until(job_id)
    assert (end.state, end.reason) == (JobState.TERMINATED, "terminated")
    for node in range(2):
        assert (yard.work(job_id, node) / "told").exists()
        assert (yard.work(job_id, node) / "child").exists(), "the slowest was waited for"
    assert yard.engine.terminate(job_id, None).workload.state is JobState.TERMINATED, "once more is no error"


def test_who_does_not_listen_is_killed_after_the_grace(yard: Yard) -> None:
    job_id = yard.shell("trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done")
    pid = int(yard.wait_for(yard.work(job_id) / "pid"))
    begun = clocks.SYSTEM.monotonic()
    yard.engine.terminate(job_id, 0.5)
    end = yard.done(job_id)
    assert 0.5 <= clocks.SYSTEM.monotonic() - begun < 10
    assert (end.state, end.exit_code) == (JobState.TERMINATED, 137) and is_gone(pid)


def test_a_process_that_is_begun_while_the_others_are_told_is_told_as_well(yard: Yard) -> None:
    line = "trap 'setsid sleep 300 & echo $! > pid; exit 0' TERM; echo > up; while :; do sleep 0.02; done"
    job_id = yard.shell(line, shape=shape(1, 2))
    yard.wait_for(yard.work(job_id) / "up")
    begun = clocks.SYSTEM.monotonic()
    yard.engine.terminate(job_id, 60)
    assert yard.done(job_id).state is JobState.TERMINATED
    assert clocks.SYSTEM.monotonic() - begun < 30
    assert is_gone(int((yard.work(job_id) / "pid").read_text()))


def test_a_process_that_becomes_another_program_is_told_again(yard: Yard) -> None:
    line = "trap 'exec sleep 300' TERM; echo > up; while :; do sleep 0.02; done"
    job_id = yard.shell(line)
    yard.wait_for(yard.work(job_id) / "up")
    begun = clocks.SYSTEM.monotonic()
    yard.engine.terminate(job_id, 60)
    assert yard.done(job_id).state is JobState.TERMINATED
    assert clocks.SYSTEM.monotonic() - begun < 30


def test_a_second_request_may_shorten_the_grace(yard: Yard) -> None:
    job_id = yard.shell("trap '' TERM; echo > up; while :; do sleep 0.05; done")
    yard.wait_for(yard.work(job_id) / "up")
    yard.engine.terminate(job_id, 600)
    yard.engine.terminate(job_id, 0)
    assert yard.done(job_id).state is JobState.TERMINATED


def test_terminate_reaches_a_setup_that_runs(yard: Yard) -> None:
    job_id = yard.shell("touch ran", setup=("echo > in-setup", "sleep 60"))
    yard.wait_for(yard.work(job_id) / "in-setup")
    yard.engine.terminate(job_id, 5)
    end = yard.done(job_id)
    assert (end.state, end.exit_code) == (JobState.TERMINATED, 143)
    assert not (yard.work(job_id) / "ran").exists()


@pytest.mark.rule("RS-01")
@pytest.mark.parametrize("how", ["plain", "bare"])
def test_what_a_command_left_behind_ends_with_it(yard: Yard, how: str) -> None:
    job_id = yard.shell(f"{sys.executable} d.py pid {how}; {UNTIL_IT_IS}; exit 4", {"d.py": DAEMON})
    end = yard.done(job_id)
    assert (end.state, end.exit_code) == (JobState.ERRORED, 4)
    assert is_gone(int((yard.work(job_id) / "pid").read_text()))


def test_a_stray_that_does_not_listen_is_killed_and_delays_no_outcome_for_long(yard: Yard) -> None:
    job_id = yard.shell(f"{sys.executable} d.py pid deaf; {UNTIL_IT_IS}", {"d.py": DAEMON})
    assert yard.done(job_id).exit_code == 0
    assert is_gone(int((yard.work(job_id) / "pid").read_text()))


@pytest.mark.rule("T52")
@pytest.mark.parametrize("how", ["plain", "bare"])
def test_a_killed_supervisor_takes_its_processes_along_and_the_host_is_lost(yard: Yard, how: str) -> None:
    if how == "bare" and not has_groups():
        pytest.skip("without control groups a process with another environment cannot be found again")
    job_id = yard.shell(f"{sys.executable} d.py stray {how}; echo $$ > pid; exec sleep 300", {"d.py": DAEMON})
    pids = [int(yard.wait_for(yard.work(job_id) / name)) for name in ("stray", "pid")]
    proc.send(yard.supervisor(job_id), signal.SIGKILL)
    end = yard.done(job_id)
    assert (end.state, end.reason, end.exit_code) == (JobState.FAILED, "host-lost", None)
    assert end.message is not None and end.message.startswith("the supervisor is gone")
    assert all(is_gone(pid) for pid in pids)


def test_without_groups_strays_are_found_by_their_environment(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_mounts", lambda: iter(()))
    job_id = yard.shell(f"{sys.executable} d.py stray plain; exec sleep 300", {"d.py": DAEMON}, shape=shape(2, 1))
    pids = [int(yard.wait_for(yard.work(job_id, node) / "stray")) for node in range(2)]
    proc.send(yard.supervisor(job_id), signal.SIGKILL)
    assert yard.done(job_id).reason == "host-lost"
    assert all(is_gone(pid) for pid in pids)


def test_a_supervisor_that_hangs_is_ended_with_all_it_had(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    from aj.engine import starter

    monkeypatch.setattr(starter, "PATIENCE_S", 0.2)
    job_id = yard.shell("echo $$ > pid; exec sleep 300")
    pid = int(yard.wait_for(yard.work(job_id) / "pid"))
    proc.send(yard.supervisor(job_id), signal.SIGSTOP)
    yard.engine.terminate(job_id, 0.1)
    assert yard.done(job_id).state is JobState.TERMINATED
    assert is_gone(pid)


def test_a_job_that_filled_the_disk_can_be_ended(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = yard.shell("trap 'echo told > told; exit 0' TERM; echo > up; while :; do sleep 0.02; done")
    yard.wait_for(yard.work(job_id) / "up")
    yard.until(job_id, JobState.RUNNING)

    def full(path: Path, value: object) -> None:
        raise atomic.cannot_write(path, OSError(28, ""))

    monkeypatch.setattr(atomic, "write_json", full)
    answer = yard.engine.terminate(job_id, 5)
    assert answer.workload.terminating_since is not None
    yard.wait_for(yard.work(job_id) / "told")
    monkeypatch.undo()
    assert yard.done(job_id).state is JobState.TERMINATED
    assert any("is not written down" in line for line in yard.log)


@pytest.mark.rule("T44")
def test_an_outcome_is_kept_when_the_supervisor_dies_right_after_it(yard: Yard) -> None:
    job_id = yard.shell(f"{sys.executable} d.py pid deaf; {UNTIL_IT_IS}; exit 6", {"d.py": DAEMON})
    place = jobs.attempt_folder(yard.folder(job_id), 1)
    limit = clocks.SYSTEM.monotonic() + 20
    while attempt.exit_record(place) is None:  # now it waits for the stray, which does not listen
        assert clocks.SYSTEM.monotonic() < limit
        clocks.SYSTEM.sleep(0.01)
    proc.send(yard.supervisor(job_id), signal.SIGKILL)
    end = yard.done(job_id)
    assert (end.state, end.exit_code) == (JobState.ERRORED, 6)
    assert is_gone(int((yard.work(job_id) / "pid").read_text()))


def test_a_start_happens_once_whoever_asks_for_it_again(yard: Yard) -> None:
    job_id = yard.shell("echo ran >> ../../ran; exec sleep 60")
    yard.wait_for(yard.folder(job_id) / "ran")
    place = jobs.attempt_folder(yard.folder(job_id), 1)
    assert supervisor.main([str(place)]) == 0, "it found the start claimed and went away"
    assert attempt.supervisor(place) == yard.supervisor(job_id)
    yard.engine.terminate(job_id, 5)
    yard.done(job_id)
    assert (yard.folder(job_id) / "ran").read_text() == "ran\n"


def test_the_request_with_its_values_does_not_stay(yard: Yard) -> None:
    job_id = yard.shell("exec sleep 60", env={"TOKEN": "hush-hush"})
    yard.until(job_id, JobState.RUNNING)
    place = jobs.attempt_folder(yard.folder(job_id), 1)
    limit = clocks.SYSTEM.monotonic() + 20
    while not attempt.is_started(place):
        assert clocks.SYSTEM.monotonic() < limit
        clocks.SYSTEM.sleep(0.01)
    yard.engine.terminate(job_id, 5)
    yard.done(job_id)
    holding = [path.name for path in yard.folder(job_id).rglob("*") if path.is_file() and b"hush" in path.read_bytes()]
    assert holding == ["spec.json"]


def test_the_exit_record_has_its_room_before_the_disk_is_full(tmp_path: Path) -> None:
    handle = attempt.reserve_exit(tmp_path)
    blocks = os.fstat(handle).st_blocks
    message = "\udcff" * attempt.MESSAGE_LENGTH
    attempt.write_exit(tmp_path, handle, attempt.Exit(3, message=message))
    os.close(handle)
    assert (tmp_path / "exit.json").stat().st_size == attempt.EXIT_BYTES
    assert (tmp_path / "exit.json").stat().st_blocks <= max(blocks, 8)
    assert attempt.exit_record(tmp_path) == attempt.Exit(3, message=message)


def test_when_lines_were_written_is_known(yard: Yard) -> None:
    job_id = yard.shell("echo a; sleep 0.6; echo b >&2; sleep 0.6; echo c")
    yard.done(job_id)
    assert yard.output(job_id) == "a\nb\nc\n"
    chunks = list(joblogs.read(yard.folder(job_id)))
    assert 0.3 < chunks[1].at - chunks[0].at < 3 and 0.3 < chunks[2].at - chunks[1].at < 3
    later = joblogs.read(yard.folder(job_id), since=chunks[1].at)
    assert b"".join(chunk.data for chunk in later) == b"b\nc\n"


def test_a_job_that_uses_this_program_ends_neither_daemon_nor_other_jobs(yard: Yard) -> None:
    program = "import os, sys, time\nopen(sys.argv[2], 'w').write(f'{os.getpid()}\\n')\ntime.sleep(300)\n"
    job_id = yard.shell(
        f"setsid {sys.executable} p.py __daemon pid & while ! [ -s pid ]; do sleep 0.02; done", {"p.py": program}
    )
    assert yard.done(job_id).exit_code == 0
    pid = int((yard.work(job_id) / "pid").read_text())
    assert proc.start_time(pid) is not None
    os.kill(pid, signal.SIGKILL)
    assert is_gone(pid)
