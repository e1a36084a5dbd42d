"""A sample of the fuzzing that `python -m tests.fuzz` does for an hour; its seed is printed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz.__main__ import fuzz
from tests.fuzz.targets import TARGETS

SAMPLE_S = 15.0


@pytest.mark.parametrize("name", list(TARGETS))
def test_nothing_but_errors_of_ours_comes_out(name: str, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 20)
    print(f"seed {seed}")
    assert fuzz(name, SAMPLE_S, seed, tmp_path) > 10
