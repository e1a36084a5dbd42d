"""Virtual clusters and what is left of them: for everybody, at a tier in a region, and for one user.

Room is counted in GPUs for series with GPUs and in vCPUs for the others. Tiers stay apart by region, since
a job must fit into one region.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from aj.base.noun import dataclass
from aj.model.catalogue import InstanceType


class Tier(StrEnum):
    """Service levels, from the dearest to the cheapest."""

    PREMIUM = "Premium"
    STANDARD = "Standard"
    BASIC = "Basic"

    @property
    def chain(self) -> tuple[Tier, ...]:
        """This tier and the cheaper ones: what a job that asks for it may get, the best first."""
        tiers = tuple(Tier)
        return tiers[tiers.index(self) :]


@dataclass(frozen=True)
class Quota:
    """How much of a series there is and how much of it is used. A limit of None means that there is none.

    `label` is the service's own line of text about the series.
    """

    series: str
    limit: int | None
    used: int | None = None
    label: str = ""

    @property
    def available(self) -> int | None:
        """What is left, never below 0; None when there is no limit."""
        return None if self.limit is None else max(0, self.limit - (self.used or 0))

    def has_room(self, needed: int) -> bool:
        """Tell whether so many are left."""
        return self.available is None or self.available >= needed


@dataclass(frozen=True)
class TierQuota:
    """The quota of everybody, in one region at one tier.

    `word` is the tier as the service spells it; one that is none of ours is shown, and used by no job.
    """

    region: str
    word: str
    quota: Quota

    @property
    def tier(self) -> Tier | None:
        return next((tier for tier in Tier if same(tier, self.word)), None)


@dataclass(frozen=True)
class VirtualCluster:
    """One virtual cluster: its regions in order, what is left, and what machines there are.

    `users` holds each user's quota, `policies` that of each named group policy. A series that stands in neither
    has no published limit of a user, which is no limit of 0. `problem` says why no job can go there at all.
    """

    id: str
    name: str
    subscription: str
    group: str
    regions: tuple[str, ...] = ()
    tiers: tuple[TierQuota, ...] = ()
    users: tuple[Quota, ...] = ()
    types: tuple[InstanceType, ...] = ()
    policies: Mapping[str, tuple[Quota, ...]] = field(default_factory=dict)
    problem: str | None = None

    @property
    def series(self) -> frozenset[str]:
        """The series of which the cluster has some quota, in small letters."""
        return frozenset(
            one.series.lower() for one in (*self.users, *(row.quota for row in self.tiers), *self._of_policies)
        )

    @property
    def _of_policies(self) -> tuple[Quota, ...]:
        return tuple(quota for quotas in self.policies.values() for quota in quotas)

    def user_quota(self, series: str, policy: str | None = None) -> Quota | None:
        """Return a user's quota of a series, by a group policy if one is named; None when none is published."""
        rows = self.users if policy is None else self.policies.get(policy, ())
        return next((quota for quota in rows if same(quota.series, series)), None)

    def tier_quota(self, series: str, region: str, tier: Tier) -> Quota | None:
        """Return what everybody has of a series in a region at a tier; None when nothing is published."""
        rows = (row for row in self.tiers if row.tier is tier and same(row.region, region))
        return next((row.quota for row in rows if same(row.quota.series, series)), None)

    def __str__(self) -> str:
        return f"{self.name} ({self.subscription}/{self.group})"


def same(one: str, other: str) -> bool:
    """Tell whether two names mean the same series, region or cluster: case does not count."""
    return one.lower() == other.lower()
