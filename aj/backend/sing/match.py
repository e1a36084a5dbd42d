"""Which virtual cluster a job goes to, at which tier, on which machines; and if to none, why not.

Every instance type of every series is a candidate. Filters take candidates away in a fixed order, and the
one that leaves none is the cluster's reason. What is left is ranked: the best of each cluster is its offer,
and the best offer wins. Nothing here asks anybody: the clusters come with their quota and machines.

Within a cluster: tier, NVIDIA where both vendors would do, NVLink, what remains, fewer cores, then names.
Between clusters: tier, NVLink, what remains, then names. The vendor is not compared between clusters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from aj.base import text
from aj.base.errors import NotFound, Refused, UserError
from aj.base.noun import dataclass
from aj.model import catalogue
from aj.model.catalogue import InstanceType
from aj.model.quota import Quota, Tier, VirtualCluster, same
from aj.model.sku import Sku

NVIDIA, AMD = "NVIDIA", "AMD"
TYPES_LENGTH = 1024  # characters of the joined names that a job may carry
GROUPED_ABOVE = 12  # more clusters than a reader takes in line by line


@dataclass(frozen=True)
class Wanted:
    """What a job asks for. `count` is the GPUs of a node, or the place in the list of CPU sizes."""

    sku: Sku
    nodes: int
    count: int
    tier: Tier = Tier.PREMIUM
    policy: str | None = None

    def needs(self, kind: InstanceType) -> int:
        """Return the GPUs, or the vCPUs, that the whole job takes on machines of a type."""
        return self.nodes * (kind.gpus if self.sku.is_gpu else kind.cores)

    @property
    def unit(self) -> str:
        return "GPUs" if self.sku.is_gpu else "vCPUs"

    @property
    def shape(self) -> str:
        """The size in words."""
        each = text.plural(self.count, "GPU") if self.sku.is_gpu else f"size C{self.count}"
        return f"{text.plural(self.nodes, 'node')} × {each}"


@dataclass(frozen=True)
class Candidate:
    """One type in one region of one cluster, and the first tier that has room for the job there."""

    cluster: VirtualCluster
    kind: InstanceType
    tier: Tier
    needs: int
    user: Quota | None
    everybody: Quota

    @property
    def remaining(self) -> float:
        """What is left after the job: the smaller of the user's and the tier's; infinite without limits."""
        left = [quota.available for quota in (self.user, self.everybody) if quota is not None]
        return min((float(count) for count in left if count is not None), default=math.inf) - self.needs


@dataclass(frozen=True)
class Offer:
    """The best that one cluster has. `types` are all that are as good, the best first."""

    best: Candidate
    types: tuple[InstanceType, ...]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def cluster(self) -> VirtualCluster:
        return self.best.cluster

    @property
    def numbers(self) -> str:
        """What the choice was made by, in words."""
        best = self.best
        user = "no limit of the user" if best.user is None else f"{_left(best.user)} of the user"
        return (
            f"{best.needs} needed; {best.kind.series} in {best.kind.region}: "
            f"{_left(best.everybody)} at {best.tier}, {user}"
        )


@dataclass(frozen=True)
class Rejection:
    """A cluster that cannot take the job, and the reason in words."""

    cluster: VirtualCluster
    reason: str


def choose(clusters: Sequence[VirtualCluster], wanted: Wanted, *, scope: Sequence[str] = ()) -> Offer:
    """Return the best offer. `scope` names the filters that the clusters had to pass, for the error.

    Raises Refused with every cluster's reason, NotFound when there is no cluster at all, UserError on a count
    that is none.
    """
    if wanted.count < 1:
        raise UserError(f"{wanted.sku}: a node has at least 1 of what the SKU counts", hint="-p N")
    answers = [look(cluster, wanted) for cluster in clusters]
    offers = [answer for answer in answers if isinstance(answer, Offer)]
    if not offers:
        raise _nothing([answer for answer in answers if isinstance(answer, Rejection)], wanted, scope)
    return min(offers, key=lambda offer: _between(offer, wanted))


def look(cluster: VirtualCluster, wanted: Wanted) -> Offer | Rejection:
    """Return what one cluster offers, or why it cannot take the job."""
    if cluster.problem is not None:
        return Rejection(cluster, cluster.problem)
    if not cluster.regions:
        return Rejection(cluster, "publishes no region")
    if wanted.policy is not None and wanted.policy not in cluster.policies:
        known = ", ".join(sorted(cluster.policies)) or "none is published"
        return Rejection(cluster, f"has no group policy {wanted.policy} (has: {known})")
    left = tuple(kind for kind in cluster.types if _is_of(cluster, kind))
    if not left:
        return Rejection(cluster, f"no instance types in {', '.join(cluster.regions)}")
    before = left
    for keeps, reason in _FILTERS:
        before, left = left, tuple(kind for kind in left if keeps(kind, left, cluster, wanted))
        if not left:
            return Rejection(cluster, reason(before, cluster, wanted))
    return _offer(cluster, wanted, left, before)


# Filters


def _is_of(cluster: VirtualCluster, kind: InstanceType) -> bool:
    return kind.series.lower() in cluster.series and any(same(kind.region, region) for region in cluster.regions)


Kinds = tuple[InstanceType, ...]
Keeps = Callable[[InstanceType, Kinds, VirtualCluster, Wanted], bool]
Reason = Callable[[Kinds, VirtualCluster, Wanted], str]


def _is_family(kind: InstanceType, _left: Kinds, _cluster: VirtualCluster, wanted: Wanted) -> bool:
    return kind.is_gpu is wanted.sku.is_gpu


def _no_family(_left: Kinds, _cluster: VirtualCluster, wanted: Wanted) -> str:
    return f"has no {'GPU' if wanted.sku.is_gpu else 'CPU'} series"


def _is_accelerator(kind: InstanceType, _left: Kinds, _cluster: VirtualCluster, wanted: Wanted) -> bool:
    named = wanted.sku.accelerator
    return named is None or (kind.accelerator is not None and same(kind.accelerator, named))


def _no_accelerator(left: Kinds, _cluster: VirtualCluster, wanted: Wanted) -> str:
    known = sorted({kind.accelerator.upper() for kind in left if kind.accelerator is not None})
    return f"has no {wanted.sku.accelerator} (has: {_known(known, [k for k in left if k.accelerator is None])})"


def _is_memory(kind: InstanceType, _left: Kinds, _cluster: VirtualCluster, wanted: Wanted) -> bool:
    return wanted.sku.memory_gb is None or kind.gpu_memory_gb == wanted.sku.memory_gb


def _no_memory(left: Kinds, _cluster: VirtualCluster, wanted: Wanted) -> str:
    known = sorted({kind.gpu_memory_gb for kind in left if kind.gpu_memory_gb is not None})
    what = wanted.sku.accelerator or "GPU"
    has = _known([f"{size} GB" for size in known], [kind for kind in left if kind.gpu_memory_gb is None], "memory ")
    return f"no {what} with {wanted.sku.memory_gb} GB (has: {has})"


def _known(words: Sequence[str], silent: Iterable[InstanceType], what: str = "") -> str:
    """What is published, and the types of which nothing is."""
    names = sorted({kind.short for kind in silent})
    unknown = [f"unknown: {what}not published for {', '.join(names)}"] if names else []
    return "; ".join([", ".join(words), *unknown] if words else unknown)


def _is_count(kind: InstanceType, left: Kinds, _cluster: VirtualCluster, wanted: Wanted) -> bool:
    if wanted.sku.is_gpu:
        return kind.gpus == wanted.count
    listed = catalogue.sizes(left, kind.series, kind.region)
    return len(listed) >= wanted.count and listed[wanted.count - 1] is kind


def _no_count(left: Kinds, _cluster: VirtualCluster, wanted: Wanted) -> str:
    if wanted.sku.is_gpu:
        counts = ", ".join(str(count) for count in sorted({kind.gpus for kind in left}))
        names = ", ".join(sorted({kind.series for kind in left}))
        return f"no type with {text.plural(wanted.count, 'GPU')} in {names} (has: {counts})"
    return "; ".join(_beyond(wanted.count, listed) for listed in _size_lists(left))


def _size_lists(left: Kinds) -> list[Kinds]:
    """The sizes of each series, each list once, although several regions may have it."""
    spots = dict.fromkeys((kind.series, kind.region) for kind in left)
    found: dict[tuple[str, ...], Kinds] = {}
    for series, region in sorted(spots):
        listed = catalogue.sizes(left, series, region)
        found.setdefault((series, *(kind.size for kind in listed)), listed)
    return list(found.values())


def _beyond(count: int, listed: Kinds) -> str:
    named = ", ".join(f"C{at} {kind.size}" for at, kind in enumerate(listed, start=1))
    return f"C{count} is beyond the {text.plural(len(listed), 'size')} of {listed[0].series}: {named}"


def _has_user_room(kind: InstanceType, _left: Kinds, cluster: VirtualCluster, wanted: Wanted) -> bool:
    quota = cluster.user_quota(kind.series, wanted.policy)
    return quota is None or quota.has_room(wanted.needs(kind))


def _no_user_room(left: Kinds, cluster: VirtualCluster, wanted: Wanted) -> str:
    lines = dict.fromkeys(_user_line(kind, cluster, wanted) for kind in left)
    several = len({kind.series.lower() for kind in left}) > 1
    return "user quota: " + "; ".join(f"{series} {words}" if several else words for series, words in lines)


def _user_line(kind: InstanceType, cluster: VirtualCluster, wanted: Wanted) -> tuple[str, str]:
    quota = cluster.user_quota(kind.series, wanted.policy)
    has = "" if quota is None else f"{quota.available} left of {quota.limit}"
    return kind.series, f"needs {wanted.needs(kind)} {wanted.unit}, {has}"


def _has_tier_room(kind: InstanceType, _left: Kinds, cluster: VirtualCluster, wanted: Wanted) -> bool:
    return _first_tier(kind, cluster, wanted) is not None


def _no_tier_room(left: Kinds, cluster: VirtualCluster, wanted: Wanted) -> str:
    several = len({kind.series.lower() for kind in left}) > 1
    shown: dict[str, None] = {}
    for kind in _in_region_order(left, cluster):
        for tier in wanted.tier.chain:
            quota = cluster.tier_quota(kind.series, kind.region, tier)
            if quota is not None:
                shown[f"{kind.series + ' ' if several else ''}{tier} {quota.available} ({kind.region})"] = None
    needs = min(wanted.needs(kind) for kind in left)
    has = ", ".join(shown) or "no quota is published"
    return f"no tier has {needs} {wanted.unit} free in one region: {has}"


def _in_region_order(kinds: Kinds, cluster: VirtualCluster) -> list[InstanceType]:
    return sorted(kinds, key=lambda kind: (_region(kind, cluster), kind.series))


def _region(kind: InstanceType, cluster: VirtualCluster) -> int:
    return next(at for at, region in enumerate(cluster.regions) if same(region, kind.region))


def _first_tier(kind: InstanceType, cluster: VirtualCluster, wanted: Wanted) -> tuple[Tier, Quota] | None:
    for tier in wanted.tier.chain:
        quota = cluster.tier_quota(kind.series, kind.region, tier)
        if quota is not None and quota.has_room(wanted.needs(kind)):
            return tier, quota
    return None


_FILTERS: tuple[tuple[Keeps, Reason], ...] = (
    (_is_family, _no_family),
    (_is_accelerator, _no_accelerator),
    (_is_memory, _no_memory),
    (_is_count, _no_count),
    (_has_user_room, _no_user_room),
    (_has_tier_room, _no_tier_room),
)


# Ranking


def _offer(cluster: VirtualCluster, wanted: Wanted, kinds: Kinds, before: Kinds) -> Offer:
    """Rank the types that are left; `before` are those that would do if only there were room."""
    candidates = [_candidate(kind, cluster, wanted) for kind in kinds]
    vendors = {kind.vendor for kind in kinds}
    both = wanted.sku.accelerator is None and {NVIDIA, AMD} <= vendors
    ranked = sorted(candidates, key=lambda one: _within(one, wanted, prefers_nvidia=both))
    best = ranked[0]
    types = _joined(one.kind for one in ranked if _is_as_good(one, best, wanted))
    return Offer(best, types, _warnings(best, before, wanted), _notes(best, wanted))


def _candidate(kind: InstanceType, cluster: VirtualCluster, wanted: Wanted) -> Candidate:
    found = _first_tier(kind, cluster, wanted)
    assert found is not None  # the last filter kept it
    tier, quota = found
    return Candidate(cluster, kind, tier, wanted.needs(kind), cluster.user_quota(kind.series, wanted.policy), quota)


def _within(one: Candidate, wanted: Wanted, *, prefers_nvidia: bool) -> tuple[object, ...]:
    return (
        wanted.tier.chain.index(one.tier),
        prefers_nvidia and one.kind.vendor != NVIDIA,
        wanted.sku.nvlink and not one.kind.has_nvlink,
        -one.remaining,
        one.kind.cores,
        _region(one.kind, one.cluster),
        one.kind.series,
        one.kind.name,
    )


def _between(offer: Offer, wanted: Wanted) -> tuple[object, ...]:
    best, cluster = offer.best, offer.cluster
    coordinates = (cluster.name, cluster.subscription, cluster.group)
    return (
        wanted.tier.chain.index(best.tier),
        wanted.sku.nvlink and not best.kind.has_nvlink,
        -best.remaining,
        *(part.casefold() for part in coordinates),
        *coordinates,
    )


def _is_as_good(one: Candidate, best: Candidate, wanted: Wanted) -> bool:
    def told(candidate: Candidate) -> tuple[object, ...]:
        kind = candidate.kind
        model = kind.accelerator.lower() if kind.accelerator else None
        link = kind.has_nvlink if wanted.sku.nvlink else None
        return kind.region.lower(), candidate.tier, kind.vendor, model, kind.gpu_memory_gb, link

    return told(one) == told(best)


def _joined(kinds: Iterable[InstanceType]) -> Kinds:
    """The types, each name once, as many as a job may carry."""
    found: dict[str, InstanceType] = {}
    length = 0
    for kind in kinds:
        if kind.full in found:
            continue
        length += len(kind.full) + (1 if found else 0)
        if found and length > TYPES_LENGTH:
            break
        found[kind.full] = kind
    return tuple(found.values())


# What to tell


def _warnings(best: Candidate, kinds: Kinds, wanted: Wanted) -> tuple[str, ...]:
    name, kind = best.cluster.name, best.kind
    found = []
    if best.tier is not wanted.tier:
        found.append(f"tier {best.tier} instead of {wanted.tier}: {name} {_short_of(best, kinds, wanted)}")
    if wanted.sku.nvlink and not kind.has_nvlink:
        found.append(f"no NVLink: {name} has no such type with NVLink at {best.tier}; {kind.short} is taken")
    if wanted.sku.infiniband and not kind.has_infiniband and wanted.nodes > 1:
        found.append(f"no InfiniBand: {kind.short} of {name} has none, and {wanted.nodes} nodes speak to each other")
    return tuple(found)


def _short_of(best: Candidate, kinds: Kinds, wanted: Wanted) -> str:
    """How much the cluster has at the tier that was asked for, where it has most."""
    rows = [best.cluster.tier_quota(kind.series, kind.region, wanted.tier) for kind in kinds]
    free = [quota.available for quota in rows if quota is not None and quota.available is not None]
    if not free:
        return f"publishes no quota at {wanted.tier}"
    return f"has {max(free)} of {best.needs} {wanted.unit} free at {wanted.tier}"


def _notes(best: Candidate, wanted: Wanted) -> tuple[str, ...]:
    if best.user is not None:
        return ()
    whose = f"of group policy {wanted.policy}" if wanted.policy else "of a user"
    return (f"{best.cluster.name} publishes no limit {whose} for {best.kind.series}: only the tier was checked",)


def _left(quota: Quota) -> str:
    return "no limit" if quota.available is None else f"{quota.available} left"


def _nothing(rejections: Sequence[Rejection], wanted: Wanted, scope: Sequence[str]) -> Refused | NotFound:
    """The one error when no cluster takes the job: each with its reason, or grouped when there are many."""
    filters = f" (filters: {', '.join(scope)})" if scope else ""
    if not rejections:
        return NotFound(f"there is no virtual cluster{filters}", hint="`aj quota list --full`")
    count = text.plural(len(rejections), "virtual cluster")
    head = f"no room for {wanted.sku} ({wanted.shape}, tier {wanted.tier}) in {count}{filters}:"
    return Refused("\n".join([head, *_lines(rejections)]), code="no-room", hint="`aj quota list --full`")


def _lines(rejections: Sequence[Rejection]) -> list[str]:
    ordered = sorted(rejections, key=lambda one: (one.cluster.name.casefold(), one.cluster.id))
    if len(ordered) <= GROUPED_ABOVE:
        return [f"  {one.cluster.name}: {one.reason}" for one in ordered]
    groups: dict[str, list[str]] = {}
    for one in ordered:
        groups.setdefault(one.reason, []).append(one.cluster.name)
    return [f"  {', '.join(names)}: {reason}" for reason, names in groups.items()]
