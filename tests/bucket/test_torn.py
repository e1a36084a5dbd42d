"""A writer that is killed anywhere leaves whole checkpoints: a sample of `python -m tests.bucket.torn`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bucket import torn
from tests.servers.azurite import Azurite


@pytest.mark.rule("BK-05", "CB-03", "DA-03", "SP-03")
@pytest.mark.parametrize("kind", ["dir", "azure"])
def test_a_killed_writer_leaves_one_whole_epoch(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, loopback: None, programs: None, real_clock: None
) -> None:
    if kind == "dir":
        torn.prove("dir", (str(tmp_path / "buckets"),), ("checkpoint.before-head", torn.ANYWHERE), seed=7)
        return
    azurite: Azurite = request.getfixturevalue("azurite")
    torn.prove("azure", (azurite.url, "torn"), ("checkpoint.after-blob",), seed=7)
