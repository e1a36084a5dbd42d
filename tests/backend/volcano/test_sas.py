"""What is signed for a job: with the fewest rights, for a while, and told again by the job itself."""

from __future__ import annotations

from dataclasses import replace
from typing import cast
from urllib.parse import parse_qs

import pytest

from aj.azure.arm import Session
from aj.backend.volcano import names, payload, sas
from aj.backend.volcano.sas import Want
from aj.backend.volcano.variables import Facts
from aj.base import redact
from aj.base.clock import SYSTEM
from aj.base.errors import RemoteError
from aj.model.job import JobSpec
from aj.net import clouds
from aj.net.document import Document
from aj.net.http import Transport
from tests.azure.conftest import secure_azurite as secure_azurite
from tests.conftest import Home
from tests.servers.azurite import ACCOUNT, Accepted, Azurite
from tests.template.kit import built

AT = "2026-01-31T12:00:00.000000+00:00"
SHA = "9d" * 32
DAY_S = 86400.0
TEMPLATE = """base:
config:
  target: {service: volcano, gpus_per_node: 8, cpus_per_node: 96, memory: 512Gi}
  environment: {image: "registry.example/train:1"}
  storage:
    data: {storage_account_name: ACCOUNT, container_name: ccc, mount_dir: /mnt/d}
    refs: {storage_account_name: ACCOUNT, container_name: rrr, mount_dir: /mnt/r, mode: ro}
  _extra:
    code_upload:
      strategy: blob
      blob: {storage_account: ACCOUNT, container: code, sas_expiry_days: 2}
  jobs:
  - sku: "{nodes}x80G{processes}-H100"
    instance_count: 2
""".replace("ACCOUNT", ACCOUNT)


def session(azurite: Azurite) -> Session:
    """A session in a cloud whose storage is the emulator."""
    cloud = replace(clouds.PUBLIC, blob_endpoint=azurite.endpoint)
    return Session(cast(Transport, None), cloud, Accepted({}), SYSTEM)


def job_of(home: Home, template: str = TEMPLATE) -> JobSpec:
    return built(home.root / "p", template).spec


def wants(spec: JobSpec) -> tuple[Want, ...]:
    return sas.of_template(payload.options(spec), SHA, DAY_S)


def document(spec: JobSpec) -> Document:
    """The job as its cluster tells it."""
    chosen = payload.options(spec)
    facts = Facts(AT, namespace="training", digest="d1", archive_sha256=SHA)
    return Document(payload.build(spec, chosen, facts).job, "a job")


@pytest.mark.rule("V-080", "V-072", "V-070")
def test_each_is_for_one_thing_with_the_fewest_rights(home: Home) -> None:
    assert wants(job_of(home)) == (
        Want("code.url", ACCOUNT, "code", "r", 2 * DAY_S, f"aj-code/{SHA}.tgz"),
        Want("storage.data", ACCOUNT, "ccc", "racwdl", DAY_S),
        Want("storage.refs", ACCOUNT, "rrr", "rl", DAY_S),
    )
    assert set("racwdl") == set("rwdlac")
    by_identity = TEMPLATE.replace("container: code,", "container: code, auth: identity,")
    assert [want.key for want in wants(job_of(home, by_identity))] == ["storage.data", "storage.refs"]
    keys = [want.key for want in sas.of_template(payload.options(job_of(home)), None, DAY_S)]
    assert keys == ["storage.data", "storage.refs"]


@pytest.mark.rule("V-080", "V-072", "A-011")
def test_they_are_signed_by_a_users_key_for_https_alone_and_masked(
    home: Home, loopback: None, secure_azurite: Azurite
) -> None:
    opened = session(secure_azurite)
    signed = sas.make(opened, secure_azurite.settings, wants(job_of(home)))
    url = signed.values["code.url"]
    assert url.startswith(f"{secure_azurite.url}/{ACCOUNT}/code/aj-code/{SHA}.tgz?")
    assert "://" not in signed.values["storage.data"]
    fields = {key: parse_qs(value.partition("?")[2] or value) for key, value in signed.values.items()}
    assert {key: (found["sr"], found["sp"], found["spr"]) for key, found in fields.items()} == {
        "code.url": (["b"], ["r"], ["https"]),
        "storage.data": (["c"], ["racwdl"], ["https"]),
        "storage.refs": (["c"], ["rl"], ["https"]),
    }
    assert all("skoid" in found for found in fields.values()), "no key of the account signed anything"
    now = SYSTEM.now()
    assert signed.expires_at["code.url"] == pytest.approx(now + 2 * DAY_S, abs=60)
    assert signed.first_end == pytest.approx(now + DAY_S, abs=60)
    for key, value in signed.values.items():
        assert sas.end_of(value) == pytest.approx(signed.expires_at[key], abs=2)
        assert sas.lifetime_of(value) == pytest.approx(signed.expires_at[key] - now, abs=60)
        assert value not in redact.text(f"an error about {value}")
        assert value not in repr(signed)
    asked = cast(Accepted, opened.tokens).asked
    assert len(asked) == 1, "one token, and one key of the account for each lifetime"


@pytest.mark.rule("V-084")
def test_a_job_on_the_cluster_tells_what_was_signed_for_it(home: Home, loopback: None, secure_azurite: Azurite) -> None:
    spec = job_of(home)
    signed = sas.make(session(secure_azurite), secure_azurite.settings, wants(spec))
    found = sas.of_job(document(spec), signed.values, secure_azurite.endpoint, DAY_S)
    by_key = {want.key: want for want in found}
    code = by_key.pop("code.url")
    assert code.lifetime_s == pytest.approx(2 * DAY_S, abs=2)
    assert [replace(code, lifetime_s=2 * DAY_S), *by_key.values()] == list(wants(spec))
    assert {want.lifetime_s for want in sas.only(found, 5)} == {5 * 3600.0}
    assert sas.only(found, None) == found


def test_a_secret_that_the_job_does_not_know_is_an_error(home: Home) -> None:
    job = document(job_of(home))
    with pytest.raises(RemoteError, match=r"what the key storage\.other of its secret is for"):
        sas.of_job(job, {"storage.other": "x"}, clouds.PUBLIC.blob_endpoint, DAY_S)
    with pytest.raises(RemoteError, match="no address of code in this cloud"):
        sas.of_job(job, {"code.url": "https://evil.example/code/x?sig=1"}, clouds.PUBLIC.blob_endpoint, DAY_S)
    assert (sas.end_of("no query"), sas.lifetime_of("se=never")) == (None, None)


@pytest.mark.rule("V-072", "A-011", "V-030")
def test_nothing_signed_stands_in_a_manifest(home: Home, loopback: None, secure_azurite: Azurite) -> None:
    spec = job_of(home)
    chosen = payload.options(spec)
    facts = Facts(AT, namespace="training", digest="d1", archive_sha256=SHA)
    signed = sas.make(session(secure_azurite), secure_azurite.settings, wants(spec))
    objects = payload.build(spec, chosen, facts)
    assert sorted(objects.secret_keys) == sorted(signed.values)
    shown = payload.written(objects.job) + b"".join(map(payload.written, payload.shown(spec, facts, objects)))
    for value in signed.values.values():
        signature = parse_qs(value.partition("?")[2] or value)["sig"][0]
        assert signature.encode() not in shown and value.encode() not in shown
    assert names.secret(spec.id).encode() in shown
