"""The environment of a pod: what the user set, what `aj` sets, and what the program of the pod is to do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from aj.backend.volcano import fields, gang, names
from aj.backend.volcano.gang import Role
from aj.backend.volcano.options import BLOB, Options
from aj.backend.volcano.program import escaped
from aj.backend.volcano.tasks import MASTER
from aj.base import units
from aj.base.errors import UserError
from aj.base.noun import dataclass
from aj.model import job, words
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.template.sections import Mount

UNSETTLED = "<resolved at submission>"  # stands in a dry run for what only the cluster can tell
MASTER_PORT = "6105"
# Linux starts no program with a longer variable than 128 KiB, its name, `=` and the final NUL counted.
LONGEST = 128 * 1024
FLUSH_S = 5  # of the grace are kept for the end of the program itself
_KEYS = {"AJ_SETUP": "environment.setup", "AJ_COMMAND": "jobs[0].command"}


@dataclass(frozen=True)
class Facts:
    """What the job does not say itself: the namespace, its packed code, and what the settings of the user say.

    `accepted_at` is `YYYY-MM-DDTHH:MM:SS.ffffff+00:00`. `digest` and `archive_sha256` are None when no code goes
    along. `blob_endpoint` is the base address of a storage account with `{account}` where its name belongs.
    `tools` are variables that tell the pod where to get its tools from.
    """

    accepted_at: str
    namespace: str = UNSETTLED
    digest: str | None = None
    archive_sha256: str | None = None
    blob_endpoint: str = ""
    rdma_resource: str = "rdma/rdma_shared_device_a"
    submitter: str | None = None
    tools: Mapping[str, str] | None = None

    def account(self, name: str) -> str:
        """Return the base address of a storage account."""
        return self.blob_endpoint.replace("{account}", name)


def of(spec: JobSpec, chosen: Options, facts: Facts, role: Role, everyone: Sequence[Role]) -> list[Json]:
    """Return the variables of a role's container. Raises UserError for one that no node could take."""
    found = {
        **{name: value for name, value in role.env.items() if not fields.is_steering(name)},
        **job.injected(spec, accepted_at=facts.accepted_at, digest=facts.digest, archive_sha256=facts.archive_sha256),
        "AJ_GPUS_PER_NODE": str(role.gpus),
        "AJ_PROCESSES_PER_NODE": str(role.processes),
        **_code(spec, chosen, facts),
        **_mounts(chosen.mounts, facts),
        **_tools(chosen, facts),
        "AJ_RANK_BASE": str(role.rank_base),
        **_launcher(chosen, role),
        **(_task(role, everyone) if spec.tasks else {}),
        "AJ_TERM_GRACE": str(max(0, math.ceil(chosen.ending.grace_s) - FLUSH_S)),
    }
    program = _program(spec, chosen, role)
    for name, value in {**found, **program}.items():
        _check_length(name, value)
    return [
        *(_variable(name, value) for name, value in found.items()),
        *_references(spec, role),
        *(_variable(name, value) for name, value in program.items()),
    ]


def blob_path(chosen: Options, archive_sha256: str) -> str:
    """Return the path of packed code in its container."""
    return f"{chosen.upload.upload_dir}/{archive_sha256}.tgz"


def code_url(chosen: Options, facts: Facts) -> str:
    """Return the address of the packed code in blob storage, without any signature."""
    upload = chosen.upload
    account, archive = upload.storage_account or "", facts.archive_sha256 or ""
    return f"{facts.account(account)}/{upload.container}/{blob_path(chosen, archive)}"


def _variable(name: str, value: str) -> Json:
    return {"name": name, "value": escaped(value)}


def _code(spec: JobSpec, chosen: Options, facts: Facts) -> dict[str, str]:
    """Where the pod gets the code from, and where it puts it."""
    if facts.archive_sha256 is None:
        return {}
    ssh = {"AJ_SSH": "1"} if spec.code.ssh else {}  # the archive brings files for ssh
    common = {**ssh, "AJ_WORKDIR": fields.WORKDIR}
    if chosen.upload.strategy == BLOB:
        signed = {"AJ_CODE_URL_FILE": f"{fields.SECRETS}/{names.CODE_URL}"}
        where = signed if chosen.upload.auth == "sas" else {"AJ_CODE_URL": code_url(chosen, facts)}
        return {**where, "AJ_CODE_RETRIES": str(chosen.upload.pod_download_retries), **common}
    assert chosen.volume is not None, "code goes to a volume or to blob storage"
    return {"AJ_CODE_FROM": names.archive(chosen.volume.folder, spec.id), **common}


