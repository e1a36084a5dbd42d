"""What virtual clusters have to offer, live: their quota, and the machines of each of their regions.

A cluster of which a part cannot be read is kept with the reason. Whether that stops a submission is decided
above, where it is known which clusters mattered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from aj.azure import clusters, hardware, instances
from aj.azure.arm import Session
from aj.azure.clusters import Cluster
from aj.azure.fan import Failure, Gathered, gather
from aj.azure.hardware import Hardware
from aj.base.noun import dataclass
from aj.model.catalogue import InstanceType
from aj.model.quota import Quota, TierQuota, VirtualCluster

Spot = tuple[str, str]  # subscription and region


@dataclass(frozen=True)
class Supply:
    """Clusters with all they have, those that cannot be read among them, and each part that gave no answer."""

    clusters: tuple[VirtualCluster, ...]
    failures: tuple[Failure, ...] = ()


def find(
    session: Session,
    subscriptions: Sequence[str],
    *,
    name: str | None = None,
    group: str | None = None,
    gpu_sizes: Mapping[str, int] | None = None,
) -> Supply:
    """Read the virtual clusters of subscriptions, those of a name or group alone when given.

    `gpu_sizes` are GB of each GPU by model, for models that the service does not tell it of. Raises as
    clusters.find.
    """
    found = clusters.find(session, subscriptions, name=name, group=group)
    spots = dict.fromkeys((one.subscription, region) for one in found.values for region in one.regions)
    machines = _Machines(session, {**hardware.MEMORY_GB, **(gpu_sizes or {})}, tuple(spots))
    return machines.supply(found)


def names(session: Session, subscriptions: Sequence[str], *, group: str | None = None) -> list[str]:
    """Return the names of all virtual clusters of subscriptions. Raises as clusters.find."""
    return [one.name for one in clusters.find(session, subscriptions, group=group).values]


class _Machines:
    """The catalogue of some regions, each asked for once, however many clusters are there."""

    def __init__(self, session: Session, sizes: Mapping[str, int], spots: Sequence[Spot]) -> None:
        self._sizes = sizes
        found = gather(
            spots, lambda spot: (spot, instances.list_all(session, *spot)), name=lambda spot: f"{spot[1]} ({spot[0]})"
        )
        self._types: dict[Spot, tuple[instances.InstanceType, ...]] = dict(found.values)
        self._failures = found.failures
        # parts that failed lie in the order of the spots that have no types
        silent = [spot for spot in spots if spot not in self._types]
        self._broken = dict(zip(silent, found.failures, strict=True))

    def supply(self, found: Gathered[Cluster]) -> Supply:
        whole = tuple(self._whole(one) for one in found.values)
        broken = tuple(_unreadable(failure) for failure in found.failures)
        return Supply((*whole, *broken), (*found.failures, *self._failures))

    def _whole(self, one: Cluster) -> VirtualCluster:
        labels = {quota.series.lower(): quota.label for quota in (*one.users, *one.tiers)}
        spots = [(one.subscription, region) for region in one.regions]
        types = [self._type(kind, labels) for spot in spots for kind in self._types.get(spot, ())]
        made = VirtualCluster(
            one.id,
            one.name,
            one.subscription,
            one.group,
            one.regions,
            tuple(TierQuota(row.region, row.word, _quota(row)) for row in one.tiers),
            tuple(_quota(row) for row in one.users),
            tuple(types),
            problem=one.reason_unusable,
        )
        failed = next((self._broken[spot] for spot in spots if spot in self._broken), None)
        return made if failed is None else replace(made, problem=f"could not be read: {failed.error.message}")

    def _type(self, kind: instances.InstanceType, labels: Mapping[str, str]) -> InstanceType:
        told = kind.hardware
        known = hardware.known(kind.description, labels.get(kind.series.lower(), ""), sizes=self._sizes)
        gpu = known if kind.gpus else Hardware()
        return InstanceType(
            kind.name,
            kind.series,
            kind.region,
            kind.gpus,
            kind.cores,
            kind.memory_gib,
            gpu.vendor,
            gpu.model,
            gpu.memory_gb,
            has_nvlink=told.has_nvlink,
            has_infiniband=told.has_infiniband,
            scratch_gib=told.scratch_gib,
        )


def _quota(row: clusters.Quota) -> Quota:
    return Quota(row.series, row.limit, row.used, row.label)


def _unreadable(failure: Failure) -> VirtualCluster:
    """A row that could not be read: all that is known of it is its id, if that."""
    parts = failure.part.strip("/").split("/")
    names = dict(zip((part.lower() for part in parts[::2]), parts[1::2]))
    return VirtualCluster(
        failure.part,
        parts[-1],
        names.get("subscriptions", ""),
        names.get("resourcegroups", ""),
        problem=f"could not be read: {failure.error.message}",
    )
