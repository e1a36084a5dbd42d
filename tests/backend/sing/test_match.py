"""Which cluster a job goes to: the worked table, each reason, each preference, each tie."""

from __future__ import annotations

import dataclasses

import pytest

from aj.backend.sing import match
from aj.base.errors import NotFound, Refused, UserError
from aj.model.catalogue import InstanceType
from aj.model.quota import Quota, Tier, TierQuota, VirtualCluster
from tests.backend.sing.kit import NORTH, SOUTH, WEST, B, P, S, cluster, cpu, gpu, names, offer, reason, wanted

H = "H100v5"


def both(premium: int | None, standard: int | None, region: str = NORTH, series: str = H) -> dict:
    """What is left at the two upper tiers."""
    return {(series, region, P): premium, (series, region, S): standard}


BLUE = cluster(
    "vc-blue", [gpu("H4_a", 4), gpu("H4_b", 4, nvlink=True), gpu("H8", 8, nvlink=True)], both(0, 32), {H: 32}
)
RED = cluster("vc-red", [gpu("H4_a", 4, region=WEST)], both(16, 0, WEST), {H: 16}, regions=[WEST])
GREEN = cluster(
    "vc-green",
    [gpu("A4", 4, series="A100v4", model="A100", region=SOUTH, nvlink=True)],
    both(64, 64, SOUTH, "A100v4"),
    {"A100v4": 64},
    regions=[SOUTH],
)
GREY = cluster(
    "vc-grey",
    [gpu("H4_b", 4, nvlink=True), gpu("H4_b", 4, nvlink=True, region=WEST)],
    {**both(4, 4), **both(4, 4, WEST)},
    {H: 99},
    regions=[NORTH, WEST],
)
WORKED = [BLUE, RED, GREEN, GREY]
SKU = "2x80G4-H100-NvLink"


# The worked example


@pytest.mark.rule("A-087", "A-079", "A-080")
def test_the_worked_example_chooses_by_tier_before_nvlink() -> None:
    found = match.choose(WORKED, wanted(SKU))
    assert (found.cluster.name, names(found), found.best.tier, found.best.remaining) == ("vc-red", ["H4_a"], P, 8)
    assert found.warnings == ("no NVLink: vc-red has no such type with NVLink at Premium; H4_a is taken",)


@pytest.mark.rule("A-087", "A-077", "A-078", "A-082")
def test_the_worked_example_cluster_by_cluster() -> None:
    blue = offer(BLUE, SKU)
    assert (names(blue), blue.best.tier, blue.best.remaining) == (["H4_b"], S, 24)
    assert blue.warnings == ("tier Standard instead of Premium: vc-blue has 0 of 8 GPUs free at Premium",)
    assert reason(GREEN, SKU) == "has no H100 (has: A100)"
    assert reason(GREY, SKU) == (
        "no tier has 8 GPUs free in one region: Premium 4 (northeurope), Standard 4 (northeurope), "
        "Premium 4 (westus3), Standard 4 (westus3)"
    )


@pytest.mark.rule("A-087")
def test_the_worked_example_at_standard() -> None:
    found = match.choose(WORKED, wanted(SKU, S))
    assert (found.cluster.name, names(found), found.best.tier, found.warnings) == ("vc-blue", ["H4_b"], S, ())


@pytest.mark.rule("A-087", "A-081", "A-080")
def test_the_worked_example_without_nvlink_sends_both_types() -> None:
    assert names(offer(BLUE, "2x80G4-H100")) == ["H4_a", "H4_b"]


@pytest.mark.rule("A-084")
def test_the_worked_example_without_a_winner_tells_each_reason() -> None:
    with pytest.raises(Refused) as error:
        match.choose(WORKED, wanted("8x80G4-H100-NvLink", B), scope=["subscription s"])
    assert error.value.message.splitlines() == [
        "no room for 8x80G4-H100-NvLink (8 nodes × 4 GPUs, tier Basic) in 4 virtual clusters "
        "(filters: subscription s):",
        "  vc-blue: no tier has 32 GPUs free in one region: no quota is published",
        "  vc-green: has no H100 (has: A100)",
        "  vc-grey: no tier has 32 GPUs free in one region: no quota is published",
        "  vc-red: user quota: needs 32 GPUs, 16 left of 16",
    ]
    assert (error.value.hint, error.value.exit_code) == ("`aj quota list --full`", 5)


