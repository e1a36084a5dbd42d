"""A command job of Azure Machine Learning: what one submission says to the service, field by field.

The service runs one short line, which fetches a static script and the packed code. Everything that differs
between two jobs travels as environment variables, so no text of a user becomes part of a program.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import field

from aj.base import units
from aj.base.errors import UserError
from aj.base.noun import dataclass
from aj.model import job, words
from aj.model.job import JobSpec
from aj.model.json import Json

BOOTSTRAP, ARCHIVE = "aj_bootstrap", "aj_code_archive"
COMMAND = f"bash ${{{{inputs.{BOOTSTRAP}}}}} ${{{{inputs.{ARCHIVE}}}}}"
ENVIRONMENT = "aj"  # the name under which images are registered; the version tells which
UNSETTLED = "<resolved at submission>"  # stands in a dry run for what only the service can tell
# Linux starts no program with a longer word or variable than 128 KiB; the runner adds lines of its own.
LONGEST = 128 * 1024 - 4096
_NAME = r"[a-zA-Z0-9][a-zA-Z0-9_-]{0,254}\Z"
_ENVIRONMENT_ID = r"/subscriptions/.+/environments/[^/]+/versions/[^/]+\Z"
# From the largest to the smallest; the service knows no larger one than `g`.
_SIZES = (("g", 1024**3), ("m", 1024**2), ("k", 1024), ("b", 1))


@dataclass(frozen=True)
class Store:
    """A container as the job sees it: mounted at `folder`. `datastore` is the workspace's name for it."""

    key: str
    account: str
    container: str
    datastore: str
    folder: str
    read_only: bool = False


@dataclass(frozen=True)
class Code:
    """The packed code and the script that unpacks it, each by the SHA-256 of its bytes."""

    digest: str
    archive_sha256: str
    bootstrap_sha256: str

    @property
    def archive(self) -> str:
        """The archive's path in the workspace's own container."""
        return f"LocalUpload/{self.archive_sha256}/code.tar.gz"

    @property
    def bootstrap(self) -> str:
        """The script's path in the workspace's own container."""
        return f"LocalUpload/{self.bootstrap_sha256}/aj_bootstrap.sh"


UNPACKED = Code("0" * 64, "0" * 64, "0" * 64)  # stands for code that nobody has packed yet


@dataclass(frozen=True)
class CommandJob:
    """One job, complete. `identity` is the service's word; `machine` what stands under `resources.properties`."""

    spec: JobSpec
    code: Code
    compute_id: str
    environment_id: str
    env: Mapping[str, str] = field(repr=False)
    stores: Sequence[Store] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    description: str | None = None
    identity: str | None = None
    shm_bytes: int | None = None
    timeout_s: float | None = None
    machine: Mapping[str, Json] = field(default_factory=dict)

    def body(self) -> dict[str, Json]:
        """Return the body of the request. Raises UserError on a name or an environment id that is none."""
        name, spec = checked_name(self.spec.name), self.spec
        if self.environment_id != UNSETTLED:
            checked_environment_id(self.environment_id)
        written, read = _sides(self.stores)
        found: dict[str, Json] = {
            "jobType": "Command",
            "displayName": name,
            "description": self.description,
            "experimentName": experiment(spec),
            "command": COMMAND,
            "computeId": self.compute_id,
            "environmentId": self.environment_id,
            "environmentVariables": dict(self.env),
            "inputs": {
                BOOTSTRAP: _download(self.code.bootstrap),
                ARCHIVE: _download(self.code.archive),
                **{store.key: _mounted(store, "Input", "ReadOnlyMount") for store in read},
            },
            "outputs": {store.key: _mounted(store, "Output", "ReadWriteMount") for store in written},
            "distribution": _distribution(spec),
            "identity": None if self.identity is None else {"identityType": self.identity},
            "resources": _resources(self),
            "limits": None if self.timeout_s is None else _limits(self.timeout_s),
            "tags": {**self.tags, "aj_id": spec.id},
            "properties": {"aj_id": spec.id, **dict(map(_folder, self.stores))},
        }
        return {"properties": {key: value for key, value in found.items() if value is not None and value != {}}}


def written(body: Mapping[str, Json]) -> bytes:
    """Return a body as it is sent."""
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()


def environment(
    spec: JobSpec,
    code: Code,
    *,
    accepted_at: str,
    stores: Sequence[Store] = (),
    shm_bytes: int | None = None,
    defaults: Mapping[str, str] | None = None,
    settled: Mapping[str, str] | None = None,
    setup_timeout_s: float | None = None,
) -> dict[str, str]:
    """Return the environment of the job, in rising order: defaults, the user's own, `settled`, and ours.

    `defaults` give way to the user's own values, `settled` do not. `accepted_at` is an RFC 3339 moment in UTC.
    Raises UserError when a node could not start what the job runs.
    """
    shm = {} if shm_bytes is None else {"SHM_SIZE": shm_text(shm_bytes)}
    ours = job.injected(spec, accepted_at=accepted_at, digest=code.digest, archive_sha256=code.archive_sha256)
    folders = {f"AZUREML_DATAREFERENCE_{store.key}": store.folder for store in stores}
    return {
        **shm,
        **(defaults or {}),
        **spec.env,
        **(settled or {}),
        **folders,
        **ours,
        **program(spec, setup_timeout_s),
    }


