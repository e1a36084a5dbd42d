"""What the options of Volcano refuse and warn of besides what all services share."""

from __future__ import annotations

from pathlib import Path

import pytest

from aj.backend.volcano import payload
from tests.template.kit import VOLCANO, built, errors, issues


def changed(old: str, new: str) -> str:
    assert old in VOLCANO
    return VOLCANO.replace(old, new)


def target(words: str) -> str:
    return changed("service: volcano", f"service: volcano, {words}")


@pytest.mark.rule("V-010")
@pytest.mark.parametrize(
    ("toleration", "says"),
    [
        ("{key: a, effekt: NoSchedule}", "unknown key `target.tolerations[0].effekt`"),
        ("{key: a b}", "`a b`, which is no key of a taint"),
        ("{key: a, operator: exists}", "`target.tolerations[0].operator` is `exists`"),
        ("{key: a, effect: Never}", "it is one of NoSchedule, PreferNoSchedule, NoExecute"),
        ("{key: a, operator: Exists, value: b}", "`value` cannot stand beside it"),
        ("{effect: NoSchedule}", "a toleration without `key` is for all taints"),
        ("{key: a, effect: NoSchedule, tolerationSeconds: 3}", "goes with `effect: NoExecute` alone"),
        ("{key: a, effect: NoExecute, tolerationSeconds: soon}", "a whole number is due"),
    ],
)
def test_a_toleration_that_the_cluster_would_refuse_is_refused_here(tmp_path: Path, toleration: str, says: str) -> None:
    found = [one.message for one in errors(tmp_path, target(f"tolerations: [{toleration}]"))]
    assert len(found) == 1
    assert says in found[0]


@pytest.mark.rule("V-009")
def test_what_says_who_manages_an_object_is_ours_as_a_label(tmp_path: Path) -> None:
    (found,) = errors(tmp_path, target("labels: {app.kubernetes.io/managed-by: me}"))
    assert "is reserved" in found.message
    assert errors(tmp_path, target("node_selector: {app.kubernetes.io/managed-by: me}")) == []


@pytest.mark.rule("V-072")
def test_who_could_not_read_the_signed_address_is_told_before(tmp_path: Path) -> None:
    blob = "  _extra: {code_upload: {strategy: blob, blob: {storage_account: account1, container: code}}}\n"
    (found,) = errors(tmp_path, target("run_as: {user: 1000}") + blob)
    assert found.message == "`run_as.user` 1000 cannot read the signed address of the code"
    assert errors(tmp_path, target("run_as: {user: 1000}") + blob.replace("code}", "code, auth: identity}")) == []
    assert errors(tmp_path, target("run_as: {user: 1000}")) == []


@pytest.mark.rule("V-019", "V-017")
@pytest.mark.parametrize("folder", ["/mnt", "/mnt/aj-work", "/dev/shm/x", "/mnt/aj-secrets"])
def test_a_volume_does_not_lie_where_the_pod_has_something_else(tmp_path: Path, folder: str) -> None:
    found = [one.message for one in errors(tmp_path, changed("/mnt/pvc", folder))]
    assert len(found) == 1
    assert f"the PVC directory {folder} and" in found[0]


@pytest.mark.rule("V-038")
def test_what_counts_against_the_size_of_scratch_is_told(tmp_path: Path) -> None:
    arguments = "submit_args:\n      container_args: {scratch_mount_path: /x, scratch_size: 5Gi}"
    told = [one.message for one in issues(tmp_path, changed("submit_args:", arguments))]
    assert "the work directory and the image's own layer count against the 5Gi of scratch too" in told


@pytest.mark.rule("A-114")
def test_a_private_key_does_not_travel_by_accident(tmp_path: Path) -> None:
    (found,) = errors(tmp_path, VOLCANO + "  code: {ssh: [id_ed25519]}\n")
    assert found.message == "`id_ed25519` is a private key"


@pytest.mark.rule("V-011")
def test_a_life_of_no_time_is_one(tmp_path: Path) -> None:
    assert payload.options(built(tmp_path, target("ttl: 0s")).spec).ending.ttl_s == 0


@pytest.mark.rule("A-142")
def test_setup_may_have_a_limit(tmp_path: Path) -> None:
    spec = built(tmp_path, changed("image: train:1", "image: train:1, setup_timeout: 5m")).spec
    assert payload.options(spec).setup_timeout_s == 300
