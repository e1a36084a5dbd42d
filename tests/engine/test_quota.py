"""Quota, machines and images: rows of what there is, kept with their age, each part's failure beside them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aj.base.clock import rfc3339
from aj.base.errors import AuthError, RemoteError, Unavailable
from aj.wire.azure import InventoryQuery, QuotaRow
from tests.engine.cloud import ONE, TWO, Sky, cluster, limit, machine, subscribe, supply
from tests.servers.loopback import Cut, problem

SING = InventoryQuery(services=("sing",))
AML = InventoryQuery(services=("aml",))


def brief(row: QuotaRow) -> tuple[object, ...]:
    return (row.place, row.region, row.series, row.accelerator, row.tier, row.limit, row.used, row.free)


@pytest.mark.rule("A-068", "A-061", "C-038", "A-174")
def test_clusters_show_each_tier_of_a_region_beside_the_users_share(sky: Sky) -> None:
    supply(sky.azure)
    found = sky.cloud.quota(sky.project, SING)
    assert [brief(row) for row in found.rows] == [
        ("vc-blue", "northeurope", "H100v5", "H100", "Premium", 16, 16, 0),
        ("vc-blue", "northeurope", "H100v5", "H100", "Standard", 32, None, 32),
        ("vc-blue", "northeurope", "Dcpu", None, "Basic", None, 3, None),
        ("vc-blue", None, "M300", "MI300X", None, 8, 0, 8),
    ]
    first, _, cpus, share = found.rows
    assert (first.unit, first.vendor, first.gpu_memory_gb) == ("GPUs", "NVIDIA", 80)
    assert (first.has_user_limit, first.user_limit, first.user_used, first.user_free) == (True, 48, 16, 32)
    assert (cpus.unit, cpus.has_user_limit, cpus.user_limit) == ("vCPUs", False, None)
    assert (share.kind, share.user_free) == ("user", 8)
    assert found.left_out == 2
    assert (found.told.age_s, found.told.is_stale, found.told.failures) == (0.0, False, ())
    assert found.told.as_of == rfc3339(sky.clock.now())


@pytest.mark.rule("A-063", "A-068", "C-038")
def test_what_is_nothing_or_of_no_use_is_shown_when_wanted(sky: Sky) -> None:
    supply(sky.azure)
    sky.azure.arm.rows.append(cluster("vc-empty", locations=[]))
    every = sky.cloud.quota(sky.project, replace(SING, every=True))
    assert [row.series for row in every.rows if row.limit == 0] == ["A100v4"]
    full = sky.cloud.quota(sky.project, replace(SING, full=True))
    (spot,) = [row for row in full.rows if row.tier == "Spot"]
    assert spot.problem == "no job asks for the tier Spot"
    assert [row.problem for row in full.rows if row.place == "vc-empty"] == ["publishes no quota"]
    assert full.left_out == 0


@pytest.mark.rule("A-174", "A-044", "A-033", "A-068")
def test_machine_learning_shows_usages_and_computes(sky: Sky) -> None:
    at = sky.workspace()
    sky.azure.arm.usages[ONE, "northeurope"] = [
        {"name": {"value": "nd", "localizedValue": "ND"}, "currentValue": 10, "limit": 100, "unit": "Count"},
        {"name": {"value": "nc", "localizedValue": "NC"}, "currentValue": 0, "limit": 0, "unit": "Count"},
    ]
    sky.azure.arm.add(
        f"{at.id}/computes/gpu",
        {
            "location": "northeurope",
            "properties": {
                "computeType": "AmlCompute",
                "provisioningState": "Succeeded",
                "properties": {
                    "vmSize": "ND96",
                    "vmPriority": "Dedicated",
                    "scaleSettings": {"maxNodeCount": 4},
                    "nodeStateCounts": {"idleNodeCount": 1, "runningNodeCount": 2},
                },
            },
        },
        "ComputeResource",
    )
    found = sky.cloud.quota(sky.project, AML)
    assert [(row.kind, row.place, row.series, row.limit, row.used, row.free, row.unit) for row in found.rows] == [
        ("usage", ONE, "nd", 100, 10, 90, "Count"),
        ("compute", "ws-one/gpu", "ND96", 4, 2, 2, "nodes"),
    ]
    assert found.left_out == 1


@pytest.mark.rule("A-178", "A-009", "A-174")
def test_a_part_that_gives_no_answer_stands_beside_the_others(sky: Sky) -> None:
    supply(sky.azure)
    sky.workspace()
    sky.azure.arm_server.on("/usages", problem(403, "AuthorizationFailed", "no"))
    sky.azure.arm_server.on("/instanceTypeSeries", problem(404, "Gone", "no such region"))
    found = sky.cloud.quota(sky.project, InventoryQuery())
    assert [part.part for part in found.told.failures] == [f"northeurope ({ONE})", f"northeurope ({ONE})"]
    assert "Gone" in found.told.failures[0].message
    assert found.told.failures[1].code == "forbidden"
    first = found.rows[0]
    assert (first.accelerator, first.limit) == ("H100", 16)  # the text about the series tells it, too
    assert "could not be read" in (first.problem or "")


@pytest.mark.rule("A-178")
def test_one_service_that_cannot_be_read_does_not_hide_the_other(sky: Sky) -> None:
    sky.workspace()
    sky.azure.arm.usages[ONE, "northeurope"] = [
        {"name": {"value": "nd", "localizedValue": "ND"}, "currentValue": 1, "limit": 2, "unit": "Count"}
    ]
    sky.azure.arm_server.on("ResourceGraph", problem(400, "BadQuery", "no"))
    found = sky.cloud.quota(sky.project, InventoryQuery())
    assert [row.series for row in found.rows] == ["nd"]
    (failure,) = found.told.failures
    assert (failure.part, "BadQuery" in failure.message) == ("sing", True)
    sky.azure.arm_server.on("ResourceGraph", problem(400, "BadQuery", "no"))
    with pytest.raises(RemoteError, match="BadQuery"):
        sky.cloud.quota(sky.project, replace(SING, subscription=TWO))


@pytest.mark.rule("A-170", "C-218")
def test_an_answer_is_kept_for_its_time_and_renewed_on_request(sky: Sky) -> None:
    supply(sky.azure)
    cloud = sky.cloud
    cloud.quota(sky.project, SING)
    asked = len(sky.targets())
    sky.clock.move(599)
    again = sky.cloud.quota(sky.project, SING)  # another daemon finds it, too
    assert (again.told.age_s, again.told.is_stale, len(sky.targets())) == (599.0, False, asked)
    assert again.told.as_of == rfc3339(sky.clock.now() - 599)
    sky.azure.arm.rows.append(cluster("vc-new", limit("H100v5", "Basic", 1)))
    fresh = cloud.quota(sky.project, replace(SING, refresh=True))
    assert {row.place for row in fresh.rows} == {"vc-blue", "vc-new"}
    assert fresh.told.age_s == 0.0
    sky.settings('[quota]\nmax_age = "5s"\n')
    sky.clock.move(6)
    assert cloud.quota(sky.project, SING).told.is_stale


@pytest.mark.rule("A-170", "A-178")
def test_without_a_network_the_old_rows_are_shown_with_the_reason(sky: Sky) -> None:
    supply(sky.azure)
    sky.cloud.quota(sky.project, SING)
    sky.away(Unavailable("there is no host, or no network"))
    sky.clock.move(7200)
    found = sky.cloud.quota(sky.project, SING)
    assert len(found.rows) == 4
    assert (found.told.age_s, found.told.is_stale) == (7200.0, True)
    assert found.told.problem == "there is no host, or no network"
    with pytest.raises(Unavailable):
        sky.cloud.quota(sky.project, AML)  # of which nothing was kept


@pytest.mark.rule("A-170")
def test_a_renewal_that_fails_keeps_the_rows(sky: Sky) -> None:
    supply(sky.azure)
    cloud = sky.cloud
    cloud.quota(sky.project, SING)
    sky.azure.arm_server.on("/subscriptions", *[Cut.AFTER_HEADERS] * 4)
    found = cloud.quota(sky.project, replace(SING, refresh=True))
    assert len(found.rows) == 4 and found.told.is_stale
    assert "could not list subscriptions" in (found.told.problem or "")


@pytest.mark.rule("A-023", "A-170")
def test_nobody_sees_what_another_was_told(sky: Sky) -> None:
    supply(sky.azure)
    cloud = sky.cloud
    cloud.quota(sky.project, SING)
    asked = len(sky.targets("ResourceGraph"))
    sky.azure.issuer.kept.clear()
    sky.azure.issuer.person = "99999999-0000-0000-0000-000000000002"
    assert cloud.quota(sky.project, SING).told.age_s == 0.0
    assert len(sky.targets("ResourceGraph")) == asked + 1
    assert len(list((sky.home.layout.answers / "quota").iterdir())) == 1
    sky.away(AuthError("not signed in", hint="`az login`"))
    with pytest.raises(AuthError):
        cloud.quota(sky.project, SING)


@pytest.mark.rule("A-046", "A-170")
def test_what_is_kept_is_private_and_holds_no_token(sky: Sky) -> None:
    supply(sky.azure)
    sky.cloud.quota(sky.project, SING)
    files = [path for path in sky.home.layout.answers.rglob("*") if path.is_file()]
    assert len(files) == 2
    for file in files:
        assert file.stat().st_mode & 0o077 == 0
        assert not any(token.encode() in file.read_bytes() for token in sky.azure.issuer.known)


def test_a_subscription_of_ones_own_is_asked_alone(sky: Sky) -> None:
    subscribe(sky.azure, TWO)
    supply(sky.azure)
    sky.azure.arm.rows.append(cluster("vc-two", limit("H100v5", "Basic", 1), subscription=TWO))
    assert {row.place for row in sky.cloud.quota(sky.project, SING).rows} == {"vc-blue", "vc-two"}
    only = sky.cloud.quota(sky.project, replace(SING, subscription=TWO))
    assert {row.place for row in only.rows} == {"vc-two"}


# Machines


@pytest.mark.rule("A-173", "C-038", "A-065")
def test_each_type_of_a_region_is_a_row_with_the_sku_that_means_it(sky: Sky) -> None:
    supply(sky.azure)
    found = sky.cloud.skus(sky.project, InventoryQuery())
    assert [(row.name, row.sku, row.cores, row.memory_gib, row.scratch_gib, row.infiniband) for row in found.rows] == [
        ("Singularity.H8", "80G8-H100-NvLink", 96, 1800.0, 3500, True),
        ("Singularity.H4", "80G4-H100", 48, 900.0, None, False),
        ("Singularity.D4", "C1", 4, 16.0, None, False),
        ("Singularity.D8", "C2", 8, 32.0, None, False),
    ]
    assert {row.clusters for row in found.rows} == {("vc-blue",)}
    assert found.left_out == 1
    every = sky.cloud.skus(sky.project, InventoryQuery(every=True))
    assert [row.name for row in every.rows if not row.clusters] == ["Singularity.A8"]


@pytest.mark.rule("A-173", "C-038")
def test_types_of_two_subscriptions_are_one_row_and_an_empty_answer_is_one(sky: Sky) -> None:
    assert sky.cloud.skus(sky.project, InventoryQuery()).rows == ()
    subscribe(sky.azure, TWO)
    for subscription in (ONE, TWO):
        sky.azure.arm.rows.append(cluster(f"vc-{subscription[-1]}", limit("S", "Basic", 1), subscription=subscription))
        sky.azure.arm.series[subscription, "northeurope"] = [machine("A", "S", 1, 4, 8, "1 x NVIDIA T4")]
    (row,) = sky.cloud.skus(sky.project, InventoryQuery(refresh=True)).rows
    assert (row.sku, row.clusters) == ("16G1-T4", ("vc-1", "vc-2"))


@pytest.mark.rule("A-067")
def test_sizes_of_the_settings_fill_in_what_nobody_published(sky: Sky) -> None:
    sky.azure.arm.rows.append(cluster("vc", limit("S", "Basic", 1)))
    sky.azure.arm.series[ONE, "northeurope"] = [machine("A", "S", 1, 4, 8, "1 x NVIDIA H300")]
    assert sky.cloud.skus(sky.project, InventoryQuery()).rows[0].sku == "G1-H300"
    sky.settings("[sing.gpus]\nH300 = 288\n")
    assert sky.cloud.skus(sky.project, InventoryQuery()).rows[0].sku == "288G1-H300"


# Images


@pytest.mark.rule("A-175", "A-036", "C-037", "A-178")
def test_images_are_found_by_any_of_their_names(sky: Sky) -> None:
    subscribe(sky.azure, TWO)
    sky.azure.arm.images[ONE] = [{"names": ["latest", "torch:cuda12"]}, {"names": ["base"]}]
    sky.azure.arm_server.on(f"{TWO}/providers/Microsoft.Singularity", problem(404, "Gone", "no such"))
    found = sky.cloud.images(sky.project, InventoryQuery())
    assert [row.name for row in found.rows] == ["base", "torch:cuda12"]
    assert [part.part for part in found.told.failures] == [TWO]
    assert [row.name for row in sky.cloud.images(sky.project, InventoryQuery(text="LATE")).rows] == ["torch:cuda12"]
    assert sky.cloud.images(sky.project, InventoryQuery(text="nothing")).rows == ()


@pytest.mark.rule("A-178", "A-009")
def test_images_of_which_no_subscription_answers_are_an_error(sky: Sky) -> None:
    sky.azure.arm_server.on("Microsoft.Singularity", problem(404, "Gone", "no such"))
    with pytest.raises(RemoteError, match=f"could not list images: 1 part gave no answer: {ONE}"):
        sky.cloud.images(sky.project, InventoryQuery())


# Who


@pytest.mark.rule("A-171", "C-035", "A-022")
def test_who_is_signed_in_with_each_scope_and_never_a_token(sky: Sky) -> None:
    sky.settings(f'[workspace]\nname = "ws-one"\nsubscription_id = "{ONE}"\n')
    found = sky.cloud.sign_in(sky.project)
    assert (found.user, found.tenant, found.source) == ("ada@example.com", sky.azure.session.tenant, "environment")
    assert (found.object_id, found.workspace, found.subscription) == (sky.azure.issuer.person, "ws-one", ONE)
    assert [facts.scope for facts in found.tokens] == [
        sky.azure.cloud.arm_scope,
        sky.azure.cloud.ml_scope,
        "https://storage.azure.com/.default",
    ]
    assert {facts.expires_at for facts in found.tokens} == {rfc3339(4_000_000_000.0)}
    assert not any(token in repr(found) for token in sky.azure.issuer.known)
    sky.settings("")
    sky.environment(AZURE_SUBSCRIPTION_ID=TWO)
    assert sky.cloud.sign_in(sky.project).subscription == TWO
    sky.away(AuthError("not signed in: cli: no az", hint="`az login`"))
    with pytest.raises(AuthError, match="no az"):
        sky.cloud.sign_in(sky.project)
