"""A sample of the long proof: one gang or none, whatever breaks, it is known which, and nothing is left behind."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from aj.base.clock import SYSTEM
from tests.kube import reconcile_proof
from tests.kube.reconcile_proof import AT_WRITE, CHANGES, ENDS, NEVER, POINTS, SEEN, TEMPLATES

SAMPLE_S = 4.0  # a run takes a third of a second on an idle machine
SURE = 4  # runs that there are in any case


@pytest.mark.rule(
    "V-100", "V-101", "V-102", "V-103", "V-068", "V-085", "C-233", "C-245", "C-249", "C-339", "T45", "T53"
)
@pytest.mark.usefixtures("programs", "loopback", "real_clock")
def test_a_gang_is_there_once_or_not_at_all_and_nothing_is_left_behind(tmp_path: Path) -> None:
    first = random.SystemRandom().randrange(2**31)
    print(f"python -m tests.kube.reconcile_proof 1 SEED, with seeds from {first} on")
    until, seed = SYSTEM.monotonic() + SAMPLE_S, first
    with reconcile_proof.proving() as proof:
        while seed < first + SURE or SYSTEM.monotonic() < until:
            folder = tmp_path / str(seed)
            folder.mkdir()
            print(f"{seed}: {reconcile_proof.draw(seed)}", end=": ", flush=True)
            print(proof.run(seed, folder), flush=True)
            seed += 1


def test_the_seeds_reach_everything() -> None:
    drawn = [reconcile_proof.draw(seed) for seed in range(1, 1001)]
    assert {plan.end for plan in drawn} == set(ENDS)
    assert {plan.kill for plan in drawn} == {NEVER, AT_WRITE, *POINTS, *SEEN}
    assert {plan.breaks for plan in drawn} == set(CHANGES)
    assert {plan.brings for plan in drawn} == set(TEMPLATES)
    pairs = {(plan.end, plan.kill) for plan in drawn}
    assert len(pairs) == len(ENDS) * (2 + len(POINTS) + len(SEEN)), "each break together with each death"
