"""Logs: not a byte lost or changed, lines whole, in the order of time, and followed as they are written."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.base import clock as clocks
from aj.model.log import Chunk, Source, Stream
from aj.store import joblogs


class Writer:
    """Writes logs as processes and their supervisor would, with times of the test's own."""

    def __init__(self, folder: Path, attempt: int = 1) -> None:
        self.folder, self.attempt, self.sizes = folder, attempt, dict[tuple[int, str], int]()
        joblogs.attempt_folder(folder, attempt).mkdir(parents=True, exist_ok=True)

    def write(self, data: bytes, rank: int = 0, name: str = "out", at: float | None = None) -> None:
        path = joblogs.log_file(self.folder, self.attempt, rank, name)
        with path.open("ab") as file:
            file.write(data)
        size = self.sizes[rank, name] = self.sizes.get((rank, name), 0) + len(data)
        if at is not None:
            with joblogs.times_file(self.folder, self.attempt).open("ab") as times:
                times.write(joblogs.time_line(at, rank, name, size))
            os.utime(path, (at, at))


def text(chunks: Iterator[Chunk]) -> bytes:
    return b"".join(chunk.data for chunk in chunks)


@pytest.mark.rule("C-023")
def test_bytes_come_out_as_they_went_in(tmp_path: Path) -> None:
    data = bytes(range(256)) * 1000 + b"\r50%\r100%\nno end"
    Writer(tmp_path).write(data)
    assert text(joblogs.read(tmp_path)) == data


@pytest.mark.rule("T57")
def test_out_err_and_the_runner_are_streams_of_their_own(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.write(b"pip\n", joblogs.RUNNER)
    writer.write(b"one\n", 0)
    writer.write(b"oh\n", 0, "err")
    writer.write(b"two\n", 1)
    assert joblogs.streams(tmp_path) == [
        Stream(1, -1, "out", Source.RUNNER),
        Stream(1, 0, "out"),
        Stream(1, 0, "err"),
        Stream(1, 1, "out"),
    ]
    assert text(joblogs.read(tmp_path, sources={Source.USER}, rank=0)) == b"one\noh\n"
    assert text(joblogs.read(tmp_path, sources={Source.RUNNER})) == b"pip\n"


def test_lines_of_several_streams_come_in_the_order_of_time_and_whole(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.write(b"a1\na2 be", 0, at=10.0)
    writer.write(b"b1\n", 1, at=11.0)
    writer.write(b"gins\n", 0, at=12.0)
    writer.write(b"oh\n", 1, "err", at=11.5)
    assert text(joblogs.read(tmp_path)) == b"a1\nb1\noh\na2 begins\n"


@pytest.mark.rule("T68")
def test_each_start_has_its_own_logs_and_the_newest_is_read(tmp_path: Path) -> None:
    Writer(tmp_path, 1).write(b"first\n")
    Writer(tmp_path, 2).write(b"second\n")
    assert joblogs.attempts(tmp_path) == [1, 2]
    assert text(joblogs.read(tmp_path)) == b"second\n"
    assert text(joblogs.read(tmp_path, attempt=1)) == b"first\n"
    assert text(joblogs.read(tmp_path, attempt=3)) == b""


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(joblogs.NAMES), st.binary(max_size=12), st.booleans()), max_size=25
    ),
    st.integers(0, 12),
)
@settings(max_examples=40, deadline=None)
def test_every_stream_is_whole_within_the_merge_and_a_tail_is_its_end(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[int, str, bytes, bool]], tail: int
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    writer = Writer(folder)
    for at, (rank, name, data, sampled) in enumerate(writes):
        writer.write(data, rank, name, at=float(at) if sampled else None)
    chunks = list(joblogs.read(folder))
    for stream in joblogs.streams(folder):
        whole = joblogs.log_file(folder, 1, stream.rank, stream.name).read_bytes()
        assert b"".join(chunk.data for chunk in chunks if chunk.stream == stream) == whole
    merged = b"".join(chunk.data for chunk in chunks)
    ended = text(joblogs.read(folder, tail=tail))
    assert merged.endswith(ended)
    open_ends = sum(not chunk.data.endswith(b"\n") for chunk in chunks)
    assert tail - open_ends <= ended.count(b"\n") <= tail or len(ended) == len(merged)


def test_a_tail_of_one_large_stream_reads_its_end(tmp_path: Path) -> None:
    lines = [b"%d %s\n" % (number, b"x" * (number % 900)) for number in range(3000)]
    Writer(tmp_path).write(b"".join(lines))
    for tail in (0, 1, 2, 700, 2999, 3000, 9999):
        assert text(joblogs.read(tmp_path, tail=tail)) == b"".join(lines[len(lines) - min(tail, 3000) :])


