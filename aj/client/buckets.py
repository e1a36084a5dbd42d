"""Buckets, what opens them, and secrets, as a caller asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from aj.base.errors import OutcomeUnknown
from aj.client.line import AnswerLost, Line, Query
from aj.client.queue import named
from aj.wire import paths
from aj.wire.bucket import (
    BucketList,
    CredentialList,
    MakeBucket,
    Objects,
    SaveCredential,
    SaveSecret,
    SecretList,
    Transfer,
    TransferAnswer,
    TransferState,
)
from aj.wire.messages import Done
from aj.wire.paths import Route

HOLD_S = 60.0  # one question waits so long; then it is asked again
T = TypeVar("T")


class Buckets:
    """What a caller can do with buckets. `credential` names who opens one; None means the folders of this machine.

    Each raises NotFound without the bucket or credential, Refused and AuthError without the right, Unavailable.
    """

    def __init__(self, line: Line) -> None:
        self._line = line

    def list(self, credential: str | None = None) -> BucketList:
        """List the buckets that a credential opens, or all."""
        return self._line.read(BucketList, paths.BUCKETS, query={"credential": credential})

    def create(self, name: str, credential: str | None = None) -> Done:
        """Make a bucket; `noop` when there is one. Raises OutcomeUnknown."""
        return self._change(Done, paths.BUCKET_MAKE, name, body=MakeBucket(name, credential))

    def objects(
        self,
        bucket: str,
        credential: str | None = None,
        *,
        prefix: str = "",
        cursor: str | None = None,
        limit: int = 1000,
    ) -> Objects:
        """List a part of what is in a bucket, in the order of names."""
        query: Query = {"credential": credential, "prefix": prefix or None, "cursor": cursor, "limit": limit}
        return self._line.read(Objects, paths.BUCKET, named(bucket, "bucket"), query=query)

    def delete(self, bucket: str, credential: str | None = None) -> Done:
        """Remove a bucket with all objects. Raises Refused while a job uses it, OutcomeUnknown."""
        return self._change(Done, paths.BUCKET_DELETE, named(bucket, "bucket"), query={"credential": credential})

    def transfer(self, asked: Transfer) -> Iterator[TransferAnswer]:
        """Carry out a transfer, yielding how far it is until it is over; who stops asking stops it.

        Raises OutcomeUnknown when it is not known whether it began; doing it again is always safe.
        """
        answer = self._change(TransferAnswer, paths.TRANSFER, asked.bucket, body=asked)
        try:
            while True:
                yield answer
                if answer.state is not TransferState.RUNNING:
                    return
                query: Query = {"after": answer.version, "timeout_s": HOLD_S}
                answer = self._line.read(TransferAnswer, paths.TRANSFER_LOOK, answer.id, query=query)
        finally:
            if answer.state is TransferState.RUNNING:
                self._change(TransferAnswer, paths.TRANSFER_STOP, answer.id)

    def credentials(self) -> CredentialList:
        """Tell of all credentials."""
        return self._line.read(CredentialList, paths.CREDENTIALS)

    def save_credential(self, asked: SaveCredential) -> Done:
        """Keep a credential. Raises UserError, Refused when the name is taken, OutcomeUnknown."""
        return self._change(Done, paths.CREDENTIAL_SAVE, asked.name, body=asked)

    def delete_credential(self, name: str) -> Done:
        """Forget a credential. Raises NotFound, Refused while a job needs it, OutcomeUnknown."""
        return self._change(Done, paths.CREDENTIAL_DELETE, named(name, "name"))

    def secrets(self) -> SecretList:
        """Tell of all secrets."""
        return self._line.read(SecretList, paths.SECRETS)

    def save_secret(self, name: str, value: str) -> Done:
        """Keep a secret. Raises UserError, Refused when the name is taken, OutcomeUnknown."""
        return self._change(Done, paths.SECRET_SAVE, name, body=SaveSecret(name, value))

    def delete_secret(self, name: str) -> Done:
        """Forget a secret. Raises NotFound, OutcomeUnknown."""
        return self._change(Done, paths.SECRET_DELETE, named(name, "name"))

    def _change(self, kind: type[T], route: Route, about: str, query: Query | None = None, body: object = None) -> T:
        segments = (about,) if "{" in route.pattern else ()
        try:
            return self._line.change(kind, route, *segments, query=query, body=body)
        except AnswerLost as lost:
            raise OutcomeUnknown(f"the answer about {about} was lost: {lost}", details={"id": about}) from lost
