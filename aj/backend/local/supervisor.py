"""The program that watches over one start of a local job, and outlives the daemon that began it.

It holds nothing of the daemon, runs the setup lines node by node and then all processes of the command
at once. Their output goes straight into files. When one process fails, the others are ended; nothing
that they left behind survives. How it ended stands in a file before anything else is done. When this
program itself is killed, the processes of the command are killed with it by the kernel.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from aj.backend.local import attempt, limits, lines, mounts, states, strays
from aj.base import proc
from aj.base.clock import SYSTEM
from aj.model.json import Json
from aj.store import joblogs
from aj.store.atomic import FILE_MODE

SAMPLE_S = 0.2  # how exactly the times of output are known
SPARSE_AFTER, SPARSE_S = 50_000, 2.0  # a long job's times file grows by 2 MB a day and stream at most
STRAY_GRACE_S = 2.0  # between TERM and KILL for what a finished command left behind
GIVE_UP_S = 60.0  # a process that cannot even be killed waits for a device: the clean-up tells of it
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def main(argv: list[str]) -> int:
    """Supervise the start whose folder is named; a second word is a file descriptor to tell readiness."""
    folder = Path(argv[0])
    if not attempt.claim(folder):
        return 0  # somebody else did
    if len(argv) > 1:
        ready = int(argv[1])
        with contextlib.suppress(BrokenPipeError):  # the daemon was killed meanwhile: the job goes on
            os.write(ready, b"1")
        os.close(ready)
    request = attempt.take_request(folder)
    if request is None:
        return 0  # the job was ended and cleaned up before this process came so far
    Supervisor(folder, request).run()
    os._exit(0)  # everything is on disk: the end of a job does not wait for Python to tidy up


class Supervisor:
    """One start: the processes that were begun, how they ended, and whether the end was asked for."""

    def __init__(self, folder: Path, request: attempt.Request) -> None:
        self._folder = folder
        self._request = request
        self._job = Path(request.job)
        self._exit = attempt.reserve_exit(folder)
        self._kernel = _Kernel()
        self._signals = _Signals()
        self._sampler = _Sampler(self._job, request.attempt)
        self._running: dict[int, int] = {}  # pid -> rank; setup is the runner's rank
        self._begun: dict[int, Mapping[str, Json]] = {}  # the process of each rank
        self._failed: tuple[int, int] | None = None  # the first rank to fail, and its status
        self._in_setup = False
        self._started_at: float | None = None
        self._message: str | None = None
        self._kill_at: float | None = None  # set once the end has begun
        self._told: set[tuple[int, str]] = set()

    def run(self) -> None:
        """Run the job to its end and leave nothing behind."""
        self._kernel.adopt_orphans()
        if attempt.end_asked(self._folder) is not None:
            self._signals.end_asked = True
        if self._set_up():
            self._start()
        elif self._failed is None:
            self._fail(joblogs.RUNNER, -signal.SIGTERM)  # the end was asked for before the command began
        self._watch(until=lambda: not self._running)
        self._sampler.take()
        attempt.write_exit(self._folder, self._exit, self._record())
        self._sweep()
        self._sampler.take()

    # the parts of a start

    def _set_up(self) -> bool:
        """Run the setup lines, one node after the other; False when that ends the job."""
        for process in self._request.setups:
            self._in_setup = True
            if self._signals.end_asked or not self._spawn(process, joblogs.RUNNER):
                return False
            self._watch(until=lambda: not self._running)
            if self._failed is not None:
                return False
        self._in_setup = False
        return not self._signals.end_asked

    def _start(self) -> None:
        self._started_at = SYSTEM.now()
        for rank, process in enumerate(self._request.ranks):
            if not self._spawn(process, rank):
                break
        attempt.mark_started(self._folder, list(self._running))

    def _spawn(self, process: Mapping[str, Json], rank: int) -> bool:
        """Start one process with its own two files of output; False when the system cannot."""
        out, err = (self._open(rank, name) for name in joblogs.NAMES)
        try:
            child = proc.spawn_rank(
                cast("list[str]", process["argv"]),
                stdout=out,
                stderr=err,
                cwd=str(process["cwd"]),
                env=cast("Mapping[str, str]", process["env"]),
                before_exec=self._kernel.in_child(self._request),
            )
        except (OSError, ValueError) as error:
            self._message = f"rank {rank} could not be started: {error}"
            os.write(err, f"aj: {self._message}\n".encode("utf-8", "backslashreplace"))
            self._fail(rank, states.NOT_EXECUTABLE)
            return False
        finally:
            os.close(out)
            os.close(err)
        self._running[child.pid] = rank
        self._begun[rank] = process
        proc.let_go(child)  # all children are reaped below, known ones and orphans alike
        return True

    def _open(self, rank: int, name: str) -> int:
        path = joblogs.log_file(self._job, self._request.attempt, rank, name)
        self._sampler.add(path, rank, name)
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)

    # watching

    def _watch(self, *, until: Callable[[], bool]) -> None:
        """Look after the processes until the condition holds; woken by every signal, and to sample."""
        while True:
            self._reap()
            self._end_if_due()
            if until():
                return
            self._sampler.take_if_due()
            self._signals.wait(SAMPLE_S)

    def _reap(self) -> bool:
        """Take note of every child that has ended; True when others are left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            rank = self._running.pop(pid, None)
            if rank is not None and status != 0:
                self._fail(rank, os.waitstatus_to_exitcode(status))

    def _fail(self, rank: int, status: int) -> None:
        if self._failed is None:
            self._failed = (rank, status)

    def _end_if_due(self) -> None:
        if self._signals.end_asked:
            self._signals.end_asked = False
            grace_s = attempt.end_asked(self._folder)
            self._begin_end(self._request.grace_s if grace_s is None else grace_s)
        elif self._failed is not None and self._running and self._kill_at is None:
            self._begin_end(self._request.grace_s)
        if self._kill_at is None:
            return
        if SYSTEM.monotonic() >= self._kill_at:
            strays.send(self._members(), signal.SIGKILL)
        else:
            self._tell()

    def _begin_end(self, grace_s: float) -> None:
        kill_at = SYSTEM.monotonic() + grace_s
        self._kill_at = kill_at if self._kill_at is None else min(self._kill_at, kill_at)
        self._told.clear()
        self._tell()

    def _tell(self) -> None:
        """Tell every process to end, and later those that were begun while the others heard of it.

        A process that has become another program hears it again: between fork and exec the signal still goes
        to the shell's own handler, and is lost with it.
        """
        new = {(pid, proc.executable(pid)) for pid in self._members()} - self._told
        spared = self._request.spared
        strays.send([pid for pid, program in new if program.rpartition("/")[2] not in spared], signal.SIGTERM)
        self._told |= new

    def _members(self) -> set[int]:
        return strays.of(self._request.groups, below=os.getpid())

    # the end

    def _record(self) -> attempt.Exit:
        rank, status = self._failed or (0, 0)
        code = states.exit_code(status)
        oom_killed = limits.oom_kills(self._request.groups) > 0
        return attempt.Exit(
            exit_code=code,
            in_setup=self._in_setup,
            oom_killed=oom_killed,
            started_at=self._started_at,
            ended_at=SYSTEM.now(),
            message=self._words(rank, code, oom_killed),
        )

    def _words(self, rank: int, code: int, oom_killed: bool) -> str | None:
        if self._message is not None:
            return self._message[: attempt.MESSAGE_LENGTH]
        if code == 0:
            return None
        who = "" if self._in_setup or len(self._request.ranks) == 1 else f"rank {rank}: "
        why = " (over its memory limit)" if oom_killed else ""
        line = self._failed_line(rank)
        if line is None:
            return f"{'setup: ' if self._in_setup else who}{states.words(code)}{why}"
        what = "setup" if self._in_setup else "template command"
        told = f"{who}{what} line {line[0]}: {states.words(code)}{why}: {line[1]}"[: attempt.MESSAGE_LENGTH]
        self._log(rank, told)
        return told

    def _failed_line(self, rank: int) -> tuple[int, str] | None:
        process = self._begun.get(rank, {})
        return lines.failed(str(process.get("mark", "")), cast("list[str]", process.get("lines", [])))

    def _log(self, rank: int, words: str) -> None:
        """Say something at the end of a process's own log."""
        handle = self._open(rank, "err")
        with contextlib.suppress(OSError):  # a full disk: the message of the job has it too
            os.write(handle, f"aj: {words}\n".encode("utf-8", "backslashreplace"))
        os.close(handle)

    def _sweep(self) -> None:
        """End what the command left behind: TERM, a moment, KILL, until nothing is left."""
        if not self._has_strays():
            return
        if self._kill_at is None:
            self._begin_end(STRAY_GRACE_S)
        give_up_at = SYSTEM.monotonic() + GIVE_UP_S
        self._watch(until=lambda: not self._has_strays() or SYSTEM.monotonic() > give_up_at)

    def _has_strays(self) -> bool:
        if not self._reap() and not limits.members(self._request.groups):
            return False  # no child is left, and orphans become our children: nothing to search for
        return bool(self._members())


