"""What crosses the socket about buckets, credentials and secrets. A value crosses it once, inwards."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from aj.base.noun import dataclass
from aj.model.bucket import CredentialFacts, Kind, Stored


@dataclass(frozen=True)
class BucketRow:
    """One bucket: where it is, whose credential opens it, and the job that it was made for, if any."""

    name: str
    kind: Kind
    credential: str
    label: str
    job: str | None = None


@dataclass(frozen=True)
class BucketList:
    """Buckets by credential and name; `warnings` name credentials that gave no answer."""

    buckets: tuple[BucketRow, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class MakeBucket:
    """Make a bucket. The region is a remark: a credential's account has its own."""

    name: str
    credential: str | None = None


@dataclass(frozen=True)
class Objects:
    """A part of what is in a bucket, in the order of names. `cursor` is where the next part begins.

    `warnings` name what is there and cannot be an object.
    """

    label: str
    objects: tuple[Stored, ...]
    cursor: str | None = None
    warnings: tuple[str, ...] = ()


class Direction(StrEnum):
    """Which way a transfer goes."""

    UPLOAD = "upload"
    DOWNLOAD = "download"


@dataclass(frozen=True)
class Transfer:
    """Bring a file or folder of this machine (an absolute path) into a bucket, or a prefix of it here."""

    direction: Direction
    bucket: str
    path: str
    prefix: str = ""
    credential: str | None = None


class TransferState(StrEnum):
    """Where a transfer stands."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True)
class TransferAnswer:
    """How far a transfer is. Objects and bytes count what went over and, among them, what was there already.

    `goes_on` tells whether the same transfer, begun again, may bring what is missing; `warnings` name what was
    passed over.
    """

    id: str
    direction: Direction
    label: str
    path: str
    state: TransferState
    objects: int = 0
    total_objects: int = 0
    bytes: int = 0
    total_bytes: int = 0
    skipped: int = 0
    problem: str | None = None
    version: int = 0
    goes_on: bool = True
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class SaveCredential:
    """Keep a credential. `opens` says what the value is: an account key, a signature, or nothing."""

    name: str
    kind: Kind
    opens: str
    account: str | None = None
    endpoint: str | None = None
    root: str | None = None
    tenant: str | None = None
    value: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class SaveSecret:
    """Keep a secret."""

    name: str
    value: str = field(repr=False)


@dataclass(frozen=True)
class CredentialList:
    """What may be told of credentials."""

    credentials: tuple[CredentialFacts, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class SecretRow:
    """What may be told of a secret."""

    name: str
    created_at: str


@dataclass(frozen=True)
class SecretList:
    """What may be told of secrets."""

    secrets: tuple[SecretRow, ...]
