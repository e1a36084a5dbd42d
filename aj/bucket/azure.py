"""Buckets that are containers of Azure Blob Storage. The library is imported with the first one, in the daemon alone.

A large object goes in blocks, several at once, each named by its place and its content, so that an upload that
broke off goes on where it was; it appears whole with the list of its blocks. Nothing is retried here.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, TypedDict, cast

from aj.azure.line import Access, Limits, Line, Place
from aj.base.errors import NotFound, Refused, RemoteError, Unavailable
from aj.base.settings import Settings
from aj.bucket.storage import PAGE, Moved, Seen, Source, check_name
from aj.model.bucket import Owner, Page, Stored

if TYPE_CHECKING:
    from azure.core import MatchConditions
    from azure.storage.blob import BlobClient, ContainerClient

MIB = 1 << 20
SINGLE = 8 * MIB  # bytes up to which an object goes in one request
BLOCK = 8 * MIB
MOST_BLOCKS = 50_000  # of one object, by the service's own rule
AT_ONCE = 4  # blocks of one object: never more than that is held in memory
JOB, NONCE, STAMP = "aj_job", "aj_nonce", "aj_stamp"  # names of metadata
_GOING = "ContainerBeingDeleted"


class _Condition(TypedDict, total=False):
    """Which state of an object a request is about."""

    etag: str
    match_condition: MatchConditions


class _Found(Protocol):
    """What the library tells of a blob."""

    @property
    def size(self) -> int: ...
    @property
    def etag(self) -> str: ...
    @property
    def last_modified(self) -> _Moment: ...
    @property
    def metadata(self) -> Mapping[str, str] | None: ...


class _Pages(Protocol):
    """A listing as the library gives it, page by page."""

    continuation_token: str | None

    def __next__(self) -> Iterable[_Listed]: ...


class _Listed(_Found, Protocol):
    @property
    def name(self) -> str: ...


class _Moment(Protocol):
    def timestamp(self) -> float: ...


class Container:
    """One container as a bucket. Safe between threads."""

    def __init__(self, place: Place, access: Access, settings: Settings, limits: Limits | None = None) -> None:
        """Raises ConfigError when a token would leave this machine by plain http."""
        self._line = Line(place, access, settings, limits)
        from azure.storage.blob import ContainerClient  # 0.2 s, in the daemon alone

        whole = 2**40  # who cuts an object into parts is our own
        self._client: ContainerClient = ContainerClient(
            place.url,
            place.container,
            self._line.credential,
            max_single_put_size=whole,
            max_single_get_size=whole,
            **self._line.options(),
        )
        self._place = place

    @property
    def label(self) -> str:
        return f"{self._place.account}/{self._place.container}"

    # the bucket

    def look(self) -> Seen | None:
        """Return what is there."""
        try:
            found = self._line.call(self._client.get_container_properties, f"look for container {self.label}")
        except NotFound:
            return None
        marks = found.metadata or {}
        return Seen(Owner(marks[JOB], marks[NONCE]) if JOB in marks and NONCE in marks else None)

    def create(self, owner: Owner | None = None) -> bool:
        """Make the container and mark it, in one request."""
        marks = {JOB: owner.job, NONCE: owner.nonce} if owner else {}
        try:
            self._line.call(lambda: self._client.create_container(metadata=marks), f"create container {self.label}")
        except Refused as error:
            if error.details.get("remote_code") == _GOING:
                raise Unavailable(
                    f"container {self.label} is just being deleted by the service", details={"retry_after_s": 30.0}
                ) from error
            if error.code != "conflict":
                raise
            return False
        return True

    def delete(self) -> None:
        """Remove the container; the service empties it later."""
        try:
            self._line.call(self._client.delete_container, f"delete container {self.label}")
        except NotFound:
            return
        except Refused as error:
            if error.details.get("remote_code") != _GOING:
                raise

    # objects

    def page(self, prefix: str, cursor: str | None, limit: int = PAGE) -> Page:
        """Return a part of the listing; the cursor is the service's own."""
        listing = self._client.list_blobs(name_starts_with=prefix, include=["metadata"], results_per_page=limit)
        pages = cast(_Pages, listing.by_page(cursor))
        found = self._line.call(lambda: list(next(pages)), f"list {self.label}")
        return Page(tuple(_stored(blob.name, blob) for blob in found), pages.continuation_token or None)

    def head(self, name: str) -> Stored:
        """Return one object."""
        blob = self._blob(name)
        return _stored(name, self._line.call(blob.get_blob_properties, f"look for {self.label}/{name}"))

    def read(self, name: str, at: int, count: int, etag: str | None = None) -> bytes:
        """Return a part of an object."""
        if not count:
            return b""
        blob, options = self._blob(name), _unchanged(etag)
        try:
            return self._line.call(
                lambda: bytes(blob.download_blob(offset=at, length=count, max_concurrency=1, **options).readall()),
                f"download {self.label}/{name}",
            )
        except RemoteError as error:
            if error.details.get("remote_code") != "InvalidRange":
                raise
            return b""  # behind the end

    def put(self, name: str, source: Source, moved: Moved | None = None, stamp: int | None = None) -> Stored:
        """Write an object: in one request, or in blocks."""
        marks = {} if stamp is None else {STAMP: str(stamp)}
        if source.size > SINGLE:
            answer = self._put_blocks(name, source, moved, marks)
        else:
            answer = self._put_whole(name, source.read(0, source.size), moved, marks)
        return Stored(name, source.size, *_written(answer), stamp)

    def _put_whole(self, name: str, data: bytes, moved: Moved | None, marks: Mapping[str, str]) -> Mapping[str, object]:
        blob = self._blob(name)
        return self._line.call(
            lambda: blob.upload_blob(
                data, length=len(data), overwrite=True, metadata=dict(marks), validate_content=True
            ),
            f"upload {self.label}/{name}",
            moved,
        )

    def _put_blocks(
        self, name: str, source: Source, moved: Moved | None, marks: Mapping[str, str]
    ) -> Mapping[str, object]:
        from azure.storage.blob import BlobBlock

        blob = self._blob(name)
        size = block_size(source.size)
        waiting = self._staged(blob)

        def stage(at: int) -> str:
            data = source.read(at, size)
            block = f"{at // size:06d}{hashlib.sha256(data).hexdigest()[:20]}"
            if waiting.get(block) != len(data):
                self._line.call(
                    lambda: blob.stage_block(block, data, len(data), validate_content=True),
                    f"upload a part of {self.label}/{name}",
                    moved,
                )
            elif moved is not None:
                moved(len(data))
            return block

        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="blocks") as threads:
            blocks = [BlobBlock(block) for block in threads.map(stage, range(0, source.size, size))]
        return self._line.call(
            lambda: blob.commit_block_list(blocks, metadata=dict(marks)), f"finish {self.label}/{name}"
        )

    def _staged(self, blob: BlobClient) -> dict[str, int]:
        """Return the blocks that a broken upload left, by their ids."""
        try:
            _, waiting = self._line.call(lambda: blob.get_block_list("uncommitted"), f"look for parts of {self.label}")
        except (NotFound, UnicodeDecodeError):
            return {}
        return {str(block.id): int(block.size) for block in waiting}

    def swap(self, name: str, data: bytes, etag: str | None) -> Stored:
        """Write a small object on a condition."""
        blob, condition = self._blob(name), _unchanged(etag)
        try:
            answer = self._line.call(
                lambda: blob.upload_blob(
                    data, length=len(data), overwrite=etag is not None, validate_content=True, **condition
                ),
                f"write {self.label}/{name}",
            )
        except NotFound as error:
            if etag is None:
                raise  # without the container
            raise Refused(f"{self.label}/{name} was removed meanwhile", code="conflict") from error
        return Stored(name, len(data), *_written(answer))

    def remove(self, name: str) -> None:
        """Remove an object."""
        blob = self._blob(name)
        with contextlib.suppress(NotFound):
            self._line.call(blob.delete_blob, f"remove {self.label}/{name}")

    def _blob(self, name: str) -> BlobClient:
        return self._client.get_blob_client(check_name(name))


