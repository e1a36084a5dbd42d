"""Nodes, processes, SKU: command line first, then the template, and everything missing named at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aj.base.errors import OptionError, TemplateError, UserError
from aj.model.job import Shape
from aj.template import shape
from aj.template.service import Facts, SkuRule
from aj.template.shape import Asked, Decided, Given
from tests.template.kit import EXAMPLES, SING, VOLCANO, Request, built, section


def config(*, job: str = "", target: str = "") -> str:
    return f"{{target: {{{target}}}, jobs: [{{{job}}}]}}"


def decide(text: str, facts: Facts | None = None, **asked: str) -> Decided:
    options = {"nodes": "-n", "processes": "-p", "per_node": "--ppn"}
    given = {key: Given(options[key], value) for key, value in asked.items()}
    return shape.decide(section(text), facts or Facts(), Asked(**given))


FULL = config(job="sku: G, instance_count: 2, process_count_per_node: 3", target="gpus_per_node: 4")


@pytest.mark.rule("C-141", "T92")
def test_the_command_line_comes_first_and_then_the_template() -> None:
    assert decide(FULL).shape == Shape(2, 4, 3, 4)
    assert decide(FULL, nodes="5", processes="6", per_node="7").shape == Shape(5, 6, 7, 6)
    assert decide(config(job="sku: G"), nodes="5", processes="6").shape == Shape(5, 6, 1, 6)


@pytest.mark.rule("C-141", "C-320")
def test_every_missing_value_is_named_in_one_message() -> None:
    with pytest.raises(UserError) as caught:
        decide(config(job="sku: G"))
    assert caught.value.message == (
        "missing: nodes (`-n` or `jobs[0].instance_count`) and SKU processes (`-p` or `target.gpus_per_node`)"
    )
    hint = "`-n 1 -p 8`, or `jobs[0].instance_count: 1` and `target.gpus_per_node: 8` in the template"
    assert (caught.value.exit_code, caught.value.hint) == (2, hint)
    with pytest.raises(UserError) as caught:
        decide(config(job="sku: G", target="gpus_per_node: 4"))
    assert caught.value.hint == "`-n 1`, or `jobs[0].instance_count: 1` in the template"
    with pytest.raises(UserError) as caught:
        decide(config(job="sku: G"), nodes="1")
    assert caught.value.message == "missing: SKU processes (`-p` or `target.gpus_per_node`)"


@pytest.mark.rule("C-142", "C-319")
@pytest.mark.parametrize("text", ["0", "-1", "1_0", "٣", "1e3", "", " 1", "1 ", "+1", "1.0", "100001", "9" * 30, "0x1"])
def test_an_odd_count_names_option_and_range(text: str) -> None:
    with pytest.raises(OptionError) as caught:
        decide(FULL, nodes=text)
    assert caught.value.message == f"-n {text}: a whole number from 1 to 100000 is due"


@pytest.mark.rule("C-142", "C-319")
def test_each_count_has_its_range() -> None:
    assert decide(FULL, processes="0").shape.sku_processes == 0
    for asked, says in [
        ({"processes": "4097"}, "-p 4097: a whole number from 0"),
        ({"per_node": "0"}, "--ppn 0: a whole number from 1"),
    ]:
        with pytest.raises(OptionError, match=says):
            decide(FULL, **asked)


@pytest.mark.rule("C-142")
def test_a_wrong_count_in_the_template_counts_only_when_it_is_used() -> None:
    text = config(job="sku: G, instance_count: '2'", target="gpus_per_node: 1")
    with pytest.raises(TemplateError, match="a whole number is due"):
        decide(text)
    assert decide(text, nodes="3").shape.nodes == 3


@pytest.mark.rule("C-143", "C-144", "C-317")
def test_the_sku_is_filled_and_chosen_by_nodes() -> None:
    assert decide(config(job='sku: "{nodes}x80G{processes}-A100"'), nodes="2", processes="8").sku == "2x80G8-A100"
    text = config(job='sku: {"1-4": "G{processes}-A100", "2-8": "G2", "2+": "G{processes}-H100"}')
    for nodes, due in [("1", "G8-A100"), ("3", "G8-A100"), ("8", "G8"), ("9", "G8-H100")]:
        assert decide(text, nodes=nodes, processes="8").sku == due


@pytest.mark.rule("C-144", "C-318")
def test_no_range_that_holds_lists_them() -> None:
    with pytest.raises(UserError) as caught:
        decide(config(job="sku: {1: G1, 4-8: G8}"), nodes="2", processes="1")
    assert caught.value.message == "no range of `jobs[0].sku` holds 2 nodes: `1`, `4-8`"


@pytest.mark.rule("C-144", "A-071")
def test_a_bad_range_is_an_error_even_when_another_one_wins() -> None:
    with pytest.raises(TemplateError, match="no range of nodes"):
        decide(config(job="sku: {1: G1, x: G2}"), nodes="1", processes="1")


@pytest.mark.rule("C-146", "A-072")
def test_a_literal_that_differs_is_told_and_gives_way() -> None:
    found = decide(config(job="sku: 8xG1-A100"), nodes="2", processes="4")
    assert found.sku == "2xG4-A100"
    assert [one.message for one in found.warnings] == [
        "`8xG1-A100` says 8 nodes; 2 holds",
        "`8xG1-A100` says 1 SKU processes; 4 holds",
    ]
    assert decide(config(job="sku: 2xG4"), nodes="2", processes="4").warnings == ()


@pytest.mark.rule("C-147", "C-168")
def test_a_cpu_sku_counts_no_gpus() -> None:
    found = decide(config(job='sku: "{nodes}xC{processes}"'), nodes="2", processes="3")
    assert found.shape == Shape(2, 3, 1, 0)
    assert found.sku == "2xC3"


@pytest.mark.rule("C-142", "C-145", "V-004")
def test_zero_gpus_are_for_those_who_allow_them() -> None:
    text = config(job="sku: G, instance_count: 1")
    assert decide(text, processes="0").shape.gpus_per_node == 0
    with pytest.raises(UserError, match="0 SKU processes"):
        decide(text, Facts(zero_gpus=False), processes="0")
    assert decide(config(job='sku: "G{processes}", instance_count: 1'), processes="0").sku == "G0"
    with pytest.raises(TemplateError, match="is not a SKU"):
        decide(config(job="sku: G0, instance_count: 1"), processes="1")


@pytest.mark.rule("V-004")
def test_where_cpu_skus_have_no_sizes_p_says_nothing() -> None:
    text = config(job="sku: C, instance_count: 1", target="gpus_per_node: 0")
    assert decide(text, Facts(cpu_sizes=False)).warnings == ()
    found = decide(text, Facts(cpu_sizes=False), processes="2")
    assert [one.message for one in found.warnings] == ["a C SKU has no sizes here: -p has no effect"]


@pytest.mark.rule("C-145")
def test_other_text_is_a_warning_where_any_is_taken_and_passes_as_written() -> None:
    facts = Facts(sku_rule=SkuRule.LOOSE)
    found = decide(config(job='sku: "any-{nodes}"'), facts, nodes="2", processes="8")
    assert found.sku == "any-2"
    assert found.shape.gpus_per_node == 8
    assert [one.level.value for one in found.warnings] == ["warning"]
    with pytest.raises(TemplateError, match="no placeholder"):
        decide(config(job='sku: "{foo}"'), facts, nodes="2", processes="8")


def test_where_no_sku_is_looked_at_none_is_needed() -> None:
    facts = Facts(sku_rule=SkuRule.UNUSED, sku_processes=2)
    found = decide(config(job="sku: not one, instance_count: 1"), facts)
    assert (found.sku, found.shape, found.warnings) == (None, Shape(1, 2, 1, 2), ())
    assert decide(config(job="instance_count: 1", target="gpus_per_node: 3"), facts).shape.sku_processes == 3
    assert shape.check(section(config(job="sku: not one, instance_count: 1")), facts) == []


@pytest.mark.rule("C-148", "V-053", "C-323")
def test_tasks_fix_the_shape(tmp_path: Path) -> None:
    text = (EXAMPLES / "heterogeneous.yaml").read_text()
    found = built(tmp_path, "base:\n" + text)
    assert found.spec.shape == Shape(7, 0, 1, 0)
    assert [(task.name, task.replicas, task.gpus_per_node, task.processes_per_node) for task in found.spec.tasks] == [
        ("master", 1, 0, 1),
        ("a100-worker", 2, 8, 8),
        ("h100-worker", 4, 8, 8),
    ]
    asked = {"nodes": Given("-n", "7"), "processes": Given("--gpn", "8"), "per_node": Given("--ppn", "1")}
    for key, given in asked.items():
        request = Request("0a1b2c3d", tmp_path, ("x",), asked=Asked(**{key: given}))
        with pytest.raises(OptionError, match=f"{given.option}: the Tasks of this template fix the shape"):
            built(tmp_path, "base:\n" + text, request=request)
    with pytest.raises(OptionError, match="--amlt: amlt does not know Tasks"):
        built(tmp_path, "base:\n" + text, request=replace(request, asked=Asked(), amlt=True))


@pytest.mark.rule("C-148")
def test_an_instance_count_beside_tasks_is_told_and_gives_way(tmp_path: Path) -> None:
    text = (
        (EXAMPLES / "heterogeneous.yaml").read_text().replace("sku: heterogeneous", "sku: het\n      instance_count: 3")
    )
    found = built(tmp_path, "base:\n" + text)
    assert found.spec.shape.nodes == 7
    assert "`instance_count` is 3; the Tasks have 7 replicas, which holds" in [one.message for one in found.warnings]


def test_a_template_that_says_all_needs_no_option(tmp_path: Path) -> None:
    assert built(tmp_path, SING).spec.shape == Shape(2, 8, 1, 8)
    assert built(tmp_path, VOLCANO).spec.sku == "2xG8"
