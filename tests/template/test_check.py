"""What is found wrong with a template, all of it at once, each with its place and the way out."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aj.backend import registry
from aj.base.errors import AjError, NotFound, Place, TemplateError
from aj.template import check, issue
from aj.template.check import Report
from aj.template.issue import Issue
from tests.template.kit import EXAMPLES, LOCAL, SING, VOLCANO, built, errors, issues, project, spot


def only(found: list[Issue]) -> Issue:
    assert len(found) == 1, [str(one) for one in found]
    return found[0]


def put(text: str, line: str, by: str) -> str:
    assert line in text
    return text.replace(line, by)


def reports(root: Path, **files: str) -> dict[str, Report]:
    found = check.validate(project(root, files), options_of=registry.options)
    return {report.name: report for report in found}


@pytest.mark.rule("C-131", "C-134")
@pytest.mark.parametrize("text", [LOCAL, SING, VOLCANO])
def test_a_good_template_has_no_findings(tmp_path: Path, text: str) -> None:
    assert [str(found) for found in issues(tmp_path, text)] == []


@pytest.mark.rule("C-131", "C-134")
@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.yaml")))
def test_the_published_examples_are_valid(tmp_path: Path, name: str) -> None:
    files = {path.stem: path.read_text() for path in EXAMPLES.glob("*.yaml")}
    files["with-blob"] = "base: [volcano, blob]\n"
    files["with-nested"] = "base: [volcano, nested]\n"
    files["with-storage"] = "base: [aml, storage]\n"
    files["with-tasks"] = "base: heterogeneous\n"
    found = reports(tmp_path, **files)
    assert found[name].ok
    assert found[name].kind == ("leaf" if name in ("aml", "sing", "volcano") else "component")
    for leaf in ("with-blob", "with-nested", "with-storage", "with-tasks"):
        assert found[leaf].ok, [str(one) for one in found[leaf].issues]


def test_a_placeholder_that_was_left_is_told(tmp_path: Path) -> None:
    found = only(issues(tmp_path, put(VOLCANO, "image: train:1", "image: <IMAGE>")))
    assert (found.level.value, found.code, spot(found)) == ("warning", "placeholder", (4, 24))


@pytest.mark.rule("C-305")
@pytest.mark.parametrize("text", ["base:\n", "base:\nconfig:\n", "base: null\nconfig: {}\n", "base: part\n"])
def test_an_empty_config_is_an_error_in_a_leaf(tmp_path: Path, text: str) -> None:
    assert only(errors(tmp_path, text, part="config:\n")).message == "`config` is empty"


@pytest.mark.rule("C-305")
def test_an_empty_config_is_harmless_in_a_component(tmp_path: Path) -> None:
    found = reports(tmp_path, a="config:\n", b="", c="{}")
    assert all(report.kind == "component" and report.is_clean for report in found.values())


@pytest.mark.rule("C-306")
@pytest.mark.parametrize(
    ("jobs", "says", "where"),
    [
        ("jobs: [null]", "`jobs[0]` is null; a mapping is due", (4, 10)),
        ("jobs: {}", "`jobs` is a mapping; a list of mappings is due", (4, 9)),
        ("jobs: [x]", "`jobs[0]` is the text `x`; a mapping is due", (4, 10)),
        ("jobs: []", "`jobs` is an empty list", (4, 9)),
        ("jobs:", "`jobs` is missing", (4, 3)),
        ("description: x", "`jobs` is missing", (3, 3)),
    ],
)
def test_jobs_is_a_list_of_mappings(tmp_path: Path, jobs: str, says: str, where: tuple[int, int]) -> None:
    found = only(errors(tmp_path, f"base:\nconfig:\n  target: {{service: local}}\n  {jobs}\n"))
    assert found.message == says
    assert spot(found) == where


@pytest.mark.rule("C-131", "C-322")
@pytest.mark.parametrize(
    ("target", "says", "hint", "where"),
    [
        ("target: {service: AML}", "no service is called `AML`", "`aml` is the nearest name", (3, 21)),
        ("target: {service: vulcano}", "no service is called `vulcano`", "`volcano` is the nearest name", (3, 21)),
        ("target: {service: [aml]}", "`target.service` is a list; text is due", None, (3, 21)),
        ("target: {name: x}", "`target.service` is missing", "write `service: local`", (3, 11)),
        ("target: x", "`target` is the text `x`; a mapping is due", None, (3, 11)),
        ("description: x", "`target` is missing", "write `target: {service: local}`", (3, 3)),
    ],
)
def test_the_service_is_one_that_is_known(
    tmp_path: Path, target: str, says: str, hint: str | None, where: tuple[int, int]
) -> None:
    found = only(errors(tmp_path, f"base:\nconfig:\n  {target}\n  jobs: [{{name: x}}]\n"))
    assert (found.message, found.hint, spot(found)) == (says, hint, where)


@pytest.mark.rule("C-129", "C-309")
def test_a_misspelt_key_is_a_warning_with_the_right_one(tmp_path: Path) -> None:
    text = "base:\nconfig:\n  target: {service: local, nmae: x}\n  jobs: [{instnace_count: 2}]\n  enviroment: {}\n"
    found = [
        (one.message, one.hint, spot(one), one.level.value)
        for one in issues(tmp_path, text)
        if one.level.value != "note"
    ]
    assert found == [
        ("unknown key `target.nmae`", "`name` is the nearest key", (3, 28), "warning"),
        ("unknown key `jobs[0].instnace_count`", "`instance_count` is the nearest key", (4, 11), "warning"),
        ("unknown key `enviroment`", "`environment` is the nearest key", (5, 3), "warning"),
    ]
    report = reports(tmp_path)["t"]
    assert report.ok
    assert not report.is_clean


@pytest.mark.rule("C-129")
def test_extra_is_not_looked_into_but_by_its_reader(tmp_path: Path) -> None:
    assert issues(tmp_path, LOCAL + "  _extra: {volcano: {tasks: 5}, anything: [{x: 1}], code_upload: 7}\n") == []
    assert only(errors(tmp_path, LOCAL + "  _extra: [x]\n")).message == "`_extra` is a list; a mapping is due"


@pytest.mark.rule("C-130", "C-310")
@pytest.mark.parametrize(
    ("line", "path", "hint"),
    [
        ('code: {ignore: "data/"}', "code.ignore", "write [data/]"),
        ("environment: {setup: cmd}", "environment.setup", "write [cmd]"),
        ("jobs: [{tags: abc, instance_count: 1}]", "jobs[0].tags", "write [abc]"),
        ("code: {ssh: config}", "code.ssh", "write [config]"),
        (
            "jobs: [{instance_count: 1, submit_args: {container_args: {capabilities: SYS_ADMIN}}}]",
            "jobs[0].submit_args.container_args.capabilities",
            "write [SYS_ADMIN]",
        ),
    ],
)
def test_a_scalar_where_a_list_is_due_shows_the_list(tmp_path: Path, line: str, path: str, hint: str) -> None:
    found = only(
        errors(
            tmp_path,
            put(LOCAL, "  jobs:\n  - instance_count: 1\n", "")
            + f"  {line}\n"
            + ("" if "jobs" in line else "  jobs: [{instance_count: 1}]\n"),
        )
    )
    assert found.path == path
    assert found.hint == hint
    assert found.message.endswith("; a list of text is due")
    assert spot(found)[0] == 4


KINDS = [
    ("target: {service: local, name: 5}", "`target.name` is the number `5`; text is due", 'write "5"'),
    ("target: {service: local, rdma: yes}", "`target.rdma` is the text `yes`; true or false is due", None),
    (
        "target: {service: local, gpus_per_node: '2'}",
        "`target.gpus_per_node` is the text `2`; a whole number is due",
        "write 2, without quotes",
    ),
    (
        "target: {service: local, gpus_per_node: 2.0}",
        "`target.gpus_per_node` is the number `2.0`; a whole number is due",
        None,
    ),
    (
        "target: {service: local, gpus_per_node: true}",
        "`target.gpus_per_node` is the flag `true`; a whole number is due",
        None,
    ),
    (
        "target: {service: local, memory: 64GB}",
        "`target.memory` is `64GB`; a size above zero such as 512Gi, 500M or 1048576 is due",
        "write 64Gi",
    ),
    (
        "target: {service: local, memory: 0}",
        "`target.memory` is `0`; a size above zero such as 512Gi, 500M or 1048576 is due",
        "write an amount such as 512Gi",
    ),
    ("target: {service: local, labels: [a]}", "`target.labels` is a list; a mapping is due", None),
    ("environment: {setup: [5]}", "`environment.setup[0]` is the number `5`; text is due", 'write "5"'),
    ("environment: {setup: {a: b}}", "`environment.setup` is a mapping; a list of text is due", None),
    ("environment: {setup: [null]}", "`environment.setup[0]` is null; text is due", None),
    ("storage: {x: y}", "`storage.x` is the text `y`; a mapping is due", None),
    ("code: {ssh_private_keys: 1}", "`code.ssh_private_keys` is the number `1`; true or false is due", None),
    ("env_defaults: {A: [x]}", "`env_defaults.A` is a list; one value is due", None),
]


@pytest.mark.rule("C-130", "C-142", "C-319", "C-328")
@pytest.mark.parametrize(("line", "says", "hint"), KINDS)
def test_a_wrong_kind_tells_what_was_found_and_what_is_due(
    tmp_path: Path, line: str, says: str, hint: str | None
) -> None:
    target = "" if line.startswith("target") else "  target: {service: local}\n"
    found = only(errors(tmp_path, f"base:\nconfig:\n{target}  {line}\n  jobs: [{{instance_count: 1}}]\n"))
    assert (found.message, found.hint) == (says, hint)


JOBS = [
    ("instance_count: '2'", "`jobs[0].instance_count` is the text `2`; a whole number is due"),
    ("instance_count: true", "`jobs[0].instance_count` is the flag `true`; a whole number is due"),
    ("instance_count: 0", "`jobs[0].instance_count` is 0; 1 to 100000 is allowed"),
    ("instance_count: -1", "`jobs[0].instance_count` is -1; 1 to 100000 is allowed"),
    ("instance_count: 100001", "`jobs[0].instance_count` is 100001; 1 to 100000 is allowed"),
    ("process_count_per_node: 5000", "`jobs[0].process_count_per_node` is 5000; 1 to 4096 is allowed"),
    ("command: {a: b}", "`jobs[0].command` is a mapping; text or a list of text is due"),
    ("submit_args: {env: [A]}", "`jobs[0].submit_args.env` is a list; a mapping is due"),
    ("submit_args: {env: {A: {b: c}}}", "`jobs[0].submit_args.env.A` is a mapping; one value is due"),
    ("submit_args: {env: {A-B: c}}", "`A-B` cannot be the name of an environment variable"),
    (
        'submit_args: {env: {A: "x\\0y"}}',
        "`jobs[0].submit_args.env.A` has a NUL character, which no environment can hold",
    ),
    ("timeout: soon", "`jobs[0].timeout`: `soon` is not a duration: write 90s, 30m, 2h, 1d or 1h30m"),
    ("name: [x]", "`jobs[0].name` is a list; text is due"),
]


@pytest.mark.rule("C-130", "C-142", "C-319", "A-152")
@pytest.mark.parametrize(("line", "says"), JOBS)
def test_a_job_is_checked_by_its_keys(tmp_path: Path, line: str, says: str) -> None:
    found = only(errors(tmp_path, f"base:\nconfig:\n  target: {{service: local}}\n  jobs:\n  - {line}\n"))
    assert found.message == says
    assert spot(found)[0] == 5


@pytest.mark.rule("C-131")
def test_more_than_one_job_is_told(tmp_path: Path) -> None:
    found = only(issues(tmp_path, LOCAL + "  - name: second\n"))
    assert (found.level.value, found.message) == ("warning", "`jobs` has 2 entries; the first is submitted")


@pytest.mark.rule("C-135", "C-320")
def test_a_missing_shape_is_a_note(tmp_path: Path) -> None:
    text = put(put(SING, ", gpus_per_node: 8", ""), "    instance_count: 2\n", "")
    found = only(issues(tmp_path, text))
    assert found.level.value == "note"
    assert "`-n` or `jobs[0].instance_count`" in found.message
    assert "`-p` or `target.gpus_per_node`" in found.message
    assert reports(tmp_path)["t"].is_clean


SKUS = [
    ("8xH100", "`8xH100` is not a SKU: `G` or `C` is due here at `H100`", (6, 12)),
    ("g8", "`g8` is not a SKU", (6, 10)),
    ("'40C2'", "`40C2` is not a SKU", (6, 11)),
    ("G08", "`G08` is not a SKU", (6, 11)),
    ("2 x G8", "`2 x G8` is not a SKU", (6, 11)),
    ("G8-A100-H100", "`G8-A100-H100` is not a SKU", (6, 18)),
    ('"{nodes}xG8-A100-{processes}"', "`8` is no accelerator", (6, 27)),
    ('"{foo}"', "`{foo}` is no placeholder of a SKU", (6, 11)),
    ('"G{}"', "`{}` is no placeholder of a SKU", (6, 12)),
    ('"{nodes:>5}"', "`{nodes:>5}` is no placeholder of a SKU", (6, 11)),
    ('"{nodes.__class__}"', "`{nodes.__class__}` is no placeholder of a SKU", (6, 11)),
    ("G8}", "`}` is no placeholder of a SKU", (6, 12)),
    ("", "`jobs[0].sku` is missing", (6, 5)),
    ('""', "the sku is empty", (6, 11)),
    ("8", "`jobs[0].sku` is the number `8`; text is due", (6, 10)),
    ("[G8]", "`jobs[0].sku` is a list; text is due", (6, 10)),
    ("{}", "`jobs[0].sku` is an empty mapping", (6, 10)),
    ("{4-2: G8}", "`4-2`: the range ends before it begins", (6, 11)),
    ("{x: G8}", "`x` is no range of nodes", (6, 11)),
    ("{1: G8, 2+: g8}", "`g8` is not a SKU", (6, 22)),
    ("{1: '', 2+: G8}", "the range `1` has no SKU", (6, 14)),
    ("{1: [G8]}", "`jobs[0].sku.1` is a list; text is due", (6, 14)),
]


@pytest.mark.rule("C-143", "C-144", "C-145", "C-315", "C-316", "C-318", "A-070", "A-071")
@pytest.mark.parametrize(("sku", "says", "where"), SKUS)
def test_a_sku_is_checked_with_its_column(tmp_path: Path, sku: str, says: str, where: tuple[int, int]) -> None:
    text = put(SING, '"{nodes}x80G{processes}-A100"', sku)
    found = only(errors(tmp_path, text))
    assert says in found.message
    assert spot(found) == where


@pytest.mark.rule("C-144", "C-317")
def test_ranges_that_overlap_are_told_with_both_keys(tmp_path: Path) -> None:
    text = put(SING, '"{nodes}x80G{processes}-A100"', "{1-4: G8, 2-8: G8, '9+': G8, 20: G1}")
    found = [(one.message, spot(one)) for one in issues(tmp_path, text)]
    assert found == [
        ("the ranges `1-4` and `2-8` overlap; the first holds where they do", (6, 20)),
        ("the ranges `9+` and `20` overlap; the first holds where they do", (6, 39)),
    ]


@pytest.mark.rule("C-134", "C-303")
def test_every_file_is_checked_and_a_broken_one_hides_no_other(tmp_path: Path) -> None:
    files = {f"t{n:02}": LOCAL for n in range(28)}
    files |= {"broken": "base:\nconfig: {a: [}\n", "account/bad": "config: {target: {name: 5}, targt: {}}\n"}
    where = project(tmp_path, files)
    (where.directory / "template" / "old.yml").write_text(LOCAL)
    (where.directory / "submission").mkdir()
    (where.directory / "submission" / "x.yaml").write_text("[")
    found = {report.name: report for report in check.validate(where, options_of=registry.options)}
    assert len(found) == 31
    assert [name for name, report in found.items() if not report.ok] == ["broken", "account.bad"]
    assert spot(found["broken"].issues[0]) == (2, 14)
    assert [one.level.value for one in found["account.bad"].issues] == ["error", "warning"]
    assert found["old.yml"].issues[0].code == "stray-file"


@pytest.mark.rule("C-134")
def test_all_issues_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    text = """base:
config:
  target: {service: sing, gpus_per_node: x, workspace_nam: y}
  environment: {image: "UPPER CASE", setup: cmd}
  jobs:
  - sku: g8
    sla_tier: Gold
    priority: urgent
    instance_count: 0
    tags: x
