"""Ranks of a pod, found for real by every shell at hand: from the index of the pod alone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import aj
from tests.backend.volcano import kit
from tests.conftest import Home
from tests.template.kit import ID, Request, project

pytestmark = pytest.mark.usefixtures("programs")
SCRIPT = (Path(aj.__file__).parent / "backend/volcano/scripts/aj_ranks.sh").read_text()
NAMES = ("AJ_TASK_INDEX", "AJ_NODE_RANK", "NODE_RANK", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
TELL = "\naj_find_ranks\nfor n in " + " ".join(NAMES) + '; do printenv "$n" || echo -; done\n'
TEMPLATE = """base:
config:
  target: {service: volcano, gpus_per_node: 8, cpus_per_node: 96, memory: 512Gi}
  environment: {image: "registry.example/train:1"}
  jobs: [{sku: "{nodes}x80G{processes}-H100", instance_count: 4}]
"""
SHELLS = [
    words
    for words in (["bash"], ["bash", "--posix"], ["busybox", "sh"], ["dash"])
    if shutil.which(words[0]) is not None
]


def run(shell: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    path = {"PATH": "/usr/bin:/bin"}
    return subprocess.run([*shell, "-u", "-c", SCRIPT + TELL], env={**path, **env}, capture_output=True, text=True)


def ranks(shell: list[str], **env: str) -> dict[str, str]:
    found = run(shell, **env)
    assert found.returncode == 0, found.stderr
    return dict(zip(NAMES, found.stdout.split()))


def gang(nodes: int, base: int, index: int | str, *, processes: int = 1) -> dict[str, str]:
    return {
        "VC_TASK_INDEX": str(index),
        "AJ_RANK_BASE": str(base),
        "AJ_NODES": str(nodes),
        "AJ_PROCESSES_PER_NODE": str(processes),
        "AJ_WORLD_SIZE": str(nodes * processes),
    }


@pytest.fixture(params=SHELLS, ids="-".join)
def shell(request: pytest.FixtureRequest) -> list[str]:
    found: list[str] = request.param
    return found


@pytest.mark.rule("V-040", "V-042", "V-043")
@pytest.mark.parametrize(("base", "index"), [(0, 0), (1, 0), (1, 9), (1, 10), (1, 98), (1, 99), (1, 100), (3, 7)])
def test_a_rank_is_the_base_of_the_task_and_the_index_in_it(shell: list[str], base: int, index: int) -> None:
    rank = str(base + index)
    found = ranks(shell, **gang(200, base, index), HOSTNAME="my-master-job-x7k2p-worker-master-3")
    assert found == {
        "AJ_TASK_INDEX": str(index),
        "AJ_NODE_RANK": rank,
        "NODE_RANK": rank,
        "RANK": rank,
        "WORLD_SIZE": "200",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
    }


@pytest.mark.rule("C-301", "V-040", "V-041")
def test_a_job_called_master_run_ranks_its_nodes_by_their_index(shell: list[str], home: Home) -> None:
    """The name of every pod of it holds the word `master`."""
    root = home.root / "p"
    where = project(root, {"t": TEMPLATE})
    request = Request(ID, root, ("python", "train.py"), where, name="master-run")
    objects = kit.made(root, TEMPLATE, request=request)
    members = [("master", 0), ("worker", 0), ("worker", 1), ("worker", 2)]
    known = [kit.variables(objects, task, index) for task, index in members]
    assert all("master-run" in env["HOSTNAME"] and "master-run" in env["AJ_NAME"] for env in known)
    assert [ranks(shell, **env)["NODE_RANK"] for env in known] == ["0", "1", "2", "3"]
    assert {env["MASTER_ADDR"].partition(".")[0] for env in known} == {known[0]["HOSTNAME"]}


@pytest.mark.rule("V-040")
def test_the_older_word_for_the_index_serves_where_the_newer_is_absent(shell: list[str]) -> None:
    old = gang(4, 1, "")
    assert ranks(shell, **old, VK_TASK_INDEX="2")["RANK"] == "3"
    assert ranks(shell, **gang(4, 1, "0"), VK_TASK_INDEX="2")["RANK"] == "1"
    assert ranks(shell, **gang(200, 1, "0010"))["RANK"] == "11"


@pytest.mark.rule("V-040")
@pytest.mark.parametrize("index", ["", "x", "-1", "1 2", "1+1", "99999999999", "$(id)", "a[$(id)]", "1\n2"])
def test_an_index_that_is_none_ends_the_pod_with_its_words(shell: list[str], index: str) -> None:
    found = run(shell, **gang(4, 0, index))
    assert (found.returncode, found.stdout) == (110, "")
    assert "VC_TASK_INDEX" in found.stderr
    assert index in found.stderr


@pytest.mark.rule("V-040")
@pytest.mark.parametrize("name", ["AJ_RANK_BASE", "AJ_NODES", "AJ_PROCESSES_PER_NODE", "AJ_WORLD_SIZE"])
def test_whatever_else_is_missing_is_named(shell: list[str], name: str) -> None:
    given = gang(4, 0, 1)
    del given[name]
    found = run(shell, **given)
    assert (found.returncode, found.stderr) == (110, f"aj: {name} is not set\n")


def test_a_node_beyond_the_end_of_the_job_does_not_start(shell: list[str]) -> None:
    found = run(shell, **gang(4, 1, 3))
    assert (found.returncode, "node 4, counted from 0, of a job of 4" in found.stderr) == (110, True)


@pytest.mark.rule("V-043", "C-174")
def test_what_the_job_sets_itself_is_kept(shell: list[str]) -> None:
    found = ranks(shell, **gang(4, 0, 2), RANK="7", WORLD_SIZE="9", LOCAL_RANK="1", NODE_RANK="5")
    assert [found[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK", "AJ_NODE_RANK")] == list("79152")


@pytest.mark.rule("V-044")
def test_ranks_of_processes_are_left_to_the_launcher(shell: list[str]) -> None:
    found = ranks(shell, **gang(4, 1, 2, processes=8))
    assert found["NODE_RANK"] == "3"
    assert {found[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")} == {"-"}


@pytest.mark.rule("V-044")
def test_a_single_process_among_nodes_with_more_gets_no_rank_that_would_be_none(shell: list[str]) -> None:
    alone = {**gang(7, 0, 0), "AJ_WORLD_SIZE": "49"}
    assert ranks(shell, **alone)["RANK"] == "-"


@pytest.mark.rule("V-046")
def test_with_our_launcher_the_first_rank_counts_the_processes_of_earlier_nodes(shell: list[str]) -> None:
    given = {**gang(7, 3, 1, processes=8), "AJ_WORLD_SIZE": "49", "AJ_LAUNCHER": "processes", "AJ_PROCESS_BASE": "17"}
    found = ranks(shell, **given, RANK="3")
    assert [found[name] for name in NAMES] == ["1", "4", "4", "25", "49", "0", "8"]
