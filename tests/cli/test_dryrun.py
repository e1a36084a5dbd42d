"""aj run -d: everything resolved and written down, nothing sent; and what run refuses before it sends."""

from __future__ import annotations

import json
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from aj.backend import registry
from aj.backend.protocol import Traits
from aj.base import proc
from tests.cli.conftest import Ran, Shell

GPU = """base:
config:
  target: {service: sing, workspace_name: w, gpus_per_node: 8}
  environment: {image: amlt-sing/x, setup: [pip list]}
  jobs:
    - sku: "{nodes}x40G{processes}-A100"
      instance_count: 2
      command: ['echo $HOME']
      submit_args: {env: {HF_TOKEN: s3cret, PLAIN: 0123, PRICE: $5}}
"""
LOCAL = "base:\nconfig: {target: {service: local}, jobs: [{instance_count: 1}]}\n"


@pytest.fixture
def ready(aj: Shell) -> Shell:
    aj.template("gpu", GPU)
    aj.template("local", LOCAL)
    aj.write("train.py", "print(1)\n")
    return aj


def path_of(seen: Ran) -> Path:
    assert seen.code == 0, seen.err
    return Path(seen.out.strip())


@pytest.mark.rule("C-176", "C-177", "C-180", "C-006", "C-291")
def test_the_path_of_a_private_file_and_nothing_else(ready: Shell) -> None:
    """No fixture of this test allows a program, a socket or the network."""
    seen = ready("run", "-d", "-t", "gpu", "train.py", "--lr", "1e-3")
    path = path_of(seen)
    assert path.parent == ready.home.layout.dryrun
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    state = ready.home.folders.state
    assert not (state / "queue").exists() and not (state / "journal").exists() and not (state / "code").exists()
    assert not ready.home.folders.runtime.exists()


@pytest.mark.rule("C-177", "C-255", "C-159", "C-160", "T88")
def test_the_file_is_shaped_as_amlt_knows_it(ready: Shell) -> None:
    found = yaml.safe_load(path_of(ready("run", "-d", "-t", "gpu", "-n", "3", "train.py", "a b", "$X")).read_text())
    job = found["jobs"][0]
    assert (job["instance_count"], job["sku"], job["process_count_per_node"]) == (3, "3x40G8-A100", 1)
    assert job["command"] == ["echo $$HOME", "uv run train.py 'a b' '$$X'"]
    env = job["submit_args"]["env"]
    assert (env["HF_TOKEN"], env["PLAIN"], env["PRICE"]) == ("s3cret", "0123", "$$5")
    assert (env["AJ_NODES"], env["AJ_PROCESSES"], env["AJ_TEMPLATE"]) == ("3", "24", "gpu")
    assert all(isinstance(value, str) for value in env.values())


@pytest.mark.rule("C-177", "C-179", "C-017")
def test_the_document_is_masked_and_the_file_is_not(ready: Shell) -> None:
    item = ready("run", "-d", "-t", "gpu", "--json", "train.py").json["item"]
    assert (item["status"], item["backend"], item["experiment"]) == ("dry_run", "sing", "aj")
    assert item["shape"] == {
        "nodes": 2,
        "sku_processes_per_node": 8,
        "processes_per_node": 1,
        "gpus_per_node": 8,
        "total_gpus": 16,
        "total_processes": 2,
    }
    assert item["document"]["jobs"][0]["submit_args"]["env"]["HF_TOKEN"] == "***"
    assert "s3cret" in Path(item["path"]).read_text()
    assert item["env_names"] == ["HF_TOKEN", "PLAIN", "PRICE"]
    assert (item["code"]["files"], len(item["code"]["digest"])) == (1, 64)
    shown = ready("run", "-d", "-t", "gpu", "--show-env", "--json", "train.py").json["item"]
    assert shown["document"]["jobs"][0]["submit_args"]["env"]["HF_TOKEN"] == "s3cret"
    as_yaml = yaml.safe_load(ready("run", "-d", "-t", "gpu", "-o", "yaml", "train.py").out)
    assert as_yaml["item"]["document"]["target"]["service"] == "sing"