# Reasons


@pytest.mark.rule("A-085", "A-062", "A-075")
def test_a_cluster_without_regions_or_types() -> None:
    assert reason(cluster("vc", [], {}, regions=[]), "1xG1") == "publishes no region"
    no_types = cluster("vc", [], both(8, 8), regions=[NORTH, WEST])
    assert reason(no_types, "1xG1") == "no instance types in northeurope, westus3"
    elsewhere = cluster("vc", [gpu("H1", 1, region=SOUTH)], both(8, 8))
    assert reason(elsewhere, "1xG1") == "no instance types in northeurope"
    not_its_own = cluster("vc", [gpu("A1", 1, series="A100v4")], both(8, 8))
    assert reason(not_its_own, "1xG1") == "no instance types in northeurope"


@pytest.mark.rule("A-085", "A-046")
def test_a_cluster_that_could_not_be_read() -> None:
    broken = dataclasses.replace(RED, problem="could not be read: throttled")
    assert reason(broken, SKU) == "could not be read: throttled"


@pytest.mark.rule("A-085")
def test_the_other_family() -> None:
    assert reason(BLUE, "1xC1") == "has no CPU series"
    only_cpu = cluster("vc", [cpu("D8", 8, 32)], both(64, 0, series="Dcpu"))
    assert reason(only_cpu, "1xG1") == "has no GPU series"


@pytest.mark.rule("A-085", "A-066")
def test_another_accelerator_is_told_with_those_there_are() -> None:
    several = cluster(
        "vc",
        [gpu("H1", 1), gpu("A1", 1, series="A", model="a100"), gpu("X1", 1, series="A", model=None, memory=None)],
        {**both(8, 8), **both(8, 8, series="A")},
    )
    assert reason(several, "1xG1-H200") == "has no H200 (has: A100, H100; unknown: not published for X1)"
    assert reason(cluster("vc", [gpu("X1", 1, model=None)], both(8, 8)), "1xG1-H200") == (
        "has no H200 (has: unknown: not published for X1)"
    )
    assert names(offer(several, "1xG1-A100")) == ["A1"]


@pytest.mark.rule("A-066", "A-087")
def test_a_model_never_heard_of_is_matched_by_its_name() -> None:
    new = cluster("vc", [gpu("Z2", 2, model="Zeta9000", memory=333)], both(8, 0))
    assert names(offer(new, "1x333G2-ZETA9000")) == ["Z2"]


@pytest.mark.rule("A-085", "A-067", "A-087")
def test_another_memory_and_a_silent_one() -> None:
    mixed = cluster("vc", [gpu("H1", 1), gpu("H1_x", 1, memory=None)], both(8, 8))
    assert reason(mixed, "1x96G1-H100") == ("no H100 with 96 GB (has: 80 GB; unknown: memory not published for H1_x)")
    silent = cluster("vc", [gpu("H1_x", 1, memory=None)], both(8, 8))
    assert reason(silent, "1x96G1") == "no GPU with 96 GB (has: unknown: memory not published for H1_x)"
    assert names(offer(silent, "1xG1-H100")) == ["H1_x"]
    assert names(offer(mixed, "1x80G1-H100")) == ["H1"]


@pytest.mark.rule("A-085")
def test_another_number_of_gpus() -> None:
    some = cluster("vc", [gpu(f"H{n}", n) for n in (8, 2, 1, 4)], both(64, 0))
    assert reason(some, "1xG3-H100") == "no type with 3 GPUs in H100v5 (has: 1, 2, 4, 8)"
    assert reason(some, "1xG16") == "no type with 16 GPUs in H100v5 (has: 1, 2, 4, 8)"


SIZES = [cpu("D64", 64, 256), cpu("D8", 8, 32), cpu("D16_b", 16, 64), cpu("D16_a", 16, 64)]


