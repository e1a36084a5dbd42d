"""Code into a workspace: the archive and the bootstrap go into its own container, each under its own hash."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from aj.azure import blobs, blocks, datastores
from aj.azure.arm import Session, Workspace
from aj.azure.blobs import Container
from aj.azure.blocks import SIZES, Sizes, Source, Uploaded
from aj.azure.line import Access, ByToken, Limits, Place
from aj.azure.submission import Delivered, Parcel
from aj.base import units
from aj.base.errors import NotFound, Refused, RemoteError
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.model.step import Kind, Step
from aj.net import http

ARCHIVE_TYPE, SCRIPT_TYPE = "application/gzip", "text/x-shellscript"
EVERY_S = 0.25  # between two tellings of how far an upload is: more often than anyone can read
_ACCOUNT = re.compile(r"[a-z0-9]{3,24}\Z", re.ASCII)
_CONTAINER = re.compile(r"[a-z0-9](?:-?[a-z0-9]){2,62}\Z", re.ASCII)
Tell = Callable[[Step], None]
T = TypeVar("T")


@dataclass(frozen=True)
class Delivery:
    """Delivers parcels; with `allow_account_key`, by the key of the account where the user has no right himself."""

    settings: Settings
    allow_account_key: bool = False
    sizes: Sizes = SIZES
    limits: Limits | None = None

    def __call__(self, session: Session, workspace: Workspace, parcel: Parcel, *, tell: Tell) -> Delivered:
        """Bring archive and bootstrap where they are not yet, and return where both are.

        Raises UserError when the archive is too large, before anything is asked; Refused with the role that is
        missing; and as reading the datastore and uploading do.
        """
        blocks.check_size(parcel.size_bytes, limit=self.sizes.limit)
        return self.within(session, workspace, lambda container: self._bring(container, session, parcel, tell))

    def within(self, session: Session, workspace: Workspace, act: Callable[[Container], T]) -> T:
        """Act on the container where a workspace keeps code.

        Raises Refused with the role that is missing; as reading the datastore does, and as `act`.
        """
        place = code_place(session, workspace)
        try:
            return self._opened(place, ByToken(session.tokens, session.tenant), act)
        except Refused as error:
            if error.code != "forbidden" or not self.allow_account_key:
                raise
        return self._opened(place, datastores.secret(session, workspace, datastores.CODE), act)

    def _opened(self, place: Place, access: Access, act: Callable[[Container], T]) -> T:
        with blobs.opened(place, access, self.settings, self.limits) as container:
            return act(container)

    def _bring(self, container: Container, session: Session, parcel: Parcel, tell: Tell) -> Delivered:
        code = parcel.code
        script = blocks.of_bytes(parcel.bootstrap, SCRIPT_TYPE, "the bootstrap")
        with blocks.of_file(parcel.archive, code.archive_sha256, ARCHIVE_TYPE) as archive:
            done = self._upload(container, session, code.archive, archive, _Telling(session, tell, "code"))
        self._upload(container, session, code.bootstrap, script, _Telling(session, tell, "bootstrap"))
        return Delivered(code.archive, code.bootstrap, done.sent_bytes)

    def _upload(self, container: Container, session: Session, name: str, source: Source, telling: _Telling) -> Uploaded:
        done = blocks.upload(container, name, source, clock=session.clock, progress=telling.moved, sizes=self.sizes)
        telling.end(done)
        return done


def code_place(session: Session, workspace: Workspace) -> Place:
    """Ask where a workspace keeps code.

    Raises NotFound without such a datastore, and RemoteError when it leads out of the cloud: a token for blobs
    goes nowhere else.
    """
    found = datastores.find(session, workspace, datastores.CODE)
    if found is None:
        raise NotFound(f"workspace {workspace} has no datastore {datastores.CODE}", code="no-datastore")
    account, container = found.account or "", found.container or ""
    if not (_ACCOUNT.match(account) and _CONTAINER.match(container)):
        raise RemoteError(f"datastore {found.name} of workspace {workspace} names no container", code="bad-answer")
    cloud = session.cloud
    if found.endpoint not in (None, cloud.storage_suffix):
        raise http.foreign(f"{account}.blob.{found.endpoint}", f"one of {cloud.storage_suffix}")
    return Place(account, container, cloud.blob_url(account))


class _Telling:
    """Tells how far one upload is, a few times a second, and what came of it."""

    def __init__(self, session: Session, tell: Tell, what: str) -> None:
        self._clock = session.clock
        self._tell = tell
        self._what = what
        self._next_at = 0.0

    def moved(self, done: int, total: int, skipped: int) -> None:
        now = self._clock.monotonic()
        if now >= self._next_at and done < total:
            self._next_at = now + EVERY_S
            self._say(f"uploading {self._what}, {units.size(total)}", done, total, skipped)

    def end(self, found: Uploaded) -> None:
        size = found.size_bytes
        self._say(f"{self._what}: {found}", size, size, found.skipped_bytes)

    def _say(self, words: str, done: int, total: int, skipped: int) -> None:
        self._tell(Step(Kind.UPLOAD, words, done, total, skipped, self._what))
