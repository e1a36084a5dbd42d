"""Sections of a template that several services read alike: image, storage, tags, container arguments."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from aj.base.noun import dataclass
from aj.template.reader import Quantity, Reader
from aj.template.tree import Section

SLA_TIERS = ("Premium", "Standard", "Basic")
PRIORITIES = ("High", "Medium", "Low")
_COMPONENT = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_IMAGE = (
    rf"(?:(?:[A-Za-z0-9-]+\.)*[A-Za-z0-9-]+(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?\Z"
)
_HOST = r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?::[0-9]+)?(?:/[A-Za-z0-9._-]+)*\Z"
_STORAGE_KEY = r"[A-Za-z][A-Za-z0-9_]{0,62}\Z"
_ACCOUNT = r"[a-z0-9]{3,24}\Z"
_CONTAINER = r"(?=.{3,63}\Z)[a-z0-9]+(?:-[a-z0-9]+)*\Z|\$(?:root|web|logs)\Z"
_SHM = r"([0-9]{1,15})(?:([kmgtKMGT])(?:i|iB)?)?\Z"
_CAPABILITY = r"[A-Z][A-Z0-9_]*\Z"
AMLT_CHOOSES = "amlt chooses files by its own rules: `code.ignore` has no effect"
_RESERVED_KEYS = frozenset({"aj_bootstrap", "aj_code_archive"})


@dataclass(frozen=True)
class Mount:
    """A blob container seen as a folder of the job."""

    key: str
    account: str
    container: str
    mount_dir: str
    read_only: bool = False


def config(node: Section) -> tuple[Reader, Reader]:
    """Return readers of the whole `config` and of its first job, which note faults in one list."""
    reader = Reader(node, [])
    jobs = reader.sections("jobs")
    return reader, jobs[0] if jobs else Reader(Section({}, reader.place("jobs")), reader.issues, "jobs[0]")


def image(reader: Reader) -> str | None:
    """Read the image as it is written."""
    environment = reader.section("environment")
    hint = "write it without `https://`" if "://" in (environment.text("image") or "") else None
    return environment.form("image", _IMAGE, "image such as registry.example/train:1", hint=hint)


def needed_image(reader: Reader) -> str | None:
    """Read an image that must be there."""
    environment = reader.section("environment")
    if not environment.has("image"):
        environment.missing("image", "write `environment: {image: registry.example/train:1}`")
    return image(reader)


def registry_image(reader: Reader) -> str | None:
    """Read an image that must be there, with `environment.registry` before it when that is given."""
    found = needed_image(reader)
    environment = reader.section("environment")
    registry = environment.form(
        "registry", _HOST, "registry such as registry.example", hint="no scheme, no `/` at the end"
    )
    if found is None or registry is None:
        return found
    first = found.partition("/")[0]
    if "/" in found and ("." in first or ":" in first):
        environment.wrong("registry", f"the image `{found}` names a registry already", hint="write one of the two")
        return None
    return f"{registry}/{found}"


def sku_needed(job: Reader) -> None:
    """Note that `jobs[0].sku` is not given."""
    if not job.has("sku"):
        job.missing("sku", 'write `sku: "{nodes}xG{processes}"`')


def mounts(reader: Reader, *, taken: Sequence[tuple[str, str]] = ()) -> tuple[Mount, ...]:
    """Read `storage`. `taken` are folders that hold something else already, each with what it is."""
    section = reader.section("storage")
    found: list[Mount] = []
    for key, entry in section.named_sections().items():
        if not re.match(_STORAGE_KEY, key) or key in _RESERVED_KEYS:
            section.wrong(key, f"`{key}` cannot name a storage", hint="a letter, then letters, digits and `_`")
        mount = _mount(key, entry)
        others = [*taken, *((one.mount_dir, f"storage `{one.key}`") for one in found)]
        clash = next((what for where, what in others if mount and overlap(mount.mount_dir, where)), None)
        if clash:
            entry.wrong("mount_dir", f"`{entry.at('mount_dir')}` and {clash} lie in one another")
        elif mount:
            found.append(mount)
    return tuple(found)


def _mount(key: str, entry: Reader) -> Mount | None:
    for name in ("storage_account_name", "container_name"):
        if not entry.has(name):
            entry.missing(name, f"write `{name}: …`")
    account = entry.form("storage_account_name", _ACCOUNT, "storage account: 3 to 24 small letters and digits")
    container = entry.form("container_name", _CONTAINER, "container: 3 to 63 small letters, digits and single `-`")
    where = folder(entry, "mount_dir") if entry.has("mount_dir") else f"/mnt/{key}"
    mode = entry.one_of("mode", ("rw", "ro")) or "rw"
    if account is None or container is None or where is None:
        return None
    return Mount(key, account, container, where, mode == "ro")


def folder(reader: Reader, key: str) -> str | None:
    """Read an absolute folder of the job: not the root, no `..`."""
    path = reader.text(key)
    if path is None:
        return None
    is_absolute = path.startswith("/") and not path.startswith("//") and "\0" not in path
    if not is_absolute or ".." in path.split("/") or posixpath.normpath(path) == "/":
        message = f"`{reader.at(key)}` is `{path}`; an absolute folder that is not `/` and has no `..` is due"
        reader.wrong(key, message)
        return None
    return posixpath.normpath(path)


def overlap(one: str, other: str) -> bool:
    """Tell whether one folder is the other or lies in it."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def shm_size(arguments: Reader) -> int | None:
    """Read the size of `/dev/shm` in bytes: `64g`, `64G`, `64Gi` and `64GiB` are all 64 times 2 to the 30."""
    node = arguments.node.given("shm_size")
    raw = None if node is None else getattr(node, "raw", "")
    if raw is None:
        return None
    found = re.match(_SHM, raw)
    if not found or int(found[1]) == 0:
        arguments.wrong("shm_size", f"`{arguments.at('shm_size')}` is `{raw}`, which is no size", hint="write 64g")
        return None
    power = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}[(found[2] or "").lower()]
    return int(found[1]) * int(1024**power)


