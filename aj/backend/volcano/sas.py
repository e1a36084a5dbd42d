"""Signatures of a job: for its code, and for each container that its pods see as a folder.

Each is for one blob or one container, with the fewest rights, and for a while. They are made in this process and go
into the job's Secret, and nowhere else. What has to be signed is told by the template, and later by the job itself
as it stands on the cluster, so that whoever renews it needs nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from urllib.parse import parse_qs, unquote

from aj.azure import signatures
from aj.azure.arm import Session
from aj.azure.line import ByToken, Limits, Place
from aj.azure.signatures import EARLY_S, LONGEST_S, Signer
from aj.backend.volcano import names, variables
from aj.backend.volcano.options import Options
from aj.base.clock import from_rfc3339
from aj.base.errors import RemoteError
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.net.document import Document

DAY_S = 86400.0
READ = "r"
# Letters in the order in which the service wants them.
READ_ALL, WRITE_ALL = "rl", "racwdl"


@dataclass(frozen=True)
class Want:
    """One signature that is due under a key of the Secret: for a blob, or for the whole container without one."""

    key: str
    account: str
    container: str
    permission: str
    lifetime_s: float
    blob: str | None = None


@dataclass(frozen=True)
class Signed:
    """Values of the Secret by their keys, and when each is good no more, in seconds since the epoch."""

    values: Mapping[str, str] = field(repr=False)
    expires_at: Mapping[str, float]

    @property
    def first_end(self) -> float | None:
        return min(self.expires_at.values(), default=None)


def of_template(chosen: Options, archive_sha256: str | None, storage_s: float) -> tuple[Want, ...]:
    """Return what a job's pods need signed. `storage_s` is how long storage is signed for."""
    upload = chosen.upload
    wants = [
        Want(
            key=f"{names.STORAGE}{mount.key}",
            account=mount.account,
            container=mount.container,
            permission=READ_ALL if mount.read_only else WRITE_ALL,
            lifetime_s=storage_s,
        )
        for mount in chosen.mounts
    ]
    if archive_sha256 is not None and upload.storage_account and upload.auth == "sas":
        blob = variables.blob_path(chosen, archive_sha256)
        lifetime_s = min(upload.sas_expiry_days * DAY_S, LONGEST_S)
        container = upload.container or ""
        wants.insert(0, Want(names.CODE_URL, upload.storage_account, container, READ, lifetime_s, blob))
    return tuple(wants)


def of_job(job: Document, there: Mapping[str, str], endpoint: str, storage_s: float) -> tuple[Want, ...]:
    """Return what a job on the cluster needs signed, as far as its Secret `there` has a key for it.

    `endpoint` is the base address of storage accounts with `{account}` where the name belongs. Raises RemoteError
    when the job does not say what a key is for.
    """
    env = _env(job)
    return tuple(_want(key, value, env, endpoint, storage_s) for key, value in there.items())


def make(session: Session, settings: Settings, wants: Iterable[Want], *, limits: Limits | None = None) -> Signed:
    """Sign. Raises AuthError, Refused with the role that is missing, and as `signatures.signer`."""
    values: dict[str, str] = {}
    ends: dict[str, float] = {}
    signers: dict[tuple[str, float], Signer] = {}
    for want in wants:
        place = Place(want.account, want.container, session.cloud.blob_url(want.account))
        signer = signers.get((want.account, want.lifetime_s))
        if signer is None:  # one key of an account signs for all of its containers
            access = ByToken(session.tokens, session.tenant)
            signer = signatures.signer(
                place, access, settings, session.clock, lifetime_s=want.lifetime_s, limits=limits
            )
            signers[want.account, want.lifetime_s] = signer
        signer = replace(signer, place=place)
        made = signer.container(want.permission) if want.blob is None else signer.blob(want.blob, want.permission)
        # Storage takes the signature alone: its address is no secret and stands elsewhere.
        values[want.key] = made.url if want.blob is not None else made.url.partition("?")[2]
        ends[want.key] = made.expires_at
    return Signed(values, ends)


def end_of(value: str) -> float | None:
    """Return when a signature is good no more, in seconds since the epoch; None when it does not say."""
    return _moment(value, "se")


def lifetime_of(value: str) -> float | None:
    """Return for how long a signature was made, in seconds; None when it does not say."""
    begins, ends = _moment(value, "st"), end_of(value)
    return None if begins is None or ends is None else max(0.0, ends - begins - EARLY_S)


def _moment(value: str, name: str) -> float | None:
    query = parse_qs(value.partition("?")[2] or value)
    try:
        return from_rfc3339(query[name][0])
    except (KeyError, ValueError):
        return None


def _env(job: Document) -> dict[str, str]:
    tasks = job.each("spec", "tasks")
    containers = tasks[0].each("template", "spec", "containers") if tasks else ()
    found = containers[0].each("env") if containers else ()
    return {one.need_text("name"): one.text("value") or "" for one in found}


def _want(key: str, value: str, env: Mapping[str, str], endpoint: str, storage_s: float) -> Want:
    if key == names.CODE_URL:
        return _code(value, endpoint)
    name = key.removeprefix(names.STORAGE)
    words = [env.get(f"AJ_STORAGE_{word}_{name}") for word in ("ACCOUNT", "CONTAINER", "MODE")]
    account, container, mode = words
    if not account or not container or not mode:
        raise RemoteError(f"the job does not say what the key {key} of its secret is for", code="bad-answer")
    return Want(key, account, container, READ_ALL if mode == "ro" else WRITE_ALL, storage_s)


def _code(value: str, endpoint: str) -> Want:
    """Read from an address for what it was signed."""
    form = re.escape(endpoint).replace(re.escape("{account}"), "(?P<account>[a-z0-9]+)")
    found = re.match(form + r"/(?P<container>[^/?]+)/(?P<blob>[^?]+)\?", value)
    if found is None:
        raise RemoteError("the secret of the job holds no address of code in this cloud", code="bad-answer")
    lifetime_s = min(lifetime_of(value) or DAY_S, LONGEST_S)
    return Want(names.CODE_URL, found["account"], found["container"], READ, lifetime_s, unquote(found["blob"]))


def only(wants: Sequence[Want], hours: float | None) -> tuple[Want, ...]:
    """Return the same with one lifetime for all, when one is given."""
    return tuple(wants) if hours is None else tuple(replace(want, lifetime_s=hours * 3600.0) for want in wants)
