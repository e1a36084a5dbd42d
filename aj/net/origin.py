"""Where an address leads: scheme, host and port, read so strictly that no two readers could disagree.

A secret is sent by comparing origins, so an address with a user, a backslash, a control character or
letters that are not ASCII in its host is no address here.
"""

from __future__ import annotations

import re

from aj.base.noun import dataclass

PORTS = {"https": 443, "http": 80}
LOOPBACK = ("localhost", "[::1]")
_NAME = r"(?:\*\.)?[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?)*"
_ADDRESS = r"\[[0-9A-Fa-f:.]+\]"
_ORIGIN = re.compile(rf"(?:(?P<scheme>https?)://)?(?P<host>{_NAME}|{_ADDRESS})(?::(?P<port>[0-9]{{1,5}}))?\Z", re.ASCII)
_URL = re.compile(r"(?P<origin>https?://[^/?#\\\s]+)(?:[/?][\x21-\x7e]*)?\Z", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Origin:
    """A scheme, a host in lower case (or `*.SUFFIX`), and a port."""

    scheme: str
    host: str
    port: int

    @classmethod
    def parse(cls, words: str) -> Origin:
        """Read `HOST`, `HOST:PORT` or `https://HOST:PORT`; without a scheme it is https. Raises ValueError."""
        found = _ORIGIN.match(words.removesuffix("/"))
        if not found:
            raise ValueError(f"`{words[:200]}` names no host")
        scheme = found["scheme"] or "https"
        port = int(found["port"]) if found["port"] else PORTS[scheme]
        if not 0 < port < 65536:
            raise ValueError(f"{port} is no port")
        return cls(scheme, found["host"].lower(), port)

    @classmethod
    def of_url(cls, url: str) -> Origin:
        """Return where a whole address leads. Raises ValueError when it is not a plain http or https address."""
        found = _URL.match(url)
        if not found:
            raise ValueError("not a plain http or https address")
        scheme, _, rest = found["origin"].partition("://")
        origin = cls.parse(f"{scheme.lower()}://{rest}")
        if origin.has_wildcard:
            raise ValueError("not a plain http or https address")
        return origin

    @property
    def has_wildcard(self) -> bool:
        return self.host.startswith("*.")

    @property
    def is_loopback(self) -> bool:
        """Tell whether this machine itself is meant."""
        return self.host in LOOPBACK or bool(re.fullmatch(r"127(\.[0-9]{1,3}){3}", self.host, re.ASCII))

    @property
    def is_private_enough(self) -> bool:
        """Tell whether a secret may travel there: by https, or without leaving this machine."""
        return self.scheme == "https" or self.is_loopback

    def covers(self, other: Origin) -> bool:
        """Tell whether `other` is this origin, or one below it when this one is `*.SUFFIX`."""
        if (self.scheme, self.port) != (other.scheme, other.port):
            return False
        if self.has_wildcard:
            return other.host.endswith(self.host[1:]) and other.host != self.host[2:]
        return self.host == other.host

    @property
    def netloc(self) -> str:
        """The host, with its port when it is not the usual one."""
        return self.host if PORTS[self.scheme] == self.port else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.netloc}"