@pytest.mark.rule("A-076", "A-087")
@pytest.mark.parametrize(("text", "name"), [("1xC1", "D8"), ("1xC2", "D16_a"), ("1xC3", "D16_b"), ("1xC4", "D64")])
def test_cpu_sizes_are_ordered_by_cores_memory_and_name(text: str, name: str) -> None:
    some = cluster("vc", SIZES, {("Dcpu", NORTH, P): 1000})
    assert names(offer(some, text)) == [name]


@pytest.mark.rule("A-076", "A-085", "A-087", "C-147", "C-321")
def test_a_cpu_size_beyond_the_list_is_never_clamped() -> None:
    some = cluster("vc", SIZES, {("Dcpu", NORTH, P): 1000})
    assert reason(some, "1xC9") == (
        "C9 is beyond the 4 sizes of Dcpu: C1 8 cores 32 GiB, C2 16 cores 64 GiB, C3 16 cores 64 GiB, "
        "C4 64 cores 256 GiB"
    )


@pytest.mark.rule("A-076")
def test_each_region_has_its_own_list_of_sizes() -> None:
    types = [cpu("D8", 8, 32), cpu("D16", 16, 64), cpu("D8", 8, 32, region=WEST)]
    free = {("Dcpu", NORTH, P): 10, ("Dcpu", WEST, P): 1000}
    some = cluster("vc", types, free, regions=[NORTH, WEST])
    assert reason(some, "1xC2") == "no tier has 16 vCPUs free in one region: Premium 10 (northeurope)"
    assert reason(some, "1xC3") == (
        "C3 is beyond the 2 sizes of Dcpu: C1 8 cores 32 GiB, C2 16 cores 64 GiB; "
        "C3 is beyond the 1 size of Dcpu: C1 8 cores 32 GiB"
    )
    found = offer(some, "2xC1")
    assert (found.best.kind.region, found.best.needs) == (WEST, 16)


@pytest.mark.rule("A-085", "A-064", "A-087")
def test_user_quota() -> None:
    types, free = [gpu("H4", 4)], both(64, 0)
    spent = dataclasses.replace(cluster("vc", types, free), users=(Quota(H, 48, 40),))
    assert reason(spent, "4xG4") == "user quota: needs 16 GPUs, 8 left of 48"
    assert reason(cluster("vc", types, free, {H: 0}), "1xG4") == "user quota: needs 4 GPUs, 0 left of 0"
    assert offer(spent, "2xG4").best.remaining == 0
    unlimited = offer(cluster("vc", types, free, {H: None}), "4xG4")
    assert (unlimited.best.remaining, unlimited.notes) == (48, ())
    unpublished = offer(cluster("vc", types, free), "4xG4")
    assert unpublished.best.remaining == 48
    assert unpublished.notes == ("vc publishes no limit of a user for H100v5: only the tier was checked",)


@pytest.mark.rule("A-085")
def test_user_quota_of_several_series() -> None:
    two = cluster(
        "vc",
        [gpu("H4", 4), gpu("A4", 4, series="A100v4", model="A100")],
        {**both(64, 0), **both(64, 0, series="A100v4")},
        {H: 8, "A100v4": 4},
    )
    assert reason(two, "4xG4") == ("user quota: H100v5 needs 16 GPUs, 8 left of 8; A100v4 needs 16 GPUs, 4 left of 4")
    assert names(offer(two, "2xG4")) == ["H4"]


@pytest.mark.rule("A-085", "A-062")
def test_room_is_not_added_up_over_regions_or_tiers() -> None:
    split = cluster(
        "vc",
        [gpu("H8", 8), gpu("H8", 8, region=WEST)],
        {(H, NORTH, P): 8, (H, NORTH, S): 8, (H, WEST, P): 8},
        regions=[NORTH, WEST],
    )
    assert reason(split, "2xG8") == (
        "no tier has 16 GPUs free in one region: Premium 8 (northeurope), Standard 8 (northeurope), Premium 8 (westus3)"
    )
    assert reason(split, "2xG8", S) == "no tier has 16 GPUs free in one region: Standard 8 (northeurope)"


