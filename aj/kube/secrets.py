"""Secrets: made before the job that needs them, owned by it from then on, and renewed in place.

What a Secret holds is masked everywhere from the moment it is in this process. It is written with a guard, so that
nobody's change is undone; listing Secrets is a right that a job does not need, and nothing here lists them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import field

from aj.base import redact
from aj.base.errors import AjError, NotFound, OutcomeUnknown, Refused, RemoteError, Unavailable
from aj.base.noun import dataclass
from aj.kube.client import Cluster
from aj.kube.resources import JOBS, SECRETS
from aj.model.json import Json
from aj.net.document import Document

TRIES = 3  # against others who change the same object at the same time
PAUSE_S = 1.0  # before a removal is tried again


@dataclass(frozen=True)
class Secret:
    """A Secret as it stands. `version` changes with every change of it; `data` holds its values in the clear."""

    name: str
    namespace: str
    uid: str
    version: str
    labels: Mapping[str, str]
    is_owned: bool
    data: Mapping[str, str] = field(repr=False)
    body: Mapping[str, Json] = field(repr=False)


def find(cluster: Cluster, name: str, namespace: str) -> Secret | None:
    """Read a Secret; None when there is none. Raises as `Cluster.get`."""
    found = cluster.find(SECRETS, name, namespace)
    return None if found is None else _secret(found)


def create(cluster: Cluster, body: Mapping[str, Json], namespace: str) -> Secret:
    """Create a Secret, or put these values into the one of this name that bears the same labels.

    So the same call again gives the same Secret, also after an answer that was lost. Raises Refused when it is
    somebody else's, and as `Cluster.create`.
    """
    hide(body)
    name = str(_about(body).get("name"))
    try:
        return _secret(cluster.create(SECRETS, body, namespace))
    except Refused as error:
        if error.code != "exists":
            raise
    except OutcomeUnknown:
        if find(cluster, name, namespace) is None:
            raise
    return _change(cluster, name, namespace, lambda there: _taken(there, body))


def own(cluster: Cluster, name: str, namespace: str, job: Document) -> None:
    """Let a Secret die with a job. Raises NotFound, Refused, and as `Cluster.replace`."""
    owner: dict[str, Json] = {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.name,
        "name": job.need_text("metadata", "name"),
        "uid": job.need_text("metadata", "uid"),
        "controller": False,
        "blockOwnerDeletion": False,
    }
    _change(cluster, name, namespace, lambda there: _with(there.body, {"ownerReferences": [owner]}))


def renew(cluster: Cluster, name: str, namespace: str, values: Mapping[str, str]) -> Secret:
    """Put new values in the place of old ones; a key that the Secret does not have stays out.

    Raises NotFound, Refused, and as `Cluster.replace`.
    """
    for value in values.values():
        redact.hide(value)
    return _change(cluster, name, namespace, lambda there: _renewed(there, values))


def remove(cluster: Cluster, name: str, namespace: str, *, uid: str | None = None) -> bool:
    """Remove a Secret, tried again while its answer is lost; False when there was none. Raises as `Cluster.delete`."""
    for _ in range(TRIES - 1):
        try:
            return cluster.delete(SECRETS, name, namespace, uid=uid)
        except (OutcomeUnknown, Unavailable):
            cluster.clock.sleep(PAUSE_S)
    return cluster.delete(SECRETS, name, namespace, uid=uid)


def hide(body: Mapping[str, Json]) -> None:
    """Mask the values of a Secret that is to be sent, wherever they would appear."""
    for key in ("data", "stringData"):
        values = body.get(key)
        for value in (values if isinstance(values, Mapping) else {}).values():
            redact.hide(str(value))
            if key == "data":
                redact.hide(_decoded(str(value)))


def _change(cluster: Cluster, name: str, namespace: str, changed: Callable[[Secret], Mapping[str, Json]]) -> Secret:
    """Change a Secret as it stands; once more from its new state when somebody else was faster."""
    last: AjError | None = None
    for _ in range(TRIES):
        there = find(cluster, name, namespace)
        if there is None:
            raise NotFound(f"secret {name} is not in namespace {namespace}", code="no-secret")
        try:
            return _secret(cluster.replace(SECRETS, name, changed(there), namespace))
        except Refused as error:
            if error.code != "conflict":
                raise
            last = error
    raise Refused(f"secret {name} is changed by others all the time", code="conflict") from last


def _taken(there: Secret, body: Mapping[str, Json]) -> Mapping[str, Json]:
    labels = _about(body).get("labels")
    wanted = labels if isinstance(labels, Mapping) else {}
    if any(there.labels.get(key) != value for key, value in wanted.items()):
        raise Refused(f"secret {there.name} of namespace {there.namespace} is not ours", code="other-secret")
    return {**there.body, "data": body.get("data")}


def _renewed(there: Secret, values: Mapping[str, str]) -> Mapping[str, Json]:
    data = {key: values.get(key, value) for key, value in there.data.items()}
    return {**there.body, "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}}


def _with(body: Mapping[str, Json], changes: Mapping[str, Json]) -> Mapping[str, Json]:
    return {**body, "metadata": {**_about(body), **changes}}


def _about(body: Mapping[str, Json]) -> Mapping[str, Json]:
    found = body.get("metadata")
    return found if isinstance(found, Mapping) else {}


def _secret(found: Document) -> Secret:
    hide(found.values)
    return Secret(
        name=found.need_text("metadata", "name"),
        namespace=found.need_text("metadata", "namespace"),
        uid=found.need_text("metadata", "uid"),
        version=found.need_text("metadata", "resourceVersion"),
        labels=found.texts("metadata", "labels"),
        is_owned=bool(found.each("metadata", "ownerReferences")),
        data={key: _decoded(value) for key, value in found.texts("data").items()},
        body=found.values,
    )


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise RemoteError("a value of a secret is not text", code="bad-answer") from None
