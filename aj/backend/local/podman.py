"""Jobs in containers of this machine, through podman: pulled by digest, made, started, entered, removed.

A container is made by the step that starts a job, so that what is wrong with it fails the setup and not the
job; the supervisor then only starts it and hands its output on. Values of variables are handed to podman in
its own environment, never in its words, which everybody on the machine can read.
"""

from __future__ import annotations

import json
import os
import resource
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from aj.backend.protocol import SetupFailed, SetupInvalid
from aj.base import proc
from aj.base.errors import AjError, Refused
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.base.text import decoded
from aj.model.image import Image
from aj.net.origin import Origin

PULL_S = 6 * 3600.0  # tens of gigabytes over a slow line
QUICK_S = 120.0  # a storage that is cold may take long for the smallest question
LABEL = "aj.job"
PROGRAMS = ("podman", "conmon")  # what stands between a supervisor and a container; told to end, they lose its code
OURS = ("PATH", "HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "REGISTRY_AUTH_FILE", "DOCKER_CONFIG")
OURS_TOO = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "TMPDIR")
# What podman says when the registry has refused for good; anything else may be different in a minute.
REFUSALS = (
    "manifest unknown",
    "name unknown",
    "unauthorized",
    "denied",
    "no image found in manifest list",
    "not found",
)


@dataclass(frozen=True)
class Container:
    """One container to make: its name, the content it has, and what it sees of the machine."""

    name: str
    job: str
    reference: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    entrypoint: str | None = None
    workdir: str | None = None
    binds: tuple[tuple[str, str, bool], ...] = ()  # folder here, folder there, read-only
    cpus: float | None = None
    memory_bytes: int | None = None
    gpus: tuple[int, ...] = ()
    shm_bytes: int | None = None
    ipc: str | None = None


@dataclass(frozen=True)
class Podman:
    """podman as it works on this machine, with the environment that it runs in."""

    words: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)

    def pull(self, image: Image, digest: str) -> None:
        """Bring an image here unless it is. Raises SetupInvalid when the registry refuses, SetupFailed."""
        reference = image.at(digest)
        if self.has(reference):
            return
        plain = ["--tls-verify=false"] if Origin.parse(image.registry).is_loopback else []
        found = self._run(["pull", "--quiet", *plain, reference], PULL_S)
        if found.code:
            words = _last_line(found.err)
            if any(said in words.lower() for said in REFUSALS):
                raise SetupInvalid(f"the image {reference} was refused: {words}")
            raise SetupFailed(f"the image {reference} could not be pulled: {words}")

    def has(self, reference: str) -> bool:
        """Tell whether an image is here."""
        return self._run(["image", "exists", reference], QUICK_S).code == 0

    def digest(self, reference: str) -> str | None:
        """Return the digest of an image that was built here, or None."""
        found = self._run(["image", "inspect", "--format", "{{.Digest}}", reference], QUICK_S)
        return decoded(found.out).strip() if found.code == 0 else None

    def workdir(self, reference: str) -> str:
        """Return where the programs of an image start."""
        found = self._run(["image", "inspect", "--format", "{{.Config.WorkingDir}}", reference], QUICK_S)
        return decoded(found.out).strip() or "/"

    def make(self, wanted: Container) -> None:
        """Make a container, in place of one of that name. Raises SetupFailed."""
        self.remove(["--ignore", wanted.name])
        found = self._run(["create", *options(wanted)], QUICK_S, {**wanted.env, **self.env})
        if found.code:
            raise SetupFailed(f"the container could not be made: {_last_line(found.err)}")

    def start_words(self, name: str) -> tuple[str, ...]:
        """Return the words that start a container and stay with it to its end."""
        return (*self.words, "start", "--attach", name)

    def exec_words(self, name: str, argv: Sequence[str], *, stdin: bool, tty: bool) -> tuple[str, ...]:
        """Return the words that run a command in a container."""
        flags = [*(["--interactive"] if stdin or tty else []), *(["--tty"] if tty else [])]
        return (*self.words, "exec", *flags, name, *argv)

    def was_out_of_memory(self, name: str) -> bool:
        """Tell whether the kernel ended a container that was over its memory limit."""
        found = self._run(["inspect", "--type", "container", "--format", "{{.State.OOMKilled}}", name], QUICK_S)
        return found.out.strip() == b"true"

    def remove_all(self, job: str) -> None:
        """Remove every container of a job with all that runs in it. Raises AjError."""
        found = self._run(["ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={LABEL}={job}"], QUICK_S)
        if found.code:
            raise AjError(f"podman does not list its containers: {_last_line(found.err)}", code="podman")
        names = decoded(found.out).split()
        if names:
            self.remove(names)

    def remove(self, words: Sequence[str]) -> None:
        """Remove containers by force. Raises AjError."""
        found = self._run(["rm", "--force", "--time", "0", *words], QUICK_S)
        if found.code:
            raise AjError(f"a container could not be removed: {_last_line(found.err)}", code="podman")

    def _run(self, words: Sequence[str], limit_s: float, env: Mapping[str, str] | None = None) -> proc.Result:
        try:
            return proc.run([*self.words, *words], env=env or self.env, timeout_s=limit_s)
        except (OSError, TimeoutError) as error:
            raise SetupFailed(f"podman does not answer: {error}") from error


