"""A template and a command line to one JobSpec."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from aj.backend import registry
from aj.base.errors import OptionError, TemplateError, UserError
from aj.base.paths import Project
from aj.model.code import IgnoreLine
from aj.model.job import JobSpec
from aj.template import build, load, tree
from aj.template.build import Built, Request
from aj.template.shape import Asked, Given
from aj.wire import codec
from tests.template.kit import EXAMPLES, ID, LOCAL, SING, VOLCANO, built, project

HETEROGENEOUS = "base:\n" + (EXAMPLES / "heterogeneous.yaml").read_text()


def request(root: Path, *argv: str, **more: object) -> Request:
    return replace(Request(ID, root, argv or ("python", "train.py"), Project(root / ".azure_jobs")), **more)


def with_env(env: str, text: str = LOCAL) -> str:
    return f"{text}    submit_args:\n      env: {env}\n"


def test_a_spec_is_complete(tmp_path: Path) -> None:
    root = tmp_path / "my proj"
    root.mkdir()
    text = """base:
config:
  target: {service: aml, name: gpu, gpus_per_node: 8}
  environment: {image: train:1, registry: registry.example, setup: [pip install -e ., echo]}
  code: {ignore: [data/, "*.bin"]}
  jobs:
  - name: train
    sku: "{nodes}x80G{processes}-A100"
    instance_count: 2
    process_count_per_node: 8
    start_timeout: 30m
    command: [source env.sh, cd src]
    submit_args: {env: {NCCL_DEBUG: WARN}}
