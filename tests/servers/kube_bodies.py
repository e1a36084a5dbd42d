"""What an API server of Kubernetes makes of a body: read, checked, filled in with what it leaves open, patched."""

from __future__ import annotations

import base64
import copy
import json
import re
from collections.abc import Mapping
from dataclasses import replace

from tests.servers import kube_rules
from tests.servers.kube_schema import invalid, required
from tests.servers.kube_store import Kind
from tests.servers.kube_words import Refused, begin, illegal, not_strict, status


def checked(kind: Kind, document: dict, name: str, *, is_strict: bool) -> tuple[dict, list[str]]:
    """Check an object as it is sent; returns it shaped, and what is only warned of. Raises Refused."""
    must_be(kind, document, name)
    unknown = [f'unknown field "{path}"' for path in kind.schema.unknown(document)]
    if unknown and is_strict:
        raise Refused(not_strict(kind, unknown))
    causes = kind.schema.causes(document)
    wrong = [cause for cause in causes if cause.decoding]
    unread = kube_rules.unreadable_data(document.get("data") or {}) if kind.plural == "secrets" else None
    if unread:
        raise Refused(status(400, f"{begin(kind)}: {unread}"))
    decoded = [cause for cause in wrong if not kind.crd or cause.field.startswith("metadata")]
    if decoded:
        words = decoded[0].decoding.replace("ObjectMeta.metadata.", "ObjectMeta.")
        words = re.sub(r"(ObjectMeta\.(?:labels|annotations))\S*", r"\1", words)
        raise Refused(status(400, f"{begin(kind)}: {words}"))
    if kind.plural == "pods" and kube_rules.unreadable(document.get("spec") or {}):
        raise Refused(status(400, f"{begin(kind)}: {kube_rules.QUANTITY_WORDS}"))
    whole = kind.schema.shaped(document)
    assert isinstance(whole, dict)
    whole["metadata"] = {**whole.get("metadata", {}), "name": name}
    if not name:
        causes.append(required("metadata.name", "name or generateName is required"))
    elif not wrong:
        causes += kube_rules.metadata(whole, is_label=kind.names_labels)
    if kind.rule is not None and not wrong:
        causes = [cause for cause in causes if cause.reason not in ("FieldValueRequired", "FieldValueDuplicate")]
        if kind.plural == "pods":
            whole["spec"] = _pod_defaults(whole.get("spec") or {})
        causes += kind.rule(whole)
    if causes:
        raise Refused(illegal(kind, name, causes))
    if "stringData" in whole:
        more = {key: base64.b64encode(value.encode()).decode() for key, value in whole.pop("stringData").items()}
        whole["data"] = {**whole.get("data", {}), **more}
    if kind.plural == "secrets":
        whole.setdefault("type", "Opaque")
    return whole, unknown


def must_be(kind: Kind, document: Mapping, name: str) -> None:
    """Check what an object says it is. Raises Refused."""
    version, word = document.get("apiVersion", ""), document.get("kind", "")
    if not kind.crd:
        version, word = version or kind.api_version, word or kind.kind
    if version != kind.api_version:
        words = f"the API version in the data ({version}) does not match the expected API version ({kind.api_version})"
        raise Refused(status(400, words))
    if word != kind.kind:
        cause = invalid("kind", word, f"must be {kind.kind}")
        other = replace(kind, kind=word)
        raise Refused(illegal(other, name, [cause]))


def _pod_defaults(spec: dict) -> dict:
    containers = [_container_defaults(one) for one in spec.get("containers") or []]
    more = {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst"}
    more |= {"serviceAccountName": "default", "serviceAccount": spec.get("serviceAccountName", "default")}
    more |= {"securityContext": {}, "schedulerName": "default-scheduler", "enableServiceLinks": True}
    more |= {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
    whole = {**more, **spec, "containers": containers}
    whole["terminationGracePeriodSeconds"] = max(1, whole["terminationGracePeriodSeconds"]) or 1
    whole["tolerations"] = [*(spec.get("tolerations") or []), *_own_tolerations(spec.get("tolerations") or [])]
    if spec.get("volumes"):
        whole["volumes"] = [one if len(one) > 1 else {**one, "emptyDir": {}} for one in spec["volumes"]]
    return whole


def _own_tolerations(found: list) -> list[dict]:
    keys = [f"node.kubernetes.io/{word}" for word in ("not-ready", "unreachable")]
    own = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    return [{"key": key, **own} for key in keys if key not in [one.get("key") for one in found]]


def _container_defaults(one: dict) -> dict:
    tag = one.get("image", "").rpartition("/")[2]
    is_latest = (":" not in tag and "@" not in tag) or tag.endswith(":latest")
    more = {"imagePullPolicy": "Always" if is_latest else "IfNotPresent", "resources": {}}
    more |= {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
    whole = {**more, **one}
    limits = whole["resources"].get("limits")
    if limits:
        whole["resources"] = {**whole["resources"], "requests": {**limits, **whole["resources"].get("requests", {})}}
    return whole


def patched(found: dict, kind: Kind, media: str, text: bytes) -> dict:
    """What a patch makes of an object. Raises Refused."""
    try:
        body = json.loads(text)
    except ValueError as error:
        raise Refused(status(400, f"error decoding patch: {error}")) from None
    is_merge = media == "application/merge-patch+json"
    if is_merge or (media == "application/strategic-merge-patch+json" and not kind.crd):
        whole = _merged(found, body)
        assert isinstance(whole, dict)
        return whole
    if media == "application/json-patch+json":
        return _json_patched(found, body)
    listed = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    words = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    raise Refused(status(415, words))


def _merged(found: object, patch: object) -> object:
    if not isinstance(patch, dict):
        return patch
    whole = dict(found) if isinstance(found, dict) else {}
    for name, value in patch.items():
        if value is None:
            whole.pop(name, None)
        else:
            whole[name] = _merged(whole.get(name), value)
    return whole


def _json_patched(found: dict, steps: object) -> dict:
    whole = copy.deepcopy(found)
    for step in steps if isinstance(steps, list) else []:
        *path, last = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
        where: object = whole
        for part in path:
            where = where[int(part)] if isinstance(where, list) else where[part]  # type: ignore[index]
        if step["op"] == "test":
            value = where[int(last)] if isinstance(where, list) else where.get(last)  # type: ignore[union-attr]
            if value != step["value"]:
                words = "the server rejected our request due to an error in our request"
                raise Refused(status(422, words))
        elif isinstance(where, list):
            if step["op"] == "remove":
                del where[int(last)]
            else:
                where.insert(len(where) if last == "-" else int(last), step["value"])
        elif step["op"] == "remove":
            where.pop(last)  # type: ignore[union-attr]
        else:
            where[last] = step["value"]  # type: ignore[index]
    return whole


def fixed(pod: Mapping) -> dict:
    """What of a pod cannot be changed."""
    free = ("containers", "initContainers", "activeDeadlineSeconds", "tolerations", "nodeName")
    spec = {word: value for word, value in pod["spec"].items() if word not in free}
    return {**spec, "containers": [{**one, "image": ""} for one in pod["spec"]["containers"]]}
