"""The body of a job for a virtual cluster of Singularity. Pure: the same facts give the same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from aj.backend.sing import options as section
from aj.backend.sing.options import Options
from aj.base.errors import TemplateError
from aj.base.noun import dataclass
from aj.model import commandjob
from aj.model.commandjob import UNSETTLED, Code, CommandJob, Store
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.template import tree

# What the service's machines need unless the user says otherwise.
DEFAULTS: Mapping[str, str] = {
    "SUDO": "sudo",
    "AZCOPY_AUTO_LOGIN_TYPE": "MSI",
    "JOB_EXECUTION_MODE": "Basic",
    "AZUREML_COMPUTE_USE_COMMON_RUNTIME": "false",
}
# Where programs look for the identity that they run as.
IDENTITY_NAMES = ("AZURE_CLIENT_ID", "DEFAULT_IDENTITY_CLIENT_ID")
LOGS = "/scratch/outputs"


@dataclass(frozen=True)
class Facts:
    """What only the service can tell, and the name of the cloud, which names the datastores.

    `types` are names of instance types, the best first; `region` is None where the cluster has only one;
    `client_id` is that of the job's identity.
    """

    cloud: str
    environment_id: str = UNSETTLED
    cluster_id: str = UNSETTLED
    types: tuple[str, ...] = (UNSETTLED,)
    tier: str = UNSETTLED
    region: str | None = None
    client_id: str | None = UNSETTLED

    def in_environment(self, environment_id: str) -> Facts:
        """Return the same with the id of the job's environment."""
        return replace(self, environment_id=environment_id)


def options(spec: JobSpec) -> Options:
    """Read the template's section once more. Raises TemplateError."""
    return section.parse(tree.section_of(spec.config))


def image(spec: JobSpec, chosen: Options, placeholder: str) -> str:
    """Return the image to register: for an image of the service's own, one that only stands in its place."""
    if chosen.image_alias is not None:
        return placeholder
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
        defaults=DEFAULTS,
        settled=_identity(chosen, facts),
        setup_timeout_s=chosen.setup_timeout_s,
    )
    return CommandJob(
        spec,
        code,
        facts.cluster_id,
        facts.environment_id,
        env,
        mounted,
        chosen.tags,
        chosen.description,
        None,
        chosen.shm_bytes,
        chosen.timeout_s,
        {"AISuperComputer": _machine(spec, chosen, facts)},
    ).body()


def preview(spec: JobSpec, code: Code, *, cloud: str, accepted_at: str) -> dict[str, Json]:
    """Return the body as far as it is known without asking anybody; the rest says so."""
    return build(spec, options(spec), code, Facts(cloud), accepted_at=accepted_at)


def _identity(chosen: Options, facts: Facts) -> dict[str, str]:
    if chosen.identity is None or facts.client_id is None:
        return {}
    return dict.fromkeys(IDENTITY_NAMES, facts.client_id)


def _machine(spec: JobSpec, chosen: Options, facts: Facts) -> dict[str, Json]:
    found: dict[str, Json] = {
        "instanceType": ",".join(facts.types),
        "instanceTypes": list(facts.types),
        "instanceCount": spec.shape.nodes,
        "interactive": False,
        "imageVersion": chosen.image_alias or "",
        "slaTier": facts.tier,
        "Priority": chosen.priority,
        "EnableAzmlInt": False,
        "tensorboardLogDirectory": LOGS,
        "VirtualClusterArmId": facts.cluster_id,
    }
    if facts.region is not None:
        found["locations"] = [facts.region]
    if chosen.group_policy is not None:
        found["groupPolicyName"] = chosen.group_policy
    return found
