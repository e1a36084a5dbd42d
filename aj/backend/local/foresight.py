"""What a job of this machine takes, and what it would be refused for: known without the daemon."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from aj.backend.local import machine, options, podman
from aj.base.errors import AjError, NotFound, UserError
from aj.base.settings import Settings
from aj.model import image, workload
from aj.model.bucket import HERE, Buckets, Kind, Purpose
from aj.model.job import JobSpec
from aj.model.workload import Needs
from aj.store import buckets, credentials, secrets
from aj.store.config import Config
from aj.store.layout import Layout
from aj.template import tree


def needs(spec: JobSpec, settings: Settings) -> Needs:
    """Return what a job takes with all its nodes. Raises UserError on bad options, Refused without podman."""
    if spec.tasks:
        raise UserError("jobs of several task kinds do not run on this machine", hint="`service: volcano`")
    wanted = options.parse(tree.section_of(spec.config))
    if not image.is_host(spec.image):
        podman.need(settings)
    nodes = spec.shape.nodes
    return Needs(
        cpus=None if wanted.cpus is None else wanted.cpus * nodes,
        memory_bytes=None if wanted.memory_bytes is None else wanted.memory_bytes * nodes,
        gpus=spec.shape.total_gpus,
    )


def refusals(spec: JobSpec, config: Config, settings: Settings, layout: Layout) -> Iterator[AjError]:
    """Yield what a submission would be refused for, as far as this machine knows by itself."""
    try:
        wanted = needs(spec, settings)
        gpus = config.value("local.gpus") if wanted.gpus else 0  # counting cards may take seconds
        whole = machine.capacity(settings, None if gpus is None else int(str(gpus)))
        workload.check_fits(wanted, whole)
        secrets.values(layout, spec.secrets)
    except AjError as error:
        yield error
    for purpose in (Purpose.INPUT, Purpose.CHECKPOINT):
        wished = (spec.buckets or Buckets()).wanted(purpose)
        if wished is None or wished.bucket is None:
            continue
        try:
            found = credentials.read(layout, wished.credential or HERE)
        except AjError as error:
            yield error
            continue
        if found.kind is Kind.DIR and not (Path(found.root or layout.buckets) / wished.bucket).is_dir():
            known = buckets.way(layout, wished.bucket, wished.credential, purpose=purpose)
            hint = known or f"`aj bucket create {wished.bucket}`"
            yield NotFound(f"there is no {purpose} bucket {wished.bucket}", hint=hint, code="no-such-bucket")
