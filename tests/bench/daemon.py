"""Figures of the daemon: `python -m tests.bench.daemon`.

From the start of the process to its first answer, what it keeps in memory when idle, and what a request
costs it. The daemon is the product's own, on folders of its own, and is ended at the end.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from tests.bench.measure import figure, row

RUNS = 7
REQUESTS = 3000
START_BUDGET_S = 0.15
RSS_BUDGET_MIB = 18.0
TICK = os.sysconf("SC_CLK_TCK")


def request(target: str) -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def dial(path: Path) -> socket.socket:
    line = socket.socket(socket.AF_UNIX)
    line.connect(os.fsencode(path))
    return line


def ask(line: socket.socket, raw: bytes) -> bytes:
    """Send one request and read its whole answer."""
    line.sendall(raw)
    found = line.recv(1 << 16)
    head, _, body = found.partition(b"\r\n\r\n")
    rows = dict(row.lower().split(b": ", 1) for row in head.split(b"\r\n")[1:])
    length = int(rows[b"content-length"])
    while len(body) < length:
        body += line.recv(1 << 16)
    return body


def start(env: Mapping[str, str], path: Path) -> tuple[subprocess.Popen[bytes], float]:
    """Start the daemon; return it and the seconds until it had answered."""
    begun = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-I", "-m", "aj", "__daemon"], env=dict(env), stdin=subprocess.DEVNULL)
    while True:
        try:
            with dial(path) as line:
                ask(line, request("/v1/ping"))
                return child, time.perf_counter() - begun
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(0.001)


def stop(child: subprocess.Popen[bytes]) -> None:
    child.send_signal(signal.SIGTERM)
    child.wait(20)


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def rss_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024 / 1024


def rate(child: subprocess.Popen[bytes], path: Path, target: str, connections: int) -> str:
    """Ask as fast as possible over some connections; write requests a second and CPU of the daemon for each."""
    raw, each = request(target), REQUESTS // connections

    def run() -> None:
        with dial(path) as line:
            for _ in range(each):
                ask(line, raw)

    threads = [threading.Thread(target=run) for _ in range(connections)]
    begun, before = time.perf_counter(), cpu_s(child.pid)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken, used = time.perf_counter() - begun, cpu_s(child.pid) - before
    count = each * connections
    return f"{count / taken:8.0f} requests/s   {used / count * 1e6:6.0f} µs CPU of the daemon each"


def verdict(value: float, budget: float) -> str:
    return f"budget {budget:g}, {'met' if value <= budget else 'NOT met'}"


def main() -> int:
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="aj-b-")))
        env = {"PATH": os.environ["PATH"], "HOME": str(home)} | {
            f"AJ_{kind}_DIR": str(home / kind.lower()) for kind in ("STATE", "CACHE", "CONFIG", "RUNTIME")
        }
        path = home / "runtime" / "daemon.sock"
        taken = []
        for _ in range(RUNS):
            child, seconds = start(env, path)
            taken.append(seconds)
            used = cpu_s(child.pid)
            stop(child)
        best, usual = min(taken), statistics.median(taken)
        bare = figure([sys.executable, "-c", "pass"], env)
        print(row("python -c pass, for scale", bare))
        print(f"start to first answer   {usual:.3f} s median, {best:.3f} s least, {used:.2f} s CPU", end=" ")
        print(f"({verdict(best, START_BUDGET_S)})")
        child, _ = start(env, path)
        stack.callback(stop, child)
        idle = rss_mib(child.pid)
        print(f"resident when idle      {idle:.1f} MiB ({verdict(idle, RSS_BUDGET_MIB)})")
        for target in ("/v1/ping", "/v1/hello", "/v1/queue"):
            for connections in (1, 16):
                print(f"{target:12s} {connections:2d} connections {rate(child, path, target, connections)}")
        print(f"resident after that     {rss_mib(child.pid):.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
