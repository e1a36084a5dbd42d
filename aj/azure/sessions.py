"""Sessions: how this process speaks to the clouds of its users, over one pool and with one set of tokens a cloud.

Nothing is connected, and no library of a cloud is imported, before the first session is opened.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from aj.azure import chosen
from aj.azure.arm import Session
from aj.base.clock import Clock
from aj.base.errors import ConfigError
from aj.base.settings import Settings
from aj.model.json import Json
from aj.net import clouds, credentials, http
from aj.net.clouds import Cloud
from aj.net.http import Transport
from aj.net.token import Tokens
from aj.store.config import Config


class Sessions:
    """The sessions of one process. Safe between threads."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._pool: Transport | None = None
        self._tokens: dict[Cloud, Tokens] = {}

    def open(self, config: Config, tenant: str | None = None) -> Session:
        """Open a session in the cloud of some settings; `tenant` is that of a target, which wins over theirs.

        Nobody signs in yet. Raises ConfigError at file and line.
        """
        cloud = cloud_of(config)
        configured = chosen.read(config).tenant
        wanted = credentials.tenant(self._settings, target=tenant, configured=configured)
        with self._lock:
            if self._pool is None:
                self._pool = http.connect(self._settings, self._clock)
            if cloud not in self._tokens:
                self._tokens[cloud] = Tokens(cloud, self._settings, self._clock)
            return Session(self._pool, cloud, self._tokens[cloud], self._clock, wanted)

    def close(self) -> None:
        """Forget every token. Requests under way go on to their end."""
        with self._lock:
            for tokens in self._tokens.values():
                tokens.close()
            self._tokens.clear()


def cloud_of(config: Config) -> Cloud:
    """Return the cloud that the setting `cloud` names. Raises ConfigError at file and line."""
    setting = config.setting("cloud")
    name = config.text("cloud") or clouds.PUBLIC.name
    tables: dict[str, Json] = {}
    place = setting.place
    for layer in reversed(config.layers):  # the nearest file comes last and wins
        found = layer.find("clouds")
        if found is None:
            continue
        if not isinstance(found.value, Mapping):
            raise ConfigError("`clouds` is no table", hint="write tables such as [clouds.mine]", place=found.place)
        tables |= found.value
        if name in found.value:
            place = layer.place(f"clouds.{name}")
    return clouds.find(name, tables, place=place)