@pytest.mark.rule("A-085")
def test_tiers_of_several_series_are_told_apart() -> None:
    two = cluster(
        "vc",
        [gpu("H4", 4), gpu("A4", 4, series="A100v4", model="A100")],
        {(H, NORTH, P): 1, ("A100v4", NORTH, B): 2},
    )
    assert reason(two, "1xG4") == (
        "no tier has 4 GPUs free in one region: A100v4 Basic 2 (northeurope), H100v5 Premium 1 (northeurope)"
    )


@pytest.mark.rule("A-061", "A-087")
def test_no_limit_and_nothing_used() -> None:
    endless = dataclasses.replace(RED, tiers=(TierQuota(WEST, "premium", Quota(H, None)),), users=())
    found = offer(endless, "100xG4")
    assert (found.best.remaining, found.best.tier) == (float("inf"), P)
    assert found.numbers == ("400 needed; H100v5 in westus3: no limit at Premium, no limit of the user")
    unused = dataclasses.replace(RED, tiers=(TierQuota(WEST, "premium", Quota(H, 8, None)),), users=())
    assert offer(unused, "2xG4").best.remaining == 0


@pytest.mark.rule("A-063")
def test_a_tier_of_another_word_is_used_by_no_job() -> None:
    odd = dataclasses.replace(RED, tiers=(TierQuota(WEST, "Spot", Quota(H, 800)),))
    assert reason(odd, "1xG4") == "no tier has 4 GPUs free in one region: no quota is published"
    loud = dataclasses.replace(RED, tiers=(TierQuota(WEST, "BASIC", Quota(H, 8)),))
    assert offer(loud, "1xG4").best.tier is B


@pytest.mark.rule("A-124")
def test_a_group_policy_gives_the_user_quota() -> None:
    some = cluster("vc", [gpu("H4", 4)], both(64, 0), {H: 0}, policies={"team": {H: 8}})
    found = match.look(some, wanted("2xG4", policy="team"))
    assert isinstance(found, match.Offer)
    assert found.best.remaining == 0
    assert reason(some, "4xG4", policy="team") == "user quota: needs 16 GPUs, 8 left of 8"
    assert reason(some, "1xG4", policy="other") == "has no group policy other (has: team)"
    assert reason(RED, "1xG4", policy="other") == "has no group policy other (has: none is published)"


# Preferences


@pytest.mark.rule("A-077")
def test_tiers_are_tried_downwards_only() -> None:
    one = cluster("vc", [gpu("H4", 4)], {(H, NORTH, P): 99, (H, NORTH, S): 0, (H, NORTH, B): 8})
    assert offer(one, "1xG4").best.tier is P
    assert offer(one, "1xG4", S).best.tier is B
    assert offer(one, "1xG4", S).warnings == ("tier Basic instead of Standard: vc has 0 of 4 GPUs free at Standard",)
    bare = cluster("vc", [gpu("H4", 4)], {(H, NORTH, B): 8})
    assert offer(bare, "1xG4").warnings == ("tier Basic instead of Premium: vc publishes no quota at Premium",)


@pytest.mark.rule("A-082")
def test_a_fallback_tells_where_most_was_free() -> None:
    two = cluster(
        "vc",
        [gpu("H8", 8), gpu("H8", 8, region=WEST)],
        {(H, NORTH, P): 0, (H, NORTH, S): 64, (H, WEST, P): 4},
        regions=[NORTH, WEST],
    )
    assert offer(two, "1xG8").warnings == ("tier Standard instead of Premium: vc has 4 of 8 GPUs free at Premium",)


MIXED = cluster(
    "vc",
    [
        gpu("M8", 8, series="MI", model="MI300X", vendor="AMD", memory=192, nvlink=True),
        gpu("H8", 8, vendor="NVIDIA"),
        gpu("U8", 8, series="U", vendor=None, model="Q"),
    ],
    {("MI", NORTH, P): 800, (H, NORTH, P): 8, ("U", NORTH, P): 900},
)


@pytest.mark.rule("A-078", "A-087")
def test_nvidia_comes_first_where_both_vendors_would_do() -> None:
    assert names(offer(MIXED, "1xG8")) == ["H8"]
    assert names(offer(MIXED, "1xG8-NvLink")) == ["H8"], "the vendor counts before the link"
    assert names(offer(MIXED, "1xG8-MI300X")) == ["M8"]
    assert names(offer(MIXED, "1x192G8")) == ["M8"]


