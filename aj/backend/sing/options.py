"""What a template says to Singularity: the virtual cluster or how to choose one, tier, priority, identity, storage."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from aj.base.noun import dataclass
from aj.template import issue, sections
from aj.template.reader import Reader
from aj.template.sections import Mount
from aj.template.service import Facts
from aj.template.tree import Section

ALIAS = "amlt-sing/"  # an image of the service's own, by its alias
IDENTITY_VARIABLE = "_AZUREML_SINGULARITY_JOB_UAI"
_ARM_ID = re.compile(r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/[^/]+/userAssignedIdentities/[^/]+\Z", re.I)


@dataclass(frozen=True)
class Options:
    """The cluster (None: chosen by quota), its filters, and what the job body takes from the template."""

    cluster: str | None = None
    workspace_name: str | None = None
    subscription_id: str | None = None
    resource_group: str | None = None
    tenant_id: str | None = None
    group_policy: str | None = None
    sla_tier: str = "Premium"
    priority: str = "High"
    identity: str | None = None
    image_alias: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    shm_bytes: int | None = None
    timeout_s: float | None = None
    setup_timeout_s: float | None = None
    description: str | None = None
    ssh_files: tuple[str, ...] = ()
    facts: Facts = field(default_factory=Facts)


def parse(config: Section) -> Options:
    """Read the options of this service. Raises TemplateError with every fault."""
    reader, job = sections.config(config)
    target = reader.section("target")
    alias, image = _image(reader)
    sections.sku_needed(job)
    options = Options(
        cluster=target.text("name") or None,
        workspace_name=target.text("workspace_name"),
        subscription_id=target.text("subscription_id"),
        resource_group=target.text("resource_group"),
        tenant_id=target.text("tenant_id"),
        group_policy=target.text("group_policy"),
        sla_tier=job.one_of("sla_tier", sections.SLA_TIERS) or "Premium",
        priority=job.one_of("priority", sections.PRIORITIES) or "High",
        identity=_identity(job),
        image_alias=alias,
        tags=sections.tags(job),
        mounts=sections.mounts(reader),
        shm_bytes=sections.shm_size(job.section("submit_args").section("container_args")),
        timeout_s=job.seconds("timeout"),
        setup_timeout_s=reader.section("environment").seconds("setup_timeout"),
        description=job.text("description") or reader.text("description"),
        ssh_files=sections.ssh_files(reader),
        facts=Facts(image=image, zero_gpus=False, reserves_runner=True, warnings=tuple(reader.issues)),
    )
    issue.stop_at_errors(reader.issues)
    return options


def _image(reader: Reader) -> tuple[str | None, str | None]:
    """Return the alias of an image of the service's own, if it is one, and the image."""
    written = reader.section("environment").text("image") or ""
    if not written.startswith(ALIAS):
        return None, sections.registry_image(reader)
    if not written.removeprefix(ALIAS):
        reader.section("environment").wrong("image", f"`{written}` names no image", hint=f"write {ALIAS}ALIAS")
    return written.removeprefix(ALIAS), written


def _identity(job: Reader) -> str | None:
    """Read the managed identity that the job runs as: its ARM id, in a variable of the service's own."""
    job.one_of("identity", ("managed", "user", "none"))
    env = job.section("submit_args").section("env")
    hint = "`aj uai list -o name` prints them"
    return env.form(IDENTITY_VARIABLE, _ARM_ID, "ARM id of a managed identity", hint=hint)
