"""Jobs on disk: whole or not at all, readable by anybody, and put right by their writer."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from aj.base import clock as clocks
from aj.base.errors import AjError, NotFound, Refused, UserError
from aj.model.state import JobState
from aj.model.workload import Event, Needs
from aj.store import atomic, jobs, jsonl
from aj.wire import codec
from tests.conftest import Home
from tests.jobs import spec, workload


def quiet(words: str) -> None:
    raise AssertionError(f"told: {words}")


def event(number: int, state: JobState = JobState.QUEUED) -> Event:
    return Event(number, state, "2026-01-31T12:00:00.000000Z")


def test_a_job_is_read_as_it_was_made(home: Home) -> None:
    made = workload(needs=Needs(0.5, 1 << 30, 2), last_event=event(1), spec=spec(env={"A": "é\udcff\n"}))
    jobs.create(home.layout, made)
    assert jobs.read(home.layout, made.id) == replace(made, spec=None)
    assert jobs.spec(home.layout, made.id) == made.spec
    assert jobs.events(home.layout, made, quiet) == (event(1),)


def test_the_record_has_no_value_of_the_environment(home: Home) -> None:
    jobs.create(home.layout, workload(spec=spec(env={"TOKEN": "hush-hush"})))
    folder = home.layout.job("1a2b3c4d")
    assert "hush-hush" not in jobs.record_file(folder).read_text()
    assert jobs.spec_file(folder).stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.rule("T45")
def test_of_many_that_make_the_same_job_one_succeeds(home: Home) -> None:
    won, refused = [], []

    def make(number: int) -> None:
        try:
            jobs.create(home.layout, workload(name=f"n{number}", last_event=event(1)))
            won.append(number)
        except Refused as error:
            refused.append(error.code)

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1 and refused == ["job-exists"] * 7
    assert jobs.read(home.layout, "1a2b3c4d").name == f"n{won[0]}"
    assert os.listdir(home.layout.jobs) == ["1a2b3c4d"]


def test_a_disk_that_refuses_leaves_no_job(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, value: object) -> None:
        raise atomic.cannot_write(path, OSError(28, "No space left on device"))

    monkeypatch.setattr(atomic, "write_json", full)
    with pytest.raises(AjError, match="No space left"):
        jobs.create(home.layout, workload(spec=spec()))
    assert os.listdir(home.layout.jobs) == []


def test_an_event_that_a_crash_kept_from_the_disk_is_known_and_added(home: Home) -> None:
    job = workload(last_event=event(1))
    jobs.create(home.layout, job)
    moved = replace(job, state=JobState.PROVISIONING, last_event=event(2, JobState.PROVISIONING))
    jobs.save(home.layout, moved)  # and here the power went
    found = jobs.read(home.layout, job.id)
    assert [one.number for one in jobs.events(home.layout, found, quiet)] == [1, 2]
    jobs.repair(home.layout, found)
    jobs.repair(home.layout, found)
    assert [line["number"] for line in jsonl.read(jobs.events_file(home.layout.job(job.id)), quiet)] == [1, 2]


def test_a_damaged_record_is_told_and_hides_no_other(home: Home) -> None:
    for name in ("aaaaaaaa", "bbbbbbbb", "cccccccc"):
        jobs.create(home.layout, workload(name, last_event=event(1)))
    damaged = jobs.record_file(home.layout.job("bbbbbbbb"))
    damaged.write_text('{"id": 3')
    told: list[str] = []
    assert {job.id for job in jobs.listing(home.layout, told.append)} == {"aaaaaaaa", "cccccccc"}
    assert len(told) == 1 and str(damaged) in told[0]
    assert damaged.exists(), "a reader changes nothing"
    with pytest.raises(AjError) as error:
        jobs.read(home.layout, "bbbbbbbb")
    assert error.value.code == "damaged-record"


def test_the_writer_sets_a_damaged_record_aside_and_sweeps_what_a_crash_left(home: Home) -> None:
    jobs.create(home.layout, workload("aaaaaaaa", last_event=event(1)))
    jobs.create(home.layout, workload("bbbbbbbb", last_event=event(1)))
    jobs.record_file(home.layout.job("bbbbbbbb")).write_text("x")
    (home.layout.jobs / ".new-dddddddd-00").mkdir()
    os.utime(home.layout.jobs / ".new-dddddddd-00", (1, 1))
    (home.layout.jobs / ".new-ffffffff-00").mkdir()
    part = home.layout.job("aaaaaaaa") / ".7.00.part"
    part.touch()
    (home.layout.jobs / ".gone-eeeeeeee-00" / "deep").mkdir(parents=True)
    told: list[str] = []
    assert jobs.opened(home.layout, "another", told.append) == []
    assert len(told) == 1 and "record.json.damaged-1" in told[0]
    assert part.exists(), "the owner of its project may be writing it"
    assert [job.id for job in jobs.opened(home.layout, "_none", told.append)] == ["aaaaaaaa"]
    assert not part.exists()
    assert sorted(os.listdir(home.layout.jobs)) == [".new-ffffffff-00", "aaaaaaaa", "bbbbbbbb"]
    with pytest.raises(Refused):  # its folder still holds what it wrote: the id is not given away
        jobs.create(home.layout, workload("bbbbbbbb"))


def test_a_record_that_cannot_be_read_just_now_is_left_alone(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs.create(home.layout, workload(last_event=event(1)))

    def exhausted(path: Path) -> bytes:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", exhausted)
        with pytest.raises(AjError, match="Too many open files") as error:
            jobs.read(home.layout, "1a2b3c4d")
        assert error.value.code == "unreadable-record"
        told: list[str] = []
        assert jobs.opened(home.layout, "_none", told.append) == []
        assert len(told) == 1 and "Too many open files" in told[0]
    assert [job.id for job in jobs.opened(home.layout, "_none", quiet)] == ["1a2b3c4d"]


def test_a_record_of_a_newer_release_is_left_alone(home: Home) -> None:
    jobs.create(home.layout, workload(last_event=event(1)))
    path = jobs.record_file(home.layout.job("1a2b3c4d"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema_version": 9}))
    told: list[str] = []
    assert jobs.opened(home.layout, "_none", told.append) == []
    assert path.exists() and "newer release" in told[0]


def test_a_field_that_a_newer_release_added_is_passed_over(home: Home) -> None:
    jobs.create(home.layout, workload(last_event=event(1)))
    path = jobs.record_file(home.layout.job("1a2b3c4d"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "colour": "blue"}))
    assert jobs.read(home.layout, "1a2b3c4d").id == "1a2b3c4d"


@pytest.mark.parametrize("odd", ["", ".", "..", "../x", "a/b", ".hidden", "-x", "a" * 65, "a\n", "é"])
def test_an_id_cannot_name_another_folder(home: Home, odd: str) -> None:
    with pytest.raises(UserError):
        jobs.create(home.layout, workload(odd))
    assert not jobs.exists(home.layout, odd)
    with pytest.raises(NotFound):
        jobs.read(home.layout, odd)


def test_removal_takes_what_a_job_made_read_only(home: Home) -> None:
    jobs.create(home.layout, workload(last_event=event(1)))
    deep = home.layout.job("1a2b3c4d") / "work" / "node0" / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "file").write_text("x")
    os.symlink("/", deep / "link")
    for folder in (deep, deep.parent):
        folder.chmod(0o500)
    jobs.remove(home.layout, "1a2b3c4d")
    jobs.remove(home.layout, "1a2b3c4d")
    assert os.listdir(home.layout.jobs) == []


def test_a_thousand_jobs_are_listed_quickly(home: Home) -> None:
    made = workload(last_event=event(1), command="python train.py " * 20)
    line = json.dumps(codec.dump(made))
    for number in range(1000):
        folder = home.layout.jobs / f"{number:08x}"
        folder.mkdir(parents=True)
        jobs.record_file(folder).write_text(line.replace("1a2b3c4d", folder.name))
    begun = clocks.SYSTEM.monotonic()
    assert len(jobs.listing(home.layout, quiet)) == 1000
    assert clocks.SYSTEM.monotonic() - begun < 2.0  # 0.15 s on the machine it was written on


def test_the_newest_comes_first_and_a_follower_sees_the_end(home: Home) -> None:
    jobs.create(home.layout, workload("aaaaaaaa", submitted_at="2026-01-01T00:00:00.000000Z"))
    jobs.create(home.layout, workload("bbbbbbbb", submitted_at="2026-01-02T00:00:00.000000Z"))
    assert [job.id for job in jobs.listing(home.layout, quiet)] == ["bbbbbbbb", "aaaaaaaa"]
    folder = home.layout.job("aaaaaaaa")
    assert not jobs.has_ended(folder)
    jobs.save(home.layout, workload("aaaaaaaa", JobState.COMPLETED))
    assert jobs.has_ended(folder)
    jobs.remove(home.layout, "aaaaaaaa")
    assert jobs.has_ended(folder)