class _Signals:
    """TERM and the end of children, as something to wait for without missing any."""

    def __init__(self) -> None:
        self.end_asked = False
        self._wake, wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._poll = select.poll()
        self._poll.register(self._wake, select.POLLIN)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)
        for number in (signal.SIGCHLD, signal.SIGHUP):
            signal.signal(number, lambda *_: None)  # a handler, not SIG_IGN: children would inherit that

    def _ask(self, *_: object) -> None:
        self.end_asked = True

    def wait(self, timeout_s: float) -> None:
        """Wait for a signal."""
        if self._poll.poll(int(timeout_s * 1000)):
            with contextlib.suppress(BlockingIOError):
                while os.read(self._wake, 512):
                    pass


class _Sampler:
    """Sizes of the log files over time, so that lines can be ordered and moments found again."""

    def __init__(self, job: Path, number: int) -> None:
        joblogs.attempt_folder(job, number).mkdir(parents=True, exist_ok=True, mode=0o700)
        path = joblogs.times_file(job, number)
        self._times = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        self._files: dict[tuple[int, str], tuple[Path, int]] = {}
        self._lines = 0
        self._next_at = 0.0

    def add(self, path: Path, rank: int, name: str) -> None:
        """Watch one more file."""
        self._files.setdefault((rank, name), (path, 0))

    def take_if_due(self) -> None:
        """Take a sample when the last one is old enough."""
        now = SYSTEM.monotonic()
        if now >= self._next_at:
            self._next_at = now + (SAMPLE_S if self._lines < SPARSE_AFTER * len(self._files) else SPARSE_S)
            self.take()

    def take(self) -> None:
        """Note every file that has grown."""
        now = SYSTEM.now()
        lines = []
        for (rank, name), (path, known) in self._files.items():
            with contextlib.suppress(OSError):
                size = path.stat().st_size
                if size != known:
                    self._files[rank, name] = (path, size)
                    lines.append(joblogs.time_line(now, rank, name, size))
        if lines:
            with contextlib.suppress(OSError):  # a full disk: the output itself is what matters
                os.write(self._times, b"".join(lines))
            self._lines += len(lines)