@pytest.mark.rule("C-178", "T88", "T87")
def test_views_on_stdout(ready: Shell) -> None:
    argv = ready("run", "-d", "-t", "gpu", "--show", "argv", "train.py", "a b", "", "ü")
    assert json.loads(argv.out) == ["uv", "run", "train.py", "a b", "", "ü"]
    files = ready("run", "-d", "-t", "gpu", "--show", "files", "train.py")
    assert files.out == "path\tsize\tkind\ntrain.py\t9\tfile\n\ntotal: 1 file, 9 B\n"
    assert ready("run", "-d", "-t", "gpu", "--show", "files", "--json", "true").json["bytes"] == 9
    missing = ready("run", "-d", "-t", "local", "--show", "body", "--json", "true")
    assert (missing.code, missing.err.splitlines()[-1]) == (2, "hint: it has argv, files")


@pytest.mark.rule("C-177", "C-085")
def test_only_the_newest_are_kept(ready: Shell) -> None:
    ready("config", "set", "retention.dry_runs", "2")
    made = [path_of(ready("run", "-d", "-t", "local", "true")) for _ in range(4)]
    assert [path.exists() for path in made] == [False, False, True, True]


@pytest.mark.rule("C-180", "C-129")
def test_strict_makes_a_warning_an_error(ready: Shell) -> None:
    ready.template("slip", LOCAL.replace("instance_count: 1", "instance_count: 1, instnace: 2"))
    loose = ready("run", "-d", "-t", "slip", "true")
    assert loose.code == 0
    assert "aj: warning: .azure_jobs/template/slip.yaml:2: " in loose.err
    seen = ready("run", "-d", "-t", "slip", "--strict", "true")
    assert (seen.code, seen.out) == (2, "")
    assert seen.err.endswith("aj: 1 warning, and `--strict` allows none\n")
    assert ready("run", "-t", "slip", "--strict", "true").code == 2


@pytest.mark.rule("C-158")
def test_a_script_that_stays_behind_is_a_warning(ready: Shell) -> None:
    ready.write(".codeignore", "train.py\n")
    assert "aj: warning: train.py is not in the code archive" in ready("run", "-d", "-t", "local", "train.py").err


@pytest.mark.rule("C-271", "C-187")
def test_nothing_to_send_is_refused(ready: Shell) -> None:
    ready.write(".codeignore", "*\n")
    seen = ready("run", "-d", "-t", "local", "true")
    assert seen.code == 2
    assert seen.err.startswith("aj: no files selected")


@pytest.mark.rule("C-016", "C-069")
@pytest.mark.parametrize(
    "words",
    [
        ("--queue", "-d"),
        ("--queue", "--wait"),
        ("--queue", "--follow"),
        ("--show", "argv"),
        ("--show-env",),
        ("-d", "--wait"),
        ("--exit-status",),
        ("--wait-timeout", "5"),
    ],
)
def test_options_that_contradict_each_other(ready: Shell, words: tuple[str, ...]) -> None:
    seen = ready("run", "-t", "local", *words, "--json", "true")
    assert (seen.code, seen.json["error"]["type"]) == (2, "OptionError")


@pytest.mark.rule("C-325", "C-319", "C-320", "C-327", "C-097", "C-161", "T90")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("-t", "local"), 2, "COMMAND is missing"),
        (("-t", "local", ""), 2, "COMMAND is empty"),
        (("-t", "nope", "true"), 3, "no template called `nope`"),
        (("-t", "../x", "true"), 2, "`../x` cannot be the name of a template"),
        (("true",), 2, "no template is named"),
        (("-t", "local", "-n", "0", "true"), 2, "-n 0: a whole number from 1 to 100000 is due"),
        (("-t", "local", "-n", "1_0", "true"), 2, "-n 1_0: a whole number"),
        (("-t", "local", "-p", "-4", "true"), 2, "-p -4: a whole number from 0"),
        (("-t", "local", "--ppn", "0", "true"), 2, "--ppn 0: a whole number from 1"),
        (("-t", "local", "-e", "NOT_SET_HERE", "true"), 2, "-e NOT_SET_HERE: the variable NOT_SET_HERE is not set"),
        (("-t", "local", "-e", "1x=2", "true"), 2, "cannot be the name of a variable"),
        (("-t", "local", "--env-file", "none", "true"), 2, "--env-file none: No such file"),
        (("-t", "local", "--experiment", "-x", "true"), 2, "--experiment -x: it takes"),
        (("-t", "local", "--amlt", "true"), 2, "amlt does not know jobs of this machine"),
    ],
)
def test_what_is_wrong_is_said_first(ready: Shell, words: tuple[str, ...], code: int, said: str) -> None:
    for mode in (("-d",), ()):
        seen = ready("run", *mode, "--json", *words)
        assert seen.code == code
        assert said in seen.err
        assert seen.err.startswith("aj: ")
    assert not ready.home.folders.runtime.exists()


