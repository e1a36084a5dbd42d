"""Code brought into a workspace: the datastore told by a checked server, the blobs by a real emulator."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from azure.storage.blob import ContainerClient

from aj.azure import delivery, leftovers
from aj.azure.arm import Session
from aj.azure.blocks import Sizes
from aj.azure.datastores import CODE
from aj.azure.delivery import Delivery
from aj.azure.line import Place
from aj.azure.submission import Delivered, Parcel
from aj.base.clock import SYSTEM
from aj.base.errors import AjError, NotFound, Refused, RemoteError, UserError
from aj.model.commandjob import Code
from aj.model.step import Kind, Step
from tests.servers.azure import WORKSPACE, Issuer, SmallAzure
from tests.servers.azurite import ACCOUNT, KEY, Accepted, Azurite
from tests.servers.loopback import problem
from tests.servers.test_spec import JOB

pytestmark = pytest.mark.rule("A-117")

SCRIPT = b"echo unpack\n"


@dataclass(frozen=True)
class Depot:
    """A workspace that keeps its code in the emulator."""

    azure: SmallAzure
    azurite: Azurite
    container: str
    seen: ContainerClient
    session: Session

    def deliver(self, parcel: Parcel, **options: object) -> tuple[Delivered, list[Step]]:
        steps: list[Step] = []
        delivery = Delivery(self.azurite.settings, **options)  # type: ignore[arg-type]
        return delivery(self.session, WORKSPACE, parcel, tell=steps.append), steps

    def delivered(self, folder: Path) -> Parcel:
        one = parcel(folder)
        self.deliver(one)
        return one

    def with_tokens(self, tokens: Issuer) -> Depot:
        return replace(self, session=replace(self.session, tokens=tokens))


def add_datastore(azure: SmallAzure, container: str, **changed: object) -> None:
    about = {
        "datastoreType": "AzureBlob",
        "accountName": ACCOUNT,
        "containerName": container,
        "endpoint": "core.azure.test",
        "protocol": "https",
        "credentials": {"credentialsType": "None"},
        **changed,
    }
    azure.arm.add(f"{WORKSPACE.id}/datastores/{CODE}", {"properties": about}, "Datastore")


@pytest.fixture
def there(azure: SmallAzure, secure_azurite: Azurite) -> Iterator[Depot]:
    name = f"azureml-blobstore-{uuid.uuid4()}"
    bundle = str(secure_azurite.bundle)
    cloud = replace(azure.cloud, blob_endpoint=secure_azurite.endpoint)
    session = replace(azure.session, cloud=cloud, tokens=Accepted(azure.issuer.known))
    add_datastore(azure, name)
    with ContainerClient(secure_azurite.place(name).url, name, credential=KEY, connection_verify=bundle) as seen:
        seen.create_container()
        yield Depot(azure, secure_azurite, name, seen, session)


def parcel(folder: Path, size: int = 3000) -> Parcel:
    data = os.urandom(size)
    path = folder / "code.tar.gz"
    path.write_bytes(data)
    named = Code("d" * 64, hashlib.sha256(data).hexdigest(), hashlib.sha256(SCRIPT).hexdigest())
    return Parcel(path, named, size, SCRIPT)


@pytest.mark.rule("C-195", "A-118", "A-179")
def test_archive_and_bootstrap_come_once_each_under_its_own_hash(there: Depot, tmp_path: Path) -> None:
    one = parcel(tmp_path)
    found, steps = there.deliver(one)
    assert found == Delivered(
        f"LocalUpload/{one.code.archive_sha256}/code.tar.gz", f"LocalUpload/{one.code.bootstrap_sha256}/aj_bootstrap.sh"
    )
    assert there.seen.download_blob(found.archive).readall() == one.archive.read_bytes()
    assert there.seen.download_blob(found.bootstrap).readall() == SCRIPT
    kinds = [
        there.seen.get_blob_client(name).get_blob_properties().content_settings.content_type
        for name in (found.archive, found.bootstrap)
    ]
    assert kinds == ["application/gzip", "text/x-shellscript"]
    assert steps == [
        Step(Kind.UPLOAD, "code: uploaded 2.9 KiB", 3000, 3000, 0, "code"),
        Step(Kind.UPLOAD, "bootstrap: uploaded 12 B", 12, 12, 0, "bootstrap"),
    ]
    again, steps = there.deliver(one)
    assert again == found
    assert [step.detail for step in steps] == ["code: reused (0 B sent)", "bootstrap: reused (0 B sent)"]


def test_how_far_it_is_is_told_now_and_then(there: Depot, tmp_path: Path) -> None:
    _, steps = there.deliver(parcel(tmp_path, 200_000), sizes=Sizes(single=1000, block=1000 * 64, at_once=1))
    (first, last, _) = steps
    assert first.detail == "uploading code, 195.3 KiB"
    assert (first.completed or 0) < 200_000 == first.total  # the clock of the test stands still: one such step
    assert last.detail == "code: uploaded 195.3 KiB"


@pytest.mark.rule("A-11B")
def test_without_the_right_the_key_is_asked_for_only_when_that_is_allowed(there: Depot, tmp_path: Path) -> None:
    stranger = there.with_tokens(there.azure.issuer)  # the emulator does not accept its tokens
    secrets = f"{WORKSPACE.path}/datastores/{CODE}/listSecrets"
    with pytest.raises(Refused) as caught:
        stranger.deliver(parcel(tmp_path))
    assert caught.value.hint == f"role Storage Blob Data Contributor on {ACCOUNT}"
    assert f"POST {secrets}" not in there.azure.arm_server.targets()
    there.azure.arm.secrets[f"{WORKSPACE.id}/datastores/{CODE}".lower()] = {"secretsType": "AccountKey", "key": KEY}
    found, _ = stranger.deliver(parcel(tmp_path), allow_account_key=True)
    assert there.seen.get_blob_client(found.archive).exists()
    assert f"POST {secrets}" in there.azure.arm_server.targets()


@pytest.mark.rule("A-116")
def test_too_large_is_told_before_anything_is_asked(there: Depot, tmp_path: Path) -> None:
    one = replace(parcel(tmp_path), size_bytes=5000 * 1024**2 + 1)
    with pytest.raises(UserError, match="limit 5000 MiB"):
        there.deliver(one)
    assert there.azure.arm_server.got == []


@pytest.mark.rule("A-017", "A-117")
def test_a_datastore_that_leads_elsewhere_gets_no_token(azure: SmallAzure) -> None:
    with pytest.raises(NotFound, match=f"has no datastore {CODE}"):
        delivery.code_place(azure.session, WORKSPACE)
    add_datastore(azure, "code")
    assert delivery.code_place(azure.session, WORKSPACE) == Place(ACCOUNT, "code", f"http://127.0.0.1:10000/{ACCOUNT}")
    add_datastore(azure, "code", endpoint="core.evil.test")
    with pytest.raises(RemoteError, match=r"host devstoreaccount1\.blob\.core\.evil\.test was not followed"):
        delivery.code_place(azure.session, WORKSPACE)
    for wrong in ({"accountName": "a.evil.test/"}, {"containerName": "../x"}, {"accountName": "a@b"}):
        add_datastore(azure, "code", **wrong)
        with pytest.raises(RemoteError, match="names no container"):
            delivery.code_place(azure.session, WORKSPACE)


def test_an_archive_that_went_missing_is_told(there: Depot, tmp_path: Path) -> None:
    one = parcel(tmp_path)
    one.archive.unlink()
    with pytest.raises(AjError, match=r"code\.tar\.gz cannot be read"):
        there.deliver(one)


@pytest.mark.rule("A-11C")
def test_old_archives_that_no_live_job_and_no_ticket_names_go_and_nothing_else(there: Depot, tmp_path: Path) -> None:
    spare, live, queued = (there.delivered(tmp_path) for _ in range(3))
    foreign = f"LocalUpload/{'f' * 64}/code.tar.gz"
    there.seen.upload_blob(foreign, b"somebody else's")
    for name, code, status in (("a", spare, "Completed"), ("b", live, "Running"), ("c", live, "Completed")):
        variables = {**JOB["properties"]["environmentVariables"], "AJ_CODE_ARCHIVE_SHA256": code.code.archive_sha256}
        body = {**JOB["properties"], "environmentVariables": variables, "status": status}
        there.azure.arm.add(f"{WORKSPACE.id}/jobs/{name}", {"properties": body}, "JobBase")

    def pruned(*, before_s: float = 3600.0, dry_run: bool = False) -> list[str]:
        found = leftovers.prune(
            there.session,
            WORKSPACE,
            Delivery(there.azurite.settings),
            needed=lambda: {queued.code.archive_sha256},
            before=SYSTEM.now() + before_s,
            dry_run=dry_run,
        )
        return [kept.name for kept in found]

    everything = {blob.name for blob in there.seen.list_blobs()}
    assert len(everything) == 5
    assert pruned(before_s=-3600) == []
    assert (
        pruned(dry_run=True) == [spare.code.archive] and {blob.name for blob in there.seen.list_blobs()} == everything
    )
    assert pruned() == [spare.code.archive]
    assert {blob.name for blob in there.seen.list_blobs()} == everything - {spare.code.archive}
    assert pruned() == []


@pytest.mark.rule("A-11C")
def test_nothing_is_pruned_when_the_jobs_cannot_be_listed(there: Depot, tmp_path: Path) -> None:
    there.deliver(parcel(tmp_path))
    there.azure.arm_server.on("/jobs", problem(403, "AuthorizationFailed", "no"))
    everything = {blob.name for blob in there.seen.list_blobs()}
    with pytest.raises(Refused):
        leftovers.prune(
            there.session,
            WORKSPACE,
            Delivery(there.azurite.settings),
            needed=frozenset,
            before=SYSTEM.now() + 3600,
            dry_run=False,
        )
    assert {blob.name for blob in there.seen.list_blobs()} == everything
