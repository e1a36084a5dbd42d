"""The only room that starts other programs, and what can be asked about processes.

A process is named by its pid and its start time together: a pid alone may belong to somebody
else by now, so nothing is ever signalled whose start time does not match.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from aj.base.noun import dataclass

PIPE_BYTES = 65536  # what a pipe holds: no more of a program's own words is left there when it has ended
LONGEST_LINE = 65536  # bytes; a longer one is told in parts
LOOK_S = 0.1  # how often the end of a silent program is looked for


@dataclass(frozen=True)
class Identity:
    """One process of one boot of this machine."""

    pid: int
    start_time: str
    boot_id: str


@dataclass(frozen=True)
class Result:
    """What a finished program left. A death by signal N has `code` -N."""

    code: int
    out: bytes
    err: bytes


def boot_id() -> str:
    """Return a word that changes with every boot of the machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return _sysctl("kern.bootsessionuuid")


def _sysctl(name: str) -> str:
    try:
        return run(["sysctl", "-n", name], timeout_s=5).out.decode().strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def start_time(pid: int) -> str | None:
    """Return the start time of a process as the system counts it, or None when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None if sys.platform.startswith("linux") else _start_time_by_ps(pid)
    fields = stat.rpartition(b")")[2].split()
    if fields[0] in (b"Z", b"X"):
        return None  # a zombie has ended; only its parent has not looked yet
    return fields[19].decode()


def _start_time_by_ps(pid: int) -> str | None:
    found = run(["ps", "-o", "lstart=", "-p", str(pid)], timeout_s=5)
    return found.out.decode().strip() or None


def identity(pid: int | None = None) -> Identity:
    """Name a living process, by default this one. Raises ProcessLookupError."""
    number = os.getpid() if pid is None else pid
    started = start_time(number)
    if started is None:
        raise ProcessLookupError(number)
    return Identity(number, started, boot_id())


def is_alive(who: Identity) -> bool:
    """Tell whether exactly this process still runs."""
    return who.boot_id == boot_id() and start_time(who.pid) == who.start_time


def send(who: Identity, number: int) -> bool:
    """Signal exactly this process; False when it is gone."""
    if not is_alive(who):
        return False
    try:
        os.kill(who.pid, number)
    except ProcessLookupError:
        return False
    return True


def wait_gone(who: Identity, timeout_s: float) -> bool:
    """Wait until the process is gone; False when it still runs at the end of the time."""
    limit = time.monotonic() + timeout_s
    while is_alive(who):
        if time.monotonic() >= limit:
            return False
        time.sleep(0.02)
    return True


def run(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    timeout_s: float | None = None,
) -> Result:
    """Run a program to its end and return what it printed.

    Its whole process group is ended when the time is over. Raises OSError when it cannot start and
    TimeoutError when the time is over.
    """
    child = subprocess.Popen(
        argv,
        cwd=cwd,
        env=dict(env) if env is not None else None,
        stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with child:
        try:
            out, err = child.communicate(stdin, timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            end_group(child.pid, grace_s=2)
            child.communicate()
            raise TimeoutError(f"{argv[0]} did not end within {timeout_s:g} s") from error
    return Result(child.returncode, out, err)


def follow(
    argv: Sequence[str],
    hear: Callable[[str], None],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    stop: Callable[[], bool] = lambda: False,
    grace_s: Callable[[], float] = lambda: 5.0,
) -> int:
    """Run a program without stdin, tell each line it prints as it comes, and return its code (-N for signal N).

    Its whole process group is ended, by TERM and after the grace by KILL, when the time is over (TimeoutError) and
    when `stop` says so (InterruptedError). Raises OSError when it cannot start.
    """
    child = subprocess.Popen(
        argv,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    limit = time.monotonic() + timeout_s

    def may_go_on() -> None:
        if stop():
            raise InterruptedError(f"{argv[0]} was told to stop")
        if time.monotonic() >= limit:
            raise TimeoutError(f"{argv[0]} did not end within {timeout_s:g} s")

    assert child.stdout is not None, "a pipe was asked for"
    try:
        with child.stdout:
            for line in _lines(_pieces(child, child.stdout.fileno(), may_go_on)):
                hear(line)
        return child.wait()
    except BaseException:
        end_group(child.pid, grace_s=grace_s(), reap=child.poll)
        child.wait()
        raise


def _pieces(child: subprocess.Popen[bytes], handle: int, may_go_on: Callable[[], None]) -> Iterator[bytes]:
    """Yield what a program prints until it has ended; programs that it left behind are not waited for."""
    left = PIPE_BYTES
    while left > 0:
        has_ended = child.poll() is not None
        if not has_ended:
            may_go_on()
        if not readable(handle, 0 if has_ended else LOOK_S):
            if has_ended:
                return
            continue
        piece = os.read(handle, PIPE_BYTES)
        if not piece:
            break
        left -= len(piece) if has_ended else 0
        yield piece
    while child.poll() is None:  # it closed its output and goes on in silence
        may_go_on()
        time.sleep(0.02)


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield lines as soon as they are whole; a moving progress line is as many lines as it had states."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).replace(b"\r", b"\n").split(b"\n")
        if len(rest) > LONGEST_LINE:
            lines, rest = [*lines, rest], b""
        yield from (line.decode("utf-8", "replace") for line in lines if line)
    if rest:
        yield rest.decode("utf-8", "replace")


def run_here(
    argv: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None, reads: bool = True
) -> int:
    """Run a program on the caller's own terminal and return its exit status (128 + N for a signal).

    Without `reads` it has no stdin, so that it cannot eat what a script around us reads.
    """
    stdin = None if reads else subprocess.DEVNULL
    child = subprocess.Popen(argv, cwd=cwd, env=dict(env) if env is not None else None, stdin=stdin)
    while True:
        try:
            code = child.wait()
        except KeyboardInterrupt:
            continue  # the program has the same terminal and got the same Ctrl-C: it decides
        return code if code >= 0 else 128 - code


def spawn(
    argv: Sequence[str],
    *,
    stdout: int,
    stderr: int,
    cwd: Path | str = "/",
    env: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, with nothing of ours open, and do not wait for it."""
    return subprocess.Popen(
        argv,
        cwd=cwd,
        env=dict(env) if env is not None else None,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        close_fds=True,
        pass_fds=tuple(pass_fds),
    )


