"""A view of one prefix reaches nothing else, whatever it is asked."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from aj.base.errors import AjError, Refused, UserError
from aj.bucket.folder import SPARE, Folder
from aj.bucket.scope import Scope
from aj.bucket.storage import Bytes, Storage, objects
from aj.model.bucket import Owner

PARTS = some.sampled_from(["job-1", "job-2", "..", ".", "", "a", SPARE, "job-1 ", "JOB-2", "job-", "ü", "owner.json"])
NAMES = some.lists(PARTS, max_size=5).map("/".join) | some.text(max_size=12)
ACTS = some.sampled_from(["put", "swap", "remove", "read", "head", "page"])


def act(view: Storage, how: str, name: str) -> list[str]:
    """Do one thing; return the names that it told."""
    try:
        if how == "put":
            return [view.put(name, Bytes(b"evil")).name]
        if how == "swap":
            return [view.swap(name, b"evil", None).name]
        if how == "remove":
            view.remove(name)
        if how == "read":
            assert view.read(name, 0, 100) != b"theirs", "it read what is another job's"
        if how == "head":
            return [view.head(name).name]
        return [one.name for one in view.page(name, None).objects] if how == "page" else []
    except AjError:
        return []


@pytest.mark.rule("BK-18")
@settings(max_examples=60, deadline=None)
@given(some.lists(some.tuples(ACTS, NAMES), max_size=12))
def test_a_job_never_reaches_another_jobs_objects(asked: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as root:
        bucket = Folder(Path(root), "shared")
        bucket.create(Owner("somebody", "nonce"))
        theirs = {"job-2/a": b"theirs", "job-10/a": b"theirs", "a": b"theirs", "job-1x": b"theirs"}
        for name, data in theirs.items():
            bucket.put(name, Bytes(data))
        (Path(root) / "outside").write_bytes(b"theirs")
        before = {one.name: one.etag for one in objects(bucket)}
        view = Scope(bucket, "job-1/")
        for how, name in asked:
            for told in act(view, how, name):
                assert bucket.head(f"job-1/{told}").name == f"job-1/{told}"
        after = {one.name: one.etag for one in objects(bucket) if not one.name.startswith("job-1/")}
        assert after == before
        assert (Path(root) / "outside").read_bytes() == b"theirs"
        seen = bucket.look()
        assert seen is not None and seen.owner == Owner("somebody", "nonce")


def test_a_part_of_a_bucket_makes_and_deletes_none(tmp_path: Path) -> None:
    view = Scope(Folder(tmp_path, "shared"), "job-1/")
    with pytest.raises(Refused):
        view.create()
    with pytest.raises(Refused):
        view.delete()
    for prefix in ("job-1", "../", "/", "a//"):
        with pytest.raises(UserError):
            Scope(Folder(tmp_path, "shared"), prefix)
