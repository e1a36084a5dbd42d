"""What an API server and Volcano's admission find wrong with an object that its schema allows."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

from tests.servers.kube_schema import Cause, core, duplicate, invalid, required, unsupported

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\Z")
QUANTITY = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+|)\Z")
SECRET_KEY = re.compile(r"[-._a-zA-Z0-9]+\Z")
SCALES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{letter: Fraction(1000) ** (power + 1) for power, letter in enumerate("kMGTPE")},
    **{letter + "i": Fraction(1024) ** (power + 1) for power, letter in enumerate("KMGTPE")},
}
_LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_NAME_WORDS = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_KEY_WORDS = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
QUANTITY_WORDS = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
FIELDS = re.compile(
    r"metadata\.(name|namespace|uid|labels|annotations|(labels|annotations)\['[^']+'\])\Z"
    r"|spec\.(nodeName|serviceAccountName)\Z|status\.(hostIPs?|podIPs?)\Z"
)
VOLCANO_PLUGINS = ("env", "svc", "ssh", "pytorch", "tensorflow", "mpi", "ray", "hcclrank", "jax", "nccl")


def amount(value: object) -> Fraction | None:
    """A quantity as a number; None when it is none."""
    found = QUANTITY.match(str(value))
    if found is None:
        return None
    scale = SCALES.get(found[2])
    return Fraction(found[1]) * (scale if scale is not None else Fraction(10) ** int(found[2][1:]))


def unreadable(spec: Mapping) -> bool:
    """Whether a pod's spec holds a quantity that is none: no decoder takes it."""
    every = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    found = [one.get("resources", {}).get(word) or {} for one in every for word in ("limits", "requests")]
    sizes = [(volume.get("emptyDir") or {}).get("sizeLimit") for volume in spec.get("volumes") or []]
    values = [value for listed in found for value in listed.values()] + [size for size in sizes if size is not None]
    return any(amount(value) is None for value in values)


def metadata(document: Mapping, *, is_label: bool = False) -> Iterator[Cause]:
    """Names, labels and annotations of anything."""
    about = document.get("metadata", {})
    name, words = about.get("name", ""), _LABEL_WORDS if is_label else _SUBDOMAIN_WORDS
    if not (LABEL if is_label else SUBDOMAIN).match(name):
        yield invalid("metadata.name", name, words)
    if len(name) > (63 if is_label else 253):
        yield invalid("metadata.name", name, f"must be no more than {63 if is_label else 253} bytes")
    yield from labels(about.get("labels") or {}, "metadata.labels")
    for key in about.get("annotations") or {}:
        yield from _qualified(key.lower(), "metadata.annotations")
    if sum(len(key) + len(value) for key, value in (about.get("annotations") or {}).items()) > 256 * 1024:
        yield Cause("metadata.annotations", "FieldValueTooLong", "Too long: may not be more than 262144 bytes")
    for owner in about.get("ownerReferences") or []:
        for word in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(word):
                why = "version must not be empty" if word == "apiVersion" else "must not be empty"
                yield invalid(f"metadata.ownerReferences.{word}", "", why)


def labels(found: Mapping[str, str], at: str) -> Iterator[Cause]:
    """Keys and values of labels, and of what selects by them."""
    for key, value in found.items():
        yield from _qualified(key, at)
        if value and not QUALIFIED.match(value):
            yield invalid(at, value, _VALUE_WORDS)
        if len(value) > 63:
            yield invalid(at, value, "must be no more than 63 bytes")


def _qualified(key: str, at: str) -> Iterator[Cause]:
    prefix, slash, name = key.rpartition("/")
    if slash and not SUBDOMAIN.match(prefix):
        yield invalid(at, key, f"prefix part {_SUBDOMAIN_WORDS}")
    if not name or not QUALIFIED.match(name):
        yield invalid(at, key, _NAME_WORDS)
    if len(name) > 63:
        yield invalid(at, key, "name part must be no more than 63 bytes")


def secret(document: Mapping) -> Iterator[Cause]:
    """Keys and values of a Secret."""
    for key in document.get("data") or {}:
        if not SECRET_KEY.match(key):
            yield invalid(f"data[{key}]", key, _KEY_WORDS)
    wanted = {"kubernetes.io/dockerconfigjson": ".dockerconfigjson"}.get(document.get("type", ""))
    if wanted and wanted not in (document.get("data") or {}):
        yield required(f"data[{wanted}]")