def program(spec: JobSpec, setup_timeout_s: float | None = None) -> dict[str, str]:
    """Return what the job runs, for the runner to read: setup lines, then the template's lines and the command.

    Raises UserError when it is too long for a node to start.
    """
    lines = [*spec.lines, *([words.line(spec.argv)] if spec.argv else [])]
    setup = {"AJ_SETUP": "\n".join(spec.setup)} if spec.setup else {}
    limit = {"AJ_SETUP_TIMEOUT": str(math.ceil(setup_timeout_s))} if spec.setup and setup_timeout_s else {}
    ssh = {"AJ_SSH": "1"} if spec.code.ssh else {}  # the archive brings files for ssh
    command = "\n".join(lines)
    _check_length("setup", setup.get("AJ_SETUP", ""))
    _check_length("command", command)
    return {**setup, **limit, **ssh, "AJ_COMMAND": command}


def _check_length(what: str, lines: str) -> None:
    size = len(lines.encode())
    if size > LONGEST:
        raise UserError(
            f"the {what} of the job is {units.size(size)} long, and no node starts more than {units.size(LONGEST)}",
            hint="put it into a script of the project, and run that",
        )


def checked_name(name: str) -> str:
    """Return the name of a job. Raises UserError when the service would not take it."""
    if not re.match(_NAME, name):
        raise UserError(f"`{name}` cannot be the name of a job", hint="letters, digits, `_` and `-`, at most 255")
    return name


def checked_environment_id(environment_id: str) -> str:
    """Return the id of a version of an environment. Raises UserError on anything else, as an image's own name."""
    if not re.match(_ENVIRONMENT_ID, environment_id):
        raise UserError(f"`{environment_id}` is not the id of a registered environment", code="bad-environment")
    return environment_id


def experiment(spec: JobSpec) -> str:
    """Return the experiment of a job. Raises UserError when none was chosen."""
    if spec.experiment is None:
        raise UserError("no experiment is chosen", hint="`aj config experiment NAME`, or --experiment NAME")
    return spec.experiment


def environment_version(image: str) -> str:
    """Return the version under which a Linux image is registered: the same for the same image."""
    return hashlib.sha256(f"{image}\0Linux".encode()).hexdigest()[:32]


def datastore(cloud: str, account: str, container: str) -> str:
    """Return the name under which a workspace knows a container: the same for the same container."""
    return "aj_" + hashlib.sha256(f"{cloud}\0{account}\0{container}".encode()).hexdigest()[:16]


def store(key: str, account: str, container: str, folder: str, *, read_only: bool, cloud: str) -> Store:
    """Return a container as a job of a cloud sees it."""
    return Store(key, account, container, datastore(cloud, account, container), folder, read_only)


def shm_text(size_bytes: int) -> str:
    """Write a size of shared memory as the service reads it: a whole number and `g`, `m`, `k` or `b`."""
    return next(f"{size_bytes // unit}{letter}" for letter, unit in _SIZES if size_bytes % unit == 0)


def _sides(stores: Sequence[Store]) -> tuple[list[Store], list[Store]]:
    """Those that are written, which the service calls outputs, and those that are only read."""
    return [store for store in stores if not store.read_only], [store for store in stores if store.read_only]


def _download(path: str) -> dict[str, Json]:
    uri = f"azureml://datastores/workspaceblobstore/paths/{path}"
    return {"jobInputType": "uri_file", "mode": "Download", "uri": uri}


def _mounted(store: Store, side: str, mode: str) -> dict[str, Json]:
    uri = f"azureml://datastores/{store.datastore}/paths/"
    return {f"job{side}Type": "uri_folder", "mode": mode, "uri": uri}


def _folder(store: Store) -> tuple[str, Json]:
    side = "INPUT" if store.read_only else "OUTPUT"
    return f"AZURE_ML_{side}_PathOnCompute_{store.key}", f"{store.folder}/"


def _distribution(spec: JobSpec) -> dict[str, Json] | None:
    if spec.shape.world_size == 1:
        return None
    return {"distributionType": "PyTorch", "processCountPerInstance": spec.shape.processes_per_node}


def _resources(one: CommandJob) -> dict[str, Json]:
    found: dict[str, Json] = {"instanceCount": one.spec.shape.nodes}
    if one.shm_bytes is not None:
        found["shmSize"] = shm_text(one.shm_bytes)
    if one.machine:
        found["properties"] = dict(one.machine)
    return found


def _limits(timeout_s: float) -> dict[str, Json]:
    return {"jobLimitsType": "Command", "timeout": f"PT{math.ceil(timeout_s)}S"}
