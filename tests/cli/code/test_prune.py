"""aj code prune: what nothing needs goes, and a dry run tells first."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Shell


@pytest.mark.rule("C-048")
def test_the_code_of_a_deleted_job_goes(live: Shell) -> None:
    live.write("README", "some code\n")
    job = live("run", "--wait", "--json", "true").json["item"]
    digest, size = job["code"]["digest"], live.home.layout.archive(job["code"]["digest"]).stat().st_size
    assert live("code", "prune", "--keep", "0s").out == "nothing to remove\n"
    live("job", "delete", job["id"], "--yes")
    assert live("code", "prune").out == "nothing to remove\n"
    seen = live("code", "prune", "--keep", "0s", "-d", "--json").json
    assert (seen["action"], seen["status"], seen["dry_run"], seen["bytes"]) == ("prune", "noop", True, size)
    assert seen["items"] == [{"digest": digest, "bytes": size}]
    gone = live("code", "prune", "--keep", "0s")
    assert gone.rows == [[digest, str(size)]]
    assert gone.err.startswith("1 archive, ")
    assert not live.home.layout.archive(digest).exists()
    assert live("code", "prune", "--keep", "0s", "--json").json["status"] == "noop"