@pytest.mark.rule("A-078")
def test_one_vendor_beside_an_unknown_one_has_no_preference() -> None:
    types = tuple(kind for kind in MIXED.types if kind.vendor != "AMD")
    assert names(offer(dataclasses.replace(MIXED, types=types), "1xG8")) == ["U8"]


@pytest.mark.rule("A-078")
def test_the_tier_counts_before_the_vendor() -> None:
    lower = dataclasses.replace(
        MIXED, tiers=(TierQuota(NORTH, "Premium", Quota("MI", 8)), TierQuota(NORTH, "Standard", Quota(H, 800)))
    )
    assert names(offer(lower, "1xG8")) == ["M8"]


@pytest.mark.rule("A-074", "A-078", "A-080")
def test_a_sibling_with_nvlink_is_taken_wherever_it_is_listed() -> None:
    for types in ([gpu("H4_a", 4), gpu("H4_b", 4, nvlink=True)], [gpu("H4_b", 4, nvlink=True), gpu("H4_a", 4)]):
        found = offer(cluster("vc", types, both(8, 0)), "1xG4-NvLink")
        assert (names(found), found.warnings) == (["H4_b"], ())
        assert names(offer(cluster("vc", types, both(8, 0)), "1xG4")) == ["H4_a", "H4_b"]


@pytest.mark.rule("A-080")
def test_infiniband_is_missed_only_between_nodes() -> None:
    one = cluster("vc", [gpu("H4", 4)], both(80, 0))
    assert offer(one, "1xG4-IB").warnings == ()
    assert offer(one, "2xG4-IB").warnings == ("no InfiniBand: H4 of vc has none, and 2 nodes speak to each other",)
    assert offer(cluster("vc", [gpu("H4", 4, ib=True)], both(80, 0)), "2xG4-IB").warnings == ()


@pytest.mark.rule("A-078")
def test_within_a_cluster_more_room_then_fewer_cores_then_region_series_and_name() -> None:
    types = [
        gpu("d", 4, region=WEST, cores=10),
        gpu("c", 4, region=NORTH, cores=20),
        gpu("b", 4, region=WEST, series="H2", cores=10),
        gpu("a", 4, region=WEST, series="H2", cores=10),
    ]

    def best(free: dict, regions: list[str]) -> str:
        return names(offer(cluster("vc", types, free, regions=regions), "1xG4"))[0]

    even = {(H, NORTH, P): 8, (H, WEST, P): 8, ("H2", WEST, P): 8}
    assert best({**even, (H, NORTH, P): 9}, [WEST, NORTH]) == "c"
    assert best(even, [NORTH, WEST]) == "d", "fewer cores, then the series"
    alike: list[InstanceType] = [gpu("c", 4, region=NORTH, cores=10), *(kind for kind in types if kind.short != "c")]
    assert names(offer(cluster("vc", alike, even, regions=[NORTH, WEST]), "1xG4"))[0] == "c"
    assert names(offer(cluster("vc", alike, even, regions=[WEST, NORTH]), "1xG4"))[0] == "d"
    assert names(offer(cluster("vc", alike[2:], even, regions=[WEST]), "1xG4")) == ["a", "b"]


@pytest.mark.rule("A-079")
def test_between_clusters_the_vendor_is_not_compared() -> None:
    amd = cluster(
        "vc-z", [gpu("M8", 8, series="MI", model="MI300X", vendor="AMD", memory=192)], {("MI", NORTH, P): 800}
    )
    nvidia = cluster("vc-a", [gpu("H8", 8)], both(8, 0))
    assert match.choose([nvidia, amd], wanted("1xG8")).cluster.name == "vc-z"


