"""What a job of this machine takes, and what it would be refused for: known without the daemon.

Most jobs claim nothing and have no bucket: what looks after the others is imported when there is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from aj.backend.local import options
from aj.base.errors import AjError, NotFound, UserError
from aj.base.settings import Settings
from aj.model import image
from aj.model.bucket import HERE, Kind, Purpose, Wanted
from aj.model.job import JobSpec
from aj.store.config import Config
from aj.store.layout import Layout
from aj.template import tree

if TYPE_CHECKING:
    from aj.model.workload import Needs


def needs(spec: JobSpec, settings: Settings) -> Needs:
    """Return what a job takes with all its nodes. Raises UserError on bad options, Refused without podman."""
    from aj.model.workload import Needs

    if spec.tasks:
        raise UserError("jobs of several task kinds do not run on this machine", hint="`service: volcano`")
    wanted = options.parse(tree.section_of(spec.config))
    if not image.is_host(spec.image):
        from aj.backend.local import podman

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
        if _claims_something(spec):
            _check_room(spec, config, settings)
        if spec.secrets:
            from aj.store import secrets

            secrets.values(layout, spec.secrets)
    except AjError as error:
        yield error
    for purpose in (Purpose.INPUT, Purpose.CHECKPOINT):
        wished = spec.buckets.wanted(purpose) if spec.buckets else None
        if wished is not None and wished.bucket is not None:
            yield from _no_bucket(purpose, wished, wished.bucket, layout)


def _claims_something(spec: JobSpec) -> bool:
    wanted = options.parse(tree.section_of(spec.config))
    claims = (wanted.cpus, wanted.memory_bytes, spec.shape.total_gpus or None)
    return bool(spec.tasks) or not image.is_host(spec.image) or any(claim is not None for claim in claims)


def _check_room(spec: JobSpec, config: Config, settings: Settings) -> None:
    """Raise UserError, Refused when this machine cannot have such a job."""
    from aj.backend.local import machine
    from aj.model import workload

    wanted = needs(spec, settings)
    gpus = config.value("local.gpus") if wanted.gpus else 0  # counting cards may take seconds
    workload.check_fits(wanted, machine.capacity(settings, None if gpus is None else int(str(gpus))))


def _no_bucket(purpose: Purpose, wished: Wanted, bucket: str, layout: Layout) -> Iterator[AjError]:
    from aj.store import buckets, credentials

    try:
        found = credentials.read(layout, wished.credential or HERE)
    except AjError as error:
        yield error
        return
    if found.kind is Kind.DIR and not (Path(found.root or layout.buckets) / bucket).is_dir():
        known = buckets.way(layout, bucket, wished.credential, purpose=purpose)
        hint = known or f"`aj bucket create {bucket}`"
        yield NotFound(f"there is no {purpose} bucket {bucket}", hint=hint, code="no-such-bucket")
