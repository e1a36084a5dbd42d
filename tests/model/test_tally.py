"""Totals over jobs: every group adds up to the whole, and what is not known is not counted as nothing."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.model import tally
from aj.model.state import JobState
from aj.model.tally import NOBODY, Sample, Total

WORDS = st.none() | st.sampled_from(["a", "b"])
SECONDS = st.none() | st.floats(0, 1e6)
SAMPLES = st.lists(st.builds(Sample, st.none() | st.sampled_from(JobState), WORDS, WORDS, WORDS, SECONDS, SECONDS))
COUNTS = ("total", "active", "queued", "completed", "failed", "canceled", "gpu_jobs")


@pytest.mark.rule("C-028")
@settings(max_examples=80)
@given(SAMPLES)
def test_each_group_adds_up_to_the_whole(samples: list[Sample]) -> None:
    found = tally.of(samples)
    whole = found.overview
    unknown = sum(sample.state is None for sample in samples)
    assert whole.active + whole.queued + whole.completed + whole.failed + whole.canceled + unknown == whole.total
    for parts in found.groups.values():
        for name in COUNTS:
            assert sum(getattr(part.total, name) for part in parts) == getattr(whole, name)
        totals = [part.total.total for part in parts]
        assert totals == sorted(totals, reverse=True)
        assert len({part.name for part in parts}) == len(parts)


@pytest.mark.rule("C-028")
@settings(max_examples=40)
@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_the_median_wait(waits: list[float]) -> None:
    found = tally.of([Sample(JobState.RUNNING, queued_s=waited) for waited in waits])
    assert found.overview.median_queued_s == round(statistics.median(waits), 3)


@pytest.mark.rule("C-028", "C-056")
def test_what_is_not_known_is_none() -> None:
    assert tally.of([]).overview == Total()
    found = tally.of([Sample(JobState.RUNNING), Sample(JobState.COMPLETED, "e", gpu_s=7200.0, queued_s=3.0)])
    assert (found.overview.gpu_hours, found.overview.gpu_jobs, found.overview.median_queued_s) == (2.0, 1, 3.0)
    assert found.overview.success_rate == 1.0
    assert [part.name for part in found.groups["experiment"]] == [NOBODY, "e"]
    assert tally.of([Sample(JobState.RUNNING)]).overview.gpu_hours is None