def test_since_begins_with_the_line_that_was_written_then(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    for at in (10, 20, 30, 40):
        writer.write(b"at %d\n" % at, at=float(at))
        writer.write(b"err %d\n" % at, 0, "err", at=float(at))
    assert text(joblogs.read(tmp_path, since=30.0)) == b"at 30\nerr 30\nat 40\nerr 40\n"
    assert text(joblogs.read(tmp_path, since=31.0, tail=1)) == b"err 40\n"
    assert text(joblogs.read(tmp_path, since=41.0)) == b""


def test_times_that_a_crash_tore_cost_no_line(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.write(b"one\n", at=10.0)
    with joblogs.times_file(tmp_path, 1).open("ab") as times:
        times.write(b"1200")
    writer.write(b"two\n")
    assert text(joblogs.read(tmp_path)) == b"one\ntwo\n"


class Following:
    """A follower in a thread, with what it has seen so far."""

    def __init__(self, folder: Path, **options: int) -> None:
        self.seen, self.ended, self.changed = bytearray(), threading.Event(), threading.Condition()
        self.thread = threading.Thread(target=self._run, args=(folder, options))
        self.thread.start()

    def _run(self, folder: Path, options: dict[str, int]) -> None:
        for chunk in joblogs.follow(folder, self.ended.is_set, **options):  # type: ignore[arg-type]
            with self.changed:
                self.seen += chunk.data
                self.changed.notify_all()

    def until(self, due: bytes, timeout_s: float = 5.0) -> float:
        begun = clocks.SYSTEM.monotonic()
        with self.changed:
            assert self.changed.wait_for(lambda: due in self.seen, timeout_s), bytes(self.seen)
        return clocks.SYSTEM.monotonic() - begun

    def end(self) -> bytes:
        self.ended.set()
        self.thread.join(5)
        assert not self.thread.is_alive()
        return bytes(self.seen)


@pytest.mark.rule("T61", "T62", "LX-02")
def test_a_follower_waits_for_the_start_and_shows_a_line_within_a_second(tmp_path: Path, real_clock: None) -> None:
    following = Following(tmp_path)
    writer = Writer(tmp_path)
    for number in range(3):
        writer.write(b"line %d\n" % number)
        assert following.until(b"line %d\n" % number) < 1.0
    assert following.end() == b"line 0\nline 1\nline 2\n"


def test_a_follower_goes_on_to_the_next_start_and_takes_the_last_words(tmp_path: Path, real_clock: None) -> None:
    first = Writer(tmp_path, 1)
    first.write(b"first\n")
    following = Following(tmp_path)
    following.until(b"first\n")
    Writer(tmp_path, 2).write(b"second\n")
    following.until(b"second\n")
    following.ended.set()
    Writer(tmp_path, 2).write(b"")
    assert following.end() == b"first\nsecond\n"


def test_a_follower_that_is_stopped_gives_what_was_there_by_then(tmp_path: Path, real_clock: None) -> None:
    writer, stop = Writer(tmp_path), threading.Event()
    writer.write(b"one\n")
    chunks = joblogs.follow(tmp_path, lambda: False, stop=stop)
    assert next(chunks).data == b"one\n"
    writer.write(b"two\nno end")
    stop.set()
    assert text(chunks) == b"two\nno end"


@pytest.mark.parametrize("nth", [1, 2])
def test_a_log_that_is_cut_under_a_readers_eyes_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    writer = Writer(tmp_path)
    writer.write(b"0123\n")
    real, looks = joblogs.files, []

    def files(*words: object) -> list[joblogs.LogFile]:
        found = real(*words)  # type: ignore[arg-type]
        looks.append(found)
        if len(looks) == nth:  # the first look of a follower, or the one at what is new
            found[0].path.unlink()
            found[0].path.with_name("rank0.out@5").write_bytes(b"4567\n")
        return found

    monkeypatch.setattr(joblogs, "files", files)
    assert text(joblogs.follow(tmp_path, lambda: True)).endswith(b"4567\n")
    assert len(looks) > nth


def test_a_follower_does_not_mix_two_processes_within_a_line(tmp_path: Path, real_clock: None) -> None:
    writer = Writer(tmp_path)
    writer.write(b"a\n", 0)
    writer.write(b"b\n", 1)
    following = Following(tmp_path)
    following.until(b"b\n")
    writer.write(b"half", 0)
    writer.write(b"whole\n", 1)
    following.until(b"whole\n")
    following.until(b"half")  # a line that stays open is shown in the end, for it may be a question
    assert following.end() == b"a\nb\nwhole\nhalf"


@pytest.mark.rule("LX-03", "T60")
def test_a_log_is_cut_to_its_end_at_the_start_of_a_line(tmp_path: Path) -> None:
    line = b"%06d " + b"x" * 92 + b"\n"
    data = b"".join(line % number for number in range(30_000))
    writer = Writer(tmp_path)
    writer.write(data, at=5.0)
    writer.write(b"short\n", 0, "err", at=6.0)
    notes = joblogs.trim(tmp_path, keep_bytes=0)
    assert len(notes) == 1 and "logs/1/rank0.out" in notes[0] and "MiB" in notes[0]
    [out, err] = joblogs.files(tmp_path, 1)
    kept = text(joblogs.read(tmp_path, rank=0))
    assert kept.removesuffix(b"short\n") == data[out.base :] and err.base == 0
    assert len(data) - out.base >= joblogs.FLOOR
    assert data[out.base - 1 : out.base] == b"\n"
    assert joblogs.trim(tmp_path, keep_bytes=0) == []
    assert text(joblogs.read(tmp_path, tail=1, sources={Source.USER})) == b"short\n"


def test_a_cut_that_was_interrupted_is_finished(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.write(b"0123456789\n")
    cut = joblogs.log_file(tmp_path, 1, 0, "out").with_name("rank0.out@4")
    cut.write_bytes(b"456789\n")
    assert text(joblogs.read(tmp_path)) == b"456789\n"
    assert joblogs.trim(tmp_path, keep_bytes=0) == []
    assert sorted(os.listdir(joblogs.attempt_folder(tmp_path, 1))) == ["rank0.out@4"]
