"""Images: through a podman that takes nothing but what is documented, and through the real one where there is one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from aj.backend.local import podman
from aj.base.errors import Refused
from aj.base.settings import Settings
from aj.engine.pins import Pins
from aj.model.bucket import Buckets, Wanted
from aj.model.state import JobState
from aj.model.ticket import Mode
from aj.wire.messages import Exec
from tests.conftest import Home, MovedClock
from tests.jobs import EARLY
from tests.servers import registry as servers
from tests.yard import PROJECT, Yard

S = JobState
DIGEST = f"sha256:{'d' * 64}"
IMAGE = "r.example/team/train:1"

# It knows the words of podman(1) that are used, refuses all others, and runs a "container" as a plain process.
FAKE = """#!{python} -IS
import json, os, signal, subprocess, sys
from pathlib import Path

store = Path({store!r})
argv = [word for word in sys.argv[1:] if word != "--cgroup-manager=cgroupfs"]
if argv[:1] == ["--runtime"]:
    argv = argv[2:]
with (store / "calls").open("a") as out:
    out.write(json.dumps(argv) + "\\n")
TWO = "--name --label --pull --network --log-driver --security-opt --ulimit --volume --cpus --memory --workdir --ipc"
TWO = set((TWO + " --shm-size --device --env --entrypoint").split())


def refuse(why):
    sys.exit(f"Error: {{why}}")


def box(name):
    return store / "boxes" / name


match argv:
    case ["image", "exists", reference]:
        sys.exit(0 if reference in (store / "images").read_text().split() else 1)
    case ["pull", "--quiet", reference]:
        words = (store / "refusal").read_text()
        if words:
            refuse(words)
        with (store / "images").open("a") as out:
            out.write(reference + "\\n")
    case ["image", "inspect", "--format", "{{{{.Config.WorkingDir}}}}", reference]:
        print(store)
    case ["create", *words]:
        asked, env = [], {{}}
        while words and words[0].startswith("--"):
            name, value, *words = words
            if name not in TWO:
                refuse(f"unknown flag: {{name}}")
            if name == "--env":
                key, given, text = value.partition("=")
                env[key] = text if given else os.environ[key]
            asked.append([name, value])
        reference, *command = words
        if "@sha256:" not in reference or reference not in (store / "images").read_text().split():
            refuse(f"{{reference}}: image not known")
        made = {{"asked": asked, "env": env, "command": command, "reference": reference}}
        box(dict(asked)["--name"]).write_text(json.dumps(made))
    case ["start", "--attach", name]:
        made = json.loads(box(name).read_text())
        words = dict(made["asked"])
        entry = json.loads(words.get("--entrypoint", '["/bin/sh"]'))
        cwd = words.get("--workdir", str(store))
        env = {{**made["env"], "PATH": os.environ["PATH"]}}
        sys.exit(subprocess.run([*entry, *made["command"]], cwd=cwd, env=env).returncode & 255)
    case ["ps", "--all", "--quiet", "--no-trunc", "--filter", label]:
        for path in sorted((store / "boxes").iterdir()):
            if ["--label", label.removeprefix("label=")] in json.loads(path.read_text())["asked"]:
                print(path.name)
    case ["rm", "--force", "--time", "0", *names]:
        for name in names:
            box(name).unlink() if name != "--ignore" and box(name).exists() else None
    case ["inspect", "--type", "container", "--format", "{{{{.State.OOMKilled}}}}", name]:
        print((store / "oom").read_text())
    case _:
        refuse(f"unrecognized command: {{argv}}")
"""


class Fake:
    """A folder on PATH with that program, and what it was asked."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "boxes").mkdir(parents=True)
        for name in ("calls", "images", "refusal", "oom"):
            (root / name).write_text("")
        program = root / "podman"
        program.write_text(FAKE.format(python=sys.executable, store=str(root)))
        program.chmod(0o755)

    @property
    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in (self.root / "calls").read_text().splitlines()]

    @property
    def boxes(self) -> list[str]:
        return sorted(path.name for path in (self.root / "boxes").iterdir())


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return Fake(tmp_path / "fake")


@pytest.fixture
def yard(home: Home, tmp_path: Path, programs: None, real_clock: None, fake: Fake) -> Iterator[Yard]:
    path = f"{fake.root}{os.pathsep}{os.environ['PATH']}"
    found = Yard(replace_path(home, path), tmp_path / "project")
    found.root.mkdir()
    try:
        yield found
    finally:
        found.close()