def capabilities(arguments: Reader) -> tuple[str, ...]:
    """Read Linux capabilities: upper case, without `CAP_`, each once, in their order. `ALL` is refused."""
    found: dict[str, None] = {}
    for word in arguments.texts("capabilities"):
        name = word.upper().removeprefix("CAP_")
        if name == "ALL":
            arguments.wrong("capabilities", "the capability `ALL` is refused", hint="name those the job needs")
        elif not re.match(_CAPABILITY, name):
            arguments.wrong("capabilities", f"`{word}` is no capability", hint="write [SYS_ADMIN]")
        else:
            found[name] = None
    return tuple(found)


@dataclass(frozen=True)
class Scratch:
    """A folder of its own for each node, gone with the job. Without a size it has no limit of its own."""

    path: str
    size: Quantity | None = None


def scratch(arguments: Reader, *, taken: Sequence[tuple[str, str]]) -> Scratch | None:
    """Read the scratch folder. `taken` are folders that hold something else, each with what it is."""
    path = folder(arguments, "scratch_mount_path")
    size = arguments.quantity("scratch_size")
    if path is None:
        if size is not None and not arguments.has("scratch_mount_path"):
            hint = "write `scratch_mount_path: /var/lib/containers`"
            arguments.wrong("scratch_size", "`scratch_size` needs a `scratch_mount_path`", hint=hint)
        return None
    for where, what in taken:
        if overlap(path, where):
            arguments.wrong("scratch_mount_path", f"`scratch_mount_path` {path} and {what} {where} lie in one another")
            return None
    return Scratch(path, size)


def ssh_files(reader: Reader) -> tuple[str, ...]:
    """Read the files of `~/.ssh` that travel with the code: none by default, a private key only by a second word."""
    code = reader.section("code")
    may_be_private = code.flag("ssh_private_keys") or False
    found = code.texts("ssh")
    for name in found:
        if "/" in name or name in ("", ".", ".."):
            code.wrong("ssh", f"`{name}` is no file of ~/.ssh", hint="write its name alone, as [known_hosts]")
        elif name.startswith("id_") and not name.endswith(".pub") and not may_be_private:
            hint = "write `ssh_private_keys: true` beside it if it must travel"
            code.wrong("ssh", f"`{name}` is a private key", hint=hint)
        elif name.startswith("id_") and not name.endswith(".pub"):
            code.warn("ssh", f"the private key `{name}` will stay readable where the code is kept", code="private-key")
    return found


def tags(job: Reader) -> dict[str, str]:
    """Read tags: `name:value`, or a name alone, which has an empty value.

    Lists of bases are joined, so a name may come with several values: the last holds, and a warning tells.
    """
    found: dict[str, list[str]] = {}
    for tag in job.texts("tags", numbers=True):
        name, _, value = (part.strip() for part in tag.partition(":"))
        found.setdefault(name, []).append(value)
    for name, values in found.items():
        if len(set(values)) > 1:
            listed = ", ".join(f"`{value}`" for value in values)
            job.warn("tags", f"the tag `{name}` is {listed}: the last holds", code="tag-twice")
    return {name: values[-1] for name, values in found.items()}
