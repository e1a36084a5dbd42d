"""The body of a job for a compute of Azure Machine Learning. Pure: the same facts give the same bytes."""

from __future__ import annotations

from collections.abc import Mapping

from aj.backend.aml import options as section
from aj.backend.aml.options import Options
from aj.base.errors import TemplateError
from aj.base.noun import dataclass
from aj.model import commandjob
from aj.model.commandjob import UNSETTLED, Code, CommandJob, Store
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.template import tree

IDENTITIES: Mapping[str, str | None] = {"managed": "Managed", "user": "UserIdentity", "none": None}


@dataclass(frozen=True)
class Facts:
    """What only the service can tell, and the name of the cloud, which names the datastores."""

    cloud: str
    compute_id: str = UNSETTLED
    environment_id: str = UNSETTLED


def options(spec: JobSpec) -> Options:
    """Read the template's section once more. Raises TemplateError."""
    return section.parse(tree.section_of(spec.config))


def image(spec: JobSpec) -> str:
    """Return the image to register. Raises TemplateError when there is none."""
    if spec.image is None:
        raise TemplateError("`environment.image` is missing", hint="write `environment: {image: registry.example/x:1}`")
    return spec.image


def stores(chosen: Options, cloud: str) -> tuple[Store, ...]:
    """Return the containers that the job mounts."""
    return tuple(
        commandjob.store(
            mount.key, mount.account, mount.container, mount.mount_dir, read_only=mount.read_only, cloud=cloud
        )
        for mount in chosen.mounts
    )


def build(spec: JobSpec, chosen: Options, code: Code, facts: Facts, *, accepted_at: str) -> dict[str, Json]:
    """Return the body of the request. Raises UserError on what the service would not take."""
    mounted = stores(chosen, facts.cloud)
    env = commandjob.environment(
        spec,
        code,
        accepted_at=accepted_at,
        stores=mounted,
        shm_bytes=chosen.shm_bytes,
        setup_timeout_s=chosen.setup_timeout_s,
    )
    return CommandJob(
        spec,
        code,
        facts.compute_id,
        facts.environment_id,
        env,
        mounted,
        chosen.tags,
        chosen.description,
        IDENTITIES[chosen.identity],
        chosen.shm_bytes,
        chosen.timeout_s,
    ).body()


def preview(spec: JobSpec, code: Code, *, cloud: str, accepted_at: str) -> dict[str, Json]:
    """Return the body as far as it is known without asking anybody; the rest says so."""
    return build(spec, options(spec), code, Facts(cloud), accepted_at=accepted_at)
