"""What a template says to Volcano: where on the cluster, what each pod takes, how code gets there, how it ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace

from aj.backend.volcano import fields, tasks
from aj.backend.volcano.fields import Container
from aj.backend.volcano.tasks import PVC_FOLDER, PVC_NAME
from aj.base.noun import dataclass
from aj.model.json import Json
from aj.model.names import NameStyle
from aj.template import issue, sections
from aj.template.reader import Quantity, Reader
from aj.template.sections import Mount
from aj.template.service import Facts
from aj.template.tree import Section

KUBECTL_EXEC, BLOB = "kubectl-exec", "blob"
WEEK_S = 7 * 86400.0
_ACCOUNT = re.compile(r"[a-z0-9]{3,24}\Z")
_BLOB_CONTAINER = re.compile(r"(?=.{3,63}\Z)[a-z0-9]+(?:-[a-z0-9]+)*\Z")
_BLOB_FOLDER = re.compile(r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*\Z")


@dataclass(frozen=True)
class Volume:
    """A persistent volume claim and the folder where it is mounted."""

    claim: str
    folder: str


@dataclass(frozen=True)
class Upload:
    """How code reaches the pods. The blob fields hold for that strategy alone."""

    strategy: str = KUBECTL_EXEC
    storage_account: str | None = None
    container: str | None = None
    upload_dir: str = "aj-code"
    sas_expiry_days: int = 1
    pod_download_retries: int = 5
    auth: str = "sas"
    keep_s: float = 2 * WEEK_S


@dataclass(frozen=True)
class Ending:
    """What happens at the end of pods and job. No `ttl_s` keeps the job for ever."""

    ttl_s: float | None = WEEK_S
    active_deadline_s: float | None = None
    grace_s: float = 60.0
    on_failure: str = "fail"
    on_evict: str = "fail"
    complete_with: str | None = None
    max_retry: int = 3


@dataclass(frozen=True)
class Where:
    """The place on the cluster. `context` and `namespace` None are those of the kubeconfig."""

    context: str | None = None
    namespace: str | None = None
    queue: str = "default"
    priority_class: str | None = None
    service_account: str | None = None
    image_pull_secrets: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Pod:
    """What each pod takes and where it may run.

    `rdma` None means: where there are GPUs. `cpus` and `memory` None are not requested.
    """

    cpus: Quantity | None = None
    memory: Quantity | None = None
    rdma: bool | None = None
    rdma_resource: str | None = None
    gpu_resource: str = "nvidia.com/gpu"
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Json], ...] = ()
    run_as: Mapping[str, int] = field(default_factory=dict)
    spread: str = "required"
    workdir_size: str = "50Gi"
    launcher: str = "none"
    container: Container = field(default_factory=Container)


@dataclass(frozen=True)
class Options:
    """A gang on a cluster. With Tasks (in `facts`) each of them has its own sizes and container."""

    where: Where = field(default_factory=Where)
    pod: Pod = field(default_factory=Pod)
    volume: Volume | None = None
    upload: Upload = field(default_factory=Upload)
    mounts: tuple[Mount, ...] = ()
    ending: Ending = field(default_factory=Ending)
    setup_timeout_s: float | None = None
    facts: Facts = field(default_factory=Facts)


def parse(config: Section) -> Options:
    """Read the options of this service. Raises TemplateError with every fault."""
    reader, job = sections.config(config)
    sections.sku_needed(job)
    volume = _volume(job)
    held: tuple[tuple[str, str], ...] = ((volume.folder, "the PVC directory"),) if volume else ()
    mounts = sections.mounts(reader, taken=(*fields.OWN_FOLDERS, *held))
    held += tuple((mount.mount_dir, f"the storage `{mount.key}` at") for mount in mounts)
    has_tasks = tasks.are_given(reader)
    roles = tasks.read(reader, job, held) if has_tasks else ()
    options = Options(
        where=_where(reader.section("target")),
        pod=_pod(reader.section("target"), job, held, mounts, has_tasks=has_tasks),
        volume=volume,
        upload=_upload(reader, volume),
        mounts=mounts,
        ending=_ending(reader.section("target"), [role.name for role in roles] or ["master", "worker"]),
        setup_timeout_s=reader.section("environment").seconds("setup_timeout"),
    )
    _check_secret(reader, options)
    sections.ssh_files(reader)
    image = sections.image(reader) if has_tasks else sections.needed_image(reader)
    _without_effect(reader, job, mounts)
    _dropped(job.section("submit_args").section("env"))
    issue.stop_at_errors(reader.issues)
    warnings = tuple(reader.issues)
    facts = Facts(image=image, name_style=NameStyle.DNS, cpu_sizes=False, tasks=roles, warnings=warnings)
    return replace(options, facts=facts)


def _where(target: Reader) -> Where:
    return Where(
        context=target.text("context") or None,
        namespace=target.form("namespace", fields.NAME, "namespace: small letters, digits and `-`"),
        queue=target.form("queue", fields.SUBDOMAIN, "queue: small letters, digits, `-` and `.`") or "default",
        priority_class=target.form("priority_class", fields.SUBDOMAIN, "name of a priority class"),
        service_account=target.form("service_account", fields.SUBDOMAIN, "name of a service account"),
        image_pull_secrets=_subdomains(target, "image_pull_secrets"),
        labels=fields.labels(target, "labels"),
        annotations=fields.labels(target, "annotations", values_are_labels=False),
    )


def _subdomains(target: Reader, key: str) -> tuple[str, ...]:
    found = target.texts(key)
    for name in found:
        if not fields.SUBDOMAIN.match(name):
            target.wrong(key, f"`{name}` cannot be the name of a secret", hint="small letters, digits, `-` and `.`")
    return found


def _pod(
    target: Reader, job: Reader, held: tuple[tuple[str, str], ...], mounts: tuple[Mount, ...], *, has_tasks: bool
) -> Pod:
    """Read what each pod takes; with Tasks the sizes are theirs."""
    arguments = job.section("submit_args").section("container_args")
    container = Container() if has_tasks else fields.container(arguments, held)
    cpus = target.quantity("cpus_per_node") or container.cpus
    memory = target.quantity("memory") or container.memory
    fields.check_shm(arguments, container.shm_bytes, memory)
    fields.tell_scratch(arguments, container.scratch)
    if not has_tasks:
        _tell_unrequested(target, cpus, memory)
    return Pod(
        cpus=cpus,
        memory=memory,
        rdma=target.flag("rdma"),
        rdma_resource=target.form("rdma_resource", fields.RESOURCE, "name of a resource"),
        gpu_resource=target.form("gpu_resource", fields.RESOURCE, "name of a resource") or "nvidia.com/gpu",
        node_selector=fields.labels(target, "node_selector"),
        tolerations=fields.tolerations(target),
        run_as=_run_as(target, mounts),
        spread=target.one_of("spread", ("required", "preferred", "none")) or "required",
        workdir_size=(target.quantity("workdir_size") or Quantity("50Gi", 0)).text,
        launcher=target.one_of("launcher", ("none", "processes")) or "none",
        container=container,
    )


def _tell_unrequested(target: Reader, cpus: Quantity | None, memory: Quantity | None) -> None:
    for key, found, what in (("cpus_per_node", cpus, "CPU"), ("memory", memory, "memory")):
        if found is None:
            message = f"`{target.at(key)}` is not set: no {what} is requested, the pod may get very little"
            target.warn(key, message, code="not-requested")


def _run_as(target: Reader, mounts: tuple[Mount, ...]) -> dict[str, int]:
    """Read the user of the processes. Storage mounts need root."""
    section = target.section("run_as")
    section.unknown(("user", "group", "fs_group"), is_error=True)
    found = {key: section.whole(key) for key in ("user", "group", "fs_group")}
    if found["user"] and mounts:
        section.wrong("user", "storage mounts need root: `run_as.user` cannot stand beside `storage`")
    return {key: number for key, number in found.items() if number is not None}


def _volume(job: Reader) -> Volume | None:
    """Read the volume of code and data: two variables that belong together."""
    env = job.section("submit_args").section("env")
    if env.has(PVC_NAME) != env.has(PVC_FOLDER):
        there, absent = (PVC_NAME, PVC_FOLDER) if env.has(PVC_NAME) else (PVC_FOLDER, PVC_NAME)
        env.warn(there, f"{there} without {absent} counts as none", code="half-volume")
        return None
    claim = env.form(PVC_NAME, fields.SUBDOMAIN, "name of a volume claim")
    folder = sections.folder(env, PVC_FOLDER)
    for where, what in fields.OWN_FOLDERS:
        if folder is not None and sections.overlap(folder, where):
            env.wrong(PVC_FOLDER, f"the PVC directory {folder} and {what} {where} lie in one another")
            return None
    return None if claim is None or folder is None else Volume(claim, folder)


def _upload(reader: Reader, volume: Volume | None) -> Upload:
    """Read how code reaches the pods."""
    section = reader.section("_extra").section("code_upload")
    section.unknown(("strategy", "blob", "keep"), is_error=True)
    strategy = section.one_of("strategy", (KUBECTL_EXEC, BLOB)) or KUBECTL_EXEC
    keep = section.seconds("keep")
    if strategy == BLOB:
        return _blob(section, Upload(BLOB) if keep is None else Upload(BLOB, keep_s=keep))
    if volume is None:
        message = f"without {PVC_NAME} and {PVC_FOLDER} no code is sent"
        job_hint = "set both, or write `_extra: {code_upload: {strategy: blob, …}}`"
        reader.warn("_extra", message, hint=job_hint, code="no-code")
    return Upload() if keep is None else Upload(keep_s=keep)


def _blob(section: Reader, default: Upload) -> Upload:
    """Read where the archive lies between here and the pods."""
    blob = section.section("blob")
    known = ("storage_account", "container", "upload_dir", "sas_expiry_days", "pod_download_retries", "auth")
    blob.unknown(known, is_error=True)
    for key in known[:2]:
        if not blob.has(key):
            blob.missing(key, f"write `{key}: …`")
    days, retries = blob.whole("sas_expiry_days", 1, 7), blob.whole("pod_download_retries", 0, 20)
    folder = blob.form("upload_dir", _BLOB_FOLDER, "folder of a container: letters, digits, `.`, `_`, `-`, `/`")
    return replace(
        default,
        storage_account=blob.form("storage_account", _ACCOUNT, "storage account: 3 to 24 small letters and digits"),
        container=blob.form("container", _BLOB_CONTAINER, "container: 3 to 63 small letters, digits and single `-`"),
        upload_dir=folder or default.upload_dir,
        sas_expiry_days=default.sas_expiry_days if days is None else days,
        pod_download_retries=default.pod_download_retries if retries is None else retries,
        auth=blob.one_of("auth", ("sas", "identity")) or default.auth,
    )


def _ending(target: Reader, names: list[str]) -> Ending:
    default = Ending()
    never = target.node.given("ttl")
    ttl = None if getattr(never, "raw", "") == "never" else target.seconds("ttl")
    if ttl is None and not target.has("ttl"):
        ttl = default.ttl_s
    grace, retry = target.seconds("grace"), target.whole("max_retry", 0, 1000)
    return Ending(
        ttl_s=ttl,
        active_deadline_s=target.seconds("active_deadline"),
        grace_s=default.grace_s if grace is None else grace,
        on_failure=target.one_of("on_failure", ("fail", "restart")) or default.on_failure,
        on_evict=target.one_of("on_evict", ("fail", "restart")) or default.on_evict,
        complete_with=target.one_of("complete_with", names),
        max_retry=default.max_retry if retry is None else retry,
    )


def _check_secret(reader: Reader, options: Options) -> None:
    """Note a user who could not read the signed address of the code: its file belongs to root and a group."""
    user, upload = options.pod.run_as.get("user"), options.upload
    if user and "fs_group" not in options.pod.run_as and upload.strategy == BLOB and upload.auth == "sas":
        section = reader.section("target").section("run_as")
        hint = "write `fs_group: …` beside it, or `auth: identity` in `_extra.code_upload.blob`"
        section.wrong("user", f"`run_as.user` {user} cannot read the signed address of the code", hint=hint)


def _dropped(env: Reader) -> None:
    """Warn of variables that steer the first process of a pod: the job's own value of them holds."""
    for name in env.node.entries:
        if fields.is_steering(name):
            env.warn(name, f"{name} steers the pod itself: the value here is dropped", code="injected-env")


def _without_effect(reader: Reader, job: Reader, mounts: tuple[Mount, ...]) -> None:
    """Warn of words that only other services act on, and of what storage brings with it."""
    if reader.section("environment").has("registry"):
        message = "Volcano uses `environment.image` as written: `registry` has no effect"
        reader.section("environment").warn("registry", message, code="no-effect")
    words = {"identity": ("managed", "user", "none"), "sla_tier": sections.SLA_TIERS, "priority": sections.PRIORITIES}
    for key, known in words.items():
        if job.one_of(key, known):
            job.warn(key, f"`{key}` has no effect on `volcano`", code="no-effect")
    if mounts:
        reader.warn("storage", "storage mounts make the pods privileged", code="privileged")
