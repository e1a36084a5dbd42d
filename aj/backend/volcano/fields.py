"""Words of Kubernetes as a template may write them: names, labels, quantities of one container."""

from __future__ import annotations

import re

from aj.base.noun import dataclass
from aj.model.json import Json
from aj.template import sections, tree
from aj.template.reader import Quantity, Reader
from aj.template.sections import Scratch

SHM = "/dev/shm"
WORKDIR = "/mnt/aj-work"
SECRETS = "/mnt/aj-secrets"
OWN_FOLDERS = ((SHM, "shared memory"), (WORKDIR, "the work directory"), (SECRETS, "the secrets"))
NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")
SUBDOMAIN = re.compile(r"(?=.{1,253}\Z)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*\Z")
RESOURCE = re.compile(r"(?:[a-z0-9.-]{1,253}/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?\Z")
_LABEL_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?\Z")
_RESERVED = ("volcano.sh/", "aj-")
_MANAGED_BY = "app.kubernetes.io/managed-by"
_TOLERATION = {"operator": ("Exists", "Equal"), "effect": ("NoSchedule", "PreferNoSchedule", "NoExecute")}
# What the first process of a pod and its parts read, besides what is set for every job.
_STEERING = frozenset(
    {
        *("AJ_COMMAND", "AJ_SETUP", "AJ_SETUP_TIMEOUT", "AJ_TERM_GRACE", "AJ_LAUNCHER", "AJ_PROCESS_BASE"),
        *("AJ_RANK_BASE", "AJ_K8S_JOB", "AJ_CODE_FROM", "AJ_CODE_URL", "AJ_CODE_URL_FILE", "AJ_CODE_RETRIES"),
        *("AJ_SSH", "AJ_AZCOPY", "AJ_AZCOPY_PROGRAM", "AJ_BLOBFUSE2", "AJ_BLOBFUSE2_MINIMUM", "AJ_IMAGE_PATH"),
        *("AJ_STORAGE", "VC_TASK_INDEX", "VK_TASK_INDEX"),
    }
)


@dataclass(frozen=True)
class Container:
    """What one container takes besides GPUs. None is not requested."""

    shm_bytes: int | None = None
    capabilities: tuple[str, ...] = ()
    scratch: Scratch | None = None
    cpus: Quantity | None = None
    memory: Quantity | None = None


def container(arguments: Reader, taken: tuple[tuple[str, str], ...]) -> Container:
    """Read `container_args`. `taken` are folders that hold something else, each with what it is."""
    return Container(
        shm_bytes=sections.shm_size(arguments),
        capabilities=sections.capabilities(arguments),
        scratch=sections.scratch(arguments, taken=(*OWN_FOLDERS, *taken)),
        cpus=arguments.quantity("cpus"),
        memory=arguments.quantity("memory"),
    )


def tell_scratch(arguments: Reader, found: Scratch | None) -> None:
    """Warn of what else counts against the size of a scratch folder."""
    if found is not None and found.size is not None:
        message = f"the work directory and the image's own layer count against the {found.size.text} of scratch too"
        arguments.warn("scratch_size", message, code="scratch-shared")


def check_shm(arguments: Reader, size: int | None, memory: Quantity | None) -> None:
    """Note shared memory that is larger than all memory."""
    if size is not None and memory is not None and size > memory.value:
        arguments.wrong("shm_size", f"`shm_size` is larger than the memory, {memory.text}")


def labels(reader: Reader, key: str, *, values_are_labels: bool = True) -> dict[str, str]:
    """Read labels, or annotations when their values may be any text; reserved keys are errors."""
    section = reader.section(key)
    found = section.named_texts(numbers=True)
    for name, value in found.items():
        prefix, slash, local = name.rpartition("/")
        if not _LABEL_NAME.match(local) or (slash and not SUBDOMAIN.match(prefix)):
            section.wrong(name, f"`{name}` cannot be the key of a label")
        elif name.startswith(_RESERVED) or (name == _MANAGED_BY and key == "labels"):
            section.wrong(name, f"`{name}` is reserved: keys under `volcano.sh/` and `aj-` are set for the job")
        elif values_are_labels and value and not _LABEL_NAME.match(value):
            section.wrong(name, f"`{value}` cannot be the value of a label", hint="at most 63 letters, digits, `-_.`")
    return found


def tolerations(target: Reader) -> tuple[dict[str, Json], ...]:
    """Read tolerations as Kubernetes knows them."""
    found = []
    for item in target.sections("tolerations"):
        item.unknown(("key", "operator", "value", "effect", "tolerationSeconds"), is_error=True)
        item.form("key", RESOURCE, "key of a taint")
        value = item.text("value")
        operator = _exactly(item, "operator")
        _exactly(item, "effect")
        item.whole("tolerationSeconds")
        if operator == "Exists" and value:
            item.wrong("value", "`operator: Exists` takes any value: `value` cannot stand beside it")
        if not item.has("key") and operator != "Exists":
            item.wrong("key", "a toleration without `key` is for all taints", hint="write `operator: Exists` in it")
        if item.has("tolerationSeconds") and item.text("effect") != "NoExecute":
            item.wrong("tolerationSeconds", "`tolerationSeconds` goes with `effect: NoExecute` alone")
        found.append(tree.mapping(item.node))
    return tuple(found)


def _exactly(item: Reader, key: str) -> str | None:
    """Read a word that the cluster takes in this one spelling."""
    found = item.one_of(key, _TOLERATION[key])
    if found is not None and found != item.text(key):
        item.wrong(key, f"`{item.at(key)}` is `{item.text(key)}`", hint=f"write `{found}`")
    return found


def is_steering(name: str) -> bool:
    """Tell whether a variable steers the first process of a pod."""
    return name in _STEERING or name.startswith("AJ_STORAGE_")
