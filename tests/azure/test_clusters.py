"""Virtual clusters and their quota; instance types; what a line of text says of a machine."""

from __future__ import annotations

import copy

import pytest

from aj.azure import clusters, hardware, images, instances, quota
from aj.azure.clusters import Cluster, Tier, Unit
from aj.azure.hardware import Hardware
from aj.azure.images import Image
from aj.base.errors import AjError, RemoteError
from aj.net.document import Document
from tests.servers.azure import ONE, TWO, SmallAzure
from tests.servers.loopback import problem

VC = f"/subscriptions/{ONE}/resourceGroups/rg-blue/providers/Microsoft.MachineLearningServices/virtualclusters/vc-blue"
H100 = {"id": "H100v5", "name": "H100v5 NVIDIA H100 80GB GPUs"}
ROW: dict = {
    "id": VC,
    "type": "microsoft.machinelearningservices/virtualclusters",
    "name": "vc-blue",
    "location": "northeurope",
    "resourceGroup": "rg-blue",
    "subscriptionId": ONE,
    "properties": {
        "managed": {
            "locations": ["northeurope", "westus3"],
            "defaultGroupPolicyOverallQuotas": {"limits": [{**H100, "slaTier": None, "limit": 48, "used": 16}]},
            "quotas": {
                "northeurope": {
                    "limits": [
                        {**H100, "slaTier": "standard", "limit": 32, "used": 0},
                        {**H100, "slaTier": "PREMIUM", "limit": 16, "used": 16},
                        {**H100, "slaTier": "Spot", "limit": 5, "used": 1},
                    ]
                },
                "westus3": {
                    "limits": [{"id": "Dcpu", "name": "Dcpu vCPUs", "slaTier": "Basic", "limit": 256, "used": None}]
                },
            },
        }
    },
}


def read(row: dict) -> Cluster:
    return clusters.read(Document(row, "a row"))


def changed(**managed: object) -> dict:
    row = copy.deepcopy(ROW)
    row["properties"]["managed"].update(managed)
    return row


@pytest.mark.rule("A-034", "A-060", "A-061")
def test_a_row_is_read_as_it_is_published(azure: SmallAzure) -> None:
    azure.arm.rows.append(ROW)
    found = clusters.find(azure.session, [ONE])
    assert found.failures == ()
    (cluster,) = found.values
    assert (cluster.id, cluster.name, cluster.subscription, cluster.group) == (VC, "vc-blue", ONE, "rg-blue")
    assert cluster.regions == ("northeurope", "westus3")
    assert [(one.word, one.limit, one.used, one.available) for one in cluster.tiers] == [
        ("standard", 32, 0, 32),
        ("PREMIUM", 16, 16, 0),
        ("Spot", 5, 1, 4),
        ("Basic", 256, None, 256),
    ]
    user = cluster.user_quota("h100V5")
    assert user is not None
    assert (user.limit, user.used, user.available) == (48, 16, 32)


@pytest.mark.rule("A-060")
def test_name_and_group_filter(azure: SmallAzure) -> None:
    azure.arm.rows.append(ROW)
    assert len(clusters.find(azure.session, [ONE], name="VC-Blue", group="RG-BLUE").values) == 1
    assert clusters.find(azure.session, [ONE], name="other").values == ()
    assert clusters.find(azure.session, [ONE], group="other").values == ()
    assert clusters.find(azure.session, [TWO]).values == ()


@pytest.mark.rule("A-061")
@pytest.mark.parametrize(
    ("limit", "used", "available"),
    [(48, 16, 32), (48, None, 48), (16, 20, 0), (0, 0, 0), (None, 5, None), (None, None, None)],
)
def test_what_is_left(limit: int | None, used: int | None, available: int | None) -> None:
    found = clusters.UserQuota("s", "s GPUs", limit, used)
    assert found.available == available
    assert found.has_room(1) is (available is None or available >= 1)
    assert found.has_room(10**9) is (available is None)


@pytest.mark.rule("A-061")
@pytest.mark.parametrize(
    ("label", "unit"),
    [("H100v5 NVIDIA H100 80GB GPUs", Unit.GPUS), ("Dcpu vCPUs", Unit.VCPUS), ("Ev3 CPUs", Unit.VCPUS)],
)
def test_units_do_not_mix(label: str, unit: Unit) -> None:
    assert clusters.UserQuota("s", label, 1, 1).unit is unit


@pytest.mark.rule("A-062")
def test_tiers_stay_apart_by_region() -> None:
    cluster = read(ROW)
    here = cluster.tier_quotas("h100v5", "NorthEurope")
    assert [(one.tier, one.available) for one in here] == [(Tier.PREMIUM, 0), (Tier.STANDARD, 32)]
    assert cluster.tier_quotas("H100v5", "westus3") == ()
    assert [one.tier for one in cluster.tier_quotas("Dcpu", "westus3")] == [Tier.BASIC]


