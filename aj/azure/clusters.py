"""Virtual clusters: where they are and how much of each series is left, for everybody and for this user.

Room is counted in GPUs or in vCPUs, as the series is, and the two are never added. Tiers stay apart by
region, since a job must fit into one region.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum

from aj.azure import graph
from aj.azure.arm import Session
from aj.azure.fan import Failure, Gathered
from aj.azure.graph import Question
from aj.base.errors import RemoteError
from aj.base.noun import dataclass
from aj.net.document import Document

TYPE = "microsoft.machinelearningservices/virtualclusters"
_VCPUS = re.compile(r"\bv?CPUs?\b", re.IGNORECASE)


class Tier(StrEnum):
    """Service levels, from the dearest to the cheapest."""

    PREMIUM = "Premium"
    STANDARD = "Standard"
    BASIC = "Basic"


TIERS = {tier.value.lower(): tier for tier in Tier}


class Unit(StrEnum):
    """What a quota counts."""

    GPUS = "GPUs"
    VCPUS = "vCPUs"


@dataclass(frozen=True)
class Quota:
    """How much of a series there is and how much of it is used. A limit of None means there is none."""

    series: str
    label: str
    limit: int | None
    used: int | None

    @property
    def unit(self) -> Unit:
        return Unit.VCPUS if _VCPUS.search(self.label) else Unit.GPUS

    @property
    def available(self) -> int | None:
        """What is left, never below 0; None when there is no limit."""
        return None if self.limit is None else max(0, self.limit - (self.used or 0))

    def has_room(self, needed: int) -> bool:
        """Tell whether so many are left."""
        return self.available is None or self.available >= needed


@dataclass(frozen=True)
class TierQuota(Quota):
    """The quota of everybody, in one region at one tier. `tier` is None when its word is none we know."""

    region: str
    word: str

    @property
    def tier(self) -> Tier | None:
        return TIERS.get(self.word.lower())


@dataclass(frozen=True)
class UserQuota(Quota):
    """The quota of each user, by the cluster's default policy."""


@dataclass(frozen=True)
class Cluster:
    """One virtual cluster. `users` may lack a series: then no limit of a user is published for it."""

    id: str
    name: str
    subscription: str
    group: str
    regions: tuple[str, ...]
    tiers: tuple[TierQuota, ...]
    users: tuple[UserQuota, ...]

    @property
    def reason_unusable(self) -> str | None:
        """Why no job can go there, or None."""
        return None if self.regions else "publishes no region"

    def user_quota(self, series: str) -> UserQuota | None:
        """Return a user's quota of a series; None when none is published, which is no limit of 0."""
        return next((quota for quota in self.users if _same(quota.series, series)), None)

    def tier_quotas(self, series: str, region: str) -> tuple[TierQuota, ...]:
        """Return the tiers of a series in one region that a job may use, the dearest first."""
        here = [quota for quota in self.tiers if _same(quota.series, series) and _same(quota.region, region)]
        return tuple(quota for tier in Tier for quota in here if quota.tier is tier)


def find(
    session: Session, subscriptions: Sequence[str], *, name: str | None = None, group: str | None = None
) -> Gathered[Cluster]:
    """List the virtual clusters of subscriptions, those of a name or group alone when given.

    A row that cannot be read is a failure beside the others, by its id.
    """
    fields = ("name", "location", "resourceGroup", "subscriptionId", "properties")
    question = Question(TYPE, fields, name=name, group=group)
    doing = "list virtual clusters" if name is None else f"look for virtual cluster {name}"
    read_rows = [_read_row(row) for row in graph.ask(session, question, subscriptions, lambda row: row, doing=doing)]
    return Gathered(
        tuple(row for row in read_rows if isinstance(row, Cluster)),
        tuple(row for row in read_rows if isinstance(row, Failure)),
    )


def _read_row(row: Document) -> Cluster | Failure:
    try:
        return read(row)
    except RemoteError as error:
        return Failure(row.text("id") or row.at, error)


def read(row: Document) -> Cluster:
    """Read a row of the resource graph. Raises RemoteError naming a field that is not as it should be."""
    managed = row.inner("properties", "managed")
    quotas = managed.inner("quotas")
    location = row.text("location")
    return Cluster(
        row.need_text("id"),
        row.need_text("name"),
        row.need_text("subscriptionId"),
        row.need_text("resourceGroup"),
        _once((*managed.words("locations"), *quotas.values, *((location,) if location else ()))),
        tuple(_tier(limit, region) for region in quotas.values for limit in quotas.each(region, "limits")),
        tuple(_users(managed.inner("defaultGroupPolicyOverallQuotas"))),
    )


def _tier(limit: Document, region: str) -> TierQuota:
    series, label = _names(limit)
    return TierQuota(series, label, limit.whole("limit"), limit.whole("used"), region, limit.text("slaTier") or "")


def _users(quotas: Document) -> Iterable[UserQuota]:
    for limit in quotas.each("limits"):
        if limit.text("slaTier") is None:  # a row with a tier counts something else
            series, label = _names(limit)
            yield UserQuota(series, label, limit.whole("limit"), limit.whole("used"))


def _names(limit: Document) -> tuple[str, str]:
    series = limit.need_text("id")
    return series, limit.text("name") or series


def _same(one: str, other: str) -> bool:
    return one.lower() == other.lower()


def _once(words: Iterable[str]) -> tuple[str, ...]:
    """Each word once, compared without case, in the order and spelling of its first mention."""
    found: dict[str, str] = {}
    for word in words:
        found.setdefault(word.lower(), word)
    return tuple(found.values())