"""
    found = built(root, text, "python", "train.py", "--lr", "1e-3", "$HOME x")
    spec = found.spec
    assert (spec.id, spec.name, spec.service, spec.template) == (ID, f"my-proj_{ID}", "aml", "t")
    assert (spec.image, spec.sku, spec.shape.world_size) == ("registry.example/train:1", "2x80G8-A100", 16)
    assert (spec.setup, spec.lines) == (("pip install -e .", "echo"), ("source env.sh", "cd src"))
    assert spec.argv == ("python", "train.py", "--lr", "1e-3", "$HOME x")
    assert found.line == "python train.py --lr 1e-3 '$HOME x'"
    assert (spec.env, spec.inherited, spec.start_timeout_s) == ({"NCCL_DEBUG": "WARN"}, {}, 1800)
    assert spec.directory == str(root)
    assert spec.project == str(root / ".azure_jobs")
    assert spec.code.root == str(root)
    assert spec.code.ignore == (
        IgnoreLine("data/", ".azure_jobs/template/t.yaml:5"),
        IgnoreLine("*.bin", ".azure_jobs/template/t.yaml:5"),
    )
    assert (spec.code.strict_links, spec.code.reserved, spec.code.scripts) == (True, True, None)
    assert spec.config["target"] == {"service": "aml", "name": "gpu", "gpus_per_node": 8}
    assert found.warnings == ()


@pytest.mark.rule("C-134")
def test_a_faulty_template_stops_with_all_that_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(TemplateError) as caught:
        built(tmp_path, SING.replace("train:1", "UPPER CASE").replace("instance_count: 2", "instance_count: x"))
    assert len(caught.value.details["issues"]) == 2  # type: ignore[arg-type]
    assert caught.value.exit_code == 2


@pytest.mark.rule("C-134", "C-129")
def test_warnings_of_the_template_come_with_the_spec(tmp_path: Path) -> None:
    assert [one.code for one in built(tmp_path, LOCAL + "  enviroment: {}\n").warnings] == ["unknown-key"]


@pytest.mark.rule("C-098")
def test_a_component_is_checked_as_a_leaf_when_it_is_run(tmp_path: Path) -> None:
    assert built(tmp_path, LOCAL.removeprefix("base:\n")).spec.service == "local"
    with pytest.raises(TemplateError, match="`target` is missing"):
        built(tmp_path, "config: {jobs: [{instance_count: 1}]}\n")


# names


@pytest.mark.rule("C-151", "C-152")
def test_the_name_comes_from_the_folder_the_file_or_the_chosen_word(tmp_path: Path) -> None:
    (tmp_path / "train.v2.py").write_text("")
    root = tmp_path.name.replace("_", "_")
    assert built(tmp_path, LOCAL).spec.name == f"{root}_{ID}"
    assert built(tmp_path, LOCAL, "train.v2.py").spec.name == f"{root}_train-v2_{ID}"
    chosen = request(tmp_path, "train.v2.py", name="pretrain")
    assert built(tmp_path, LOCAL, request=chosen).spec.name == f"pretrain_{ID}"
    assert built(tmp_path, with_env("{AJ_NAME: no}")).spec.name == f"{root}_{ID}"


@pytest.mark.rule("C-153", "C-154", "V-025")
def test_a_cluster_gets_its_own_kind_of_name(tmp_path: Path) -> None:
    asked = request(tmp_path, name="Ünïcode " + "x" * 100)
    assert built(tmp_path, VOLCANO, request=asked).spec.name == ("unicode-" + "x" * 31 + f"-{ID}")
    wide = replace(asked, asked=Asked(nodes=Given("-n", "102")))
    assert len(built(tmp_path, VOLCANO, request=wide).spec.name) == 46
    assert len(built(tmp_path, HETEROGENEOUS, request=asked).spec.name) == 63 - 7 - len("h100-worker-3") - 1 + 1
    handed = replace(asked, amlt=True)
    assert built(tmp_path, VOLCANO, request=handed).spec.name.startswith("Unicode-")


# environment


@pytest.mark.rule("C-161", "C-312", "C-313")
def test_values_of_a_template_stay_as_they_are_written(tmp_path: Path) -> None:
    env = '{D: 2024-01-01, V: yes, N: 0123, F: 1.10, T: true, Q: "a\\nb", E: "", X: null, U: é$HOME=, O: 0o17}'
    spec = built(tmp_path, with_env(env)).spec
    due = {
        "D": "2024-01-01",
        "V": "yes",
        "N": "0123",
        "F": "1.10",
        "T": "true",
        "Q": "a\nb",
        "E": "",
        "U": "é$HOME=",
        "O": "0o17",
    }
    assert spec.env == due
    job = spec.config["jobs"][0]  # type: ignore[index]
    assert job["submit_args"]["env"] == due  # type: ignore[index]


@pytest.mark.rule("C-162", "T92")
def test_options_beat_files_and_files_the_template(tmp_path: Path) -> None:
    asked = request(tmp_path, env={"A": "option"}, env_file={"A": "file", "B": "file"})
    assert built(tmp_path, with_env("{A: t, B: t, C: t}"), request=asked).spec.env == {
        "A": "option",
        "B": "file",
        "C": "t",
    }


@pytest.mark.rule("C-162")
def test_a_tasks_own_values_stand_between_template_and_options(tmp_path: Path) -> None:
    text = HETEROGENEOUS.replace(
        "command: [python h100_train.py]", "command: [x]\n          env: {A: task, B: task, D: task}"
    )
    text = text.replace("sku: heterogeneous", "sku: het\n      submit_args: {env: {A: t, B: t, C: t}}")
    asked = request(tmp_path, env={"A": "option"})
    spec = built(tmp_path, text, request=asked).spec
    tasks = {task.name: task.env for task in spec.tasks}
    assert tasks["h100-worker"] == {"A": "option", "B": "task", "C": "t", "D": "task"}
    assert tasks["master"] == spec.env == {"A": "option", "B": "t", "C": "t"}


@pytest.mark.rule("C-162", "C-314", "A-150")
def test_an_injected_name_is_told_and_left_out(tmp_path: Path) -> None:
    asked = request(tmp_path, env={"AJ_ID": "o", "OK": "1"}, env_file={"AJ_NODES": "f"})
    found = built(tmp_path, with_env("{AJ_ID: x, RANK: 3}"), request=asked)
    assert found.spec.env == {"RANK": "3", "OK": "1"}
    assert [(one.message.split(",")[0], one.code, one.place is not None) for one in found.warnings] == [
        ("the template sets AJ_ID", "injected-env", True),
        ("--env-file sets AJ_NODES", "injected-env", False),
        ("-e sets AJ_ID", "injected-env", False),
    ]


def test_what_the_shell_lends_reaches_jobs_of_this_machine_alone(tmp_path: Path) -> None:
    asked = request(tmp_path, caller={"PATH": "/bin", "AJ_ID": "x"}, env={"A": "1"})
    spec = built(tmp_path, LOCAL, request=asked).spec
    assert (spec.inherited, spec.env) == ({"PATH": "/bin"}, {"A": "1"})
    assert built(tmp_path, SING, request=asked).spec.inherited == {}


def test_uv_finds_the_environment_of_the_folder_unless_the_user_says_otherwise(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    lent = built(tmp_path, LOCAL, request=request(tmp_path, caller={"UV_NO_SYNC": "0"})).spec.inherited
    assert lent == {"UV_PROJECT_ENVIRONMENT": str(tmp_path / ".venv"), "UV_NO_SYNC": "0"}
    assert built(tmp_path, SING).spec.inherited == {}


@pytest.mark.rule("C-157")
def test_without_uv_the_environment_of_the_folder_stands_first(tmp_path: Path) -> None:
    venv, own = tmp_path / ".venv", tmp_path / "own"
    for program in (venv / "bin/python", own / "x"):
        program.parent.mkdir(parents=True)
        program.write_text("")
        program.chmod(0o755)
    (tmp_path / "train.py").write_text("")
    alone = request(tmp_path, "train.py", caller={"PATH": str(own)})
    found = built(tmp_path, LOCAL, request=alone)
    assert found.spec.argv == ("python3", "train.py")
    assert found.spec.inherited["VIRTUAL_ENV"] == str(venv)
    assert found.spec.inherited["PATH"] == f"{venv}/bin:{own}"
    assert [(one.level.value, one.message) for one in found.warnings] == [
        ("note", "no `uv` on the job's PATH: `.venv/bin` of this directory stands first on it"),
        ("note", "no `uv` on the job's PATH: `python3` runs the file"),
    ]
    for changed in (
        replace(alone, caller={**alone.caller, "VIRTUAL_ENV": "/other"}),
        replace(alone, caller={**alone.caller, "CONDA_DEFAULT_ENV": "torch"}),
    ):
        assert built(tmp_path, LOCAL, request=changed).spec.inherited["PATH"] == str(own)
    based = replace(alone, caller={**alone.caller, "CONDA_DEFAULT_ENV": "base"})
    assert built(tmp_path, LOCAL, request=based).spec.inherited["PATH"] == f"{venv}/bin:{own}"
    given = built(tmp_path, LOCAL, request=replace(alone, env={"PATH": "/mine"})).spec
    assert (given.env["PATH"], given.inherited["PATH"], "VIRTUAL_ENV" in given.inherited) == ("/mine", str(own), False)
    (own / "x").rename(own / "uv")
    with_uv = built(tmp_path, LOCAL, request=alone)
    assert (with_uv.spec.argv[:2], with_uv.warnings) == (("uv", "run"), ())
    assert with_uv.spec.inherited == {"UV_PROJECT_ENVIRONMENT": str(venv), "UV_NO_SYNC": "1", "PATH": str(own)}


@pytest.mark.rule("C-157")
def test_an_environment_without_a_python_is_not_one(tmp_path: Path) -> None:
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    assert "VIRTUAL_ENV" not in built(tmp_path, LOCAL, request=request(tmp_path, caller={"PATH": "/b"})).spec.inherited


@pytest.mark.rule("C-157")
def test_without_uv_on_this_machine_python_runs_the_file(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "bin").mkdir()
    alone = request(tmp_path, "train.py", caller={"PATH": str(tmp_path / "bin")})
    found = built(tmp_path, LOCAL, request=alone)
    assert found.spec.argv == ("python3", "train.py")
    assert [one.level.value for one in found.warnings] == ["note"]
    assert built(tmp_path, SING, request=alone).spec.argv == ("uv", "run", "train.py")
    (tmp_path / "bin" / "uv").write_text("")
    (tmp_path / "bin" / "uv").chmod(0o755)
    found = built(tmp_path, LOCAL, request=alone)
    assert (found.spec.argv, found.file, found.warnings) == (("uv", "run", "train.py"), "train.py", ())
    elsewhere = replace(alone, env={"PATH": "/nowhere"})
    assert built(tmp_path, LOCAL, request=elsewhere).spec.argv[0] == "python3"


# code


@pytest.mark.rule("C-182")
def test_scripts_travel_when_the_folder_is_not_the_projects_root(tmp_path: Path) -> None:
    where = project(tmp_path, {"t": LOCAL})
    (where.directory / "scripts").mkdir()
    below = tmp_path / "sub"
    below.mkdir()
    assert built(tmp_path, LOCAL).spec.code.scripts is None
    found = built(tmp_path, LOCAL, request=request(below, project=where))
    assert found.spec.code.scripts == str(where.directory / "scripts")
    os.symlink(tmp_path, tmp_path / "alias")
    assert built(tmp_path, LOCAL, request=request(tmp_path / "alias", project=where)).spec.code.scripts is None


@pytest.mark.rule("C-186")
def test_links_may_leave_the_tree_on_this_machine_alone(tmp_path: Path) -> None:
    assert built(tmp_path, LOCAL).spec.code.strict_links is False
    assert built(tmp_path, VOLCANO).spec.code.strict_links is True
    assert built(tmp_path, VOLCANO).spec.code.reserved is False


# amlt, no template, Tasks


@pytest.mark.rule("C-257", "C-258")
def test_amlt_takes_a_template_of_another_service_but_not_of_this_machine(tmp_path: Path) -> None:
    found = built(tmp_path, SING, request=request(tmp_path, amlt=True))
    assert found.spec.service == "amlt"
    assert found.spec.config["target"]["service"] == "sing"  # type: ignore[index,call-overload]
    with pytest.raises(OptionError, match="--amlt: amlt does not know jobs of this machine"):
        built(tmp_path, LOCAL, request=request(tmp_path, amlt=True))


def test_without_a_template_the_command_line_says_all(tmp_path: Path) -> None:
    def make(asked: Asked) -> Built:
        return build.build(None, request(tmp_path, "echo", asked=asked), options_of=registry.options)

    spec = make(Asked(nodes=Given("-n", "1"))).spec
    assert (spec.service, spec.template, spec.argv, spec.shape.nodes) == ("local", "", ("echo",), 1)
    assert spec.config == {"target": {"service": "local"}}
    with pytest.raises(UserError, match="missing: nodes"):
        make(Asked())


@pytest.mark.rule("V-054")
def test_a_command_is_needed_only_by_tasks_without_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the Task `a100-worker` has no `command` of its own"):
        built(tmp_path, HETEROGENEOUS, request=replace(request(tmp_path), argv=()))
    full = HETEROGENEOUS.replace("node_selector:\n            nvidia.com/gpu.product: A100-SXM4-80GB", "command: [x]")
    assert built(tmp_path, full, request=replace(request(tmp_path), argv=())).spec.argv == ()
    told = [one.message for one in built(tmp_path, full).warnings]
    assert "every Task has a `command` of its own: the words after the options are not used" in told
    with pytest.raises(UserError, match="COMMAND is missing"):
        built(tmp_path, LOCAL, request=replace(request(tmp_path), argv=()))


def test_the_same_request_with_another_id_is_another_name(tmp_path: Path) -> None:
    where = project(tmp_path, {"t": LOCAL})
    resolved = load.resolve(where, "t")
    one, other = (
        build.build(resolved, replace(request(tmp_path), id=aj_id), options_of=registry.options).spec
        for aj_id in ("00000001", "00000002")
    )
    assert replace(one, id=other.id, name=other.name) == other


@pytest.mark.parametrize("text", [LOCAL, SING, VOLCANO, HETEROGENEOUS])
def test_a_spec_crosses_the_wire_and_its_service_reads_the_same_options(tmp_path: Path, text: str) -> None:
    spec = built(tmp_path, text).spec
    arrived = codec.load(JobSpec, json.loads(json.dumps(codec.dump(spec), allow_nan=False)))
    assert arrived == spec
    parse = registry.options(spec.service)
    here = parse(load.resolve(project(tmp_path, {"t": text}), "t").tree)
    there = parse(tree.section_of(arrived.config))
    assert replace(here.facts, warnings=()) == replace(there.facts, warnings=())
    assert replace(here, facts=there.facts) == there  # type: ignore[type-var]


# What a job may cost


@pytest.mark.rule("SC-11")
def test_what_a_job_may_cost_comes_from_the_template_or_the_command_line(tmp_path: Path) -> None:
    text = LOCAL + "    max_cost: 2.50\n"
    assert built(tmp_path, LOCAL).spec.max_cost is None
    assert built(tmp_path, text).spec.max_cost == 2_500_000
    assert built(tmp_path, text, request=request(tmp_path, max_cost=7)).spec.max_cost == 7


@pytest.mark.parametrize("value", ["0", "-1", "much", "true", "[1]", "0.0000001", "'NaN'", "{usd: 1}"])
def test_what_is_no_amount_is_told_at_its_place(tmp_path: Path, value: str) -> None:
    with pytest.raises(TemplateError, match=r"max_cost") as error:
        built(tmp_path, LOCAL + f"    max_cost: {value}\n")
    assert error.value.place is not None and error.value.place.line == LOCAL.count("\n") + 1


def test_what_a_job_elsewhere_may_cost_is_nobodys_to_watch(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="`--max-cost` is for jobs of this machine"):
        built(tmp_path, SING, request=request(tmp_path, max_cost=7))
    with pytest.raises(TemplateError, match="`max_cost` is for jobs of this machine"):
        built(tmp_path, SING.rstrip("\n") + "\n    max_cost: 5\n")
