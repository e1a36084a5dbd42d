"""What files of this machine say to a job for a cluster: the settings of its user and the kubeconfig.

A submission and a dry run take it from here, so that both build the same manifest.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping, Sequence
from dataclasses import replace

from aj.azure import sessions
from aj.backend.volcano import payload, pins
from aj.backend.volcano.options import Options
from aj.backend.volcano.variables import Facts
from aj.base.errors import ConfigError
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.kube import config as kubeconfig
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.store.config import Config


@dataclass(frozen=True)
class Shown:
    """The objects of a dry run in the order in which they are sent, and what its user should know of them."""

    objects: Sequence[Mapping[str, Json]]
    notes: Sequence[str] = ()


def facts(config: Config, *, accepted_at: str) -> Facts:
    """Return what the settings say, the namespace and the code left open. Raises ConfigError at file and line.

    `accepted_at` is `YYYY-MM-DDTHH:MM:SS.ffffff+00:00`.
    """
    chosen = pins.read(config)
    return Facts(
        accepted_at,
        blob_endpoint=sessions.cloud_of(config).blob_endpoint,
        rdma_resource=chosen.rdma_resource,
        submitter=_submitter(),
        tools=chosen.tools,
    )


def manifest(
    spec: JobSpec, config: Config, settings: Settings, *, digest: str, archive_sha256: str, accepted_at: str
) -> Shown:
    """Return what a submission would send, without asking anybody. Raises as `facts` and `payload.build`."""
    chosen = payload.options(spec)
    namespace, note = _namespace(chosen, settings)
    found = replace(facts(config, accepted_at=accepted_at), namespace=namespace)
    if payload.moves_code(chosen):
        found = replace(found, digest=digest, archive_sha256=archive_sha256)
    return Shown(payload.shown(spec, found, payload.build(spec, chosen, found)), (note,))


def _namespace(chosen: Options, settings: Settings) -> tuple[str, str]:
    """Return the namespace, and which context and namespace these are and why."""
    where = chosen.where
    try:
        access = kubeconfig.read(settings).access(where.context, where.namespace)
    except ConfigError as error:
        if where.namespace is not None:
            return where.namespace, f"namespace {where.namespace} of the template; {error.message}"
        return Facts("").namespace, f"the namespace is found at the submission: {error.message}"
    return access.namespace, f"context {access.context}, namespace {access.namespace} ({access.namespace_from})"


def _submitter() -> str | None:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return None  # a user without a name, as in a container
