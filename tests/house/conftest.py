"""The house's own proofs look at the checkout with git and the linters."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _with_programs(programs: None) -> None:
    """Let these tests start programs."""