@pytest.mark.rule("A-062")
def test_regions_are_a_union_in_order() -> None:
    assert read(changed(locations=["WestUS3", "uksouth"])).regions == ("WestUS3", "uksouth", "northeurope")
    assert read(changed(locations=None)).regions == ("northeurope", "westus3")
    bare = {**changed(locations=[], quotas={}), "location": None}
    assert read(bare).regions == ()
    assert read(bare).reason_unusable == "publishes no region"
    assert read(ROW).reason_unusable is None


@pytest.mark.rule("A-063")
def test_an_unknown_tier_is_kept_and_used_by_no_job() -> None:
    cluster = read(ROW)
    assert [one.word for one in cluster.tiers if one.tier is None] == ["Spot"]
    assert all(one.word != "Spot" for one in cluster.tier_quotas("H100v5", "northeurope"))


@pytest.mark.rule("A-064")
def test_no_row_of_a_user_is_no_limit_and_a_row_of_zero_is_one() -> None:
    cluster = read(ROW)
    assert cluster.user_quota("Dcpu") is None
    zero = {"limits": [{"id": "Dcpu", "name": "Dcpu vCPUs", "slaTier": None, "limit": 0, "used": 0}]}
    found = read(changed(defaultGroupPolicyOverallQuotas=zero)).user_quota("Dcpu")
    assert found is not None
    assert found.available == 0


def test_a_row_that_cannot_be_read_stands_beside_the_others(azure: SmallAzure) -> None:
    bad = {**copy.deepcopy(ROW), "id": VC + "-bad"}
    bad["properties"]["managed"]["quotas"]["northeurope"]["limits"][0]["limit"] = "many"
    azure.arm.rows += [ROW, bad]
    found = clusters.find(azure.session, [ONE])
    assert [one.name for one in found.values] == ["vc-blue"]
    (failure,) = found.failures
    assert failure.part == VC + "-bad"
    assert (
        "`data.0.properties.managed.quotas.northeurope.limits.0.limit` is not a whole number" in failure.error.message
    )


# Instance types


def type_row(name: str, **changes: object) -> dict:
    row = {
        "name": name,
        "instanceTypeSeriesId": "H100v5",
        "numberOfGPUs": 8,
        "numberOfCores": 96,
        "memoryGiB": 1800,
        "description": "8 x NVIDIA H100 80GB, NVLink, IB, Scratch Storage (GiB): 3500",
    }
    return {**row, **changes}


@pytest.mark.rule("A-035", "A-065")
def test_the_catalogue_of_a_region(azure: SmallAzure) -> None:
    azure.arm.series[ONE, "northeurope"] = [
        type_row("Singularity.H8_80"),
        type_row("Singularity.H8_80-n4"),
        type_row("Singularity.D8", numberOfGPUs=0, numberOfCores=8, memoryGiB=32.5, description="8 vCPUs"),
        type_row("Singularity.X-n", numberOfGPUs=None, description=None),
    ]
    found = instances.list_all(azure.session, ONE, "northeurope")
    assert [one.short for one in found] == ["H8_80", "D8", "X-n"]
    first = found[0]
    assert (first.series, first.region, first.gpus, first.cores, first.memory_gib) == (
        "H100v5",
        "northeurope",
        8,
        96,
        1800.0,
    )
    assert first.hardware == Hardware("NVIDIA", "H100", 80, True, True, 3500)
    assert (found[1].memory_gib, found[1].hardware) == (32.5, Hardware())
    assert found[2].gpus == 0
    assert instances.list_all(azure.session, ONE, "westus3") == ()


@pytest.mark.rule("A-066")
@pytest.mark.parametrize(
    ("words", "vendor", "model", "memory"),
    [
        ("8 x NVIDIA H100 80GB, NVLink, IB", "NVIDIA", "H100", 80),
        ("H100v5 NVIDIA H100 80GB GPUs", "NVIDIA", "H100", 80),
        ("4 x Nvidia Z9000X 1024 GB, IB", "NVIDIA", "Z9000X", 1024),
        ("1 x AMD MI300X", "AMD", "MI300X", None),
        ("amd Instella GPUs", "AMD", "Instella", None),
        ("NVIDIA NDv5 H200 GPUs", "NVIDIA", "H200", None),
        ("NVIDIA NC A100 40GB, 4 GPUs", "NVIDIA", "A100", 40),
        ("NVIDIA A100-80GB", "NVIDIA", "A100", 80),
        ("NVIDIA T4, memory 16GB", "NVIDIA", "T4", None),
        ("NVIDIA", "NVIDIA", None, None),
        ("NVIDIA 80GB", "NVIDIA", None, 80),
        ("Dcpu vCPUs", None, None, None),
        ("", None, None, None),
    ],
)
def test_the_model_is_whatever_word_follows_the_vendor(
    words: str, vendor: str | None, model: str | None, memory: int | None
) -> None:
    found = hardware.read(words)
    assert (found.vendor, found.model, found.memory_gb) == (vendor, model, memory)


