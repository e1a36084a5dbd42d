"""Archives stay while someone relies on them, and leave nothing behind when what needed them failed."""

from __future__ import annotations

import os
import threading

import pytest

from aj.base.errors import AjError
from aj.model.code import CodeRef
from aj.store import archives, atomic
from aj.store.archives import Archives
from tests.conftest import Home


def ref(digest: str) -> CodeRef:
    return CodeRef(digest, "a", 1, 1, 1)


def made(home: Home, digest: str, size: int = 1, *, at: float | None = None) -> CodeRef:
    """Make an archive and the note beside it, unless they are there."""
    atomic.make_folder(home.layout.code)
    path = home.layout.archive(digest)
    if not path.exists():
        path.write_bytes(b"x" * size)
        path.with_name(f"{digest}.json").write_text("{}")
    if at is not None:
        os.utime(path, (at, at))
    return ref(digest.partition(".")[0])


def there(home: Home) -> list[str]:
    names = os.listdir(home.layout.code)
    found = sorted(name.removesuffix(".tar.gz") for name in names if name.endswith(".tar.gz"))
    assert found == sorted(name.removesuffix(".json") for name in names if name.endswith(".json"))
    return found


class Broke(Exception):
    pass


def failing(box: Archives, home: Home, digest: str) -> None:
    with pytest.raises(Broke), box.claim(lambda: made(home, digest)):
        raise Broke


@pytest.mark.rule("C-236")
def test_a_new_archive_goes_with_the_failure_of_its_submission(home: Home) -> None:
    box = Archives(home.layout)
    failing(box, home, "new")
    assert there(home) == []


def test_an_archive_that_was_there_stays(home: Home) -> None:
    made(home, "old")
    box = Archives(home.layout)
    failing(box, home, "old")
    assert there(home) == ["old"]


def test_a_successful_claim_keeps_it_for_a_failing_one_that_began_earlier(home: Home) -> None:
    box = Archives(home.layout)
    with pytest.raises(Broke), box.claim(lambda: made(home, "d")):
        with box.claim(lambda: made(home, "d")):
            pass
        raise Broke
    assert there(home) == ["d"]
    failing(box, home, "d")
    assert there(home) == ["d"]


def test_of_two_failing_claims_the_last_removes_it(home: Home) -> None:
    box = Archives(home.layout)
    with pytest.raises(Broke), box.claim(lambda: made(home, "d")):
        failing(box, home, "d")
        assert there(home) == ["d"]
        raise Broke
    assert there(home) == []


def test_whoever_reuses_an_archive_that_is_removed_just_then_packs_again(home: Home) -> None:
    box = Archives(home.layout)
    packed = threading.Event()
    tries: list[int] = []

    def pack() -> CodeRef:
        code = made(home, "d")
        tries.append(1)
        if len(tries) == 1:
            home.layout.archive("d").unlink()  # what a failing claim does between this pack and the claim
            packed.set()
        return code

    with box.claim(pack):
        assert there(home) == ["d"]
    assert len(tries) == 2


@pytest.mark.rule("C-252")
def test_what_nobody_names_goes_by_age_and_then_by_size_oldest_first(home: Home) -> None:
    now = 1_000_000_000.0
    made(home, "named", 100, at=now - 10_000)
    made(home, "aged", 100, at=now - 2_000)
    for number in range(4):
        made(home, f"young{number}", 100, at=now - 500 + number)
    box = Archives(home.layout)
    with box.claim(lambda: made(home, "claimed", 100, at=now - 3_000)):
        gone = box.prune(lambda: {"named"}, now=now, keep_s=1_000, keep_bytes=250)
        assert gone == [("aged", 100), ("young0", 100), ("young1", 100)]
        assert there(home) == ["claimed", "named", "young2", "young3"]
    assert box.prune(lambda: {"named", "claimed"}, now=now, keep_s=1_000, keep_bytes=250) == []
    assert archives.KEEP_S == 30 * 86_400
    assert archives.KEEP_BYTES == 20 * 2**30


@pytest.mark.rule("C-048")
def test_what_would_go_can_be_looked_at_first(home: Home) -> None:
    for name, at in (("old", 1_000.0), ("older", 500.0), ("named", 500.0), ("young", 9_000.0)):
        made(home, name, 7, at=at)
    box = Archives(home.layout)
    found = box.spare(lambda: {"named"}, now=10_000.0, keep_s=5_000)
    assert found == [("older", 7), ("old", 7)]
    assert there(home) == ["named", "old", "older", "young"]
    assert box.prune(lambda: {"named"}, now=10_000.0, keep_s=5_000, keep_bytes=archives.UNLIMITED) == found
    assert there(home) == ["named", "young"]


@pytest.mark.rule("C-252")
def test_the_age_counts_from_the_last_use(home: Home) -> None:
    made(home, "d", at=1_000.0)
    box = Archives(home.layout)
    with box.claim(lambda: ref("d")):
        pass
    assert box.prune(set, now=home.layout.archive("d").stat().st_mtime + 10, keep_s=100) == []


def test_an_archive_with_added_files_has_a_longer_name(home: Home) -> None:
    made(home, "d.0123456789abcdef")
    box = Archives(home.layout)
    with pytest.raises(Broke), box.claim(lambda: made(home, "d.00")):
        raise Broke
    assert there(home) == ["d.0123456789abcdef"]
    assert box.prune(lambda: {"d"}, now=1e12) == []
    assert box.prune(set, now=1e12) == [("d", 1)]


def test_a_disk_that_cannot_remove_is_no_error(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    made(home, "d")

    def refuse(_: object) -> None:
        raise AjError("read-only")

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "remove", refuse)
        assert Archives(home.layout).prune(set, now=1e12) == []
    assert there(home) == ["d"]


def test_nobody_is_asked_when_there_is_nothing_to_remove(home: Home) -> None:
    made(home, "d", at=1_000.0)

    def ask() -> set[str]:
        raise AssertionError("read every ticket for nothing")

    assert Archives(home.layout).prune(ask, now=1_100.0, keep_s=1_000) == []


def test_there_may_be_no_archive_at_all(home: Home) -> None:
    assert Archives(home.layout).prune(set, now=0) == []