@pytest.mark.rule("C-161", "C-162", "T90", "C-312", "C-313", "C-314")
def test_the_environment_of_the_job(ready: Shell) -> None:
    ready.write("vars", "# mine\nA=file\nB=x=y z\n")
    words = ("-e", "A=1=2", "-e", "C", "-e", "D=", "--env-file", "vars", "-e", "AJ_ID=mine")
    seen = ready("run", "-d", "-t", "gpu", "--show-env", "--json", *words, "true", C="from shell")
    env = seen.json["item"]["document"]["jobs"][0]["submit_args"]["env"]
    assert (env["A"], env["B"], env["C"], env["D"]) == ("1=2", "x=y z", "from shell", "")
    assert env["AJ_ID"] == seen.json["item"]["id"]
    assert any("AJ_ID" in warning["message"] for warning in seen.json["warnings"])


@pytest.mark.rule("C-149", "C-152", "C-089", "C-300")
def test_the_name(ready: Shell) -> None:
    item = ready("run", "-d", "-t", "local", "--json", "train.py").json["item"]
    assert item["name"] == f"project_train_{item['id']}"
    named = ready("run", "-d", "-t", "local", "--json", "train.py", AJ_NAME="pre train").json["item"]
    assert named["name"] == f"pre-train_{named['id']}"
    assert named["id"] != item["id"]


@pytest.mark.rule("C-131")
def test_a_service_that_cannot_be_sent_to_yet(ready: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shut = replace(registry.ENTRIES["amlt"], traits=Traits(driven=False, moves_code=False, submits=False))
    monkeypatch.setattr(registry, "ENTRIES", {**registry.ENTRIES, "amlt": shut})
    seen = ready("run", "-t", "gpu", "--amlt", "--json", "train.py")
    assert seen.code == 2
    assert "this release checks and renders jobs for `amlt`, and submits only to `local`" in seen.err
    assert not ready.home.folders.runtime.exists()


@pytest.mark.rule("C-087", "C-332")
def test_the_experiment_of_a_dry_run_is_invented_and_told(ready: Shell) -> None:
    seen = ready("run", "-d", "-t", "gpu", "--json", "true")
    assert [warning["code"] for warning in seen.json["warnings"]] == ["no-experiment"]
    assert "so a submission is refused: `aj config experiment NAME`" in seen.err
    assert ready("run", "-d", "--strict", "-t", "gpu", "true").code == 2
    for item in (
        ready("run", "-d", "-t", "gpu", "--experiment", "e1", "--json", "true").json["item"],
        ready("run", "-d", "-t", "gpu", "--json", "true", AJ_EXPERIMENT="e1").json["item"],
    ):
        assert item["experiment"] == "e1"
    here = ready("run", "-d", "-t", "local", "--json", "true").json
    assert (here["item"]["experiment"], here["warnings"]) == (None, [])


@pytest.mark.rule("C-014")
def test_another_workspace(ready: Shell) -> None:
    item = ready("run", "-d", "-t", "gpu", "--ws", "other", "--json", "true").json["item"]
    assert (item["target"]["workspace"], item["document"]["target"]["workspace_name"]) == ("other", "other")
    assert ready("run", "-d", "-t", "local", "--ws", "other", "true").code == 2


@pytest.mark.rule("C-014", "T26")
@pytest.mark.usefixtures("programs")
def test_a_changed_tree_can_be_refused(ready: Shell) -> None:
    import subprocess

    def git(*words: str) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *words], cwd=ready.directory, check=True, capture_output=True, timeout=20)

    seen = ready("run", "-d", "-t", "local", "--require-clean", "true")
    assert (seen.code, "git says" in seen.err) == (2, True)
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    assert ready("run", "-d", "-t", "local", "--require-clean", "true").code == 0
    ready.write("train.py", "print(2)\n")
    seen = ready("run", "-d", "-t", "local", "--require-clean", "true")
    assert (seen.code, "train.py" in seen.err) == (5, True)