@pytest.mark.rule("A-079", "A-087")
def test_equal_offers_are_ordered_by_name_subscription_and_group() -> None:
    def one(name: str, sub: str = "s1", group: str = "g1") -> VirtualCluster:
        return cluster(name, [gpu("H4", 4)], both(8, 0), sub=sub, group=group)

    def first(*found: VirtualCluster) -> tuple[str, str, str]:
        winners = {
            (offer.cluster.name, offer.cluster.subscription, offer.cluster.group)
            for offer in (match.choose(found, wanted("1xG4")), match.choose(found[::-1], wanted("1xG4")))
        }
        assert len(winners) == 1, "the order of the clusters plays no role"
        return winners.pop()

    assert first(one("b"), one("A")) == ("A", "s1", "g1")
    assert first(one("a", "s2"), one("a", "s1")) == ("a", "s1", "g1")
    assert first(one("a", group="g2"), one("a", group="g1")) == ("a", "s1", "g1")
    assert first(one("a", "s2"), one("A", "s1")) == ("A", "s1", "g1")
    assert first(one("a"), one("A")) == ("A", "s1", "g1")


@pytest.mark.rule("A-081")
def test_only_types_that_are_as_good_are_sent_along() -> None:
    types = [
        gpu("a", 4),
        gpu("b", 4, memory=96),
        gpu("c", 8),
        gpu("d", 4, region=WEST),
        gpu("e", 4, series="H2"),
        gpu("f", 4, series="H3"),
        gpu("g", 4, model="h100"),
        gpu("h", 4, vendor=None),
    ]
    free = {**both(16, 16), (H, WEST, P): 16, ("H2", NORTH, P): 9, ("H3", NORTH, S): 99}
    assert names(offer(cluster("vc", types, free, regions=[NORTH, WEST]), "1xG4-H100")) == ["a", "g", "e"]


@pytest.mark.rule("A-081")
def test_the_joined_names_stay_short_enough() -> None:
    many = [gpu(f"{number:03}{'x' * 37}", 4) for number in range(60)]
    found = offer(cluster("vc", many, both(8, 0)), "1xG4")
    joined = ",".join(kind.full for kind in found.types)
    assert len(joined) <= 1024 < len(joined) + 1 + len(many[0].full)
    assert found.types[0].short.startswith("000")
    endless = offer(cluster("vc", [gpu("y" * 2000, 4)], both(8, 0)), "1xG4")
    assert len(endless.types) == 1, "the winner is sent in any case"


# Errors


@pytest.mark.rule("A-084", "A-087")
def test_no_cluster_at_all() -> None:
    with pytest.raises(NotFound) as error:
        match.choose([], wanted("1xG4"), scope=["subscription s", "resource group g"])
    assert error.value.message == "there is no virtual cluster (filters: subscription s, resource group g)"


@pytest.mark.rule("A-084")
def test_many_clusters_are_grouped_by_reason() -> None:
    poor = [cluster(f"vc-{number:02}", [gpu("H4", 4)], both(0, 0)) for number in range(12)]
    with pytest.raises(Refused) as error:
        match.choose([*poor, GREEN], wanted("1xG4-H100"))
    head, *lines = error.value.message.splitlines()
    assert head == "no room for 1xG4-H100 (1 node × 4 GPUs, tier Premium) in 13 virtual clusters:"
    listed = ", ".join(one.name for one in poor)
    assert lines == [
        f"  {listed}: no tier has 4 GPUs free in one region: Premium 0 (northeurope), Standard 0 (northeurope)",
        "  vc-green: has no H100 (has: A100)",
    ]
    with pytest.raises(Refused) as error:
        match.choose(poor, wanted("1xG4-H100"))
    assert len(error.value.message.splitlines()) == 13


@pytest.mark.rule("A-084")
def test_a_cpu_job_is_told_by_its_size() -> None:
    with pytest.raises(Refused, match=r"no room for 2xC3 \(2 nodes × size C3, tier Standard\) in 1 virtual cluster:"):
        match.choose([BLUE], wanted("2xC3", S))


def test_a_count_of_nothing_is_refused() -> None:
    bad = dataclasses.replace(wanted("1xG1"), count=0)
    with pytest.raises(UserError) as error:
        match.choose([BLUE], bad)
    assert error.value.hint == "-p N"


@pytest.mark.rule("A-077")
def test_a_chain_goes_downwards() -> None:
    assert Tier.PREMIUM.chain == (P, S, B)
    assert Tier.STANDARD.chain == (S, B)
    assert Tier.BASIC.chain == (B,)
