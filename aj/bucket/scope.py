"""One prefix of a bucket as if it were the whole of it: nothing beside the prefix can be named, seen or removed."""

from __future__ import annotations

from aj.base.errors import Refused, UserError
from aj.base.noun import dataclass
from aj.bucket.storage import PAGE, Moved, Seen, Source, Storage, check_name
from aj.model.bucket import Owner, Page, Stored


@dataclass(frozen=True)
class Scope:
    """A view of `inner` below `prefix`, which is empty or ends with a slash."""

    inner: Storage
    prefix: str = ""

    def __post_init__(self) -> None:
        if self.prefix:
            check_name(self.prefix.removesuffix("/"))
            if not self.prefix.endswith("/"):
                raise UserError(f"the prefix `{self.prefix}` does not end with `/`", code="bad-name")

    @property
    def label(self) -> str:
        return f"{self.inner.label}/{self.prefix}".rstrip("/")

    def look(self) -> Seen | None:
        """Look at the whole bucket."""
        return self.inner.look()

    def create(self, owner: Owner | None = None) -> bool:
        """Refuse: a part of a bucket makes none."""
        raise Refused(f"{self.label} is a part of a bucket", code="scoped")

    def delete(self) -> None:
        """Refuse: a part of a bucket deletes none."""
        raise Refused(f"{self.label} is a part of a bucket", code="scoped")

    def page(self, prefix: str, cursor: str | None, limit: int = PAGE) -> Page:
        """Return the objects below the prefix, by their names without it."""
        found = self.inner.page(self.prefix + prefix, cursor, limit)
        return Page(tuple(self._inside(one) for one in found.objects), found.cursor, found.told)

    def head(self, name: str) -> Stored:
        """Return one object."""
        return self._inside(self.inner.head(self._outside(name)))

    def read(self, name: str, at: int, count: int, etag: str | None = None) -> bytes:
        """Return a part of an object."""
        return self.inner.read(self._outside(name), at, count, etag)

    def put(self, name: str, source: Source, moved: Moved | None = None, stamp: int | None = None) -> Stored:
        """Write an object."""
        return self._inside(self.inner.put(self._outside(name), source, moved, stamp))

    def swap(self, name: str, data: bytes, etag: str | None) -> Stored:
        """Write a small object on a condition."""
        return self._inside(self.inner.swap(self._outside(name), data, etag))

    def remove(self, name: str) -> None:
        """Remove an object."""
        self.inner.remove(self._outside(name))

    def _outside(self, name: str) -> str:
        return self.prefix + check_name(name)

    def _inside(self, found: Stored) -> Stored:
        name = found.name.removeprefix(self.prefix)
        return Stored(name, found.size_bytes, found.etag, found.modified_at, found.stamp)
