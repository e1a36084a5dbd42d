"""A sample of the long proof: whatever is lost, doubled, late or killed, each job is had by one and ends once."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from aj.base.clock import SYSTEM
from tests.engine import claim_proof

SURE = 15  # histories that there are in any case
SAMPLE_S = 3.0


@pytest.mark.rule("TD-07", "TD-12", "TD-13", "TD-14", "TD-22", "TD-24")
def test_the_claim_protocol_keeps_its_promises() -> None:
    first = random.SystemRandom().randrange(2**31)
    print(f"histories from seed {first} on; python -m tests.engine.claim_proof 10000")
    seen: Counter[str] = Counter()
    until, seed = SYSTEM.monotonic() + SAMPLE_S, first
    while seed < first + SURE or (SYSTEM.monotonic() < until and seed < first + 60):
        print(f"seed {seed}")
        seen.update(claim_proof.run(random.Random(seed).randbytes(claim_proof.TAPE)))
        seed += 1
    happened = ("claimed", "lost", "answer lost", "doubled", "delivered late", "daemon killed", "replica killed")
    assert all(seen[kind] for kind in happened), seen
