"""A small Azure with what both services need: a workspace, code that is packed, and who brings it there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from aj.azure.arm import Session, Workspace
from aj.azure.chosen import Chosen
from aj.azure.memory import Memory
from aj.azure.submission import Delivered, Means, Parcel
from aj.base.errors import AjError
from aj.model.code import CodeRef
from aj.model.commandjob import Code
from aj.model.job import JobSpec
from aj.model.step import Kind, Step
from tests.servers.azure import SmallAzure
from tests.template.kit import ID, Request, built, project

NAME = "pretrain_0a1b2c3d"
AT = "2026-01-31T12:00:00.000000+00:00"
BOOTSTRAP = b"#!/usr/bin/env bash\nexec bash aj_runner.sh\n"
BOOTSTRAP_SHA256 = hashlib.sha256(BOOTSTRAP).hexdigest()
CODE = CodeRef("d1" * 32, "9d" * 32, 3, 300, 120)
PACKED = Code(CODE.digest, CODE.archive_sha256, BOOTSTRAP_SHA256)


def spec(root: Path, template: str, *argv: str, **changes: object) -> JobSpec:
    """The JobSpec of a template, with fixed names."""
    where = project(root, {"t": template})
    asked = Request(ID, root, argv or ("python", "train.py"), where, name="pretrain", experiment="aj")
    return replace(built(root, template, request=asked).spec, **changes)  # type: ignore[arg-type]


@dataclass
class Courier:
    """Takes parcels and notes them; with `trouble` it fails instead."""

    parcels: list[tuple[Workspace, Parcel]] = field(default_factory=list)
    trouble: AjError | None = None
    elsewhere: bool = False

    def __call__(
        self, session: Session, workspace: Workspace, parcel: Parcel, *, tell: Callable[[Step], None]
    ) -> Delivered:
        if self.trouble is not None:
            raise self.trouble
        self.parcels.append((workspace, parcel))
        tell(Step(Kind.UPLOAD, "code", 120, 120, 0, "code.tar.gz"))
        archive = "LocalUpload/x/code.tar.gz" if self.elsewhere else parcel.code.archive
        return Delivered(archive, parcel.code.bootstrap)


@dataclass
class Desk:
    """The means of a service under test, and what it told."""

    azure: SmallAzure
    folder: Path
    courier: Courier = field(default_factory=Courier)
    chosen: Chosen = field(default_factory=Chosen)
    steps: list[tuple[str, Step]] = field(default_factory=list)
    tenants: list[str | None] = field(default_factory=list)

    @property
    def means(self) -> Means:
        return Means(
            self._session,
            lambda spec: self.chosen,
            self.courier,
            lambda code: self.folder / f"{code.digest}.tar.gz",
            BOOTSTRAP,
            Memory(self.folder / "azure", self.azure.session.clock),
            lambda aj_id, step: self.steps.append((aj_id, step)),
        )

    def _session(self, spec: JobSpec | None, tenant: str | None) -> Session:
        self.tenants.append(tenant)
        return self.azure.session

    @property
    def told(self) -> list[Kind]:
        return [step.kind for _, step in self.steps]

    def said(self, kind: Kind) -> list[str]:
        return [step.detail for _, step in self.steps if step.kind is kind]


def targets(azure: SmallAzure) -> list[str]:
    """The last part of each request's path, behind its method."""
    return [f"{got.method} {got.path.rpartition('/')[2]}" for got in azure.arm_server.got]


def sent(azure: SmallAzure, name: str = NAME) -> bytes:
    """The bytes of the one body that was put under a job's name."""
    (got,) = [got for got in azure.arm_server.got if got.method == "PUT" and got.path.endswith(f"/jobs/{name}")]
    return got.body
