"""The services by name: naming all of them imports none."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from aj.backend import registry
from aj.backend.protocol import Traits
from aj.backend.registry import Entry
from aj.base import paths, proc
from aj.base.errors import TemplateError, UserError
from aj.model.code import CodePlan
from aj.pack import walk
from aj.template import tree

SERVICES = ("local", "aml", "sing", "volcano", "amlt")


def test_every_service_has_options_and_facts() -> None:
    assert tuple(registry.ENTRIES) == SERVICES
    for service, entry in registry.ENTRIES.items():
        parse = registry.options(service)
        assert callable(parse)
        assert registry.traits(service) == entry.traits
        assert entry.says
    assert registry.traits("local").is_local
    assert registry.options("local")(tree.section_of({"target": {"service": "local"}})).facts.runs_here


@pytest.mark.rule("A-111")
def test_a_link_out_of_the_tree_is_refused_for_every_service_but_this_machine(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("x")
    (tmp_path / "out").symlink_to("/etc/hostname")
    for service in registry.ENTRIES:
        config = tree.section_of({"target": {"service": service, "name": "n"}, "environment": {"image": "i"}})
        runs_here = registry.traits(service).is_local
        plan = CodePlan(str(tmp_path), strict_links=not runs_here)
        if runs_here:
            assert registry.options(service)(tree.section_of({"target": {"service": service}})).facts.runs_here
            assert [warning.code for warning in walk.select(plan).warnings] == ["link-absolute"]
            continue
        try:
            assert not registry.options(service)(config).facts.runs_here
        except TemplateError:
            pass  # this service needs more than that; where it runs is in its traits
        with pytest.raises(UserError, match="out"):
            walk.select(plan)


@pytest.mark.rule("C-131", "C-322")
def test_an_unknown_service_shows_the_nearest() -> None:
    for word, hint in [
        ("volcno", "`volcano` is the nearest name"),
        ("slurm?!", "known: local, aml, sing, volcano, amlt"),
    ]:
        with pytest.raises(UserError) as caught:
            registry.entry(word)
        assert caught.value.hint == hint


def test_only_a_service_that_takes_jobs_has_a_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    shut = Entry("tests.backend.shut", "rendered alone", Traits(driven=False, moves_code=False, submits=False))
    monkeypatch.setattr(registry, "ENTRIES", {**registry.ENTRIES, "shut": shut})
    for service in ("local", "shut"):
        with pytest.raises(UserError):
            registry.backend(service)
    made = object()
    room = types.ModuleType("tests.backend.toy.backend")
    room.make = lambda: made  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tests.backend.toy.backend", room)
    toy = Entry("tests.backend.toy", "a toy", Traits(driven=False, moves_code=False))
    monkeypatch.setattr(registry, "ENTRIES", {**registry.ENTRIES, "toy": toy})
    assert registry.backend("toy") is made


@pytest.mark.usefixtures("programs")
def test_naming_them_imports_none() -> None:
    heavy = "[name for name in sys.modules if name.endswith('.options') or name == 'yaml']"
    code = f"import sys, aj.backend.registry as r; r.traits('volcano'); print({heavy})"
    found = proc.run([paths.program()[0], "-I", "-c", code], timeout_s=30)
    assert found.out.decode().strip() == "[]", found.err.decode()
