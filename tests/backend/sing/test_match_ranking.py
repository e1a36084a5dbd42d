"""The choice among five clusters of random stock, compared with a second way of choosing, written from the rules alone.

The second way knows plain dictionaries only. It goes through every cluster, region, series, type and tier, and
narrows what is left rule by rule; nothing of the matching itself is used for it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.backend.sing import match
from aj.backend.sing.match import Wanted
from aj.base.errors import Refused
from aj.model.catalogue import InstanceType
from aj.model.quota import Quota, Tier, TierQuota, VirtualCluster
from aj.model.sku import Sku

Plain = dict[str, Any]
TIERS = ["Premium", "Standard", "Basic"]
REGIONS = ["north", "west"]
SERIES = ["s1", "s2", "S3"]
MODELS = ["H100", "H100", "h100", "A100", "MI300X", None]


@dataclass(frozen=True)
class Stock:
    """Five clusters and a job, drawn by a seed: a failure prints the seed, and the seed draws the same again."""

    seed: int

    @property
    def drawn(self) -> tuple[list[Plain], Plain]:
        dice = random.Random(self.seed)
        return [_cluster(dice, number) for number in range(5)], _job(dice)


def _quota(dice: random.Random) -> Plain:
    return {"limit": dice.choice([0, 4, 8, 16, 16, 32, 64, None]), "used": dice.choice([None, 0, 0, 4, 40])}


def _type(dice: random.Random, series: str) -> Plain:
    if series == "s2":
        size = {"cores": dice.choice([2, 4, 8]), "memory": dice.choice([16, 32])}
        return {"gpus": 0, "vendor": None, "model": None, "each": None, "nvlink": False, **size}
    return {
        "gpus": dice.choice([1, 4, 4, 4, 8]),
        "cores": dice.choice([24, 24, 48]),
        "memory": 100,
        "vendor": dice.choice(["NVIDIA", "NVIDIA", "AMD", None]),
        "model": dice.choice(MODELS),
        "each": dice.choice([80, 80, 80, 40, None]),
        "nvlink": dice.random() < 0.4,
    }


def _cluster(dice: random.Random, number: int) -> Plain:
    types: list[Plain] = []
    labels = dice.sample(range(100, 200), 30)
    for region in REGIONS:  # some lie where the cluster is not
        for series in SERIES:
            for _ in range(dice.choice([0, 1, 2, 3])):
                place = {"region": region, "series": series, "name": f"Singularity.t{labels.pop()}"}
                types.append({**_type(dice, series), **place})
    dice.shuffle(types)
    spots = [(series, region, tier) for series in SERIES for region in REGIONS for tier in TIERS]
    return {
        "name": dice.choice(["vc", "VC", "other"]),
        "sub": dice.choice(["sub", "SUB"]),
        "group": ("g", "G")[number % 2] + str(number // 2),
        "regions": dice.sample(REGIONS, dice.choice([1, 2, 2, 2])),
        "types": types,
        "tiers": {spot: _quota(dice) for spot in spots if dice.random() < 0.6},
        "users": {series: _quota(dice) for series in SERIES if dice.random() < 0.5},
    }


def _job(dice: random.Random) -> Plain:
    is_gpu = dice.random() < 0.75
    return {
        "family": "G" if is_gpu else "C",
        "count": dice.choice([1, 4, 4, 4]) if is_gpu else dice.choice([1, 2]),
        "nodes": dice.choice([1, 2, 3]),
        "tier": dice.choice(["Premium", "Premium", "Standard", "Basic"]),
        "model": dice.choice([None, None, None, "H100", "MI300X"]) if is_gpu else None,
        "each": dice.choice([None, None, 80]) if is_gpu else None,
        "nvlink": is_gpu and dice.random() < 0.5,
    }


# The second way


def left(quota: Plain) -> float:
    if quota["limit"] is None:
        return float("inf")
    return max(0, quota["limit"] - (quota["used"] or 0))


def needed(job: Plain, kind: Plain) -> int:
    return job["nodes"] * (job["count"] if job["family"] == "G" else kind["cores"])


def size_place(kind: Plain, types: list[Plain]) -> int:
    """How many machines of the same series and region are smaller, counted one by one; then one more."""
    place = 1
    for other in types:
        if other["gpus"] or (other["series"], other["region"]) != (kind["series"], kind["region"]):
            continue
        mine = (kind["cores"], kind["memory"], kind["name"])
        place += (other["cores"], other["memory"], other["name"]) < mine
    return place


def rows_of(cluster: Plain, job: Plain) -> tuple[list[Plain], str]:
    """Every type that passes, at each tier that has room, or nothing and a word for the rule that left nothing."""
    known = {series for series, _, _ in cluster["tiers"]} | set(cluster["users"])
    here = [kind for kind in cluster["types"] if kind["series"] in known and kind["region"] in cluster["regions"]]
    if not here:
        return [], "no instance types"
    is_gpu = job["family"] == "G"
    kept = [kind for kind in here if (kind["gpus"] > 0) == is_gpu]
    if not kept:
        return [], "series"
    if job["model"]:
        kept = [kind for kind in kept if (kind["model"] or "?").upper() == job["model"]]
        if not kept:
            return [], "has no " + job["model"]
    if job["each"]:
        kept = [kind for kind in kept if kind["each"] == job["each"]]
        if not kept:
            return [], "GB"
    if is_gpu:
        kept = [kind for kind in kept if kind["gpus"] == job["count"]]
    else:
        kept = [kind for kind in kept if size_place(kind, here) == job["count"]]
    if not kept:
        return [], "no type with" if is_gpu else "beyond"
    kept = [
        kind
        for kind in kept
        if kind["series"] not in cluster["users"] or left(cluster["users"][kind["series"]]) >= needed(job, kind)
    ]
    if not kept:
        return [], "user quota"
    found = []
    for kind in kept:
        for position, tier in enumerate(TIERS[TIERS.index(job["tier"]) :]):
            quota = cluster["tiers"].get((kind["series"], kind["region"], tier))
            if quota is None or left(quota) < needed(job, kind):
                continue
            own = cluster["users"].get(kind["series"])
            room = min(left(quota), float("inf") if own is None else left(own)) - needed(job, kind)
            found.append({"kind": kind, "tier": tier, "position": position, "room": room, "cluster": cluster})
    return found, "no tier has"


def lowest(rows: list, of: Callable[[Any], Any]) -> list:
    """Those for which a number is smallest."""
    least = min(of(one) for one in rows)
    return [row for row in rows if of(row) == least]


def offer_of(rows: list[Plain], job: Plain) -> tuple[Plain, set[str]]:
    """Narrow the rows of one cluster to its offer; with it the names of all types that are as good."""
    cluster = rows[0]["cluster"]
    highest: dict[str, int] = {}
    for row in rows:
        name = row["kind"]["name"]
        highest[name] = min(highest.get(name, 9), row["position"])
    rows = [row for row in rows if row["position"] == highest[row["kind"]["name"]]]
    every = rows
    vendors = [row["kind"]["vendor"] for row in rows]
    rows = lowest(rows, lambda row: row["position"])
    if job["model"] is None and "NVIDIA" in vendors and "AMD" in vendors:
        rows = [row for row in rows if row["kind"]["vendor"] == "NVIDIA"] or rows
    if job["nvlink"]:
        rows = [row for row in rows if row["kind"]["nvlink"]] or rows
    rows = lowest(rows, lambda row: -row["room"])
    rows = lowest(rows, lambda row: row["kind"]["cores"])
    rows = lowest(rows, lambda row: cluster["regions"].index(row["kind"]["region"]))
    rows = lowest(rows, lambda row: row["kind"]["series"])
    rows = lowest(rows, lambda row: row["kind"]["name"])
    (best,) = rows
    alike = [row for row in every if row["tier"] == best["tier"]]
    for key in ("region", "vendor", "each", *(["nvlink"] if job["nvlink"] else [])):
        alike = [row for row in alike if row["kind"][key] == best["kind"][key]]
    alike = [row for row in alike if (row["kind"]["model"] or "").upper() == (best["kind"]["model"] or "").upper()]
    return best, {row["kind"]["name"] for row in alike}


def spelled(offers: list[tuple[Plain, set[str]]], key: str, change: Callable[[str], str]) -> list:
    return lowest(offers, lambda one: change(one[0]["cluster"][key]))


def winner_of(offers: list[tuple[Plain, set[str]]], job: Plain) -> tuple[Plain, set[str]]:
    offers = lowest(offers, lambda one: one[0]["position"])
    if job["nvlink"]:
        offers = [one for one in offers if one[0]["kind"]["nvlink"]] or offers
    offers = lowest(offers, lambda one: -one[0]["room"])
    for change in (str.casefold, str):
        for key in ("name", "sub", "group"):
            offers = spelled(offers, key, change)
    (winner,) = offers
    return winner


# Both ways


def noun(cluster: Plain) -> VirtualCluster:
    return VirtualCluster(
        f"/{cluster['sub']}/{cluster['group']}/{cluster['name']}",
        cluster["name"],
        cluster["sub"],
        cluster["group"],
        tuple(cluster["regions"]),
        tuple(
            TierQuota(region, tier.upper(), Quota(series.lower(), row["limit"], row["used"]))
            for (series, region, tier), row in cluster["tiers"].items()
        ),
        tuple(Quota(series.upper(), row["limit"], row["used"]) for series, row in cluster["users"].items()),
        tuple(
            InstanceType(
                kind["name"],
                kind["series"],
                kind["region"],
                kind["gpus"],
                kind["cores"],
                kind["memory"],
                kind["vendor"],
                kind["model"],
                kind["each"],
                has_nvlink=kind["nvlink"],
            )
            for kind in cluster["types"]
        ),
    )


@pytest.mark.rule("A-074", "A-075", "A-076", "A-077", "A-078", "A-079", "A-081", "A-087")
@given(st.integers(0, 2**63).map(Stock))
@settings(max_examples=600, deadline=None)
def test_both_ways_choose_the_same(drawn: Stock) -> None:
    stock, job = drawn.drawn
    sku = Sku(job["family"], job["nodes"], job["each"], job["count"], job["model"], job["nvlink"])
    wanted = Wanted(sku, job["nodes"], job["count"], Tier(job["tier"]))
    rows = [rows_of(cluster, job) for cluster in stock]
    offers = [offer_of(found, job) for found, _ in rows if found]
    if not offers:
        with pytest.raises(Refused) as error:
            match.choose([noun(cluster) for cluster in stock], wanted)
        assert len(error.value.message.splitlines()) == 6
    else:
        found = match.choose([noun(cluster) for cluster in stock], wanted)
        best, names = winner_of(offers, job)
        told = (
            found.cluster.group,
            found.best.kind.name,
            found.best.kind.region,
            found.best.tier,
            found.best.remaining,
        )
        assert told == (
            best["cluster"]["group"],
            best["kind"]["name"],
            best["kind"]["region"],
            best["tier"],
            best["room"],
        )
        assert found.types[0].name == best["kind"]["name"]
        assert {kind.name for kind in found.types} == names
        assert any("NVLink" in words for words in found.warnings) is (job["nvlink"] and not best["kind"]["nvlink"])
        assert any("instead of" in words for words in found.warnings) is (best["position"] > 0)
    for cluster, (passed, rule) in zip(stock, rows):
        answer = match.look(noun(cluster), wanted)
        assert isinstance(answer, match.Offer) is bool(passed)
        if isinstance(answer, match.Rejection):
            assert rule in answer.reason
