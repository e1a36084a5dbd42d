"""Lists that come page by page: read to their end, or cut with a word that says so.

A page names the next one by an address. It is followed only to the place of the first request, since
the token of that request goes with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Generic, TypeVar

from aj.base.errors import RemoteError
from aj.base.noun import dataclass
from aj.net import document
from aj.net.document import Document
from aj.net.http import Request, Transport, foreign
from aj.net.origin import Origin

MAX_PAGES = 1000  # at 30 rows a page more than anyone looks at; a list that never ends is somebody's fault
T = TypeVar("T")
Next = Callable[[Document], Request | None]


@dataclass(frozen=True)
class Listing(Generic[T]):
    """Rows of a list; `truncated` when there are more."""

    rows: tuple[T, ...]
    truncated: bool = False


def follow(first: Request, link: str) -> Request:
    """Return the request for an address that an answer named. Raises RemoteError when it leads elsewhere."""
    try:
        origin = Origin.of_url(link)
    except ValueError:
        raise RemoteError(f"could not {first.doing}: the answer names no address to go on", code="bad-answer") from None
    if origin != first.origin or not origin.is_private_enough:
        raise foreign(origin.netloc, first.origin.netloc)
    return replace(first, method="GET", url=link, body=None)


def pages(transport: Transport, first: Request, following: Next | None = None) -> Iterator[Document]:
    """Yield page after page, each fetched when it is wanted.

    `following` makes the next request from a page; by default it follows `nextLink`. Raises RemoteError
    when a page is named twice or there are more than a thousand, and what the transport raises.
    """
    request: Request | None = first
    seen: set[tuple[str, bytes | None]] = set()
    while request is not None:
        if (request.url, request.body) in seen:
            raise RemoteError(f"could not {first.doing}: the list leads back to a page of its own", code="bad-answer")
        if len(seen) == MAX_PAGES:
            raise RemoteError(f"could not {first.doing}: there are more than {MAX_PAGES} pages", code="bad-answer")
        seen.add((request.url, request.body))
        page = document.of(transport.ask(request), request)
        yield page
        request = following(page) if following else _by_link(first, page)


def each(transport: Transport, first: Request) -> Iterator[Document]:
    """Yield the rows under `value`, page after page, each page fetched when it is wanted."""
    for page in pages(transport, first):
        yield from page.each("value")


def read(
    transport: Transport, first: Request, made: Callable[[Document], T], *, limit: int | None = None
) -> Listing[T]:
    """Read the rows under `value` to the end, or until `limit` rows, each turned into a value."""
    return collect(each(transport, first), made, limit=limit)


def collect(rows: Iterator[Document], made: Callable[[Document], T], *, limit: int | None = None) -> Listing[T]:
    """Take rows until their end or until there are `limit`; then one more is looked for, to know if it was cut."""
    taken: list[T] = []
    for row in rows:
        if limit is not None and len(taken) == limit:
            return Listing(tuple(taken), truncated=True)
        taken.append(made(row))
    return Listing(tuple(taken))


def _by_link(first: Request, page: Document) -> Request | None:
    link = page.text("nextLink")
    return follow(first, link) if link else None
