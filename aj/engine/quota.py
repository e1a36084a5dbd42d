"""Quota: what is left of virtual clusters, of the machine families of subscriptions, and of computes."""

from __future__ import annotations

from collections.abc import Iterator

from aj.azure import clusters as service
from aj.azure import computes, hardware, workspaces
from aj.azure import quota as usages
from aj.azure.arm import Workspace
from aj.azure.computes import Compute
from aj.azure.fan import Gathered, gather
from aj.azure.hardware import Hardware
from aj.azure.quota import Usage
from aj.base.errors import AjError, AuthError
from aj.base.noun import dataclass
from aj.engine import clusters
from aj.engine.kept import Held
from aj.engine.visit import Visit, parts, refuse_silence
from aj.model.quota import Quota, Tier, TierQuota, VirtualCluster, same
from aj.wire.azure import FailedPart, InventoryQuery, QuotaList, QuotaRow

SING, AML = "sing", "aml"
IDLE = "idle"  # nodes that are there and have nothing to do


@dataclass(frozen=True)
class Place:
    """The usages of a region in a subscription, or the computes of a workspace."""

    subscription: str
    region: str
    group: str | None = None
    name: str | None = None
    usages: tuple[Usage, ...] = ()
    computes: tuple[Compute, ...] = ()


@dataclass(frozen=True)
class Places:
    """What is kept of Machine Learning itself."""

    places: tuple[Place, ...] = ()
    failures: tuple[FailedPart, ...] = ()
    notices: tuple[str, ...] = ()


def listing(visit: Visit, query: InventoryQuery) -> QuotaList:
    """List quota of the services of a query (`sing`, `aml`), without what is 0 and what no job can use.

    Raises AuthError, and RemoteError when no part could be read at all.
    """
    found: list[QuotaRow] = []
    held: list[Held[clusters.Clusters] | Held[Places]] = []
    lost: list[tuple[str, AjError]] = []
    for name in query.services:
        try:
            answer: Held[clusters.Clusters] | Held[Places] = (
                clusters.kept(visit) if name == SING else visit.kept(Places, AML, lambda: _read(visit))
            )
        except AuthError:
            raise
        except AjError as error:
            lost.append((name, error))
            continue
        held.append(answer)
        found += _rows(answer.value)
    if lost and not held:
        raise lost[0][1]
    shown = tuple(row for row in found if _is_shown(row, query))
    failures = [part for one in held for part in one.value.failures]
    failures += [FailedPart(name, error.message, error.code) for name, error in lost]
    notices = [notice for one in held for notice in one.value.notices]
    told = visit.told(*held, failures=failures, warnings=notices)
    return QuotaList(shown, told, left_out=len(found) - len(shown))


def _is_shown(row: QuotaRow, query: InventoryQuery) -> bool:
    if query.full:
        return True
    if row.kind == "tier" and row.series is not None and not _is_asked_for(row.tier):
        return False
    return query.every or (row.series is not None and (row.limit != 0 or bool(row.used)))


def _is_asked_for(tier: str | None) -> bool:
    """Tell whether a job can ask for a tier."""
    return any(same(known.value, tier or "") for known in Tier)


def _rows(found: clusters.Clusters | Places) -> Iterator[QuotaRow]:
    if isinstance(found, clusters.Clusters):
        for cluster in found.clusters:
            yield from cluster_rows(cluster)
        return
    for place in found.places:
        yield from (_usage(place, usage) for usage in place.usages)
        yield from (_compute(place, compute) for compute in place.computes)


# Virtual clusters


def cluster_rows(cluster: VirtualCluster) -> Iterator[QuotaRow]:
    """Yield a row for each region, series and tier, then each series of which only the user's share is published."""
    for tier in cluster.tiers:
        yield _tier(cluster, tier)
    tiered = {row.quota.series.lower() for row in cluster.tiers}
    for quota in cluster.users:
        if quota.series.lower() not in tiered:
            yield _user(cluster, quota)
    if not cluster.tiers and not cluster.users:
        yield QuotaRow("tier", SING, cluster.name, cluster.subscription, cluster.group, problem=_why(cluster))