def _mounts(mounts: Sequence[Mount], facts: Facts) -> dict[str, str]:
    """What is mounted where: the keys, and of each key what the mount needs."""
    found = {"AJ_STORAGE": " ".join(mount.key for mount in mounts)} if mounts else {}
    for mount in mounts:
        found[f"AJ_STORAGE_ACCOUNT_{mount.key}"] = mount.account
        found[f"AJ_STORAGE_ENDPOINT_{mount.key}"] = facts.account(mount.account)
        found[f"AJ_STORAGE_CONTAINER_{mount.key}"] = mount.container
        found[f"AJ_STORAGE_FOLDER_{mount.key}"] = mount.mount_dir
        found[f"AJ_STORAGE_MODE_{mount.key}"] = "ro" if mount.read_only else "rw"
        found[f"AJ_STORAGE_SAS_FILE_{mount.key}"] = f"{fields.SECRETS}/{names.STORAGE}{mount.key}"
    return found


def _tools(chosen: Options, facts: Facts) -> dict[str, str]:
    """Where the pod gets the programs from that it needs and an image may not have."""
    by_blob = chosen.upload.strategy == BLOB and facts.archive_sha256 is not None
    needed = ("AJ_AZCOPY",) * by_blob + ("AJ_BLOBFUSE2",) * bool(chosen.mounts)
    return {name: value for name, value in (facts.tools or {}).items() if name.startswith(needed)}


def _launcher(chosen: Options, role: Role) -> dict[str, str]:
    if chosen.pod.launcher == "none":
        return {}
    return {"AJ_LAUNCHER": chosen.pod.launcher, "AJ_PROCESS_BASE": str(role.process_base)}


def _task(role: Role, everyone: Sequence[Role]) -> dict[str, str]:
    with_gpus = [one for one in everyone if one.gpus]
    return {
        "AJ_TASK_REPLICAS": str(role.replicas),
        "AJ_GPU_NODES": str(gang.nodes(with_gpus)),
        "AJ_TOTAL_GPUS": str(sum(one.replicas * one.gpus for one in with_gpus)),
    }


def _references(spec: JobSpec, role: Role) -> list[Json]:
    """What only the pod knows; the master's address is made of the name that the server gave to the job."""
    name = _field("AJ_K8S_JOB", "metadata.labels['volcano.sh/job-name']")
    found = [_field("AJ_TASK_NAME", "metadata.annotations['volcano.sh/task-spec']"), name]
    if "MASTER_ADDR" not in role.env:
        found.append({"name": "MASTER_ADDR", "value": f"$(AJ_K8S_JOB)-{MASTER}-0.$(AJ_K8S_JOB)"})
    if "MASTER_PORT" not in role.env:
        found.append({"name": "MASTER_PORT", "value": MASTER_PORT})
    return found


def _field(name: str, path: str) -> Json:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _program(spec: JobSpec, chosen: Options, role: Role) -> dict[str, str]:
    """What the pod runs: setup lines, then the template's lines and the words of the command line."""
    own = [words.line(spec.argv)] if spec.argv and role.runs_words else []
    setup = {"AJ_SETUP": "\n".join(role.setup)} if role.setup else {}
    if role.setup and chosen.setup_timeout_s:
        setup["AJ_SETUP_TIMEOUT"] = str(math.ceil(chosen.setup_timeout_s))
    return {**setup, "AJ_COMMAND": "\n".join([*role.lines, *own])}


def _check_length(name: str, value: str) -> None:
    size = len(name.encode()) + len(value.encode()) + 2
    if size > LONGEST:
        key = _KEYS.get(name, f"the variable {name}")
        raise UserError(
            f"{key} is {units.size(size)} long, and no node starts more than {units.size(LONGEST)}",
            hint="put it into a file of the project, and read that",
        )
