"""The stories that are on tape. Each says the same to Azure every time: ids, names, code and moments are fixed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from aj.azure.chosen import Chosen
from aj.azure.delivery import Delivery
from aj.azure.memory import Memory
from aj.azure.submission import Delivered, Means, Parcel
from aj.backend.aml import backend as aml
from aj.backend.protocol import Backend
from aj.backend.sing import backend as sing
from aj.model.code import CodeRef
from aj.model.commandjob import Code
from aj.model.handle import Handle
from aj.model.state import JobState
from aj.model.step import Step
from tests.azure.reconcile_proof import FULL
from tests.backend import azure as kit
from tests.backend.azure import AT, BOOTSTRAP, NAME
from tests.cassettes.tape import Story, Studio
from tests.servers.azure import ONE, WORKSPACE

ARCHIVE = b"what an archive would hold\n" * 40
SHA256 = hashlib.sha256(ARCHIVE).hexdigest()
PACKED = CodeRef("d1" * 32, SHA256, 3, 900, len(ARCHIVE))
AML = f"""base:
config:
  target: {{service: aml, {FULL}name: gpu-cluster, gpus_per_node: 1}}
  environment: {{registry: registry.example, image: "train:1", setup: [pip list]}}
  jobs: [{{sku: G1, instance_count: 1, submit_args: {{env: {{NCCL_DEBUG: WARN}}}}}}]
"""
SING = f"""base:
config:
  target: {{service: sing, workspace_name: ws-one, subscription_id: {ONE}, gpus_per_node: 4}}
  environment: {{image: "train:1"}}
  storage: {{shared: {{storage_account_name: sadata, container_name: data, mount_dir: /mnt/shared}}}}
  jobs: [{{sku: "80G4-H100", instance_count: 2, process_count_per_node: 4}}]
"""


def _archive(folder: Path) -> Path:
    path = folder / "code.tar.gz"
    path.write_bytes(ARCHIVE)
    return path


def _means(studio: Studio, folder: Path, steps: list[Step]) -> Means:
    return Means(
        lambda spec, tenant: studio.session,
        lambda spec: Chosen(),
        Delivery(studio.settings),
        lambda code: _archive(folder),
        BOOTSTRAP,
        Memory(folder / "memory", studio.clock),
        lambda aj_id, step: steps.append(step),
    )


def _submitted(make: Callable[[Means], Backend], template: str, place: str) -> Story:
    """Submit, look the job up, look for the submission, submit again, and end it."""

    def story(studio: Studio, folder: Path) -> None:
        steps: list[Step] = []
        backend, one = make(_means(studio, folder, steps)), kit.spec(folder, template)
        request = backend.plan(one, PACKED, accepted_at=AT)
        handle = backend.submit(request)
        assert str(handle) == f"{place}/{NAME}"
        assert handle.uploaded_bytes == len(ARCHIVE)
        assert handle.portal_url is not None
        status = backend.status(handle)
        assert status is not None and status.state is JobState.QUEUED
        assert backend.find(one) == handle
        again = backend.submit(request)
        assert (again, again.uploaded_bytes) == (handle, 0)
        backend.cancel(handle)
        nobody = Handle(handle.service, handle.place, "somebody-elses")
        assert backend.status(nobody) is None

    return story


def _delivered(studio: Studio, folder: Path, data: bytes = ARCHIVE) -> tuple[Delivered, list[Step]]:
    steps: list[Step] = []
    path = folder / "code.tar.gz"
    path.write_bytes(data)
    code = Code("d1" * 32, hashlib.sha256(data).hexdigest(), hashlib.sha256(BOOTSTRAP).hexdigest())
    parcel = Parcel(path, code, len(data), BOOTSTRAP)
    return Delivery(studio.settings)(studio.session, WORKSPACE, parcel, tell=steps.append), steps


def upload(studio: Studio, folder: Path) -> None:
    """Archive and bootstrap go where nothing is."""
    found, _ = _delivered(studio, folder)
    assert (found.archive, found.sent_bytes) == (f"LocalUpload/{SHA256}/code.tar.gz", len(ARCHIVE))


def reuse(studio: Studio, folder: Path) -> None:
    """The second time nothing is sent."""
    _delivered(studio, folder)
    found, steps = _delivered(studio, folder)
    assert found.sent_bytes == 0
    assert [step.detail for step in steps] == ["code: reused (0 B sent)", "bootstrap: reused (0 B sent)"]


STORIES: Mapping[tuple[str, str], Story] = {
    ("aml", "submit"): _submitted(aml.make, AML, f"aml://{ONE}/rg-one/ws-one"),
    ("sing", "submit"): _submitted(sing.make, SING, f"sing://{ONE}/rg-one/ws-one"),
    ("blob", "upload"): upload,
    ("blob", "reuse"): reuse,
}
