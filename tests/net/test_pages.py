"""Lists page by page: to the end, or cut with a word; and never to another place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.base.errors import RemoteError, Unavailable
from aj.net import pages
from aj.net.document import Document
from aj.net.http import Bearer, Request, Response
from aj.net.origin import Origin
from aj.net.pages import Listing

BASE = "https://a.example"
FIRST = Request("GET", BASE + "/list?x=1", "list things", bearer=Bearer("token", (Origin.parse("a.example"),)))


class Book:
    """A transport that answers page by page."""

    def __init__(self, page: Callable[[str], dict[str, object]]) -> None:
        self.page = page
        self.asked: list[Request] = []

    def ask(self, request: Request) -> Response:
        self.asked.append(request)
        return Response(200, {}, json.dumps(self.page(request.url)).encode())

    def send(self, request: Request) -> Response:
        raise AssertionError("a list is no change")


def book(rows: list[int], size: int) -> Book:
    def page(url: str) -> dict[str, object]:
        start = int(url.partition("skip=")[2] or 0)
        found: dict[str, object] = {"value": [{"n": n} for n in rows[start : start + size]]}
        if start + size < len(rows):
            found["nextLink"] = f"{BASE}/list?skip={start + size}"
        return found

    return Book(page)


def number(row: Document) -> int:
    return row.whole("n") or 0


@pytest.mark.rule("A-008")
@settings(max_examples=60)
@given(st.integers(0, 30), st.integers(1, 7), st.none() | st.integers(0, 35))
def test_a_list_is_whole_or_says_that_it_was_cut(count: int, size: int, limit: int | None) -> None:
    rows = list(range(count))
    found = pages.read(book(rows, size), FIRST, number, limit=limit)
    kept = rows if limit is None else rows[:limit]
    assert found == Listing(tuple(kept), truncated=len(kept) < count)


@pytest.mark.rule("A-008")
def test_pages_are_fetched_when_they_are_wanted() -> None:
    transport = book(list(range(10)), 2)
    rows: Iterator[Document] = pages.each(transport, FIRST)
    assert transport.asked == []
    assert [number(next(rows)) for _ in range(3)] == [0, 1, 2]
    assert len(transport.asked) == 2


@pytest.mark.rule("A-008")
def test_a_page_that_leads_back_is_an_error() -> None:
    transport = Book(lambda url: {"value": [], "nextLink": f"{BASE}/{'b' if url.endswith('a') else 'a'}"})
    with pytest.raises(RemoteError, match="leads back"):
        pages.read(transport, FIRST, number)
    assert len(transport.asked) == 3


@pytest.mark.rule("A-008")
def test_a_list_without_end_is_an_error() -> None:
    count = iter(range(10_000))
    transport = Book(lambda url: {"value": [], "nextLink": f"{BASE}/list?n={next(count)}"})
    with pytest.raises(RemoteError, match="more than 1000 pages"):
        pages.read(transport, FIRST, number)
    assert len(transport.asked) == 1000


@pytest.mark.rule("A-006", "A-208")
@pytest.mark.parametrize(
    "link",
    [
        "https://evil.example/list?skip=1",
        "https://a.example.evil.example/",
        "https://a.example:444/",
        "http://a.example/list",
        "https://a.example@evil.example/",
        "//a.example/list",
        "/list?skip=1",
        "https://a.example\\@evil.example/",
    ],
)
def test_a_link_to_another_place_is_not_followed(link: str) -> None:
    transport = Book(lambda url: {"value": [{"n": 1}], "nextLink": link})
    with pytest.raises(RemoteError) as error:
        pages.read(transport, FIRST, number)
    assert len(transport.asked) == 1
    if "evil.example/list" in link:
        assert error.value.message == "a link to host evil.example was not followed: it is not a.example"


@pytest.mark.rule("A-006")
def test_a_link_is_asked_as_the_first_request_was() -> None:
    made = pages.follow(Request("DELETE", BASE + "/x", "drop it", body=b"x", bearer=FIRST.bearer), BASE + "/operation")
    assert (made.method, made.url, made.body, made.bearer) == ("GET", BASE + "/operation", None, FIRST.bearer)


def test_an_empty_link_is_the_end() -> None:
    assert pages.read(Book(lambda url: {"value": [{"n": 1}], "nextLink": ""}), FIRST, number) == Listing((1,))
    assert pages.read(Book(lambda url: {"value": None, "nextLink": None}), FIRST, number) == Listing(())


@pytest.mark.parametrize("answer", [{"value": {}}, {"value": [1]}, {"value": [], "nextLink": 5}])
def test_a_page_that_is_none_is_an_error(answer: dict[str, object]) -> None:
    with pytest.raises(RemoteError, match="the answer to `list things`"):
        pages.read(Book(lambda url: answer), FIRST, number)


def test_a_page_that_fails_fails_the_list() -> None:
    class Breaking(Book):
        def ask(self, request: Request) -> Response:
            if self.asked:
                raise Unavailable("broke")
            return super().ask(request)

    with pytest.raises(Unavailable):
        pages.read(Breaking(book(list(range(4)), 2).page), FIRST, number)
