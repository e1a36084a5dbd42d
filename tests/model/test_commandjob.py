"""Small parts of a job's body: names, sizes, versions, and what differs between a job and the next."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aj.base.errors import UserError
from aj.model import commandjob
from aj.model.code import CodePlan
from aj.model.commandjob import Code, CommandJob
from aj.model.job import JobSpec, Shape

CODE = Code("d" * 64, "a" * 64, "b" * 64)
ENVIRONMENT = "/subscriptions/s/resourceGroups/g/providers/p/workspaces/w/environments/aj/versions/1"


def spec(**changes: object) -> JobSpec:
    fields: dict = {
        "id": "0a1b2c3d",
        "name": "train_0a1b2c3d",
        "service": "aml",
        "template": "t",
        "experiment": "aj",
        "directory": "/work",
        "project": None,
        "shape": Shape(1, 1, 1, 1),
        "argv": ("python", "train.py"),
        "code": CodePlan("/work"),
        **changes,
    }
    return JobSpec(**fields)


def properties(job: CommandJob) -> dict:
    found = job.body()["properties"]
    assert isinstance(found, dict)
    return found


@pytest.mark.rule("A-123")
@pytest.mark.parametrize(
    ("size", "text"),
    [(64 * 2**30, "64g"), (1536 * 2**20, "1536m"), (2**40, "1024g"), (3 * 2**10, "3k"), (1000, "1000b")],
)
def test_shared_memory_in_one_spelling(size: int, text: str) -> None:
    assert commandjob.shm_text(size) == text


@pytest.mark.rule("A-123")
@given(st.integers(1, 2**50))
def test_shared_memory_keeps_its_size(size: int) -> None:
    text = commandjob.shm_text(size)
    found = re.fullmatch(r"(\d+)([bkmg])", text)
    assert found is not None
    assert int(found[1]) * 1024 ** "bkmg".index(found[2]) == size


@pytest.mark.rule("A-091")
def test_an_image_has_one_version() -> None:
    assert commandjob.environment_version("train:1") == hashlib.sha256(b"train:1\0Linux").hexdigest()[:32]
    assert commandjob.environment_version("train:1") != commandjob.environment_version("train:2")


@pytest.mark.rule("A-101")
def test_a_container_has_one_datastore() -> None:
    name = commandjob.datastore("public", "acc", "con")
    assert re.fullmatch(r"aj_[0-9a-f]{16}", name)
    others = {
        commandjob.datastore(*parts)
        for parts in (("china", "acc", "con"), ("public", "ac", "ccon"), ("public", "acc", "con2"))
    }
    assert len(others | {name}) == 4


@pytest.mark.rule("A-120")
@pytest.mark.parametrize("name", ["", "-a", "_a", "a b", "a/b", "a" * 256, "ä", "a\n"])
def test_a_name_that_the_service_would_not_take(name: str) -> None:
    with pytest.raises(UserError):
        commandjob.checked_name(name)
    with pytest.raises(UserError):
        CommandJob(spec(name=name), CODE, "c", ENVIRONMENT, {}).body()


@pytest.mark.rule("A-120")
def test_a_name_of_the_full_length() -> None:
    assert commandjob.checked_name("a" * 255) == "a" * 255


@pytest.mark.rule("A-092")
@pytest.mark.parametrize(
    "word", ["train:1", "", "/subscriptions/s/environments/aj", ENVIRONMENT + "/x", "azureml:aj:1"]
)
def test_an_image_is_never_sent_as_an_id(word: str) -> None:
    with pytest.raises(UserError):
        CommandJob(spec(), CODE, "c", word, {}).body()


@pytest.mark.rule("C-087")
def test_an_experiment_is_never_invented() -> None:
    with pytest.raises(UserError) as error:
        CommandJob(spec(experiment=None), CODE, "c", ENVIRONMENT, {}).body()
    assert error.value.hint == "`aj config experiment NAME`, or --experiment NAME"


@pytest.mark.rule("A-121")
@pytest.mark.parametrize(
    ("nodes", "per_node", "due"),
    [(1, 1, None), (2, 1, {"distributionType": "PyTorch", "processCountPerInstance": 1}), (1, 8, 8), (2, 4, 4)],
)
def test_a_distribution_is_for_several_processes(nodes: int, per_node: int, due: object) -> None:
    found = properties(CommandJob(spec(shape=Shape(nodes, 8, per_node, 8)), CODE, "c", ENVIRONMENT, {}))
    if isinstance(due, int):
        due = {"distributionType": "PyTorch", "processCountPerInstance": due}
    assert found.get("distribution") == due
    assert found["resources"] == {"instanceCount": nodes}


@pytest.mark.rule("A-121")
@pytest.mark.parametrize(("timeout_s", "due"), [(5400, "PT5400S"), (0.2, "PT1S"), (90.0, "PT90S")])
def test_a_limit_is_whole_seconds(timeout_s: float, due: str) -> None:
    found = properties(CommandJob(spec(), CODE, "c", ENVIRONMENT, {}, timeout_s=timeout_s))
    assert found["limits"] == {"jobLimitsType": "Command", "timeout": due}
    assert "limits" not in properties(CommandJob(spec(), CODE, "c", ENVIRONMENT, {}))


@pytest.mark.rule("A-121", "C-155")
def test_the_id_is_a_tag_and_a_property_that_nobody_overrides() -> None:
    found = properties(CommandJob(spec(), CODE, "c", ENVIRONMENT, {}, tags={"team": "", "aj_id": "mine"}))
    assert found["tags"] == {"team": "", "aj_id": "0a1b2c3d"}
    assert found["properties"] == {"aj_id": "0a1b2c3d"}


@pytest.mark.rule("A-121", "A-117")
def test_code_and_bootstrap_are_named_by_their_bytes() -> None:
    inputs = properties(CommandJob(spec(), CODE, "c", ENVIRONMENT, {}))["inputs"]
    assert inputs == {
        "aj_bootstrap": {
            "jobInputType": "uri_file",
            "mode": "Download",
            "uri": f"azureml://datastores/workspaceblobstore/paths/LocalUpload/{'b' * 64}/aj_bootstrap.sh",
        },
        "aj_code_archive": {
            "jobInputType": "uri_file",
            "mode": "Download",
            "uri": f"azureml://datastores/workspaceblobstore/paths/LocalUpload/{'a' * 64}/code.tar.gz",
        },
    }


@pytest.mark.rule("A-150", "A-151", "C-162")
def test_the_environment_rises_from_defaults_to_ours() -> None:
    user = {"A": "user", "SHM_SIZE": "1g", "X": "mine", "AJ_ID": "forged", "AZUREML_DATAREFERENCE_d": "/x"}
    stores = [commandjob.store("d", "acc", "con", "/mnt/d", read_only=True, cloud="public")]
    found = commandjob.environment(
        spec(env=user),
        CODE,
        accepted_at="2026-01-31T12:00:00.000000+00:00",
        stores=stores,
        shm_bytes=2**31,
        defaults={"A": "default", "B": "default"},
        settled={"X": "settled"},
    )
    assert (found["A"], found["B"], found["X"], found["SHM_SIZE"]) == ("user", "default", "settled", "1g")
    assert (found["AJ_ID"], found["AZUREML_DATAREFERENCE_d"]) == ("0a1b2c3d", "/mnt/d")
    assert found["AJ_CODE_ARCHIVE_SHA256"] == "a" * 64
    assert commandjob.environment(spec(), CODE, accepted_at="x", shm_bytes=2**31)["SHM_SIZE"] == "2g"
    assert "SHM_SIZE" not in commandjob.environment(spec(), CODE, accepted_at="x")


@pytest.mark.rule("A-147", "C-160", "C-159")
def test_what_runs_travels_as_variables() -> None:
    one = spec(setup=("pip install -e .", "export A=1"), lines=("cd src",), argv=("python", "a b.py", "$HOME"))
    assert commandjob.program(one) == {
        "AJ_SETUP": "pip install -e .\nexport A=1",
        "AJ_COMMAND": "cd src\npython 'a b.py' '$HOME'",
    }
    assert commandjob.program(spec()) == {"AJ_COMMAND": "python train.py"}
    assert commandjob.program(one, 89.2)["AJ_SETUP_TIMEOUT"] == "90"
    assert "AJ_SETUP_TIMEOUT" not in commandjob.program(spec(), 90)  # there is no setup
    assert properties(CommandJob(one, CODE, "c", ENVIRONMENT, {}))["command"] == (
        "bash ${{inputs.aj_bootstrap}} ${{inputs.aj_code_archive}}"
    )


@pytest.mark.rule("A-147")
def test_what_no_node_could_start_is_refused() -> None:
    longest = commandjob.LONGEST
    commandjob.program(spec(argv=("x" * longest,)))
    with pytest.raises(UserError, match=r"the command of the job is 124\.0 KiB long, and no node starts more than 124"):
        commandjob.program(spec(argv=("x" * (longest + 1),)))
    with pytest.raises(UserError, match=r"the setup of the job is 128\.0 KiB long"):
        commandjob.program(spec(setup=("ü" * 65536,)))