def _why(cluster: VirtualCluster) -> str:
    return cluster.problem or "publishes no quota"


def _tier(cluster: VirtualCluster, row: TierQuota) -> QuotaRow:
    quota, user = row.quota, cluster.user_quota(row.quota.series)
    known = None if row.tier else f"no job asks for the tier {row.word or '(none)'}"
    return _of_cluster(
        "tier",
        cluster,
        quota,
        region=row.region,
        tier=row.tier.value if row.tier else row.word,
        user=user,
        problem=cluster.problem or known,
    )


def _user(cluster: VirtualCluster, quota: Quota) -> QuotaRow:
    return _of_cluster("user", cluster, quota, region=None, tier=None, user=quota, problem=cluster.problem)


def _of_cluster(
    kind: str,
    cluster: VirtualCluster,
    quota: Quota,
    *,
    region: str | None,
    tier: str | None,
    user: Quota | None,
    problem: str | None,
) -> QuotaRow:
    gpu = _gpu(cluster, quota, region)
    return QuotaRow(
        kind,
        SING,
        cluster.name,
        cluster.subscription,
        cluster.group,
        region,
        quota.series,
        quota.label or None,
        gpu.vendor,
        gpu.model,
        gpu.memory_gb,
        tier,
        service.Quota(quota.series, quota.label, None, None).unit.value,
        quota.limit,
        quota.used,
        quota.available,
        has_user_limit=user is not None and user.limit is not None,
        user_limit=user.limit if user else None,
        user_used=user.used if user else None,
        user_free=user.available if user else None,
        problem=problem,
    )


def _gpu(cluster: VirtualCluster, quota: Quota, region: str | None) -> Hardware:
    """The accelerator of a series: that of its machines, else what the text about it tells."""
    for kind in cluster.types:
        if kind.is_gpu and same(kind.series, quota.series) and (region is None or same(kind.region, region)):
            return Hardware(kind.vendor, kind.accelerator, kind.gpu_memory_gb)
    return hardware.known(quota.label)


# Machine Learning itself


def _read(visit: Visit) -> Places:
    """Read the computes of every workspace, and the usages of every region with one."""
    where, subscriptions = visit.places()
    listed = workspaces.find(visit.session, subscriptions)
    spots = dict.fromkeys((one.at.subscription, one.location) for one in listed)
    used = gather(
        spots,
        lambda spot: Place(*spot, usages=usages.usages(visit.session, *spot)),
        name=lambda spot: f"{spot[1]} ({spot[0]})",
    )
    owned = gather(listed, lambda one: _computes(visit, one.at, one.location), name=lambda one: f"workspace {one.at}")
    both = Gathered((*used.values, *owned.values), (*used.failures, *owned.failures))
    refuse_silence(both, "read quota")
    return Places(both.values, parts(both.failures), tuple(where.notices))


def _computes(visit: Visit, at: Workspace, region: str) -> Place:
    found = computes.list_all(visit.session, at)
    return Place(at.subscription, region, at.group, at.name, computes=found)


def _usage(place: Place, usage: Usage) -> QuotaRow:
    return QuotaRow(
        "usage",
        AML,
        place.subscription,
        place.subscription,
        region=place.region,
        series=usage.name,
        label=usage.label,
        unit=usage.unit,
        limit=usage.limit,
        used=usage.used,
        free=usage.available,
    )


def _compute(place: Place, compute: Compute) -> QuotaRow:
    used = sum(count for state, count in compute.nodes.items() if state != IDLE)
    return QuotaRow(
        "compute",
        AML,
        f"{place.name}/{compute.name}",
        place.subscription,
        place.group,
        compute.location or place.region,
        compute.vm_size,
        compute.kind,
        tier=compute.vm_priority,
        unit="nodes",
        limit=compute.max_nodes,
        used=used if compute.nodes else None,
        free=None if compute.max_nodes is None else max(0, compute.max_nodes - used),
    )
