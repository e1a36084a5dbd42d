"""aj template: list, show, validate, compare."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Shell

COMMON = "config:\n  target: {service: local}\n  environment: {setup: [a]}\n"
LEAF = "base: common\nconfig:\n  environment: {setup: [b]}\n  jobs: [{instance_count: 1}]\n"


@pytest.fixture
def two(aj: Shell) -> Shell:
    aj.template("common", COMMON)
    aj.template("leaf", LEAF)
    return aj


@pytest.mark.rule("C-042", "C-303", "C-097")
def test_a_broken_file_is_a_row(two: Shell) -> None:
    two.template("bad", "base:\nconfig: [\n")
    two.write(".azure_jobs/template/odd.yml", "")
    seen = two("template", "list", AJ_TEMPLATE_NAME="leaf")
    assert seen.code == 0
    assert seen.out.splitlines()[0].split("\t") == [
        "name", "kind", "base", "service", "nodes", "processes", "sku", "default", "error",
    ]  # fmt: skip
    rows = {row[0]: row for row in seen.rows}
    assert (rows["bad"][1], rows["bad"][8] != "") == ("broken", True)
    assert rows["leaf"][:5] == ["leaf", "leaf", "common", "local", "1"]
    assert (rows["leaf"][7], rows["common"][1], rows["common"][7]) == ("yes", "component", "no")
    assert "odd.yml is not read" in seen.err
    assert two("template", "list", "-o", "name").out.split() == ["bad", "common", "leaf"]
    found = {item["name"]: item for item in two("template", "list", "--json").json["items"]}
    assert found["bad"]["error"]["line"] == 2 or found["bad"]["error"]["line"] == 3


@pytest.mark.rule("C-043", "C-128")
def test_show_is_yaml_with_its_chain(two: Shell) -> None:
    import yaml

    seen = two("template", "show", "leaf")
    assert seen.out.startswith(
        "# common: .azure_jobs/template/common.yaml\n# leaf: .azure_jobs/template/leaf.yaml\nconfig:\n"
    )
    assert yaml.safe_load(seen.out)["config"]["environment"] == {"setup": ["a", "b"]}
    item = two("template", "show", "leaf", "--json").json["item"]
    assert item["config"] == yaml.safe_load(seen.out)["config"]
    assert [link["name"] for link in item["chain"]] == ["common", "leaf"]
    assert two("template", "show", "leaf", "--raw").out == LEAF


@pytest.mark.rule("C-043", "C-127", "T92")
def test_every_value_has_an_origin(two: Shell) -> None:
    rows = {row[0]: row[1:] for row in two("template", "show", "leaf", "--origin").rows}
    assert rows["environment.setup[1]"] == ["b", ".azure_jobs/template/leaf.yaml:3:25", "join", ""]
    assert rows["target.service"] == ["local", ".azure_jobs/template/common.yaml:2:21", "set", ""]
    why = two("template", "show", "leaf", "--why", "environment.setup")
    assert [row[0] for row in why.rows] == ["environment.setup[0]", "environment.setup[1]"]
    origin = two("template", "show", "leaf", "--origin", "--json").json["item"]["origin"]
    assert origin["target.service"]["line"] == 2
    missing = two("template", "show", "leaf", "--why", "target.servce")
    assert (missing.code, missing.err.splitlines()[1]) == (3, "hint: `target.service` is the nearest path")
    assert two("template", "show", "leaf", "--why", "target", "--raw").code == 2


@pytest.mark.rule("C-327", "C-342", "C-043")
def test_a_wrong_name(two: Shell) -> None:
    seen = two("template", "show", "leef")
    assert (seen.code, seen.err) == (
        3,
        "aj: no template called `leef`\nhint: `aj template list` shows 2; `leaf` is the nearest name\n",
    )
    for name in ("../x", "a/b", ""):
        assert two("template", "show", name).code == 2


@pytest.mark.rule("C-044", "C-134", "C-303", "C-309")
def test_validate_tells_all_of_all_files(two: Shell) -> None:
    two.template("bad", "base:\nconfig: {target: {service: locl}, jobs: [{}]}\n")
    two.template("slip", "base: common\nconfig: {jobs: [{instnace_count: 1}]}\n")
    seen = two("template", "validate")
    assert seen.code == 2
    assert "leaf: ok\n" in seen.out
    assert "bad: not valid, 1 error\n  .azure_jobs/template/bad.yaml:2:28: error: target.service: " in seen.out
    assert "slip: ok, 1 warning\n  .azure_jobs/template/slip.yaml:2:18: warning: " in seen.out
    found = two("template", "validate", "--json").json
    assert (found["invalid"], found["valid"]) == (1, 3)
    assert two("template", "validate", "slip").code == 0
    assert two("template", "validate", "slip", "--strict").code == 2
    assert two("template", "validate", "nope").code == 3


@pytest.mark.rule("C-043b")
def test_compare(two: Shell) -> None:
    two.template("other", "base: leaf\nconfig: {environment: {setup: [c]}}\n")
    seen = two("template", "compare", "leaf", "other")
    assert seen.code == 0
    assert seen.out.startswith("--- leaf\n+++ other\n@@ ")
    assert "\n+    - c\n" in seen.out
    same = two("template", "compare", "leaf", "leaf")
    assert (same.code, same.out, same.err) == (0, "", "no difference\n")
    assert two("template", "compare", "leaf", "other", "--json").json["item"]["has_changes"] is True


@pytest.mark.rule("C-058", "C-100", "C-304")
def test_an_error_names_file_line_and_column(two: Shell) -> None:
    two.template("lost", "base: nowhere\nconfig: {}\n")
    seen = two("template", "show", "lost", "--json")
    assert seen.code == 2
    assert seen.err.startswith("aj: .azure_jobs/template/lost.yaml:1:7: the base `nowhere` does not exist")
    assert seen.json["error"]["details"]["column"] == 7
