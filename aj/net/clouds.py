"""The clouds that are known: which hosts each of them has. No host of a cloud is written down anywhere else.

A cloud of one's own is a table `[clouds.NAME]` of `aj.toml` with the same values. There each host may be a
whole base address with a port, and plain http is accepted for an address of this machine alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from aj.base import text
from aj.base.errors import ConfigError, Place
from aj.base.noun import dataclass
from aj.model.json import Json
from aj.net.origin import Origin

BLOB_SCOPE = "https://storage.azure.com/.default"
REQUIRED = ("authority", "arm", "ml_scope", "storage_suffix", "data_plane_hosts")
OPTIONAL = ("blob_endpoint",)
_SUFFIX = re.compile(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\Z", re.ASCII)
_SCOPE = re.compile(r"[A-Za-z0-9_\-.:/]+/\.default\Z", re.ASCII)


@dataclass(frozen=True)
class Cloud:
    """One cloud. `authority`, `arm` and `data_plane` name hosts; `data_plane` may hold `*.SUFFIX`.

    `blob_endpoint` is the base address of a storage account, with `{account}` where its name belongs.
    """

    name: str
    authority: Origin
    arm: Origin
    ml_scope: str
    storage_suffix: str
    data_plane: tuple[Origin, ...]
    blob_endpoint: str
    is_private: bool = False

    @property
    def arm_scope(self) -> str:
        return f"https://{self.arm.netloc}/.default"

    def blob_url(self, account: str) -> str:
        """Return the base address of a storage account, without a final slash."""
        return self.blob_endpoint.replace("{account}", account)


def _official(name: str, authority: str, arm: str, ml: str, suffix: str, data_plane: tuple[str, ...]) -> Cloud:
    return Cloud(
        name,
        Origin.parse(authority),
        Origin.parse(arm),
        f"https://{ml}/.default",
        suffix,
        tuple(Origin.parse(host) for host in data_plane),
        f"https://{{account}}.blob.{suffix}",
    )


PUBLIC = _official(
    "public",
    "login.microsoftonline.com",
    "management.azure.com",
    "ml.azure.com",
    "core.windows.net",
    ("*.azureml.ms", "*.ml.azure.com"),
)
OFFICIAL: Mapping[str, Cloud] = {
    cloud.name: cloud
    for cloud in (
        PUBLIC,
        _official(
            "usgovernment",
            "login.microsoftonline.us",
            "management.usgovcloudapi.net",
            "ml.azure.us",
            "core.usgovcloudapi.net",
            ("*.ml.azure.us",),
        ),
        _official(
            "china",
            "login.chinacloudapi.cn",
            "management.chinacloudapi.cn",
            "ml.azure.cn",
            "core.chinacloudapi.cn",
            ("*.ml.azure.cn",),
        ),
    )
}


def find(name: str, tables: Mapping[str, Json], *, place: Place | None = None) -> Cloud:
    """Return the cloud of the setting `cloud`; `tables` is what stands under `[clouds]`.

    Raises ConfigError at `place` for an unknown name or a table that is wrong.
    """
    if name in OFFICIAL:
        if name in tables:
            raise ConfigError(
                f"[clouds.{name}] has the name of a known cloud", hint="give it another name", place=place
            )
        return OFFICIAL[name]
    if name not in tables:
        known = [*OFFICIAL, *tables]
        near = text.nearest(name, known)
        hint = f"`{near}` is the nearest name" if near else f"known are {', '.join(known)}; or write [clouds.{name}]"
        raise ConfigError(f"no cloud is called `{name}`", hint=hint, place=place)
    return _Table(name, tables[name], place).cloud()


@dataclass(frozen=True)
class _Table:
    """A table `[clouds.NAME]` as it was written."""

    name: str
    values: Json
    place: Place | None

    def cloud(self) -> Cloud:
        self._check_keys()
        suffix = self._word("storage_suffix", _SUFFIX)
        made = Cloud(
            self.name,
            self._origin("authority", self._text("authority")),
            self._origin("arm", self._text("arm")),
            self._word("ml_scope", _SCOPE),
            suffix,
            self._hosts(),
            f"https://{{account}}.blob.{suffix}",
            is_private=True,
        )
        return replace(made, blob_endpoint=self._blob_endpoint()) if "blob_endpoint" in self._values else made

    @property
    def _values(self) -> Mapping[str, Json]:
        if not isinstance(self.values, Mapping):
            raise self._wrong("is not a table", "write its keys below it")
        return self.values

    def _check_keys(self) -> None:
        for key in self._values:
            if key not in (*REQUIRED, *OPTIONAL):
                near = text.nearest(key, (*REQUIRED, *OPTIONAL))
                hint = f"did you mean `{near}`" if near else f"the keys are {', '.join((*REQUIRED, *OPTIONAL))}"
                raise self._wrong(f"has an unknown key `{key}`", hint)
        missing = [key for key in REQUIRED if key not in self._values]
        if missing:
            raise self._wrong(f"lacks {', '.join(missing)}", f"the keys are {', '.join((*REQUIRED, *OPTIONAL))}")

    def _text(self, key: str) -> str:
        value = self._values[key]
        if not isinstance(value, str) or not value:
            raise self._wrong(f"has {key} = {value!r}", "write a text in quotes")
        return value

    def _word(self, key: str, form: re.Pattern[str]) -> str:
        value = self._text(key)
        if not form.match(value):
            example = "https://ml.example.com/.default" if key == "ml_scope" else "core.example.com"
            raise self._wrong(f"has {key} = {value!r}", f"it looks like `{example}`")
        return value

    def _hosts(self) -> tuple[Origin, ...]:
        value = self._values["data_plane_hosts"]
        if not isinstance(value, list | tuple) or not value or not all(isinstance(item, str) for item in value):
            raise self._wrong(f"has data_plane_hosts = {value!r}", 'write a list such as ["*.ml.example.com"]')
        return tuple(self._origin("data_plane_hosts", str(item)) for item in value)

    def _blob_endpoint(self) -> str:
        value = self._text("blob_endpoint").rstrip("/")
        if value.count("{account}") != 1:
            raise self._wrong(f"has blob_endpoint = {value!r}", "put `{account}` where the account's name belongs")
        # A name of the longest kind in its place must leave a legal address.
        self._origin("blob_endpoint", value.replace("{account}", "a" * 24), path=True)
        return value

    def _origin(self, key: str, value: str, *, path: bool = False) -> Origin:
        try:
            found = Origin.of_url(value) if path else Origin.parse(value)
        except ValueError as error:
            raise self._wrong(f"has {key} = {value!r}: {error}", "write a host, or https://HOST:PORT") from None
        if found.has_wildcard and key != "data_plane_hosts":
            raise self._wrong(f"has {key} = {value!r}", "only data_plane_hosts may hold a `*`")
        if not found.is_private_enough:
            raise self._wrong(
                f"has {key} = {value!r}", "plain http is for an address of this machine alone: write https"
            )
        return found

    def _wrong(self, problem: str, hint: str) -> ConfigError:
        return ConfigError(f"[clouds.{self.name}] {problem}", hint=hint, place=self.place)
