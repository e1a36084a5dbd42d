"""A node of a job: its folders, programs put before the real ones, and processes that end with the test."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import signal
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import aj

BASH = shutil.which("bash") or "/bin/bash"
SCRIPTS = Path(aj.__file__).parent / "azure/scripts"
BOOTSTRAP = SCRIPTS / "aj_bootstrap.sh"
RUNNER = SCRIPTS / "aj_runner.sh"
AJ_ID = "0a1b2c3d"
LIMIT_S = 60  # for what takes a moment on an idle machine
# A runner that says where it is and with what.
TELLING = 'printf "%s\\n" "ran in $PWD" "$AJ_RANK_DIR" "$AJ_NODE_DIR" "$AJ_ATTEMPT_TOKEN"\n'


def until(condition: Callable[[], object], what: str) -> None:
    """Wait until something is so; fail when it takes too long."""
    limit = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < limit, f"{what} did not come"
        time.sleep(0.005)


@dataclass(frozen=True)
class Ended:
    """What a process left."""

    code: int
    out: str
    err: str


@dataclass
class Node:
    """A node. `bin` comes first on its PATH."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)
    user: int | None = None
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"

    @property
    def private(self) -> Path:
        """The folder that nobody else can enter."""
        return self.tmp / f"aj-{self.user if self.user is not None else os.geteuid()}"

    @property
    def tree(self) -> Path:
        return self.private / f"{AJ_ID}-{self.env['AJ_CODE_ARCHIVE_SHA256'][:16]}"

    @property
    def turns(self) -> dict[str, str]:
        """Whose turn it was: number -> what its file says."""
        return {path.name: path.read_text() for path in (self.private / f"{AJ_ID}.lock").glob("[0-9]*")}

    def staged(self) -> list[str]:
        """What is being unpacked, or was left behind."""
        return [path.name for path in self.private.glob(".*")]

    def program(self, name: str, text: str) -> None:
        """Put a program before the real one; `REAL` in it stands for that."""
        path = self.bin / name
        real = shutil.which(name) or "/nonexistent"
        path.write_text("#!/bin/sh\n" + text.replace("REAL", real))
        path.chmod(0o755)

    def count(self, name: str) -> None:
        """Count how often a program runs, by lines in a file of its name."""
        self.program(name, f'echo run >>{self.root}/{name}.ran\nexec REAL "$@"\n')

    def ran(self, name: str) -> int:
        path = self.root / f"{name}.ran"
        return path.read_text().count("\n") if path.exists() else 0

    def stop_at(self, name: str, *, after: bool = False, only: str = "*") -> None:
        """Let the first run of a program stay where it is for ever, before or after its work; later ones pass.

        `only` is a pattern of its words.
        """
        mkdir, mv = shutil.which("mkdir"), shutil.which("mv")
        spot = f"{self.root}/{name}"
        first = f"{mkdir} {spot}.first 2>/dev/null"
        chosen = f'REAL "$@" || exit $?\n{first} || exit 0\n' if after else f'{first} || exec REAL "$@"\n'
        self.program(
            name,
            f'case "$*" in {only}) ;; *) exec REAL "$@" ;; esac\n'
            f"{chosen}echo $PPID >{spot}.part\n{mv} {spot}.part {spot}.at\nexec sleep 600\n",
        )

    def stopped(self, name: str) -> int:
        """Wait until that first run is there; return the pid of who called it."""
        path = self.root / f"{name}.at"
        until(path.exists, f"the first {name}")
        return int(path.read_text())

    def archive(self, members: Mapping[str, bytes | str] | None = None, runner: str | None = TELLING) -> Path:
        """Make an archive, and let the environment name it."""
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
            for name, content in {"aj_runner.sh": runner, **(members or {})}.items():
                if content is None:
                    continue
                body = content.encode() if isinstance(content, str) else content
                info = tarfile.TarInfo(name)
                info.size, info.mode, info.mtime = len(body), 0o755 if name.endswith(".sh") else 0o644, 946684800
                info.uid = info.gid = 12345
                tar.addfile(info, io.BytesIO(body))
        path = self.root / "code archive.tar.gz"
        path.write_bytes(data.getvalue())
        self.env["AJ_CODE_ARCHIVE_SHA256"] = hashlib.sha256(data.getvalue()).hexdigest()
        return path

    def start(self, *words: str | Path, **env: str) -> subprocess.Popen[bytes]:
        """Start a script by bash in a session of its own."""
        child = subprocess.Popen(
            [BASH, *map(str, words)],
            env={**self.env, **env},
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            user=self.user,
        )
        self.started.append(child)
        return child

    def boot(self, archive: Path | None = None, **env: str) -> subprocess.Popen[bytes]:
        """Start the bootstrap."""
        return self.start(BOOTSTRAP, archive or self.root / "code archive.tar.gz", **env)

    def run(self, **env: str) -> subprocess.Popen[bytes]:
        """Start the runner."""
        return self.start(RUNNER, **env)


def ended(child: subprocess.Popen[bytes]) -> Ended:
    """Wait for the end of a process and of all that holds its output."""
    out, err = child.communicate(timeout=LIMIT_S)
    return Ended(child.returncode, out.decode(), err.decode())


def kill(child: subprocess.Popen[bytes]) -> None:
    """End a process and all groups of its session, as the end of a container would."""
    while found := list(_session(child.pid)):
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        child.poll()
    child.communicate(timeout=LIMIT_S)


def _session(leader: int) -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        if fields[3] == str(leader) and fields[0] not in "ZX":
            yield int(path.parent.name)


@contextlib.contextmanager
def node(root: Path, user: int | None = None) -> Iterator[Node]:
    """A node for the length of a block."""
    made = Node(root, user=user)
    for folder in (made.bin, made.tmp):
        folder.mkdir()
    made.env = {
        "PATH": f"{made.bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "TMPDIR": str(made.tmp),
        "AJ_ID": AJ_ID,
    }
    try:
        yield made
    finally:
        for child in made.started:
            kill(child)