@pytest.mark.rule("C-015", "C-065")
def test_words_behind_command_that_look_like_our_options(ready: Shell) -> None:
    seen = ready("run", "-d", "-t", "local", "train.py", "--wait", "--nodes=2", "--lr", "1", "--wait")
    assert "--wait, --nodes belong to train.py: options of `aj run` stand before COMMAND\n" in seen.err
    told = ready("run", "-d", "-t", "local", "true", "-o", "yaml", "-n", "2").err
    assert "-o yaml, -n belong to true: options of `aj run` stand before COMMAND\n" in told


@pytest.mark.rule("C-024", "C-015")
@pytest.mark.parametrize("words", [("--rank", "3", "true"), ("-i", "cat"), ("--rank=3", "true"), ("--tty", "sh")])
def test_options_behind_the_id_of_exec(ready: Shell, words: tuple[str, ...]) -> None:
    seen = ready("exec", "1a2b3c4d", *words)
    assert (seen.code, "options stand before ID" in seen.err) == (2, True)


@pytest.mark.rule("C-176", "C-052", "C-065")
def test_how_much_would_be_sent_is_told_in_one_line(ready: Shell) -> None:
    told = "1 node, 1 process; code: 1 file, 9 B (`--show files` lists them)\n"
    assert ready("run", "-d", "-t", "local", "train.py").err.endswith(told)
    assert told not in ready("run", "-q", "-d", "-t", "local", "train.py").err


@pytest.mark.rule("C-057", "C-058", "C-129")
def test_all_errors_of_a_template_are_told_at_once(ready: Shell) -> None:
    bad = (
        "base:\nconfig:\n  target: {service: local, cpus: many}\n"
        "  jobs: [{instance_count: two, process_count_per_node: three}]\n  tags: abc\n"
    )
    path = ready.template("bad", bad)
    for words in (("run", "-t", "bad"), ("run", "-d", "-t", "bad")):
        seen = ready(words[0], "--json", *words[1:], "train.py")
        issues = [issue for issue in seen.json["error"]["details"]["issues"] if issue["level"] == "error"]
        warned, *lines = [line for line in seen.err.splitlines() if line.startswith("aj: ")]
        assert warned.startswith("aj: warning: .azure_jobs/template/bad.yaml:5:3: unknown key `tags`; ")
        assert (seen.code, len(issues), len(lines)) == (2, 3, 3)
        assert all(line.startswith("aj: .azure_jobs/template/bad.yaml:") for line in lines)
        assert [issue["message"] for issue in issues] == [line.split(": ", 2)[2] for line in lines]
        assert {issue["file"] for issue in issues} == {str(path)}
        hints = [line.removeprefix("hint: ") for line in seen.err.splitlines() if line.startswith("hint: ")]
        assert hints == [issue["hint"] for issue in issues if issue["hint"]]


@pytest.mark.rule("C-129", "C-058")
def test_an_unknown_key_has_its_nearest_name_also_where_an_error_stops_first(ready: Shell) -> None:
    ready.template(
        "slip", "base:\nconfig:\n  target: {service: local, gpu: 1}\n  jobs: [{name: a, instance_count: 1}]\n"
    )
    told = ".azure_jobs/template/slip.yaml:3:28: unknown key `target.gpu`; `gpus` is the nearest key"
    seen = ready("run", "--json", "-d", "-t", "slip", "train.py")
    assert "unknown key `target.gpu`; `gpus` is the nearest key" in [one["message"] for one in seen.json["warnings"]]
    assert f"aj: warning: {told.replace(':28', '')}\n" in seen.err
    stopped = ready("run", "--json", "-d", "-t", "slip", "-n", "many", "train.py")
    assert stopped.code == 2
    assert f"aj: warning: {told}\n" in stopped.err
    assert [one["path"] for one in stopped.json["error"]["details"]["issues"]] == ["target.gpu"]


@pytest.mark.rule("C-085")
def test_a_misspelt_setting_is_told_where_it_is_missed(aj: Shell) -> None:
    aj.write(".azure_jobs/aj.toml", 'timezone = "UTC"\ntemplte = "local"\n[workspace]\nnam = "w"\n')
    hint = "hint: .azure_jobs/aj.toml:2: unknown setting `templte`; did you mean `template`?\n"
    assert aj("run", "-d", "true").err.endswith(hint)
    assert "aj.toml:4: unknown setting `workspace.nam`; did you mean `workspace.name`?" in aj("ds", "list").err
    aj.write(".azure_jobs/aj.toml", "dashbord = 1\n")
    assert aj("run", "-d", "true").err.endswith("hint: `-t NAME`; `aj template list` shows them\n")


