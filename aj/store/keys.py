"""Every setting there is: its name, what it takes, its default, and what it means.

A value in a file keeps the form in which people write it (`1h`, `5000Mi`); it is checked and read when
somebody needs it, so that one wrong value disturbs nobody else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

from aj.base import text, units
from aj.base.noun import dataclass
from aj.model.json import Json

Value: TypeAlias = "str | int | float | bool | tuple[str, ...] | None"
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z"
_EXPERIMENT = r"[A-Za-z0-9][A-Za-z0-9_-]{0,254}\Z"
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*\*?\Z"


@dataclass(frozen=True)
class Kind:
    """What a setting takes. `due` says it in words; `check` raises ValueError on anything else.

    `check` turns a value of a file into what the program uses; `typed` turns a word of the command line
    into what stands in the file.
    """

    due: str
    check: Callable[[Json], Value]
    typed: Callable[[str], Json] = str


class Scope(StrEnum):
    """Where a setting may stand. `ANY`: in a project and for the user; the project's wins."""

    ANY = "any"
    USER = "user"


@dataclass(frozen=True)
class Key:
    """One setting. With `needs_restart` a running daemon goes on with the value it was started with.

    What one daemon reads for all projects of its user has the scope `USER`: a project cannot set it.
    """

    says: str
    kind: Kind
    default: Json = None
    scope: Scope = Scope.ANY
    needs_restart: bool = False


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise ValueError("not text")
    return value


def _filled(value: Json) -> str:
    if not _text(value).strip():
        raise ValueError("empty")
    return _text(value)


def _matching(pattern: str) -> Callable[[Json], Value]:
    def check(value: Json) -> str:
        if not re.match(pattern, _text(value)) or ".." in _text(value):
            raise ValueError("another form")
        return _text(value)

    return check


def _duration(value: Json) -> float:
    return units.parse_duration(str(value) if isinstance(value, int) and not isinstance(value, bool) else _text(value))


def _size(value: Json) -> int:
    return units.parse_size(str(value) if isinstance(value, int) and not isinstance(value, bool) else _text(value))


def _zone(value: Json) -> str:
    name = _text(value)
    if name != "system":
        import zoneinfo  # 8 ms, only when a zone is checked

        try:
            zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, OSError) as error:
            raise ValueError("no such zone") from error
    return name


def _truth(value: Json) -> bool:
    if not isinstance(value, bool):
        raise ValueError("not true or false")
    return value


def _truth_of(word: str) -> Json:
    return {"true": True, "false": False}.get(word, word)


def _variables(value: Json) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError("not a list")
    names = tuple(_text(name) for name in value)
    if not all(re.match(_VARIABLE, name) for name in names):
        raise ValueError("not a name")
    return names


def _words(word: str) -> Json:
    return [part.strip() for part in word.split(",") if part.strip()]


def _whole(word: str) -> Json:
    try:
        return units.parse_whole(word)
    except ValueError:
        return word  # the check then says what is due


def whole(least: int, most: int) -> Kind:
    """A whole number within bounds."""

    def check(value: Json) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError("out of bounds")
        return value

    return Kind(f"a whole number from {least} to {most}", check, _whole)


def choice(*words: str) -> Kind:
    """One of some words."""

    def check(value: Json) -> str:
        if value not in words:
            raise ValueError("another word")
        return _text(value)

    return Kind("one of " + ", ".join(words), check)


def _of_the_daemon(says: str, kind: Kind, default: Json = None) -> Key:
    return Key(says, kind, default, Scope.USER, needs_restart=True)


def _without_credentials(word: str) -> Json:
    from aj.model import repository  # 5 ms, only when one is written

    return repository.without_credentials(word)


TEXT = Kind("text", _filled)
REPOSITORY = Kind("text: owner/name, an address or a path", _filled, _without_credentials)
NAME = Kind("the name of a template: letters, digits, `_`, `.` and `-`", _matching(_NAME))
EXPERIMENT = Kind("a name of letters, digits, `_` and `-`, at most 255, not beginning with `-`", _matching(_EXPERIMENT))
ZONE = Kind("an IANA time zone such as Europe/Berlin, or `system`", _zone)
DURATION = Kind("a duration: 90s, 30m, 2h, 1d or 1h30m", _duration)
SIZE = Kind("a size: 512Mi, 64Gi, 500MB or a number of bytes", _size)
YES_NO = Kind("true or false", _truth, _truth_of)
VARIABLES = Kind("a list of names of environment variables; `LC_*` means all that begin so", _variables, _words)

KEYS: Mapping[str, Key] = MappingProxyType(
    {
        "template": Key("template that `aj run` takes without -t", NAME),
        "experiment": Key("experiment of submissions without --experiment", EXPERIMENT),
        "timezone": Key("time zone of tables", ZONE, "system"),
        "output": Key("format of results without -o", choice("table", "json", "jsonl", "yaml", "name"), "table"),
        "color": Key("colour in tables", choice("auto", "always", "never"), "auto"),
        "workspace.subscription_id": Key("subscription of the Azure ML workspace", TEXT),
        "workspace.resource_group": Key("resource group of the Azure ML workspace", TEXT),
        "workspace.name": Key("name of the Azure ML workspace", TEXT),
        "cloud": Key("Azure cloud: public, usgovernment, china, or the name of a table [clouds.NAME]", TEXT, "public"),
        "tenant": Key("Azure tenant to sign in for (default: that of the credential)", TEXT),
        "quota.max_age": Key("how long what Azure told of quota, machines and images counts as fresh", DURATION, "10m"),
        "sing.placeholder_image": Key("image registered for jobs that run an image of Singularity's own", TEXT),
        "storage.allow_account_key": Key(
            "upload by the account's key where the user has no right", YES_NO, False, Scope.USER
        ),
        "template_repo": Key("repository that templates are shared by", REPOSITORY),
        "dashboard.page_size": Key("rows that a dashboard asks for at once", whole(1, 200), 50),
        "daemon.idle": _of_the_daemon("how long an idle daemon stays; 0 is for ever", DURATION, "1h"),
        "logs.keep": _of_the_daemon("newest output of a job that is kept in any case", SIZE, "1Mi"),
        "code.max_bytes": Key("largest archive that is sent", SIZE, "5000Mi"),
        "retention.dry_runs": Key("files of dry runs that are kept", whole(1, 100_000), 50),
        "retention.queue": _of_the_daemon("tickets that are kept once they are over", whole(1, 100_000), 200),
        "retention.work": _of_the_daemon("how long the files that a local job wrote are kept", DURATION, "30d"),
        "retention.jobs": _of_the_daemon("how long the records of local jobs are kept", DURATION, "90d"),
        "local.slots": _of_the_daemon(
            "local jobs that run at once (default: the CPUs)", whole(1, 10_000), os.cpu_count() or 1
        ),
        "local.gpus": _of_the_daemon(
            "GPUs that local jobs share (default: those that nvidia-smi names)", whole(0, 4096)
        ),
        "local.pass_env": Key("further variables that a local job inherits from the shell", VARIABLES, []),
    }
)
# Tables in which a service keeps settings of its own, which it checks itself.
SERVICE_TABLES = ("clouds", "clusters", "quota", "sing", "storage", "volcano", "azcopy", "blobfuse2")


def is_known(key: str) -> bool:
    """Tell whether a dotted key means something to this release."""
    table = key.partition(".")[0]
    return key in KEYS or (table in SERVICE_TABLES and table != key)


def nearest(key: str) -> str | None:
    """Return the known key that a typing slip most likely meant, or None."""
    return text.nearest(key, KEYS)