def spawn_rank(
    argv: Sequence[str],
    *,
    stdout: int,
    stderr: int,
    cwd: Path | str,
    env: Mapping[str, str],
    before_exec: Callable[[], None] | None = None,
) -> subprocess.Popen[bytes]:
    """Start one process of a job in a session of its own; `before_exec` runs in the child.

    Raises OSError when it cannot start.
    """
    try:
        return subprocess.Popen(
            argv,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            close_fds=True,
            preexec_fn=before_exec,
        )
    except subprocess.SubprocessError as error:
        raise OSError(f"what comes before the command failed: {error}") from error


def let_go(child: subprocess.Popen[bytes]) -> None:
    """Forget a child that is waited for by its pid: its object then never complains that it still runs."""
    child.returncode = 0


def reap(pid: int) -> None:
    """Take note of the end of a child that was let go; nothing when it runs, or is not ours."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def wait_any(who: Identity, timeout_s: float) -> bool:
    """Wait for the end of any process, child or not, at most so long; True when it is gone.

    Linux tells it at once; elsewhere we look again twenty times a second.
    """
    if not hasattr(os, "pidfd_open"):
        return wait_gone(who, min(timeout_s, 0.05))
    try:
        handle = os.pidfd_open(who.pid)
    except ProcessLookupError:
        return True
    except OSError:
        return wait_gone(who, min(timeout_s, 0.05))  # a kernel before 5.3
    try:
        if not is_alive(who):
            return True  # the pid belongs to somebody else by now
        return readable(handle, timeout_s)
    finally:
        os.close(handle)


def readable(handle: int, timeout_s: float) -> bool:
    """Wait until an open file has something to read or its other end is closed."""
    poll = select.poll()  # `select` knows no file beyond the first 1024
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))


def executable(pid: int) -> str:
    """Return the file that a process runs, empty where the system does not tell. It changes with every exec."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def is_program(pid: int, *words: str) -> bool:
    """Tell whether a process was started with one of these words among its own."""
    try:
        given = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(word.encode() in given for word in words)


def end_group(pid: int, *, grace_s: float, reap: Callable[[], object] = lambda: None) -> None:
    """End a process group that we started: TERM, then KILL after the grace.

    `reap` takes note of the end of its leader, which counts as living until its parent has.
    """
    for number, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 1.0)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, number)
        limit = time.monotonic() + wait_s
        while time.monotonic() < limit:
            reap()
            try:
                os.killpg(pid, 0)
            except (ProcessLookupError, PermissionError):
                return
            time.sleep(0.02)


def children_of(pids: set[int]) -> set[int]:
    """Return all living descendants of these processes (Linux: read from /proc)."""
    parents: dict[int, list[int]] = {}
    for pid, parent in _parents():
        parents.setdefault(parent, []).append(pid)
    found: set[int] = set()
    waiting = list(pids)
    while waiting:
        for child in parents.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found - pids


def _parents() -> Iterator[tuple[int, int]]:
    if not sys.platform.startswith("linux"):
        for line in run(["ps", "-axo", "pid=,ppid="], timeout_s=10).out.split(b"\n"):
            if words := line.split():
                yield int(words[0]), int(words[1])
        return
    with os.scandir("/proc") as entries:
        for entry in entries:
            if not entry.name.isdigit():
                continue
            try:
                stat = Path(entry.path, "stat").read_bytes()
            except OSError:
                continue  # it ended between the listing and this question: normal
            fields = stat.rpartition(b")")[2].split()
            if fields[0] not in (b"Z", b"X"):
                yield int(entry.name), int(fields[1])


def with_environment(name: str, value: str) -> list[int]:
    """Return the pids of this user's processes that were started with `name=value` (Linux)."""
    wanted = os.fsencode(f"{name}={value}")
    found = []
    if not sys.platform.startswith("linux"):
        return found
    with os.scandir("/proc") as entries:
        for entry in entries:
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                names = Path(entry.path, "environ").read_bytes().split(b"\0")
            except OSError:
                continue  # another user's, or gone already
            if wanted in names and start_time(int(entry.name)) is not None:
                found.append(int(entry.name))
    return found


def find(name: str, path: str | None) -> str | None:
    """Return where a program stands on a PATH, or None."""
    import shutil

    return shutil.which(name, path=path)