def unreadable_data(data: Mapping[str, object]) -> str | None:
    """What a decoder says of the values of a Secret; None when it reads them."""
    for value in data.values():
        if value is not None and not isinstance(value, str):
            return "json: cannot unmarshal number into Go struct field Secret.data of type []uint8"
        bad = re.search(r"[^A-Za-z0-9+/=\r\n]", value or "")
        if bad:
            return f"illegal base64 data at input byte {bad.start()}"
        try:
            base64.b64decode(value or "", validate=True)
        except (binascii.Error, ValueError):
            return f"illegal base64 data at input byte {len(value or '')}"
    return None


def claim(document: Mapping) -> Iterator[Cause]:
    """A claim of a volume."""
    spec = document.get("spec", {})
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    if "storage" not in spec.get("resources", {}).get("requests", {}):
        yield required("spec.resources[storage]")


def pod(document: Mapping) -> Iterator[Cause]:
    """A pod."""
    yield from pod_spec(document.get("spec", {}), "spec")


def pod_spec(spec: Mapping, at: str) -> Iterator[Cause]:
    """A pod's spec, wherever it stands."""
    names = yield from _volumes(spec.get("volumes") or [], f"{at}.volumes")
    containers = spec.get("containers") or []
    if not containers:
        yield required(f"{at}.containers")
    seen = [one.get("name") for one in containers]
    for number, container in enumerate(containers):
        if container.get("name") in seen[:number]:
            yield duplicate(f"{at}.containers[{number}].name", container["name"])
        yield from _container(container, names, f"{at}.containers[{number}]")
    for number, container in enumerate(spec.get("initContainers") or []):
        yield from _container(container, names, f"{at}.initContainers[{number}]")
    yield from _one_of(spec, "restartPolicy", ("Always", "OnFailure", "Never"), at)
    yield from _one_of(spec, "dnsPolicy", ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"), at)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        yield invalid(f"{at}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    for word in ("hostname", "subdomain"):
        if spec.get(word) and (not LABEL.match(spec[word]) or len(spec[word]) > 63):
            yield invalid(f"{at}.{word}", spec[word], _LABEL_WORDS)
    yield from labels(spec.get("nodeSelector") or {}, f"{at}.nodeSelector")
    for word in ("serviceAccountName", "priorityClassName"):
        if spec.get(word) and not SUBDOMAIN.match(spec[word]):
            yield invalid(f"{at}.{word}", spec[word], _SUBDOMAIN_WORDS)
    for number, one in enumerate(spec.get("tolerations") or []):
        yield from _toleration(one, f"{at}.tolerations[{number}]")
    yield from _affinity(spec.get("affinity") or {}, f"{at}.affinity")
    yield from _identity(spec.get("securityContext") or {}, f"{at}.securityContext")


def _one_of(where: Mapping, word: str, known: tuple[str, ...], at: str) -> Iterator[Cause]:
    value = where.get(word)
    if value is not None and value not in known:
        yield unsupported(f"{at}.{word}", value, list(known))


def _volumes(volumes: list, at: str) -> Iterator[Cause]:
    names: list[str] = []
    for number, volume in enumerate(volumes):
        here, name = f"{at}[{number}]", volume.get("name", "")
        if not name:
            yield required(f"{here}.name")
        elif not LABEL.match(name) or len(name) > 63:
            yield invalid(f"{here}.name", name, _LABEL_WORDS)
        if name in names:
            yield duplicate(f"{here}.name", name)
        names.append(name)
        for word in [word for word in volume if word != "name"][1:]:
            yield Cause(f"{here}.{word}", "FieldValueForbidden", "Forbidden: may not specify more than 1 volume type")
        yield from _source(volume, here)
    return names


def _source(volume: Mapping, at: str) -> Iterator[Cause]:
    if (empty := volume.get("emptyDir")) is not None:
        size = amount(empty.get("sizeLimit", 0))
        if size is not None and size < 0:
            words = "SizeLimit field must be a valid resource quantity"
            yield invalid(f"{at}.emptyDir.sizeLimit", empty["sizeLimit"], words)
    if (kept := volume.get("secret")) is not None:
        if not kept.get("secretName"):
            yield required(f"{at}.secret.secretName")
        mode = kept.get("defaultMode", 0)
        if not 0 <= mode <= 0o777:
            yield invalid(
                f"{at}.secret.defaultMode", mode, "must be a number between 0 and 0777 (octal), both inclusive"
            )
    if (claimed := volume.get("persistentVolumeClaim")) is not None and not claimed.get("claimName"):
        yield required(f"{at}.persistentVolumeClaim.claimName")


def _container(container: Mapping, volumes: list[str], at: str) -> Iterator[Cause]:
    name = container.get("name", "")
    if not name:
        yield required(f"{at}.name")
    elif not LABEL.match(name) or len(name) > 63:
        yield invalid(f"{at}.name", name, _LABEL_WORDS)
    image = container.get("image", "")
    if not image:
        yield required(f"{at}.image")
    elif image != image.strip():
        yield invalid(f"{at}.image", image, "must not have leading or trailing whitespace")
    yield from _one_of(container, "imagePullPolicy", ("Always", "IfNotPresent", "Never"), at)
    for number, one in enumerate(container.get("env") or []):
        yield from _variable(one, f"{at}.env[{number}]")
    paths: list[str] = []
    for number, mount in enumerate(container.get("volumeMounts") or []):
        here, path = f"{at}.volumeMounts[{number}]", mount.get("mountPath", "")
        if mount.get("name") not in volumes:
            yield Cause(f"{here}.name", "FieldValueNotFound", f'Not found: "{mount.get("name")}"')
        if not path:
            yield required(f"{here}.mountPath")
        if path in paths:
            yield invalid(f"{here}.mountPath", path, "must be unique")
        paths.append(path)
    yield from _resources(container.get("resources") or {}, f"{at}.resources")
    yield from _identity(container.get("securityContext") or {}, f"{at}.securityContext")


def _variable(one: Mapping, at: str) -> Iterator[Cause]:
    name = one.get("name", "")
    if not name:
        yield required(f"{at}.name")
    elif "=" in name or not all(" " <= letter <= "~" for letter in name):
        words = "a valid environment variable name must consist only of printable ASCII characters other than '='"
        yield invalid(f"{at}.name", name, words)
    origin = one.get("valueFrom")
    if origin is None:
        return
    if one.get("value"):
        yield invalid(f"{at}.valueFrom", "", "may not be specified when `value` is not empty")
    path = origin.get("fieldRef", {}).get("fieldPath")
    if path is not None and not FIELDS.match(path):
        yield invalid(
            f"{at}.valueFrom.fieldRef.fieldPath", path, f"error converting fieldPath: field label not supported: {path}"
        )


def _resources(found: Mapping, at: str) -> Iterator[Cause]:
    limits, requests = found.get("limits") or {}, found.get("requests") or {}
    for word, listed in (("limits", limits), ("requests", requests)):
        for name, value in listed.items():
            size = amount(value)
            if size is None:
                continue  # said by whoever decodes it
            if size < 0:
                yield invalid(f"{at}.{word}[{name}]", value, "must be greater than or equal to 0")
            elif "/" in name and size.denominator != 1:
                yield invalid(f"{at}.{word}[{name}]", value, "must be an integer")
            if "/" not in name and name not in ("cpu", "memory", "ephemeral-storage"):
                for words in (
                    "must be a standard resource type or fully qualified",
                    "must be a standard resource for containers",
                ):
                    yield invalid(f"{at}.{word}[{name}]", name, words)
    for name, value in requests.items():
        size, most = amount(value), amount(limits.get(name, value))
        if size is None or most is None:
            continue
        if "/" in name and name not in limits:
            yield required(f"{at}.limits", "Limit must be set for non overcommitable resources")
        elif "/" in name and size != most:
            yield invalid(f"{at}.requests", value, f"must be equal to {name} limit of {limits[name]}")
        elif size > most:
            words = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid(f"{at}.requests", value, words)


def _identity(found: Mapping, at: str) -> Iterator[Cause]:
    for word in ("runAsUser", "runAsGroup", "fsGroup"):
        value = found.get(word)
        if value is not None and not 0 <= value < 2**31:
            yield invalid(f"{at}.{word}", value, "must be between 0 and 2147483647, inclusive")
    if found.get("privileged") and found.get("allowPrivilegeEscalation") is False:
        words = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield invalid(at, {word[0].upper() + word[1:]: value for word, value in found.items()}, words)
    yield from _one_of(
        found.get("seccompProfile") or {}, "type", ("Localhost", "RuntimeDefault", "Unconfined"), f"{at}.seccompProfile"
    )


def _toleration(one: Mapping, at: str) -> Iterator[Cause]:
    if one.get("key"):
        yield from _qualified(one["key"], f"{at}.key")
    operator = one.get("operator", "Equal")
    if not one.get("key") and operator != "Exists":
        yield invalid(
            f"{at}.operator",
            operator,
            'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        )
    if operator == "Exists" and one.get("value"):
        yield invalid(f"{at}.operator", one["value"], "value must be empty when `operator` is 'Exists'")
    yield from _one_of(one, "operator", ("Equal", "Exists"), at)
    yield from _one_of(one, "effect", ("NoSchedule", "PreferNoSchedule", "NoExecute"), at)


def _affinity(found: Mapping, at: str) -> Iterator[Cause]:
    for side in ("podAffinity", "podAntiAffinity"):
        wanted = found.get(side) or {}
        for number, term in enumerate(wanted.get("requiredDuringSchedulingIgnoredDuringExecution") or []):
            yield from _term(term, f"{at}.{side}.requiredDuringSchedulingIgnoredDuringExecution[{number}]")
        for number, entry in enumerate(wanted.get("preferredDuringSchedulingIgnoredDuringExecution") or []):
            here = f"{at}.{side}.preferredDuringSchedulingIgnoredDuringExecution[{number}]"
            if not 1 <= entry.get("weight", 0) <= 100:
                yield invalid(f"{here}.weight", entry.get("weight", 0), "must be in the range 1-100")
            yield from _term(entry.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm")


def _term(term: Mapping, at: str) -> Iterator[Cause]:
    if not term.get("topologyKey"):
        yield required(f"{at}.topologyKey", "can not be empty")
        yield invalid(f"{at}.topologyKey", "", "name part must be non-empty")
        yield invalid(f"{at}.topologyKey", "", _NAME_WORDS)
    yield from labels((term.get("labelSelector") or {}).get("matchLabels") or {}, f"{at}.labelSelector.matchLabels")


def job(document: Mapping, queue: Callable[[str], Mapping | None]) -> list[str]:
    """What Volcano's admission says against a Job. `queue` finds a queue by its name."""
    spec, name = document["spec"], document["metadata"]["name"]
    tasks = spec.get("tasks") or []
    if not tasks:
        return ["No task specified in job spec"]
    return [
        *_tasks(tasks, name),
        *_gang(spec, tasks),
        *(f"unable to find job plugin: {one}" for one in spec.get("plugins") or {} if one not in VOLCANO_PLUGINS),
        *_queue(spec.get("queue", "default"), queue),
    ]


def _gang(spec: Mapping, tasks: list) -> Iterator[str]:
    if spec.get("minAvailable", 0) > sum(task.get("replicas", 0) for task in tasks):
        yield "job 'minAvailable' should not be greater than total replicas in tasks"
    for place in (spec, *tasks):
        events = [one.get("event") for one in place.get("policies") or []]
        if len(set(events)) < len(events):
            yield "duplicate event in policies"


def _tasks(tasks: list, name: str) -> Iterator[str]:
    names = [task.get("name", "") for task in tasks]
    for number, task in enumerate(tasks):
        if names.index(task.get("name", "")) != number:
            yield f"duplicated task name {task['name']}"
        if not LABEL.match(task.get("name", "")):
            yield f"[{_LABEL_WORDS}]"
        if task.get("minAvailable", 0) > task.get("replicas", 0):
            yield f"'minAvailable' is greater than 'replicas' in task: {task['name']}, job: {name}"
        pod_name = f"{name}-{task.get('name', '')}-{max(0, task.get('replicas', 0) - 1)}"
        if not LABEL.match(pod_name) or len(pod_name) > 63:
            yield f"create pod with name {pod_name} validate failed"
        template = task.get("template", {})
        at = f"spec.task[{number}].template"
        unknown = core("PodTemplateSpec").unknown(template)
        causes = [*labels(template.get("metadata", {}).get("labels") or {}, f"{at}.metadata.labels")]
        causes += pod_spec(template.get("spec", {}), f"{at}.spec")
        yield from (f"{cause.field}: {cause.message}" for cause in causes)
        yield from (f'unknown field "{at}.{path}"' for path in unknown)


def _queue(name: str, find: Callable[[str], Mapping | None]) -> Iterator[str]:
    found = find(name)
    if found is None:
        yield f'unable to find job queue: queues.scheduling.volcano.sh "{name}" not found'
        return
    state = found.get("status", {}).get("state", "Open")
    if state != "Open":
        yield f"can only submit job to queue with state `Open`, queue `{name}` status is `{state}`"
    if name == "root":
        yield "can not submit job to root queue"
