"""A cluster of the tests, a client of ours that speaks to it, and one packed job to be brought there."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from aj.backend.volcano import payload, porter, volume
from aj.backend.volcano.options import Options
from aj.backend.volcano.porter import Helper
from aj.backend.volcano.transfer import MIB, Limits, Sent
from aj.backend.volcano.variables import Facts
from aj.base import redact
from aj.base.errors import AjError
from aj.kube import config
from aj.kube.client import Cluster
from aj.model.code import CodeRef
from aj.model.job import JobSpec
from aj.model.step import Kind, Step
from aj.store.traces import Traces
from tests.conftest import Home, MovedClock
from tests.servers import kube
from tests.servers.kube import CLAIM, NAMESPACE
from tests.template.kit import ID, built

AT = "2026-01-31T12:00:00.000000+00:00"
OWNER = "0123456789abcdef"
IMAGE = "registry.example/busybox:1@sha256:" + "0" * 64
TEMPLATE = """base:
config:
  target: {service: volcano, gpus_per_node: 8, cpus_per_node: 96, memory: 512Gi}
  environment: {image: "registry.example/train:1"}
  jobs:
  - sku: "{nodes}x80G{processes}-H100"
    instance_count: 2
    submit_args:
      env: {AMLT_PERSISTENT_VOLUME_NAME: team-data, AMLT_PERSISTENT_VOLUME_MOUNT_DIR: /mnt/shared}
"""
HELPER = f"aj-{ID}-upload"


@dataclass
class Bench:
    """One job's code on its way to a volume."""

    server: kube.Cluster
    home: Home
    clock: MovedClock
    template: str = TEMPLATE
    data: bytes = field(default_factory=lambda: os.urandom(3 * MIB + 4321))
    told: list[Step] = field(default_factory=list)
    limits: Limits = field(default_factory=lambda: Limits(part=MIB, tries=2))
    keep_s: float = 14 * 86400.0

    @property
    def spec(self) -> JobSpec:
        return built(self.home.root / "p", self.template).spec

    @property
    def chosen(self) -> Options:
        return payload.options(self.spec)

    @property
    def code(self) -> CodeRef:
        return CodeRef("d1" * 32, hashlib.sha256(self.data).hexdigest(), 3, 300, len(self.data))

    @property
    def facts(self) -> Facts:
        return Facts(AT, namespace=NAMESPACE, digest=self.code.digest, archive_sha256=self.code.archive_sha256)

    @property
    def archive(self) -> Path:
        path = self.home.root / "code.tar.gz"
        path.write_bytes(self.data)
        return path

    @property
    def traces(self) -> Traces:
        return Traces(self.home.layout.state / "clusters")

    @property
    def helper(self) -> Helper:
        return porter.of_job(self.spec, self.chosen, self.facts, image=IMAGE, owner=OWNER)

    @property
    def words(self) -> list[str]:
        return [step.detail for step in self.told]

    def reach(self) -> Cluster:
        """A new client, as a daemon that has just started has one."""
        settings = self.home.having(KUBECONFIG=str(self.server.config)).settings
        return Cluster(config.read(settings).access(), settings, self.clock, self.home.root / "kube")

    def upload(self, **changes: object) -> volume.Upload:
        whole = volume.Upload(self.reach(), self.helper, self.archive, self.code, self.keep_s, self.limits)
        return replace(whole, **changes)  # type: ignore[arg-type]

    def bring(self, **changes: object) -> Sent:
        return self.upload(**changes).carry_out(self.traces, self.told.append)

    def failing(self, **changes: object) -> AjError:
        """Bring it, which must fail, and return the error."""
        try:
            self.bring(**changes)
        except AjError as error:
            return error
        raise AssertionError("it was brought")

    @property
    def there(self) -> Path:
        """Where the code is on the volume, as this machine sees it."""
        return self.server.nodes.claim(NAMESPACE, CLAIM) / "aj_code" / ID / "code.tar.gz"

    def left(self) -> list[str]:
        """What is still on the cluster or noted here: pods and Secrets of ours, traces."""
        store = self.server.kube.store
        kinds = [kube.kind_of("pods"), kube.kind_of("secrets")]
        found = [document["metadata"]["name"] for kind in kinds for document in store.page(kind, NAMESPACE, {}).items]
        return [*found, *(trace.name for trace in self.traces.all())]

    def when(self, event: threading.Event, seconds: float) -> threading.Thread:
        """Let time pass once something has happened."""

        def run() -> None:
            assert event.wait(60), "it never happened"
            self.clock.move(seconds)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def warnings(self) -> list[str]:
        return [step.detail for step in self.told if step.kind is Kind.WARNING]


@contextlib.contextmanager
def bench(home: Home, clock: MovedClock, folder: Path) -> Iterator[Bench]:
    """Have all of it for the length of a block."""
    with kube.running(folder, tls=False) as server:  # streams over TLS have tests of their own
        yield Bench(server, home, clock)
        redact.hide("a-test-ended-here")  # secrets of one test must not hide words of another by their number
