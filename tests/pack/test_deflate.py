"""Compression: bytes independent of threads, random data stored, and what every gzip reader accepts."""

from __future__ import annotations

import gzip
import os
import random
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.pack import deflate

BLOCK = 1 << 16
TEXT = b" ".join(b"word%d" % (number * 7919 % 1000) for number in range(60_000))

PART = st.one_of(st.binary(max_size=300), st.integers(0, 5000).map(bytes), st.just(TEXT[:9000]))


def pressed(data: bytes, threads: int, block: int = BLOCK) -> bytes:
    found: list[bytes] = []
    with deflate.Gzip(found.append, threads=threads) as stream:
        for at in range(0, len(data), block):
            stream.write(data[at : at + block])
        stream.finish()
    return b"".join(found)


@pytest.mark.rule("C-191")
def test_the_bytes_do_not_depend_on_the_number_of_threads() -> None:
    data = TEXT + random.Random(1).randbytes(300_000) + TEXT
    one, two, four = (pressed(data, threads) for threads in (1, 2, 4))
    assert one == two == four
    assert gzip.decompress(one) == data


@pytest.mark.rule("C-191")
@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.one_of(st.binary(max_size=300), st.integers(0, 5000).map(bytes), st.just(TEXT[:9000]))),
    st.integers(1, 999),
)
def test_every_stream_unpacks_to_what_went_in(parts: list[bytes], block: int) -> None:
    data = b"".join(parts)
    assert gzip.decompress(pressed(data, 2, block * 16)) == data


@pytest.mark.rule("C-191")
def test_the_header_tells_nothing_of_this_machine() -> None:
    assert pressed(b"x", 1)[:10] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"


@pytest.mark.rule("C-191")
def test_text_shrinks_and_random_data_is_stored_at_once() -> None:
    noise = random.Random(2).randbytes(1 << 20)
    assert deflate.squeeze(noise, b"") == deflate.squeeze(noise, noise[:100])
    assert len(deflate.squeeze(noise, b"")) == len(noise) + 5 * 17
    assert len(deflate.squeeze(TEXT, b"")) < len(TEXT) / 2


def test_what_came_before_is_used() -> None:
    block = random.Random(3).randbytes(10_000)
    assert len(deflate.squeeze(block, block)) < len(deflate.squeeze(block, b"")) / 10


@pytest.mark.rule("C-191")
def test_a_block_is_pressed_with_the_one_before_as_its_dictionary() -> None:
    block = 1 << 13
    apart = sum(len(deflate.squeeze(TEXT[at : at + block], b"")) for at in range(0, len(TEXT), block))
    assert len(pressed(TEXT, 2, block)) < apart * 0.9


def test_a_failing_sink_ends_all_threads() -> None:
    def full(data: bytes) -> None:
        if len(data) > 100:
            raise OSError("disk full")

    before = threading.active_count()
    with pytest.raises(OSError, match="disk full"), deflate.Gzip(full, threads=3) as stream:
        for _ in range(50):
            stream.write(os.urandom(BLOCK))
        stream.finish()
    assert threading.active_count() == before


def test_few_blocks_are_held_at_a_time() -> None:
    written: list[int] = []
    with deflate.Gzip(lambda data: written.append(len(data)), threads=2) as stream:
        for number in range(20):
            stream.write(bytes(BLOCK))
            assert len(written) >= number - 4
        stream.finish()
