"""A sample of the long proof: one gang or none, whatever breaks, it is known which, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import forked
from tests.kube import reconcile_proof
from tests.kube.reconcile_proof import AT_WRITE, CHANGES, ENDS, NEVER, POINTS, SEEN, TEMPLATES

SAMPLE_S = 4.0  # a run takes a third of a second on an idle machine


@pytest.mark.rule(
    "V-100", "V-101", "V-102", "V-103", "V-068", "V-085", "C-233", "C-245", "C-249", "C-339", "T45", "T53"
)
@pytest.mark.usefixtures("programs", "loopback", "real_clock")
def test_a_gang_is_there_once_or_not_at_all_and_nothing_is_left_behind(tmp_path: Path) -> None:
    with reconcile_proof.proving() as proof:
        forked.sample(reconcile_proof.__name__, proof.run, reconcile_proof.draw, tmp_path, SAMPLE_S)


def test_the_seeds_reach_everything() -> None:
    drawn = [reconcile_proof.draw(seed) for seed in range(1, 1001)]
    assert {plan.end for plan in drawn} == set(ENDS)
    assert {plan.kill for plan in drawn} == {NEVER, AT_WRITE, *POINTS, *SEEN}
    assert {plan.breaks for plan in drawn} == set(CHANGES)
    assert {plan.brings for plan in drawn} == set(TEMPLATES)
    pairs = {(plan.end, plan.kill) for plan in drawn}
    assert len(pairs) == len(ENDS) * (2 + len(POINTS) + len(SEEN)), "each break together with each death"
