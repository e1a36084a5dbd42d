"""Sizes of machines, and the short word for each."""

from __future__ import annotations

import pytest

from aj.model import catalogue
from tests.backend.sing.kit import WEST, cpu, gpu

CPUS = [cpu("b", 8, 64), cpu("a", 8, 32), cpu("c", 4, 128), cpu("d", 1, 1, series="E"), cpu("e", 1, 1, region=WEST)]


@pytest.mark.rule("A-076")
def test_sizes_are_those_of_one_series_and_region() -> None:
    assert [kind.short for kind in catalogue.sizes([gpu("g", 1), *CPUS], "DCPU", "NorthEurope")] == ["c", "a", "b"]
    assert catalogue.sizes([], "Dcpu", WEST) == ()


@pytest.mark.rule("A-173")
def test_the_short_word_of_a_type() -> None:
    assert catalogue.shorthand(CPUS[0], CPUS) == "C3"
    assert catalogue.shorthand(CPUS[2], CPUS) == "C1"
    assert catalogue.shorthand(gpu("g", 8, nvlink=True), []) == "80G8-H100-NvLink"
    assert catalogue.shorthand(gpu("g", 1, model=None, memory=None), []) == "G1"


@pytest.mark.rule("A-124")
def test_a_name_has_the_service_before_it_once() -> None:
    assert (gpu("H4", 4).short, gpu("H4", 4).full) == ("H4", "Singularity.H4")
    assert catalogue.InstanceType("H4", "s", "r").full == "Singularity.H4"
