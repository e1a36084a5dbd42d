"""aj code stats: what would travel, and why."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Shell


@pytest.fixture
def tree(aj: Shell) -> Shell:
    aj.write("train.py", "x" * 100)
    aj.write("lib/big.py", "y" * 2048)
    aj.write("data/a.bin", "z" * 5000)
    aj.write(".venv/x", "")
    aj.write(".codeignore", "data/\n")
    return aj


@pytest.mark.rule("C-047", "T03", "T04", "T14")
def test_the_figures(tree: Shell) -> None:
    seen = tree("code", "stats")
    assert seen.code == 0
    lines = dict(line.split(None, 1) for line in seen.out.splitlines() if len(line.split()) > 1 and line[0] != " ")
    assert lines["files"] == "3 (2.1 KiB)"
    assert "data" in lines["left"]
    item = tree("code", "stats", "--top", "1", "--list-all", "--json").json["item"]
    assert (item["files"], item["bytes"], item["ignore_file"], item["patterns"]) == (3, 2154, ".codeignore", 1)
    assert item["largest"] == [{"path": "lib/big.py", "size_bytes": 2048}]
    assert [entry["path"] for entry in item["items"]] == [".codeignore", "lib/big.py", "train.py"]
    assert sorted(item["ignored"]) == [".azure_jobs", ".venv", "data"]
    assert len(item["digest"]) == 64


@pytest.mark.rule("C-188", "T22", "C-047")
def test_why(tree: Shell) -> None:
    seen = tree("code", "stats", "--explain", "data/a.bin", "--explain", "train.py", "--explain", "no/such")
    assert seen.out.splitlines() == [
        "data/a.bin: excluded by `data/` (.codeignore:1, for the folder `data`)",
        "train.py: included (default)",
        "no/such: no such path; included (default)",
    ]
    found = tree("code", "stats", "--explain", ".venv/x", "--json").json["item"]["explain"]
    assert (found[0]["verdict"], found[0]["source"]) == ("excluded", "built-in")


@pytest.mark.rule("C-047", "C-183")
def test_a_templates_patterns_count(tree: Shell) -> None:
    tree.template("t", "base:\nconfig: {target: {service: local}, code: {ignore: [lib/]}, jobs: [{}]}\n")
    assert tree("code", "stats", "-t", "t", "--json").json["item"]["files"] == 2
    seen = tree("code", "stats", "-t", "t", "--explain", "lib/big.py")
    assert ".azure_jobs/template/t.yaml:2" in seen.out


@pytest.mark.rule("C-271")
def test_nothing_selected_is_told_not_refused(tree: Shell) -> None:
    tree.template("t", "base:\nconfig: {target: {service: local}, code: {ignore: ['*']}, jobs: [{}]}\n")
    item = tree("code", "stats", "-t", "t", "--json").json["item"]
    assert (item["files"], item["digest"]) == (0, None)


@pytest.mark.rule("C-264", "C-186")
def test_a_link_out_of_the_tree_is_refused_for_elsewhere_and_kept_here(tree: Shell) -> None:
    (tree.directory / "out").symlink_to("/etc/passwd")
    seen = tree("code", "stats", "--json")
    assert seen.code == 2
    assert "/etc/passwd" in seen.err
    tree.template("here", "base:\nconfig: {target: {service: local}, jobs: [{}]}\n")
    assert tree("code", "stats", "-t", "here", "--json").json["item"]["links"] == 1


def test_another_folder(tree: Shell) -> None:
    assert tree("code", "stats", "--code-dir", "lib", "--json").json["item"]["files"] == 1
    assert tree("code", "stats", "--code-dir", "nope").code == 2


@pytest.mark.rule("C-047", "C-188")
def test_the_default_template_counts_as_in_run(tree: Shell) -> None:
    tree.template("t", "base:\nconfig: {target: {service: local}, code: {ignore: [lib/]}, jobs: [{}]}\n")
    tree("config", "set", "template", "t")
    assert tree("code", "stats", "--json").json["item"]["files"] == 2
    found = tree("code", "stats", "--explain", "lib/big.py", "--explain", "lib/none", "--json").json["item"]["explain"]
    assert [(one["exists"], one["verdict"]) for one in found] == [(True, "excluded"), (False, "excluded")]


@pytest.mark.rule("C-047", "C-183")
def test_an_ignore_file_of_git_alone_is_told(aj: Shell) -> None:
    told = ".gitignore is not read, so what it names is sent too; `cp .gitignore .codeignore` takes it over\n"
    aj.template("t", "base:\nconfig: {target: {service: local}, jobs: [{instance_count: 1}]}\n")
    aj.write("x", "x")
    assert ".gitignore" not in aj("code", "stats").err
    aj.write(".gitignore", "data/\n")
    assert aj("code", "stats").err == told
    assert told in aj("run", "-d", "-t", "t", "true").err
    assert told not in aj("run", "-q", "-d", "-t", "t", "true").err
    aj.write(".amltignore", "data/\n")
    assert told not in aj("run", "-d", "-t", "t", "true").err
    assert aj("code", "stats").err == ""
