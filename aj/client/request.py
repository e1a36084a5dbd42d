"""What the arguments of a Python program ask for, as the same request that the command line makes."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from aj.backend import registry
from aj.backend.local import options as local
from aj.base.agents import Tag
from aj.base.errors import UserError
from aj.base.noun import dataclass
from aj.base.paths import Project
from aj.base.settings import Settings
from aj.model import image as images
from aj.model import money
from aj.model.bucket import KEEP, Buckets, Wanted
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.template import build, load
from aj.template.build import Request
from aj.template.shape import Asked, Given

PURPOSES = ("input", "output", "checkpoint")
# Keys of `cloud_config`: a bucket for each purpose, whose credential opens it, in which region.
CLOUD_KEYS = frozenset(
    {
        *(f"{purpose}_bucket" for purpose in PURPOSES),
        *(f"{purpose}_storage_credentials" for purpose in PURPOSES),
        *(f"{purpose}_storage_region" for purpose in PURPOSES),
        "checkpoint_keep",
        "require_output",
    }
)


@dataclass(frozen=True)
class Asking:
    """The arguments of one submission, as they were given."""

    image: str | None = None
    command: str | Sequence[str] = ()
    template: str | None = None
    directory: str | Path | None = None
    name: str | None = None
    env: Mapping[str, str] | None = None
    gpu: str | int | None = None
    cpus: float | None = None
    memory: str | None = None
    spot: bool = False
    credential_name: str | None = None
    cloud_config: Mapping[str, object] | None = None
    secrets: Sequence[str] = ()
    timeout: float | None = None
    max_runtime: float | None = None
    max_cost: float | str | None = None


def spec(asked: Asking, aj_id: str, settings: Settings, project: Project | None, tag: Tag) -> JobSpec:
    """Make the request of who `tag` says.

    Raises UserError, TemplateError, NotFound when there is no such template.
    """
    _check(asked)
    resolved = None
    if asked.template is not None:
        if project is None:
            raise UserError(f"template `{asked.template}`: there is no project here", hint="`aj init local`")
        resolved = load.Library(project).resolve(asked.template)
    if asked.image is None and not asked.command:
        raise UserError("neither an image nor a command is given", hint="submit(image) or submit(command=[...])")
    count = gpus(asked.gpu)
    request = Request(
        id=aj_id,
        directory=Path(asked.directory or os.curdir).absolute(),
        argv=_words(asked.command),
        project=project,
        name=asked.name or (_name(asked.image) if asked.image else None),
        asked=Asked() if resolved else Asked(Given("", "1"), None, Given("", "1")),
        env=dict(asked.env or {}),
        caller=local.lent(settings.env),
        config=None if resolved else _config(asked, count),
        brings_code=asked.image is None,
        buckets=buckets(asked.cloud_config or {}, asked.credential_name),
        secrets=tuple(asked.secrets),
        start_timeout_s=asked.timeout,
        max_runtime_s=asked.max_runtime,
        max_cost=None if asked.max_cost is None else _dollars(asked.max_cost),
        agent=tag.agent,
        session=tag.session,
        session_title=tag.title,
    )
    built = build.build(resolved, request, options_of=registry.options)
    if not registry.traits(built.spec.service).is_local:
        raise UserError(
            f"template `{built.spec.template}` is for `{built.spec.service}`; from Python go jobs of this machine",
            hint="`aj run` sends it",
            code="not-local",
        )
    return replace(built.spec, umask=0o077)


def _check(asked: Asking) -> None:
    """Raise UserError on what could never be submitted, by the name of the argument."""
    words = asked.command if not isinstance(asked.command, str) else (asked.command,)
    texts: list[tuple[str, object]] = [
        ("image", asked.image if asked.image is not None else ""),
        ("name", asked.name if asked.name is not None else ""),
        *(("command", word) for word in words),
        *(("secrets", word) for word in asked.secrets),
        *((f"env[{name!r}]", word) for name, value in (asked.env or {}).items() for word in (name, value)),
    ]
    for name, word in texts:
        if not isinstance(word, str):
            raise _bad(name, word, "no text")
        if "\0" in word or (name in ("name", "image") and not word.isprintable()):
            raise _bad(name, word, "a text with characters that cannot be passed on")
    limits = (("timeout", asked.timeout), ("max_runtime", asked.max_runtime), ("cpus", asked.cpus))
    for name, number in limits:
        if number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise _bad(name, number, "no number")
        if not (math.isfinite(number) and number > 0):
            raise _bad(name, number, "not above zero, or without an end")


def _bad(name: str, value: object, why: str) -> UserError:
    return UserError(f"{name}={value!r} is {why}", code="bad-argument")


def gpus(word: str | int | None) -> int | None:
    """Read how many GPUs are meant: `h100` is one, `h100:8` are eight. The type is the machine's own here.

    Raises UserError.
    """
    if word is None or isinstance(word, int):
        return word
    kind, colon, count = word.partition(":")
    if word.isascii() and word.isdecimal():
        return int(word)
    if not kind or (colon and not (count.isascii() and count.isdecimal() and int(count) > 0)):
        raise UserError(f"gpu={word!r} is no GPU", hint='`gpu="h100"` or `gpu="h100:8"`', code="bad-gpu")
    return int(count) if colon else 1


def _dollars(amount: float | str) -> int:
    """Read what a job may cost, in millionths of a US dollar. Raises UserError."""
    try:
        found = money.read(str(amount))
    except ValueError as error:
        raise UserError(f"max_cost: {error}", code="bad-argument") from error
    if not found:
        raise UserError("max_cost is zero", hint="leave it out for no limit", code="bad-argument")
    return found


def buckets(given: Mapping[str, object], credential: str | None) -> Buckets | None:
    """Read what `cloud_config` asks of buckets; `credential` opens those that name none of their own.

    Raises UserError on a key that means nothing.
    """
    unknown = sorted(set(given) - CLOUD_KEYS)
    if unknown:
        known = ", ".join(sorted(CLOUD_KEYS))
        raise UserError(f"cloud_config: `{unknown[0]}` means nothing", hint=f"one of {known}", code="bad-cloud-config")
    found = {purpose: _wanted(given, purpose, credential) for purpose in PURPOSES}
    if not any(found.values()):
        return None
    keep = given.get("checkpoint_keep", KEEP)
    if not isinstance(keep, int) or keep < 1:
        raise UserError(f"cloud_config: checkpoint_keep={keep!r} is no count from 1", code="bad-cloud-config")
    return Buckets(**found, checkpoint_keep=keep, require_output=bool(given.get("require_output", False)))


def _wanted(given: Mapping[str, object], purpose: str, credential: str | None) -> Wanted | None:
    words = [given.get(f"{purpose}_{what}") for what in ("bucket", "storage_credentials", "storage_region")]
    for word in words:
        if word is not None and not (isinstance(word, str) and word):
            raise UserError(f"cloud_config: {word!r} is no name", code="bad-cloud-config")
    bucket, own, region = (str(word) if word is not None else None for word in words)
    if bucket is None and own is None:
        return None
    return Wanted(bucket, own or credential, region)


def _words(command: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(shlex.split(command)) if isinstance(command, str) else tuple(command)


def _name(image: str) -> str:
    """The last part of an image, without tag and digest."""
    if not images.is_host(image):
        images.parse(image)
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def _config(asked: Asking, count: int | None) -> Mapping[str, Json]:
    """Say the same as a template would."""
    target: dict[str, Json] = {"service": "local", "spot": asked.spot}
    given: dict[str, Json] = {"cpus": asked.cpus, "memory": asked.memory, "gpus": count}
    target |= {name: value for name, value in given.items() if value is not None}
    environment: dict[str, Json] = {"image": asked.image} if asked.image is not None else {}
    return {"target": target, "environment": environment, "jobs": [{}]}
