"""What a job may use is kept where the machine allows it, and else told."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from aj.backend.local import limits, machine
from aj.backend.local.limits import Limits
from aj.base import proc
from aj.base.settings import Settings
from aj.model.state import JobState
from aj.model.workload import Needs
from tests.yard import Yard, has_groups

MIB = 1 << 20
HOG = "held = []\nwhile len(held) < 400: held.append(bytearray(1 << 20))\nprint('had 400 MiB')\n"


def wanting(**target: object) -> dict[str, object]:
    return {"config": {"target": {"service": "local", **target}}}


def test_a_job_over_its_memory_limit_is_killed_and_it_is_told(yard: Yard) -> None:
    job_id = yard.admit(yard.spec(sys.executable, "hog.py", **wanting(memory="96Mi")), {"hog.py": HOG})
    end = yard.done(job_id)
    if not has_groups():
        assert end.notes == ("memory: not enforced (no writable cgroup)",)
        return
    assert (end.state, end.exit_code, end.oom_killed) == (JobState.ERRORED, 137, True)
    assert (end.reason, end.message) == ("out-of-memory", "ended by SIGKILL (over its memory limit)")
    assert end.notes == () and yard.output(job_id) == ""
    groups = end.facts["groups"]
    assert isinstance(groups, list) and groups and not any(Path(str(group)).exists() for group in groups)


def test_a_job_within_its_limits_is_left_alone(yard: Yard) -> None:
    job_id = yard.admit(yard.spec(sys.executable, "hog.py", **wanting(memory="2Gi", cpus=1)), {"hog.py": HOG})
    end = yard.done(job_id)
    assert (end.exit_code, end.oom_killed, yard.output(job_id)) == (0, False, "had 400 MiB\n")


def test_without_groups_cpus_are_pinned_and_memory_is_only_told(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_mounts", lambda: iter(()))
    job_id = yard.admit(
        yard.spec(
            sys.executable, "-c", "import os; print(len(os.sched_getaffinity(0)))", **wanting(memory="1Gi", cpus=1)
        )
    )
    end = yard.done(job_id)
    assert yard.output(job_id) == "1\n"
    assert end.notes == (
        "memory: not enforced (no writable cgroup)",
        "cpus: kept to 1 by pinning (no writable cgroup)",
    )


def test_what_nobody_asked_for_is_not_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_mounts", lambda: iter(()))
    assert limits.setup("x", Needs()) == Limits()


class Tree:
    """A hierarchy of groups made of plain files, as far as the code looks at it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def group(self, name: str, **files: str) -> Path:
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (folder / file.replace("__", ".")).write_text(text)
        return folder


def mounted(monkeypatch: pytest.MonkeyPatch, *mounts: limits._Mount) -> None:
    monkeypatch.setattr(limits, "_mounts", lambda: iter(mounts))


def test_version_two_makes_the_group_where_children_have_the_controllers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = Tree(tmp_path)
    tree.group("", cgroup__controllers="cpu memory pids", cgroup__subtree_control="cpu memory", cgroup__procs="")
    tree.group("user", cgroup__subtree_control="cpu memory", cgroup__procs="")
    own = tree.group("user/session", cgroup__subtree_control="", cgroup__procs="")
    mounted(monkeypatch, limits._Mount(2, tmp_path, own, frozenset()))
    found = limits.setup("1a2b3c4d-0", Needs(1.5, 64 * MIB))
    group = tmp_path / "user" / "aj-1a2b3c4d-0"
    assert found == Limits((str(group),))
    assert (group / "memory.max").read_text() == str(64 * MIB)
    assert (group / "memory.swap.max").read_text() == "0"
    assert (group / "cpu.max").read_text() == "150000 100000"
    (group / "memory.events").write_text("low 0\noom 2\noom_kill 1\noom_group_kill 0\n")
    (group / "cgroup.procs").write_text("17\n18\n")
    assert (limits.oom_kills(found.groups), limits.members(found.groups)) == (1, {17, 18})


def test_version_two_without_a_delegated_subtree_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(tmp_path)
    tree.group("", cgroup__controllers="cpu memory", cgroup__subtree_control="")
    own = tree.group("session", cgroup__subtree_control="")
    mounted(monkeypatch, limits._Mount(2, tmp_path, own, frozenset()))
    found = limits.setup("1a2b3c4d-0", Needs(memory_bytes=MIB))
    assert found.groups == () and found.notes == ("memory: not enforced (no writable cgroup)",)


def test_a_daemon_that_a_job_started_makes_groups_beside_that_jobs_not_inside(tmp_path: Path) -> None:
    (tmp_path / "outer" / "aj-11111111-0").mkdir(parents=True)
    assert limits._below(tmp_path, "/", "/outer/aj-11111111-0") == tmp_path / "outer"
    assert limits._below(tmp_path, "/", "/elsewhere") == tmp_path
    assert limits._below(tmp_path, "/docker/1", "/docker/1/outer") == tmp_path / "outer"
    assert limits._below(tmp_path, "/docker/1", "/other") == tmp_path


def test_groups_that_are_gone_are_no_trouble(tmp_path: Path) -> None:
    gone = (str(tmp_path / "gone"),)
    assert (limits.members(gone), limits.oom_kills(gone)) == (set(), 0)
    limits.remove(gone)


def test_the_machine_tells_what_it_has(programs: None, tmp_path: Path) -> None:
    fake = tmp_path / "nvidia-smi"
    fake.write_text('#!/bin/sh\n[ "$1" = -L ] && echo "GPU 0: A (UUID: x)" && echo "GPU 1: A (UUID: y)"\n')
    fake.chmod(0o755)
    found = machine.capacity(Settings({"PATH": f"{tmp_path}:{os.defpath}"}), None)
    assert (found.cpus, found.gpus) == (float(len(os.sched_getaffinity(0))), 2)
    assert found.memory_bytes is not None and MIB < found.memory_bytes <= limits._total_memory()  # type: ignore[operator]
    assert machine.capacity(Settings({"PATH": str(tmp_path)}), 7).gpus == 7
    fake.write_text("#!/bin/sh\nexit 9\n")
    assert machine.count_gpus(Settings({"PATH": str(tmp_path)})) == 0
    assert machine.count_gpus(Settings({"PATH": str(tmp_path / "none")})) == 0
    assert proc.find("nvidia-smi", str(tmp_path)) == str(fake)
