"""The services by name: naming all of them imports none."""

from __future__ import annotations

import sys
import types

import pytest

from aj.backend import registry
from aj.backend.protocol import Traits
from aj.backend.registry import Entry
from aj.base import paths, proc
from aj.base.errors import UserError
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
    for service in ("local", "volcano", "amlt"):
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