@pytest.mark.rule("C-305", "C-309", "C-131")
def test_an_empty_config_names_the_slip_and_hints_can_be_written_as_they_are(ready: Shell) -> None:
    ready.template("slip", "base:\nconfigs:\n  target: {service: local}\n")
    assert "hint: write `config` instead of `configs`\n" in ready("run", "-d", "-t", "slip", "train.py").err
    text, seen = "base:\n", ready("run", "-d", "-t", "local", "train.py")
    for _ in range(4):  # whoever writes what the hint says arrives
        ready.template("new", text)
        seen = ready("run", "-d", "-t", "new", "train.py")
        if seen.code == 0:
            break
        (hint,) = [line for line in seen.err.splitlines() if line.startswith("hint: write `")]
        text += hint.split("`")[1] + "\n"
    assert seen.code == 0
    ready.template("new", "base:\nconfig:\n  target: {service: local}\n")
    (hint,) = [
        line for line in ready("run", "-d", "-t", "new", "train.py").err.splitlines() if line.startswith("hint: write")
    ]
    ready.template("new", f"base:\nconfig:\n  target: {{service: local}}\n  {hint.split('`')[1]}\n")
    assert ready("run", "-d", "-t", "new", "train.py").code == 0


@pytest.mark.rule("C-180b")
@pytest.mark.parametrize(
    ("target", "words", "told"),
    [
        ("service: local, memory: 9999Gi", (), "9.8 TiB of memory, and this place has"),
        ("service: local, cpus: 5000", ("-n", "2"), "10000 cpus, and this place has"),
        ("service: local, gpus: 1", (), "1 GPU, and this place has 0; ask for fewer: `target.gpus`"),
        ("service: local", ("--secret", "nope"), "no secret `nope`; `aj secrets create nope`"),
        ("service: local", ("--input-bucket", "data"), "no input bucket data; `aj bucket create data`"),
        ("service: local", ("--checkpoint-bucket", "c", "--checkpoint-storage-credentials", "disk"), "no credential"),
        (
            "service: sing, name: vc, gpus_per_node: 1",
            ("--experiment", "e"),
            "no workspace is named; write target.workspace_name",
        ),
    ],
)
def test_what_a_submission_would_be_refused_for_is_told(
    ready: Shell, target: str, words: tuple[str, ...], told: str
) -> None:
    """No daemon, no program and no network: what this machine knows by itself."""
    job, image = (
        ("{sku: 1xC1, instance_count: 1}", "environment: {image: amlt-sing/x}, ")
        if "sing" in target
        else ("{instance_count: 1}", "")
    )
    ready.template("t", f"base:\nconfig: {{target: {{{target}}}, {image}jobs: [{job}]}}\n")
    seen = ready("run", "-d", "-t", "t", *words, "--json", "true", PATH="/nowhere")
    assert seen.code == 0, seen.err
    (warning,) = [one for one in seen.json["warnings"] if one["code"] == "would-be-refused"]
    assert warning["message"].startswith("a submission is refused: ") and told in warning["message"]
    strict = ready("run", "-d", "--strict", "-t", "t", *words, "true", PATH="/nowhere")
    assert strict.code == 2 and told in strict.err


@pytest.mark.rule("C-180b")
def test_a_submission_that_is_taken_has_no_such_warning(ready: Shell) -> None:
    assert ready("run", "-d", "--strict", "-t", "local", "true").code == 0


@pytest.mark.usefixtures("programs")
def test_a_dry_run_of_a_job_that_claims_nothing_loads_nothing_that_looks_after_claims(ready: Shell) -> None:
    heavy = ("decimal", "hmac", "subprocess", "aj.backend.local.machine", "aj.backend.local.podman", "aj.store.secrets")
    code = (
        "import sys; from aj.main import main; code = main(['run', '-d', '-t', 'local', 'true'])\n"
        f"sys.exit(code or repr([name for name in {heavy!r} if name in sys.modules]))"
    )
    seen = proc.run([sys.executable, "-c", code], cwd=ready.directory, env=ready.home.env, timeout_s=60)
    assert seen.err.decode().splitlines()[-1] == "[]"