class _Kernel:
    """What only Linux gives: orphans of ours come back to us, and ours die when we do."""

    def __init__(self) -> None:
        self._prctl: Callable[..., int] | None = None
        if sys.platform.startswith("linux"):
            import ctypes

            with contextlib.suppress(OSError, AttributeError):
                self._prctl = ctypes.CDLL(None, use_errno=True).prctl
        self._me = os.getpid()

    def adopt_orphans(self) -> None:
        """Become the parent of every orphan below."""
        if self._prctl is not None:
            self._prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def in_child(self, request: attempt.Request) -> Callable[[], None]:
        """Return what a new process does before it becomes the command."""

        def before_exec() -> None:
            if self._prctl is not None:
                self._prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
                if os.getppid() != self._me:
                    os._exit(1)  # the supervisor was killed just before: nobody would look after us
            limits.join(request.groups)
            if request.mounts is not None:
                _enter(request.mounts)
            if request.cpus:
                os.sched_setaffinity(0, request.cpus)
            if request.umask is not None:
                os.umask(request.umask)

        return before_exec


def _enter(found: mounts.Mounts) -> None:
    """Enter the namespace of a job, or say in its own log why that is not possible."""
    try:
        mounts.enter(found)
    except OSError as error:
        os.write(2, f"aj: its folders could not be mounted: {error}\n".encode("utf-8", "backslashreplace"))
        raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
