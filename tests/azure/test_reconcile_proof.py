"""A sample of the long proof: once or not at all, whatever breaks, and afterwards it is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import forked
from tests.azure import reconcile_proof
from tests.azure.reconcile_proof import AT_WRITE, ENDS, NEVER, POINTS, SEEN

SAMPLE_S = 15.0  # a run takes less than a second on an idle machine


@pytest.mark.rule("A-128", "A-180", "A-181", "A-182", "A-184", "C-233", "C-245", "C-249", "C-251", "C-339", "C-340")
@pytest.mark.usefixtures("programs", "loopback", "real_clock")
def test_a_submission_is_there_once_or_not_at_all(tmp_path: Path) -> None:
    with reconcile_proof.proving() as proof:
        forked.sample(reconcile_proof.__name__, proof.run, reconcile_proof.draw, tmp_path, SAMPLE_S)


def test_the_seeds_reach_everything() -> None:
    drawn = [reconcile_proof.draw(seed) for seed in range(1, 501)]
    assert {plan.end for plan in drawn} == set(ENDS)
    assert {plan.kill for plan in drawn} == {NEVER, AT_WRITE, *POINTS, *SEEN}
    assert {plan.service for plan in drawn} == {"aml", "sing"}
    pairs = {(plan.end, plan.kill) for plan in drawn}
    assert len(pairs) == len(ENDS) * (2 + len(POINTS) + len(SEEN)), "each break together with each death"
