"""What a template says to Azure Machine Learning: the compute, identity, storage, tags and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aj.base.noun import dataclass
from aj.template import issue, sections
from aj.template.reader import Reader
from aj.template.sections import Mount
from aj.template.service import Facts, SkuRule
from aj.template.tree import Section

IDENTITIES = ("managed", "user", "none")


@dataclass(frozen=True)
class Options:
    """The compute and what the job body takes from the template. Empty coordinates are looked up later."""

    compute: str
    workspace_name: str | None = None
    subscription_id: str | None = None
    resource_group: str | None = None
    tenant_id: str | None = None
    identity: str = "managed"
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
    image = sections.registry_image(reader)
    sections.sku_needed(job)
    _without_effect(job)
    options = Options(
        compute=target.need_text("name", "write the compute: `name: gpu-cluster`") or "",
        workspace_name=target.text("workspace_name"),
        subscription_id=target.text("subscription_id"),
        resource_group=target.text("resource_group"),
        tenant_id=target.text("tenant_id"),
        identity=job.one_of("identity", IDENTITIES) or "managed",
        tags=sections.tags(job),
        mounts=sections.mounts(reader),
        shm_bytes=sections.shm_size(job.section("submit_args").section("container_args")),
        timeout_s=job.seconds("timeout"),
        setup_timeout_s=reader.section("environment").seconds("setup_timeout"),
        description=job.text("description") or reader.text("description"),
        ssh_files=sections.ssh_files(reader),
        facts=Facts(image=image, sku_rule=SkuRule.LOOSE, reserves_runner=True, warnings=tuple(reader.issues)),
    )
    issue.stop_at_errors(reader.issues)
    return options


def _without_effect(job: Reader) -> None:
    """Warn of words that only the other Azure service acts on."""
    for key, words in (("sla_tier", sections.SLA_TIERS), ("priority", sections.PRIORITIES)):
        if job.one_of(key, words):
            job.warn(key, f"`{key}` has no effect on `aml`", code="no-effect")