def replace_path(home: Home, path: str) -> Home:
    return home.having(PATH=path)


def submit(yard: Yard, *argv: str, image: str = IMAGE, digest: str = DIGEST, **changes: object) -> str:
    wanted = replace(yard.spec("x", **{"brings_code": False, **changes}), argv=argv, image=image, image_digest=digest)
    yard.engine.settle(wanted)
    yard.engine.admit(wanted, None, ticket="t", project_key=PROJECT, accepted_at=EARLY, mode=Mode.DIRECT)
    return wanted.id


@pytest.mark.rule("WK-01", "SB-05", "LC-01", "MD-05")
def test_an_image_is_pulled_by_its_digest_and_its_entrypoint_gets_the_words_and_the_variables(
    yard: Yard, fake: Fake
) -> None:
    config = {
        "target": {"service": "local", "cpus": 0.5, "memory": "64Mi"},
        "jobs": [{"submit_args": {"container_args": {"shm_size": "16m"}}}],
    }
    buckets = Buckets(output=Wanted("results"))
    job_id = submit(
        yard,
        "-c",
        'echo "$GREETING $AJ_WORKDIR"; exit 4',
        env={"GREETING": "hush-hush"},
        config=config,
        buckets=buckets,
    )
    end = yard.done(job_id)
    assert (end.state, end.exit_code) == (S.ERRORED, 4)
    assert yard.output(job_id) == f"hush-hush {fake.root}\n"
    states = [event.state.value for event in yard.show(job_id).events]
    assert states == [
        *("queued", "provisioning", "initializing", "downloading", "syncing", "starting", "running"),
        *("finalizing", "errored"),
    ]
    made = next(call for call in fake.calls if call[0] == "create")
    pairs = list(zip(made[1::2], made[2::2], strict=False))
    for pair in (("--memory", str(64 << 20)), ("--cpus", "0.5"), ("--shm-size", str(16 << 20)), ("--pull", "never")):
        assert pair in pairs
    assert ("--volume", f"{yard.folder(job_id) / 'mnt' / 'output'}:/mnt/output") in pairs
    assert f"r.example/team/train@{DIGEST}" in made and "hush-hush" not in json.dumps(fake.calls)
    assert fake.boxes == [], "nothing of it is left"


def test_an_image_with_code_starts_in_the_code_after_setup_and_lines(yard: Yard, fake: Fake) -> None:
    wanted = replace(
        yard.spec("sh", "train.sh"),
        image=IMAGE,
        image_digest=DIGEST,
        setup=("echo setup",),
        lines=("echo line", "export KEPT=1"),
    )
    job_id = yard.admit(wanted, {"train.sh": "echo $KEPT $PWD\n"})
    assert yard.done(job_id).state is S.COMPLETED
    assert yard.output(job_id) == f"setup\nline\n1 {yard.work(job_id)}\n"


@pytest.mark.rule("QT-05", "LC-11")
def test_a_registry_that_refuses_makes_the_job_invalid_and_one_that_is_busy_does_not(yard: Yard, fake: Fake) -> None:
    (fake.root / "refusal").write_text("initializing source: manifest unknown")
    end = yard.done(submit(yard, "-c", "true"))
    assert (end.state, end.setup_attempt) == (S.INVALID, 1)
    assert end.message == f"the image r.example/team/train@{DIGEST} was refused: initializing source: manifest unknown"
    (fake.root / "refusal").write_text("received unexpected HTTP status: 503")
    job_id = submit(yard, "-c", "true")
    while yard.show(job_id).workload.retry is None:
        yard.engine.wait(job_id, 10**6, 0.02)
    job = yard.show(job_id).workload
    assert "503" in (job.retry.message if job.retry else "") and len(job.hosts) == 1
    assert job.hosts[0].ended_at is None, "the machine is kept for the next try"
    yard.engine.terminate(job_id, 0)


