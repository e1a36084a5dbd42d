"""Where each value comes from: the named line, read again, gives the value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml as pyyaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aj.base.errors import NotFound, Place
from aj.template import load, origin, tree
from aj.template.origin import Origin
from tests.template.kit import project, resolved


def table(root: Path, **files: str) -> dict[str, tuple[str, str, list[str]]]:
    """The origins as (file:line, rule, hidden), file names without folder and ending."""
    found = resolved(root, files).origins
    return {
        path: (short(one.place), one.rule.value, [short(place) for place in one.hidden]) for path, one in found.items()
    }


def short(place: Place) -> str:
    return f"{Path(place.file).stem}:{place.line}"


@pytest.mark.rule("C-127", "T92", "T93")
def test_each_rule_is_told(tmp_path: Path) -> None:
    a = "config:\n  name: x\n  target: {service: local, gpus: 1}\n  list: [p]\n  jobs:\n  - {n: 1}\n  gone: [1, 2]\n"
    t = "base: a\nconfig:\n  name: y\n  own: 1\n  target:\n    cpus: 2\n    gpus: 4\n  list: [q]\n"
    t += "  jobs:\n  - n: 2\n    m: 3\n  - {z: 1}\n  gone: !replace [3]\n"
    assert table(tmp_path, a=a, t=t) == {
        "name": ("t:3", "override", ["a:2"]),
        "target.service": ("a:3", "set", []),
        "target.gpus": ("t:7", "override", ["a:3"]),
        "target.cpus": ("t:6", "merge", []),
        "list[0]": ("a:4", "set", []),
        "list[1]": ("t:8", "join", []),
        "jobs[0].n": ("t:10", "override", ["a:6"]),
        "jobs[0].m": ("t:11", "merge", []),
        "jobs[1].z": ("t:12", "index", []),
        "gone[0]": ("t:13", "replace", ["a:7"]),
        "own": ("t:4", "set", []),
    }


@pytest.mark.rule("C-127")
def test_hidden_values_stand_newest_first(tmp_path: Path) -> None:
    found = table(tmp_path, a="config: {v: 1}", b="base: a\nconfig:\n  v: 2\n", t="base: b\nconfig:\n\n  v: 3\n")
    assert found == {"v": ("t:4", "override", ["b:3", "a:1"])}


@pytest.mark.rule("C-127")
def test_null_keeps_and_an_empty_value_is_a_value(tmp_path: Path) -> None:
    found = table(tmp_path, a="config: {v: 1, e: {}}", t="base: a\nconfig: {v: null, n: , l: []}\n")
    assert found == {
        "v": ("a:1", "set", []),
        "e": ("a:1", "set", []),
        "n": ("t:2", "set", []),
        "l": ("t:2", "set", []),
    }


@pytest.mark.rule("C-127")
def test_a_path_leads_to_one_value_or_to_all_below_it(tmp_path: Path) -> None:
    found = resolved(
        tmp_path, {"t": "base:\nconfig: {target: {name: x, labels: {a.b/c: 1}}, jobs: [{sku: G1}, {sku: G2}]}\n"}
    ).origins
    assert list(origin.at(found, "target.name")) == ["target.name"]
    assert list(origin.at(found, "jobs")) == ["jobs[0].sku", "jobs[1].sku"]
    assert list(origin.at(found, "jobs[1]")) == ["jobs[1].sku"]
    assert list(origin.at(found, 'target.labels["a.b/c"]')) == ['target.labels["a.b/c"]']
    with pytest.raises(NotFound) as caught:
        origin.at(found, "target.nam")
    assert caught.value.hint == "`target.name` is the nearest path"
    with pytest.raises(NotFound):
        origin.at(found, "")


@pytest.mark.rule("C-127")
def test_the_machine_form_has_all_of_it() -> None:
    one = Origin(Place("a", 1, 2), tree.Rule.SET, (Place("b", 3, 4),))
    assert one.json() == {"file": "a", "line": 1, "column": 2, "rule": "set", "hidden": ["b:3:4"]}


NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.one_of(st.integers(0, 99), st.sampled_from(["x", "long text", "yes", "1:30"]), st.booleans())
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3), st.dictionaries(NAMES, inner, min_size=1, max_size=3)
    ),
    max_leaves=6,
)
LAYERS = st.lists(st.tuples(st.dictionaries(NAMES, VALUES, max_size=3), st.booleans()), min_size=1, max_size=4)


@pytest.mark.rule("C-127")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LAYERS)
def test_the_named_line_has_the_value(tmp_path: Path, layers: list[tuple[dict[str, object], bool]]) -> None:
    files = {}
    for at, (config, flow) in enumerate(layers):
        text = pyyaml.safe_dump({"config": config}, default_flow_style=flow, width=1000).strip()
        text = text[1:-1] + "\n" if flow else text + "\n"
        files[f"l{at}"] = (f"base: l{at - 1}\n" if at else "") + text
    found = load.resolve(project(tmp_path, files), f"l{len(layers) - 1}")
    values = {path: tree.plain(leaf) for path, leaf in tree.leaves(found.tree)}
    for path, one in found.origins.items():
        line = Path(one.place.file).read_text().split("\n")[one.place.line - 1][one.place.column - 1 :]
        assert line.startswith((str(values[path]), f"'{values[path]}'", json.dumps(values[path])))