"""
    lines = [(one.level.value, one.path, spot(one)[0]) for one in issues(tmp_path, text)]
    assert lines == [
        ("error", "target.gpus_per_node", 3),
        ("warning", "target.workspace_nam", 3),
        ("error", "environment.setup", 4),
        ("error", "jobs[0].instance_count", 9),
        ("error", "jobs[0].tags", 10),
        ("error", "environment.image", 4),
        ("error", "jobs[0].sla_tier", 7),
        ("error", "jobs[0].priority", 8),
    ]


@pytest.mark.rule("C-134")
def test_a_component_is_checked_for_kinds_and_unknown_keys_alone(tmp_path: Path) -> None:
    found = reports(
        tmp_path, a="config: {jobs: [{sku: whatever}], environment: {image: 5}, x: 1}\n", b="config: {a: 1, a: 2}\n"
    )
    assert [(one.level.value, one.path) for one in found["a"].issues] == [
        ("error", "environment.image"),
        ("warning", "x"),
    ]
    assert "stands twice" in found["b"].issues[0].message


@pytest.mark.rule("C-044", "C-134")
def test_named_templates_are_checked_alone(tmp_path: Path) -> None:
    where = project(tmp_path, {"a": LOCAL, "b": "[", "account/x": "config: {}\n"})
    found = check.validate(where, ["a", "account.x"], options_of=registry.options)
    assert [(report.name, report.kind, report.ok) for report in found] == [
        ("a", "leaf", True),
        ("account.x", "component", True),
    ]
    with pytest.raises(NotFound):
        check.validate(where, ["nope"], options_of=registry.options)


@pytest.mark.rule("C-044", "C-134")
def test_a_component_that_is_named_as_a_template_is_told(tmp_path: Path) -> None:
    text = LOCAL.removeprefix("base:\n")
    where = project(tmp_path, {"part": text, "leaf": "base: part\n"})
    message = "part has no base key: it is a component"
    found = check.validate(where, ["part"], options_of=registry.options)[0]
    assert (found.kind, [(one.level.value, one.code, one.message) for one in found.issues]) == (
        "component",
        [("warning", "component", message)],
    )
    assert [one.message for one in built(tmp_path, text).warnings] == [message.replace("part", "t")]
    assert all(report.is_clean for report in check.validate(where, options_of=registry.options) if report.name != "t")


@pytest.mark.rule("C-118", "C-125", "C-126")
def test_accidents_of_inheritance_are_warnings(tmp_path: Path) -> None:
    b = "base: a\nconfig: {target: x}\n"
    found = issues(tmp_path, "base: [a, b, a]\nconfig: {env_defaults: !unset }\n", a=LOCAL, b=b)
    assert [one.code for one in found] == ["mixed-kinds", "mixed-kinds", "unset-nothing", "diamond"]
    assert found[0].message == "`target` is text here and a mapping in the layer below (a.yaml:3)"


@pytest.mark.rule("C-044")
def test_a_finding_has_a_machine_form_that_comes_back(tmp_path: Path) -> None:
    found = issues(tmp_path, put(SING, "image: train:1", "image: 5, imag: x"))
    assert set(found[0].json()) == {"level", "code", "file", "line", "column", "path", "message", "hint"}
    carried = issue.fatal(found)
    assert issue.of_error(carried) == found
    json.dumps(carried.details)
    assert carried.message == next(one.message for one in found if one.is_error)


def test_an_error_without_findings_is_one() -> None:
    found = only(issue.of_error(TemplateError("x", hint="h", place=Place("f", 1, 2))))
    assert (found.message, found.hint, found.is_error, str(found)) == ("x", "h", True, "f:1:2: x")
    assert issue.distinct([found, found]) == [found]
    issue.stop_at_errors([issue.note("n"), issue.warning("w")])
    with pytest.raises(TemplateError, match="x"):
        issue.stop_at_errors([issue.note("n"), found])


@pytest.mark.rule("C-042", "C-134")
def test_thirty_templates_are_checked_quickly(tmp_path: Path) -> None:
    files = {f"t{n:02}": "base: [sing, account.default]\nconfig: {jobs: [{name: x}]}\n" for n in range(30)}
    where = project(tmp_path, {**files, "sing": SING, "account/default": "config: {target: {subscription_id: x}}\n"})
    began = time.process_time()
    assert all(report.ok for report in check.validate(where, options_of=registry.options))
    assert time.process_time() - began < 1


_KEYS = (
    "target service jobs sku environment image storage mount_dir submit_args env container_args shm_size _extra tasks"
)
_MORE = "master replicas code_upload blob strategy identity tags run_as ttl cpus instance_count code ignore x"
_WORDS = "local sing volcano aml amlt G8 {nodes} /x"
WORDS = st.sampled_from(f"{_KEYS} {_MORE} {_WORDS}".split())
VALUES = st.recursive(
    st.one_of(WORDS, st.none(), st.booleans(), st.integers(-2, 9), st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=4)),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(WORDS, VALUES, max_size=5), st.sampled_from(list(registry.ENTRIES)))
def test_any_config_is_judged_without_a_stumble(tmp_path: Path, config: dict[str, object], service: str) -> None:
    if isinstance(config.get("target"), dict):
        config["target"]["service"] = service  # type: ignore[index]
    where = project(tmp_path, {"t": json.dumps({"base": None, "config": config})})
    for report in check.validate(where, options_of=registry.options):
        assert all(one.place is not None and one.message for one in report.issues)
    try:
        check.validate(where, ["t"], options_of=registry.options)
    except AjError as error:
        raise AssertionError(f"validate raised {error}") from error
