"""The way into a bucket: its storage, opened by a saved credential. What no release of ours stores in is refused here.

A credential may lose its value or go away at any time, so each is read from the disk when a bucket is opened.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from aj.base.errors import Refused, UserError
from aj.base.settings import Settings
from aj.bucket import folder
from aj.bucket.folder import Folder
from aj.bucket.storage import Storage
from aj.model.bucket import HERE, Kind
from aj.net import clouds
from aj.store import credentials
from aj.store.credentials import ACCOUNT_KEY, SIGN_IN, Credential
from aj.store.layout import Layout

if TYPE_CHECKING:
    from aj.azure.line import Access
    from aj.net.token import TokenSource

# What people write before a bucket of another storage, and what that storage is called.
FOREIGN = {"s3": "Amazon S3", "gs": "Google Cloud Storage", "gcs": "Google Cloud Storage", "r2": "Cloudflare R2"}
_CONTAINER = re.compile(r"(?=.{3,63}\Z)[a-z0-9]+(?:-[a-z0-9]+)*\Z", re.ASCII)
Tokens = Callable[[str | None], "TokenSource"]


def check_word(word: str) -> str:
    """Return the name of a bucket as it was typed. Raises Refused for another storage, UserError for no name."""
    scheme, mark, _ = word.partition("://")
    if mark:
        what = FOREIGN.get(scheme.lower(), f"`{scheme}`")
        raise Refused(
            f"{word}: buckets of {what} are not supported: folders and Azure Blob Storage are",
            code="other-storage",
            hint="name a bucket, and with `--*-storage-credentials` who opens it; `aj credentials list` shows them",
        )
    return folder.check_bucket(word)


class Door:
    """Opens buckets. Safe between threads."""

    def __init__(self, layout: Layout, settings: Settings, tokens: Tokens | None = None) -> None:
        self._layout = layout
        self._settings = settings
        self._tokens = tokens
        self._guard = threading.Lock()
        self._opened: dict[tuple[Credential, str], Storage] = {}

    def credential(self, name: str | None) -> Credential:
        """Read a credential; None means the folders of this machine. Raises NotFound, AjError."""
        return credentials.read(self._layout, name or HERE)

    def open(self, bucket: str, name: str | None) -> Storage:
        """Reach a bucket, there or not; nothing is sent. Raises NotFound without such a credential."""
        check_word(bucket)
        found = self.credential(name)
        with self._guard:
            known = self._opened.get((found, bucket))
            if known is None:
                known = self._opened[found, bucket] = self._open(bucket, found)
            return known

    def buckets(self, found: Credential) -> list[str]:
        """Return the names of the buckets that a credential opens. Raises Refused without the right, AjError."""
        if found.kind is Kind.DIR:
            return folder.names(Path(found.root or str(self._layout.buckets)))
        from aj.azure.line import Place
        from aj.bucket.azure import containers

        return containers(Place(str(found.account), "", address(found)), self._access(found), self._settings)

    def _open(self, bucket: str, found: Credential) -> Storage:
        if found.kind is Kind.DIR:
            return Folder(Path(found.root or str(self._layout.buckets)), bucket)
        if not _CONTAINER.match(bucket):
            raise UserError(
                f"`{bucket}` cannot name a container",
                hint="3 to 63 lower-case letters and digits, with single `-` between them",
                code="bad-bucket-name",
            )
        from aj.azure.line import Place  # what speaks to Azure is imported with its first bucket
        from aj.bucket.azure import Container

        place = Place(str(found.account), bucket, address(found))
        return Container(place, self._access(found), self._settings)

    def _access(self, found: Credential) -> Access:
        from aj.azure.datastores import Secret
        from aj.azure.line import ByToken

        if found.opens == SIGN_IN:
            if self._tokens is None:
                raise UserError(f"credential `{found.name}`: nobody can sign in here", code="no-cloud")
            return ByToken(self._tokens(found.tenant), found.tenant)
        return Secret("AccountKey" if found.opens == ACCOUNT_KEY else "Sas", str(found.value))


def address(found: Credential) -> str:
    """Return the base address of a credential's account, without a final slash."""
    return (found.endpoint or clouds.PUBLIC.blob_url(found.account or "")).rstrip("/")
