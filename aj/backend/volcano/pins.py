"""What pods are given from elsewhere: the release's own list of versions and hashes, and settings that replace them.

volcano.helper_image      image of the pod that brings code to a volume
azcopy.url, .sha256       where azcopy comes from: an archive with it, or the program itself
azcopy.source = "image"   a copy of the image is used, if it is the program that the list names
blobfuse2.url, .sha256    a package for the image's distribution
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from aj.base.errors import ConfigError
from aj.base.noun import dataclass
from aj.model.json import Json
from aj.store.config import Config, Setting

FILE = Path(__file__).with_name("pins.toml")
TOOLS = ("azcopy", "blobfuse2")
LONGEST_SAS_S = 7 * 86400.0  # of a signature that a user's key made
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_IMAGE = re.compile(r"[^\s@]+(@sha256:[0-9a-f]{64})?\Z")
_RESOURCE = re.compile(r"(?:[a-z0-9.-]{1,253}/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?\Z")
_ANY = "x86_64", "aarch64"  # machines that a setting's one address is good for, unless it is not
RDMA = "rdma/rdma_shared_device_a"


@dataclass(frozen=True)
class Chosen:
    """What the settings of a user say to Volcano. `tools` are variables for the program of a pod."""

    helper_image: str
    tools: Mapping[str, str]
    storage_sas_s: float = 86400.0
    auto_refresh: bool = True
    rdma_resource: str = RDMA


@functools.cache
def own() -> Mapping[str, Json]:
    """Return the release's own list."""
    return tomllib.loads(FILE.read_text())


def read(config: Config) -> Chosen:
    """Read the settings. Raises ConfigError at file and line when one is wrong."""
    image = _matching(config, "volcano.helper_image", _IMAGE, "the name of an image, without spaces")
    hours = _find(config, "volcano.storage_sas_hours")
    return Chosen(
        helper_image=image or str(_table("helper")["image"]),
        tools={**_azcopy(config), **_blobfuse(config)},
        storage_sas_s=24 * 3600.0 if hours is None else _hours(hours),
        auto_refresh=_truth(config, "volcano.auto_refresh"),
        rdma_resource=_matching(config, "volcano.rdma_resource", _RESOURCE, "the name of a resource") or RDMA,
    )


def _azcopy(config: Config) -> dict[str, str]:
    """Say to a pod where azcopy comes from."""
    machines = {name: table for name, table in _table("azcopy").items() if isinstance(table, Mapping)}
    given = _given(config, "azcopy")
    source = _matching(config, "azcopy.source", re.compile(r"(image|download)\Z"), "`image` or `download`")
    if source == "image":
        expected = _matching(config, "azcopy.sha256", _SHA256, "64 hex digits")
        lines = [f"{name} {expected or table['program_sha256']}" for name, table in machines.items()]
        return {"AJ_AZCOPY_PROGRAM": "\n".join(lines if expected is None else [f"{name} {expected}" for name in _ANY])}
    if given is not None:
        return {"AJ_AZCOPY": _lines(given)}
    return {"AJ_AZCOPY": "\n".join(f"{name} {table['sha256']} {table['url']}" for name, table in machines.items())}


def _blobfuse(config: Config) -> dict[str, str]:
    """Say to a pod which blobfuse2 is good enough, and where a package of it is."""
    given = _given(config, "blobfuse2")
    found = {"AJ_BLOBFUSE2_MINIMUM": str(_table("blobfuse2")["minimum"])}
    return found if given is None else {**found, "AJ_BLOBFUSE2": _lines(given)}


def _lines(given: tuple[str, str]) -> str:
    url, sha256 = given
    return "\n".join(f"{machine} {sha256} {url}" for machine in _ANY)


def _given(config: Config, tool: str) -> tuple[str, str] | None:
    """Return an address and its hash as settings give them: both or none."""
    url = _find(config, f"{tool}.url")
    if url is None:
        return None
    words = _text(url)
    if urlsplit(words).scheme not in ("https", "http") or any(letter in words for letter in " \t\n\"'?"):
        raise _wrong(url, "takes an address such as https://mirror.example.com/tools/x.tgz")
    sha256 = _matching(config, f"{tool}.sha256", _SHA256, "64 hex digits")
    if sha256 is None:
        raise ConfigError(
            f"`{tool}.url` is set and `{tool}.sha256` is not", hint=f"`{tool}.sha256 = …`", place=url.place
        )
    return words, sha256


def _table(name: str) -> Mapping[str, Json]:
    found = own()[name]
    assert isinstance(found, Mapping), "the list is ours"
    return found


def _find(config: Config, key: str) -> Setting | None:
    """The setting of a service's own table, of the nearest file that has it."""
    return next((setting for layer in config.layers if (setting := layer.find(key)) is not None), None)


def _matching(config: Config, key: str, form: re.Pattern[str], due: str) -> str | None:
    found = _find(config, key)
    if found is None:
        return None
    if not form.match(_text(found)):
        raise _wrong(found, f"takes {due}")
    return _text(found)


def _text(setting: Setting) -> str:
    if not isinstance(setting.value, str):
        raise _wrong(setting, "takes a text")
    return setting.value


def _truth(config: Config, key: str) -> bool:
    found = _find(config, key)
    if found is not None and not isinstance(found.value, bool):
        raise _wrong(found, "takes true or false")
    return found is None or bool(found.value)


def _hours(found: Setting) -> float:
    value = found.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value * 3600 <= LONGEST_SAS_S:
        raise _wrong(found, f"takes hours, at most {LONGEST_SAS_S / 3600:g}")
    return value * 3600.0


def _wrong(setting: Setting, due: str) -> ConfigError:
    return ConfigError(f"`{setting.key}` is {setting.value!r}: it {due}", place=setting.place)
