"""One container of blob storage, and the few requests by which a file comes into it, once.

Every write here carries the condition that nothing stands there yet, so each request may be repeated: what is
there already is never touched. Nothing is retried here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from aj.azure.gauge import Moved
from aj.azure.line import Access, Limits, Line, Place
from aj.base.errors import NotFound, Refused
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.net.http import STANDARD

if TYPE_CHECKING:
    from azure.storage.blob import BlobClient, ContainerClient, ContentSettings

OURS = {"aj": "1"}  # the mark by which our own blobs are known when old ones are removed


@dataclass(frozen=True)
class Kept:
    """A blob of ours as a listing shows it. `etag` names this very state of it; the time is since the epoch."""

    name: str
    size_bytes: int
    modified_at: float
    etag: str


@contextlib.contextmanager
def opened(place: Place, access: Access, settings: Settings, limits: Limits | None = None) -> Iterator[Container]:
    """Reach a container for the length of a block. Nothing is sent before it is asked for something.

    Raises ConfigError when a token would leave this machine by plain http.
    """
    line = Line(place, access, settings, limits)
    from azure.storage.blob import ContainerClient  # 0.2 s, in the daemon alone

    whole = 2**40  # who cuts a file into parts is our own
    made = ContainerClient(place.url, place.container, line.credential, max_single_put_size=whole, **line.options())
    with made as client:
        yield Container(line, client)


class Container:
    """One container. Safe between threads."""

    def __init__(self, line: Line, client: ContainerClient) -> None:
        self.place = line.place
        self._line = line
        self._client = client

    def size(self, name: str) -> int | None:
        """Return the size of a blob in bytes, or None when there is none. Raises as every request here.

        Refused, AuthError, NotFound and RemoteError; Unavailable when another try may help.
        """
        blob = self._blob(name)
        # The first request of an upload: a host that does not take the call is given up soon.
        limits = self._line.limits
        read_s = min(STANDARD.seconds, limits.stall_s)
        try:
            found = self._line.call(
                lambda: blob.get_blob_properties(connection_timeout=limits.connect_s, read_timeout=read_s),
                f"look for blob {name}",
            )
        except NotFound:
            return None
        return int(found.size)

    def put(self, name: str, data: bytes, content_type: str, moved: Moved) -> None:
        """Put a whole blob where there is none. `moved` is told of bytes as they leave, and of those that must again.

        Raises as `size`; Refused with code `conflict` when something stands there.
        """
        blob, kind = self._blob(name), _kind(content_type)
        self._line.call(
            lambda: blob.upload_blob(
                data, length=len(data), overwrite=False, metadata=OURS, content_settings=kind, validate_content=True
            ),
            f"upload blob {name}",
            moved,
        )

    def staged(self, name: str) -> dict[str, int]:
        """Return the size in bytes of each block that waits, by its id; none when nobody has staged any."""
        blob = self._blob(name)
        try:
            _, waiting = self._line.call(lambda: blob.get_block_list("uncommitted"), f"look for blocks of blob {name}")
        except NotFound:
            return {}
        except UnicodeDecodeError:
            return {}  # ids that are no text: somebody else's
        return {str(block.id): int(block.size) for block in waiting}

    def stage(self, name: str, block: str, data: bytes, moved: Moved) -> None:
        """Stage one block. Raises as `size`."""
        blob = self._blob(name)
        self._line.call(
            lambda: blob.stage_block(block, data, len(data), validate_content=True),
            f"upload a part of blob {name}",
            moved,
        )

    def commit(self, name: str, blocks: Sequence[str], content_type: str) -> None:
        """Make staged blocks a blob where there is none.

        Raises as `size`; Refused with code `conflict` when something stands there, or a block is gone.
        """
        from azure.core import MatchConditions
        from azure.storage.blob import BlobBlock

        blob, kind = self._blob(name), _kind(content_type)
        self._line.call(
            lambda: blob.commit_block_list(
                [BlobBlock(block) for block in blocks],
                content_settings=kind,
                metadata=OURS,
                match_condition=MatchConditions.IfMissing,
            ),
            f"finish blob {name}",
        )

    def ours(self, prefix: str) -> tuple[Kept, ...]:
        """List the blobs below a prefix that bear our mark. Raises as `size`."""
        listed = self._line.call(
            lambda: list(self._client.list_blobs(name_starts_with=prefix, include=["metadata"])),
            f"list the blobs of container {self.place.container}",
        )
        return tuple(
            Kept(blob.name, int(blob.size), blob.last_modified.timestamp(), str(blob.etag))
            for blob in listed
            if (blob.metadata or {}).get("aj") == OURS["aj"]
        )

    def remove(self, kept: Kept) -> bool:
        """Remove a blob as it was listed; False when it has gone or changed meanwhile. Raises as `size`."""
        from azure.core import MatchConditions

        blob = self._blob(kept.name)
        try:
            self._line.call(
                lambda: blob.delete_blob(etag=kept.etag, match_condition=MatchConditions.IfNotModified),
                f"remove blob {kept.name}",
            )
        except NotFound:
            return False
        except Refused as error:
            if error.code != "conflict":
                raise
            return False
        return True

    def _blob(self, name: str) -> BlobClient:
        return self._client.get_blob_client(name)


def _kind(content_type: str) -> ContentSettings:
    from azure.storage.blob import ContentSettings

    return ContentSettings(content_type=content_type)
