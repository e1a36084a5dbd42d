"""Machines that a job can ask for: one row a type and region, with the SKU that means it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aj.engine import clusters
from aj.engine.visit import Visit
from aj.model import catalogue
from aj.model.catalogue import InstanceType
from aj.model.quota import VirtualCluster, same
from aj.wire.azure import SkuList, SkuRow


def listing(visit: Visit, *, every: bool) -> SkuList:
    """List types of which some cluster has quota, or with `every` all there are. Raises as clusters.kept."""
    held = clusters.kept(visit)
    found = rows(held.value.clusters)
    shown = tuple(row for row in found if every or row.clusters)
    told = visit.told(held, failures=held.value.failures, warnings=held.value.notices)
    return SkuList(shown, told, left_out=len(found) - len(shown))


def rows(found: Sequence[VirtualCluster]) -> tuple[SkuRow, ...]:
    """Return a row for each type and region, those with the most GPUs first."""
    types = _once(kind for cluster in found for kind in cluster.types)
    made = [_row(kind, types, _with_quota(kind, found)) for kind in types]
    return tuple(sorted(made, key=lambda row: (row.accelerator or "~", -row.gpus, row.cores, row.name, row.region)))


def _once(types: Iterable[InstanceType]) -> list[InstanceType]:
    """Each type of a region once, however many clusters are there."""
    found: dict[tuple[str, str], InstanceType] = {}
    for kind in types:
        found.setdefault((kind.name.lower(), kind.region.lower()), kind)
    return list(found.values())


def _with_quota(kind: InstanceType, found: Sequence[VirtualCluster]) -> tuple[str, ...]:
    """The clusters that have any quota of a type where it is."""
    return tuple(
        cluster.name
        for cluster in found
        if any(
            same(row.quota.series, kind.series) and same(row.region, kind.region) and row.quota.limit != 0
            for row in cluster.tiers
        )
    )


def _row(kind: InstanceType, types: Sequence[InstanceType], having: tuple[str, ...]) -> SkuRow:
    return SkuRow(
        name=kind.name,
        sku=catalogue.shorthand(kind, types),
        series=kind.series,
        region=kind.region,
        vendor=kind.vendor,
        accelerator=kind.accelerator,
        gpus=kind.gpus,
        gpu_memory_gb=kind.gpu_memory_gb,
        cores=kind.cores,
        memory_gib=kind.memory_gib,
        scratch_gib=kind.scratch_gib,
        nvlink=kind.has_nvlink,
        infiniband=kind.has_infiniband,
        clusters=having,
    )
