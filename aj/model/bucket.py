"""Buckets as nouns: what a job asks of them, what admission found, and what has reached them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from aj.base.noun import dataclass

KEEP = 3  # complete checkpoints that stay in a bucket when nobody says otherwise
HERE = "local"  # the credential that everybody has: folders of this machine


class Purpose(StrEnum):
    """What a bucket is to a job; also the name of its folder below /mnt."""

    INPUT = "input"
    OUTPUT = "output"
    CHECKPOINT = "checkpoint"


class Kind(StrEnum):
    """A kind of storage that this release speaks: folders, or containers of Azure Blob Storage."""

    DIR = "dir"
    AZURE = "azure"


@dataclass(frozen=True)
class Wanted:
    """What is asked for one purpose: a bucket by name, whose credential opens it, in which region.

    Without a bucket only the credential is chosen, for one that is made for the job.
    """

    bucket: str | None = None
    credential: str | None = None
    region: str | None = None


@dataclass(frozen=True)
class Buckets:
    """All that a job asks of buckets. With `require_output` a job whose last upload failed has failed."""

    input: Wanted | None = None
    output: Wanted | None = None
    checkpoint: Wanted | None = None
    checkpoint_keep: int = KEEP
    require_output: bool = False

    def wanted(self, purpose: Purpose) -> Wanted | None:
        """Return what is asked for one purpose."""
        return {Purpose.INPUT: self.input, Purpose.OUTPUT: self.output, Purpose.CHECKPOINT: self.checkpoint}[purpose]


@dataclass(frozen=True)
class Owner:
    """Whose bucket it is: the job it was made for, and a word that nobody else knows."""

    job: str
    nonce: str


@dataclass(frozen=True)
class Bound:
    """A bucket as admission found it. It stays so for all attempts of a job.

    `prefix` is empty or ends with a slash. `owner` is the mark of a bucket that was made for this very job and
    goes with it; None when it is to be kept.
    """

    bucket: str
    kind: Kind
    credential: str
    prefix: str = ""
    region: str | None = None
    owner: Owner | None = None
    is_foreign: bool = False

    @property
    def is_kept(self) -> bool:
        """Whether it outlives the job."""
        return self.owner is None


@dataclass(frozen=True)
class Attached:
    """The buckets of one job, by purpose."""

    bound: Mapping[str, Bound] = field(default_factory=dict)
    checkpoint_keep: int = KEEP
    require_output: bool = False

    def get(self, purpose: Purpose) -> Bound | None:
        """Return the bucket of one purpose."""
        return self.bound.get(purpose.value)

    @property
    def restores(self) -> bool:
        """Whether something has to be brought here before the job starts."""
        return Purpose.INPUT.value in self.bound or Purpose.CHECKPOINT.value in self.bound

    @property
    def saves(self) -> bool:
        """Whether something has to be brought away after it ended."""
        return Purpose.OUTPUT.value in self.bound or Purpose.CHECKPOINT.value in self.bound


@dataclass(frozen=True)
class Stored:
    """One object of a bucket. `etag` names this very state of it; times are seconds since the epoch.

    `stamp` is when the file it came from was last changed, in nanoseconds, as whoever uploaded it said.
    """

    name: str
    size_bytes: int
    etag: str
    modified_at: float
    stamp: int | None = None


@dataclass(frozen=True)
class Page:
    """A part of a listing. `cursor` is where the next one begins; None at the end.

    `told` says what is there and is passed over: where it is, and why no object of it can be had.
    """

    objects: tuple[Stored, ...]
    cursor: str | None = None
    told: tuple[str, ...] = ()


@dataclass(frozen=True)
class Health:
    """What of a checkpoint has reached its bucket: the files of the newest complete one, and when it was whole.

    `problem` says why the last upload did not work.
    """

    objects: int = 0
    bytes: int = 0
    last_modified_at: float | None = None
    kept: int = 0
    tried_at: float | None = None
    problem: str | None = None


@dataclass(frozen=True)
class Checkpoints:
    """Where the checkpoints of a job are, and what has reached that place."""

    bucket: str
    kind: Kind
    credential: str
    mount: str
    is_kept: bool
    is_foreign: bool = False
    health: Health = field(default_factory=Health)


@dataclass(frozen=True)
class CredentialFacts:
    """What may be told of a saved credential. `opens` says by what right it opens its storage."""

    name: str
    kind: Kind
    opens: str
    account: str | None = None
    endpoint: str | None = None
    root: str | None = None
    tenant: str | None = None
    created_at: str | None = None