@pytest.mark.rule("SP-02", "C-024")
def test_a_lost_container_is_started_again_and_a_command_runs_inside(yard: Yard, fake: Fake) -> None:
    line = "echo x >> count; [ $(wc -l < count) -lt 2 ] || exit 0; echo $$ > up; sleep 300"
    job_id = submit(yard, "-c", line, spot=True)
    yard.wait_for(fake.root / "up")
    yard.until(job_id, S.RUNNING)
    plan = yard.engine.exec_plan(job_id, Exec(("nvidia-smi -L",), stdin=True))
    assert plan.argv[-6:] == ("exec", "--interactive", fake.boxes[0], "/bin/sh", "-c", "nvidia-smi -L")
    yard.engine.preempt(job_id, True)
    end = yard.done(job_id)
    assert (end.state, end.attempt) == (S.COMPLETED, 2)
    assert fake.boxes == []


def test_a_container_over_its_memory_says_so(yard: Yard, fake: Fake) -> None:
    (fake.root / "oom").write_text("true")
    end = yard.done(submit(yard, "-c", "exit 137"))
    assert (end.state, end.oom_killed, end.reason) == (S.ERRORED, True, "out-of-memory")


def test_without_podman_an_image_is_refused_with_both_ways_out(home: Home) -> None:
    with pytest.raises(Refused, match="only through podman") as error:
        podman.need(Settings({"PATH": "/nowhere"}))
    assert "local/host" in (error.value.hint or "") and "!unset" in (error.value.hint or "")


# The real one


def _works() -> str | None:
    """Say why podman cannot be tried here, or None."""
    if shutil.which("podman") is None:
        return "podman is not installed: `python -m tests.house setup` installs it on Debian"
    if os.geteuid() != 0:
        return "podman is tried as root alone: its storage would stay in this user's home"
    return None


@pytest.mark.rule("SB-01", "SB-04", "SB-05", "WK-01", "RS-01", "LX-04", "OP-03")
def test_a_real_podman_runs_an_image_of_a_real_registry(
    home: Home, tmp_path: Path, programs: None, real_clock: None, loopback: None, clock: MovedClock
) -> None:
    if why := _works():
        pytest.skip(why)
    yard = Yard(replace_path(home, os.environ["PATH"]), tmp_path / "project")
    yard.root.mkdir()
    with servers.running(tmp_path) as kept:
        digest = kept.push("team/train", "1", servers.shell(), Entrypoint=["/bin/sh", "-c"], WorkingDir="/work")
        name = f"{kept.address}/team/train:1"
        assert Pins(yard.home.settings, clock).digest(name) == digest
        try:
            _real(yard, name, digest)
        finally:
            yard.close()
            subprocess.run(
                ["podman", "rmi", "--force", f"{kept.address}/team/train@{digest}"], capture_output=True, timeout=60
            )


def _real(yard: Yard, name: str, digest: str) -> None:
    folder = yard.home.layout.buckets
    line = """trap "echo ended; exit 7" TERM; cd /tmp; echo "$PLAIN $AJ_WORKDIR" > /mnt/output/words; touch left
      echo up; while :; do sleep 0.1; done"""
    job_id = submit(
        yard, line, image=name, digest=digest, env={"PLAIN": "hush-hush"}, buckets=Buckets(output=Wanted("results"))
    )
    yard.until(job_id, S.RUNNING)
    run: Callable[[str], subprocess.CompletedProcess[bytes]] = lambda words: _exec(yard, job_id, words)  # noqa: E731
    while run("cat /mnt/output/words").stdout != b"hush-hush /work\n":
        yard.engine.wait(job_id, 10**6, 0.05)
    assert run("exit 3").returncode == 3
    yard.engine.terminate(job_id, 20)
    end = yard.done(job_id)
    assert (end.state, end.exit_code) == (S.TERMINATED, 7), yard.output(job_id)
    assert yard.output(job_id).startswith("up\nended\n")
    assert (folder / "results" / job_id / "words").read_bytes() == b"hush-hush /work\n"
    tag = podman.tag(yard.folder(job_id), job_id)
    left = subprocess.run(["podman", "ps", "-aq", "--filter", f"label=aj.job={tag}"], capture_output=True, timeout=60)
    assert left.stdout == b""


def _exec(yard: Yard, job_id: str, words: str) -> subprocess.CompletedProcess[bytes]:
    plan = yard.engine.exec_plan(job_id, Exec((words,)))
    return subprocess.run(plan.argv, env=dict(plan.env), capture_output=True, timeout=60)