def find(settings: Settings) -> Podman | None:
    """Return podman as it has to be called here, or None when this machine has none."""
    program = proc.find("podman", settings.get("PATH"))
    if program is None:
        return None
    kept = {name: settings.get(name) for name in (*OURS, *OURS_TOO)}
    return Podman((program, *_flags(settings)), {name: value for name, value in kept.items() if value})


def need(settings: Settings) -> Podman:
    """Return podman. Raises Refused when this machine has none."""
    found = find(settings)
    if found is None:
        raise Refused(
            "an image runs on this machine only through podman, which is not on PATH",
            hint="install podman, or run on the machine itself with `local/host` or `image: !unset `",
            code="no-podman",
        )
    return found


def _flags(settings: Settings) -> list[str]:
    """What podman cannot find out by itself: who makes control groups where no systemd does."""
    flags = []
    if not Path("/run/systemd/system").is_dir():
        flags.append("--cgroup-manager=cgroupfs")
    runc = proc.find("runc", settings.get("PATH"))
    if Path("/sys/fs/cgroup/unified").is_dir() and runc is not None:
        flags += ["--runtime", runc]  # crun refuses groups of both versions at once
    return flags


def options(wanted: Container) -> list[str]:
    """Return the words that make a container."""
    found = ["--name", wanted.name, "--label", f"{LABEL}={wanted.job}", "--pull", "never", "--network", "host"]
    found += ["--log-driver", "none", "--security-opt", "label=disable"]  # its output has a place, and its folders
    found += [word for limit in _limits() for word in ("--ulimit", limit)]
    found += [word for bind in wanted.binds for word in ("--volume", _bind(*bind))]
    sizes = {"--cpus": wanted.cpus, "--memory": wanted.memory_bytes, "--workdir": wanted.workdir, "--ipc": wanted.ipc}
    found += [word for name, value in sizes.items() if value is not None for word in (name, f"{value}")]
    if wanted.shm_bytes is not None and wanted.ipc != "host":
        found += ["--shm-size", str(wanted.shm_bytes)]
    found += [word for index in wanted.gpus for word in ("--device", f"nvidia.com/gpu={index}")]
    found += [word for name in wanted.env for word in ("--env", _variable(name, wanted.env))]
    if wanted.entrypoint is not None:
        found += ["--entrypoint", json.dumps([wanted.entrypoint])]
    return [*found, wanted.reference, *wanted.argv]


def _limits() -> list[str]:
    """Return the limits that this user has: podman asks for more by itself, which not everybody may have."""
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    _, processes = resource.getrlimit(resource.RLIMIT_NPROC)
    most = _most_pids()  # podman itself goes no higher, and nobody below it may
    least = most if processes == resource.RLIM_INFINITY else min(processes, most)
    return [f"nofile={files}:{files}", f"nproc={least}:{least}"]


def _most_pids() -> int:
    try:
        return int(Path("/proc/sys/kernel/pid_max").read_text())
    except (OSError, ValueError):
        return 32768  # what the kernel begins with


def _bind(source: str, target: str, read_only: bool) -> str:
    return f"{source}:{target}{':ro' if read_only else ''}"


def _variable(name: str, env: Mapping[str, str]) -> str:
    """A name alone takes podman's own value, so only what podman needs for itself is written out."""
    return f"{name}={env[name]}" if name in (*OURS, *OURS_TOO) else name


def tag(folder: Path, job_id: str) -> str:
    """Return what names the containers of a job, and of no job of the same id in another state directory."""
    return f"aj-{job_id}-{zlib.crc32(os.fsencode(folder)):08x}"


def name(tag_: str, attempt: int, rank: int) -> str:
    """Return the name of one container."""
    return f"{tag_}-{attempt}-{rank}"


def _last_line(said: bytes) -> str:
    lines = [line for line in decoded(said).strip().splitlines() if line.strip()]
    return lines[-1].removeprefix("Error: ")[:500] if lines else "it left no word"
