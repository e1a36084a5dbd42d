"""The programs of helper pods as processes of this machine: under bash, a plain shell, and busybox alone."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from aj.backend.volcano import porter
from aj.kube.exec import Ended, Heard, broken
from tests.house.test_pages import need

SHELLS = ("bash", "sh", "busybox")


def tools(shell: str, folder: Path) -> tuple[list[str], str]:
    """Return the words that run a script's text, and the PATH: for busybox nothing but its own programs."""
    if shell != "busybox":
        return [need(shell), "-c"], os.environ["PATH"]
    programs = folder / "busybox"
    if not programs.exists():
        programs.mkdir(parents=True)
        subprocess.run([need("busybox"), "--install", "-s", str(programs)], check=True)
    return [str(programs / "sh"), "-c"], str(programs)


@dataclass
class Local:
    """A program on the other side of a line, which is a pair of pipes.

    The line breaks after so many bytes of input or output; before that, the byte with the number `damaged` of the
    bytes behind the commands arrives as another one.
    """

    argv: list[str]
    path: str
    cut_in: int | None = None
    cut_out: int | None = None
    damaged: int | None = None
    ended: Ended | None = None
    child: subprocess.Popen[bytes] = field(init=False)
    waiting: bytearray = field(default_factory=bytearray)
    taken: int = 0
    told: int = 0

    def __post_init__(self) -> None:
        pipe = subprocess.PIPE
        self.child = subprocess.Popen(
            self.argv, stdin=pipe, stdout=pipe, stderr=pipe, env={"PATH": self.path}, start_new_session=True
        )
        assert self.child.stdin is not None
        os.set_blocking(self.child.stdin.fileno(), False)

    @property
    def unsent(self) -> int:
        return len(self.waiting)

    def write(self, data: bytes) -> None:
        is_command = data[:4] in (b"put ", b"cut ") or data == b"end\n"
        if self.damaged is not None and not is_command:
            if self.damaged < len(data):
                at, self.damaged = self.damaged, None
                data = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
            else:
                self.damaged -= len(data)
        self.waiting += data

    def poll(self, wait_s: float) -> Heard:
        assert self.child.stdin and self.child.stdout and self.child.stderr
        self._give()
        streams = [self.child.stdout, self.child.stderr]
        ready, _, _ = select.select(streams, [self.child.stdin] if self.waiting else [], [], wait_s)
        found = {stream: os.read(stream.fileno(), 65536) for stream in ready}
        out, err = found.get(self.child.stdout), found.get(self.child.stderr)
        if ready and not any(found.values()) and self.ended is None and out == b"":
            self.ended = Ended(self.child.wait(30))
            err = (err or b"") + self.child.stderr.read()
        self.told += len(out or b"")
        if self.cut_out is not None and self.told > self.cut_out:
            self.close()
            raise broken("cut")
        return Heard(out or b"", err or b"")

    def close(self) -> None:
        """Hang up: the program hears no more and nobody hears it; it must end by itself."""
        for stream in (self.child.stdin, self.child.stdout, self.child.stderr):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]
        self.child.wait(30)

    def _give(self) -> None:
        assert self.child.stdin is not None
        if not self.waiting:
            return
        if self.cut_in is not None and self.taken + len(self.waiting) > self.cut_in:
            del self.waiting[max(0, self.cut_in - self.taken) :]
            with contextlib.suppress(OSError):
                os.write(self.child.stdin.fileno(), self.waiting)
            self.close()
            raise broken("cut")
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            count = os.write(self.child.stdin.fileno(), self.waiting)
            self.taken += count
            del self.waiting[:count]


def receiver(shell: str, folder: Path, words: list[str]) -> tuple[list[str], str]:
    """Return how the receiving program is started."""
    start, path = tools(shell, folder)
    return [*start, porter.script("receive.sh"), "aj", *words], path


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A disk of a few bytes, mounted for a while (as root alone)."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
