"""Virtual clusters with their machines: each region asked once, hardware by catalogue first, failures kept."""

from __future__ import annotations

import copy

import pytest

from aj.azure import supply
from aj.base.errors import RemoteError
from tests.azure.test_clusters import ROW
from tests.servers.azure import ONE, TWO, SmallAzure
from tests.servers.loopback import problem


def kind(name: str, description: str, *, series: str = "H100v5", gpus: int = 8) -> dict:
    return {
        "name": f"Singularity.{name}",
        "instanceTypeSeriesId": series,
        "numberOfGPUs": gpus,
        "numberOfCores": 96,
        "memoryGiB": 1800,
        "description": description,
    }


def stock(azure: SmallAzure) -> None:
    azure.arm.rows.append(ROW)
    azure.arm.series[ONE, "northeurope"] = [
        kind("H8_80", "8 x NVIDIA H100 80GB, NVLink, IB, Scratch Storage (GiB): 3500"),
        kind("H8_plain", "8 GPUs"),
        kind("H8_other", "8 x NVIDIA H100 96GB"),
        kind("D8", "8 cores", series="Dcpu", gpus=0),
    ]
    azure.arm.series[ONE, "westus3"] = [kind("X8", "8 x NVIDIA ND Q7 with LIBIB words", series="Q7")]


@pytest.mark.rule("A-034", "A-035", "A-065", "A-066", "A-067")
def test_machines_are_read_for_each_region(azure: SmallAzure) -> None:
    stock(azure)
    found = supply.find(azure.session, [ONE], gpu_sizes={"q7": 77})
    assert found.failures == ()
    (cluster,) = found.clusters
    told = {one.short: (one.vendor, one.accelerator, one.gpu_memory_gb, one.has_nvlink) for one in cluster.types}
    assert told == {
        "H8_80": ("NVIDIA", "H100", 80, True),
        "H8_plain": ("NVIDIA", "H100", 80, False),  # its series' line of quota tells it
        "H8_other": ("NVIDIA", "H100", 96, False),  # the catalogue wins
        "D8": (None, None, None, False),
        "X8": ("NVIDIA", "Q7", 77, False),
    }
    first = cluster.types[0]
    assert (first.region, first.has_infiniband, first.scratch_gib) == ("northeurope", True, 3500)
    assert not cluster.types[-1].has_infiniband
    assert [(row.region, row.word, row.quota.available) for row in cluster.tiers][:2] == [
        ("northeurope", "standard", 32),
        ("northeurope", "PREMIUM", 0),
    ]
    assert cluster.user_quota("h100v5") is not None


@pytest.mark.rule("A-035")
def test_a_region_of_several_clusters_is_asked_once(azure: SmallAzure) -> None:
    stock(azure)
    azure.arm.rows.append({**copy.deepcopy(ROW), "id": ROW["id"] + "2", "name": "vc-blue2"})
    found = supply.find(azure.session, [ONE])
    assert [one.name for one in found.clusters] == ["vc-blue", "vc-blue2"]
    first_pages = [
        got for got in azure.arm_server.got if "instanceTypeSeries" in got.path and got.value("$skip") is None
    ]
    assert len(first_pages) == 2


@pytest.mark.rule("A-009", "A-046", "A-085")
def test_a_region_that_gives_no_answer_makes_its_clusters_unreadable(azure: SmallAzure) -> None:
    stock(azure)
    other = copy.deepcopy(ROW) | {"id": ROW["id"].replace("vc-blue", "vc-south"), "name": "vc-south"}
    other["properties"]["managed"].update(locations=[], quotas={})
    other["location"] = "uksouth"
    azure.arm.rows.append(other)
    azure.arm_server.on("locations/westus3", problem(403, "AuthorizationFailed", "no"))
    found = supply.find(azure.session, [ONE])
    blue, south = found.clusters
    assert blue.problem is not None
    assert blue.problem.startswith("could not be read: could not list the instance types of region westus3: ")
    assert south.problem is None
    assert [failure.part for failure in found.failures] == [f"westus3 ({ONE})"]


@pytest.mark.rule("A-009", "A-085")
def test_a_row_that_cannot_be_read_is_kept_by_its_id(azure: SmallAzure) -> None:
    broken = copy.deepcopy(ROW) | {"name": None}
    azure.arm.rows.append(broken)
    found = supply.find(azure.session, [ONE])
    (one,) = found.clusters
    assert (one.name, one.subscription, one.group) == ("vc-blue", ONE, "rg-blue")
    assert one.problem is not None
    assert one.problem.endswith("`data.0.name` is missing")
    assert len(found.failures) == 1


@pytest.mark.rule("A-060")
def test_filters_and_names(azure: SmallAzure) -> None:
    stock(azure)
    assert supply.find(azure.session, [ONE], name="VC-BLUE", group="RG-blue").clusters[0].name == "vc-blue"
    assert supply.find(azure.session, [ONE], group="other").clusters == ()
    assert supply.find(azure.session, [TWO]).clusters == ()
    assert supply.names(azure.session, [ONE]) == ["vc-blue"]


@pytest.mark.rule("A-045")
def test_a_graph_that_refuses_is_an_error(azure: SmallAzure) -> None:
    azure.arm_server.on("resources", problem(400, "BadRequest", "no"))
    with pytest.raises(RemoteError):
        supply.find(azure.session, [ONE])
