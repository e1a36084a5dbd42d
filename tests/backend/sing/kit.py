"""Virtual clusters of the tests' own, written in few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aj.backend.sing import match
from aj.backend.sing.match import Offer, Rejection, Wanted
from aj.model import sku
from aj.model.catalogue import InstanceType
from aj.model.quota import Quota, Tier, TierQuota, VirtualCluster

SUB = "aaaaaaaa-0000-0000-0000-000000000001"
NORTH, WEST, SOUTH = "northeurope", "westus3", "uksouth"
Free = Mapping[tuple[str, str, Tier], int | None]
P, S, B = Tier.PREMIUM, Tier.STANDARD, Tier.BASIC


def gpu(
    name: str,
    gpus: int,
    *,
    series: str = "H100v5",
    region: str = NORTH,
    model: str | None = "H100",
    memory: int | None = 80,
    nvlink: bool = False,
    ib: bool = False,
    vendor: str | None = "NVIDIA",
    cores: int = 0,
) -> InstanceType:
    """A machine with GPUs."""
    return InstanceType(
        f"Singularity.{name}", series, region, gpus, cores or gpus * 12, 1800, vendor, model, memory, nvlink, ib
    )


def cpu(name: str, cores: int, memory: float, *, series: str = "Dcpu", region: str = NORTH) -> InstanceType:
    """A machine without any."""
    return InstanceType(f"Singularity.{name}", series, region, 0, cores, memory)


def cluster(
    name: str,
    types: Sequence[InstanceType],
    free: Free,
    user: Mapping[str, int | None] | None = None,
    *,
    regions: Sequence[str] = (NORTH,),
    sub: str = SUB,
    group: str | None = None,
    policies: Mapping[str, Mapping[str, int | None]] | None = None,
) -> VirtualCluster:
    """A cluster; `free` is what is left by series, region and tier, `user` by series. None is no limit."""
    group = group or f"rg-{name.removeprefix('vc-')}"
    return VirtualCluster(
        f"/subscriptions/{sub}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/virtualclusters/{name}",
        name,
        sub,
        group,
        tuple(regions),
        tuple(TierQuota(region, tier.value, Quota(series, left)) for (series, region, tier), left in free.items()),
        tuple(Quota(series, left) for series, left in (user or {}).items()),
        tuple(types),
        {
            policy: tuple(Quota(series, left) for series, left in rows.items())
            for policy, rows in (policies or {}).items()
        },
    )


def wanted(text: str, tier: Tier = P, policy: str | None = None) -> Wanted:
    """What a SKU with both numbers asks for."""
    found = sku.parse(text)
    assert found.count is not None
    return Wanted(found, found.nodes or 1, found.count, tier, policy)


def offer(one: VirtualCluster, text: str, tier: Tier = P) -> Offer:
    """The offer of one cluster that has one."""
    found = match.look(one, wanted(text, tier))
    assert isinstance(found, Offer), found
    return found


def reason(one: VirtualCluster, text: str, tier: Tier = P, policy: str | None = None) -> str:
    """Why a cluster takes no such job."""
    found = match.look(one, wanted(text, tier, policy))
    assert isinstance(found, Rejection), found
    return found.reason


def names(found: Offer) -> list[str]:
    """The types of an offer."""
    return [kind.short for kind in found.types]