def containers(place: Place, access: Access, settings: Settings) -> list[str]:
    """Return the containers of an account. Raises Refused without the right to see them, and as every request."""
    line = Line(place, access, settings)
    from azure.storage.blob import BlobServiceClient

    with BlobServiceClient(place.url, line.credential, **line.options()) as client:
        found = line.call(
            lambda: [str(one.name) for one in client.list_containers()], f"list the containers of {place.account}"
        )
    return sorted(found)


def block_size(size_bytes: int) -> int:
    """Return how large a block has to be so that the service takes so many bytes, in whole mebibytes."""
    due = -(-size_bytes // MOST_BLOCKS)
    return max(BLOCK, -(-due // MIB) * MIB)


def _unchanged(etag: str | None) -> _Condition:
    from azure.core import MatchConditions

    return {} if etag is None else {"etag": etag, "match_condition": MatchConditions.IfNotModified}


def _written(answer: Mapping[str, object]) -> tuple[str, float]:
    """Return the state that a write made, and its moment."""
    at = cast(_Moment, answer["last_modified"])
    return str(answer["etag"]), at.timestamp()


def _stored(name: str, found: _Found) -> Stored:
    stamp = (found.metadata or {}).get(STAMP, "")
    return Stored(
        name, int(found.size), str(found.etag), found.last_modified.timestamp(), int(stamp) if stamp.isdigit() else None
    )