@pytest.mark.rule("A-065")
@pytest.mark.parametrize(
    ("words", "nvlink", "infiniband", "scratch"),
    [
        ("NVIDIA H100 80GB, NVLink, IB, Scratch Storage (GiB): 3500", True, True, 3500),
        ("NVIDIA H100 80GB, nvlink3", True, False, None),
        ("NVIDIA H100 80 GiB", False, False, None),
        ("NVIDIA H100, InfiniBand", False, True, None),
        ("NVIDIA LIBRA, FIB", False, False, None),
    ],
)
def test_links_and_scratch_space(words: str, nvlink: bool, infiniband: bool, scratch: int | None) -> None:
    found = hardware.read(words)
    assert (found.has_nvlink, found.has_infiniband, found.scratch_gib) == (nvlink, infiniband, scratch)


@pytest.mark.rule("A-066")
def test_the_first_text_wins_and_the_second_fills_in() -> None:
    assert hardware.known("AMD MI300X", "NVIDIA H100 80GB").model == "MI300X"
    assert hardware.known("NVIDIA A100", "A100v4 NVIDIA A100 80GB GPUs").memory_gb == 80
    assert hardware.known("NVIDIA A100 40GB", "NVIDIA A100 80GB").memory_gb == 40
    assert hardware.known("NVIDIA Z1", "NVIDIA A100 80GB").memory_gb is None


@pytest.mark.rule("A-067")
def test_memory_is_filled_in_only_where_one_size_exists() -> None:
    assert hardware.known("NVIDIA T4").memory_gb == 16
    assert hardware.known("NVIDIA t4 99GB").memory_gb == 99
    assert hardware.known("NVIDIA A100").memory_gb is None
    assert hardware.known("NVIDIA V100").memory_gb is None
    assert hardware.known("NVIDIA H100").memory_gb is None
    assert hardware.known("NVIDIA Z1", sizes={**hardware.MEMORY_GB, "z1": 48}).memory_gb == 48
    assert not {"A100", "V100", "H100"} & set(hardware.MEMORY_GB)


# Usages and images


@pytest.mark.rule("A-044")
def test_usages_of_a_region(azure: SmallAzure) -> None:
    def row(name: str, used: int, limit: int) -> dict:
        return {
            "name": {"value": name, "localizedValue": name.upper()},
            "currentValue": used,
            "limit": limit,
            "unit": "Count",
        }

    azure.arm.usages[ONE, "northeurope"] = [row("nd", 10, 100), row("nc", 5, 4), row("all", 1, -1)]
    found = quota.usages(azure.session, ONE, "northeurope")
    assert [(one.name, one.label, one.used, one.limit, one.available) for one in found] == [
        ("nd", "ND", 10, 100, 90),
        ("nc", "NC", 5, 4, 0),
        ("all", "ALL", 1, None, None),
    ]
    assert {(one.unit, one.region) for one in found} == {("Count", "northeurope")}
    azure.arm_server.on("/usages", problem(403, "AuthorizationFailed", "no"))
    with pytest.raises(AjError, match=f"could not read the usages of region uksouth in subscription {ONE}"):
        quota.usages(azure.session, ONE, "uksouth")


@pytest.mark.rule("A-036", "A-009")
def test_images_are_the_union_over_subscriptions(azure: SmallAzure) -> None:
    azure.arm.images[ONE] = [{"names": ["latest", "torch:cuda12"]}, {"names": ["plain"]}, {"names": []}]
    azure.arm.images[TWO] = [{"names": ["torch:cuda12"]}, {"names": ["base", "zed"]}]
    found = images.list_all(azure.session, [ONE, TWO])
    assert found.failures == ()
    assert [image.shown for image in found.values] == ["plain", "torch:cuda12", "zed"]
    assert found.values[1] == Image(("latest", "torch:cuda12"))


@pytest.mark.rule("A-036", "A-009")
def test_a_subscription_that_gives_no_answer_is_named(azure: SmallAzure) -> None:
    azure.arm.images[ONE] = [{"names": ["plain"]}]
    azure.arm_server.on(f"{TWO}/providers/Microsoft.Singularity", problem(404, "Gone", "no such"))
    found = images.list_all(azure.session, [TWO, ONE])
    assert [image.shown for image in found.values] == ["plain"]
    assert [failure.part for failure in found.failures] == [TWO]
    with pytest.raises(AjError, match=TWO):
        found.strictly("list images")


def test_a_row_of_another_kind_is_an_error(azure: SmallAzure) -> None:
    azure.arm.series[ONE, "x"] = [type_row("Singularity.A", numberOfGPUs="8")]
    with pytest.raises(RemoteError, match=r"`value\.0\.numberOfGPUs` is not a whole number"):
        instances.list_all(azure.session, ONE, "x")
