"""Signed addresses of blobs: for a pod that has no identity of its own, for a while, and for https alone.

They are made in this process, from a key that the account gives to the signed-in user; nobody asks for the
account's own keys. A signed address is a secret: it is masked everywhere from the moment it is made.
"""

from __future__ import annotations

from dataclasses import field
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from aj.azure.line import ByToken, Limits, Line, Place
from aj.base import redact, units
from aj.base.clock import Clock
from aj.base.errors import UserError
from aj.base.noun import dataclass
from aj.base.settings import Settings

if TYPE_CHECKING:
    from azure.storage.blob import UserDelegationKey

EARLY_S = 300.0  # it is good before it was made: for whoever's clock goes slow
LONGEST_S = 7 * 24 * 3600.0  # of a user's key, and so of what is signed with it


@dataclass(frozen=True)
class Signed:
    """A signed address, and the moment, in seconds since the epoch, from which it is good no more."""

    url: str = field(repr=False)
    expires_at: float


@dataclass(frozen=True)
class Signer:
    """Signs for one container, all with one key."""

    place: Place
    key: UserDelegationKey = field(repr=False)
    starts_at: float
    expires_at: float

    def blob(self, name: str, permission: str = "r") -> Signed:
        """Sign the address of one blob. `permission` is letters of the service, as `r`."""
        from azure.storage.blob import generate_blob_sas

        found = generate_blob_sas(
            self.place.account,
            self.place.container,
            name,
            user_delegation_key=self.key,
            permission=permission,
            start=_moment(self.starts_at),
            expiry=_moment(self.expires_at),
            protocol="https",
        )
        return self._signed(f"{self.place.container}/{quote(name)}", found)

    def container(self, permission: str) -> Signed:
        """Sign the address of the whole container. `permission` is letters of the service, as `rl`."""
        from azure.storage.blob import generate_container_sas

        found = generate_container_sas(
            self.place.account,
            self.place.container,
            user_delegation_key=self.key,
            permission=permission,
            start=_moment(self.starts_at),
            expiry=_moment(self.expires_at),
            protocol="https",
        )
        return self._signed(self.place.container, found)

    def _signed(self, path: str, query: str) -> Signed:
        for pair in query.split("&"):
            name, _, value = pair.partition("=")
            if name == "sig":
                redact.hide(value)
        redact.hide(query)
        return Signed(f"{self.place.url}/{path}?{query}", self.expires_at)


def signer(
    place: Place, access: ByToken, settings: Settings, clock: Clock, *, lifetime_s: float, limits: Limits | None = None
) -> Signer:
    """Take a key that is good for `lifetime_s` from now, at most seven days, to sign with.

    Raises UserError for another lifetime, ConfigError by plain http, and as `Line.call`.
    """
    if not 0 < lifetime_s <= LONGEST_S:
        asked, longest = units.duration(lifetime_s), units.duration(LONGEST_S)
        raise UserError(f"a signature cannot live for {asked}", hint=f"at most {longest}")
    line = Line(place, access, settings, limits)
    from azure.storage.blob import BlobServiceClient

    expires_at = clock.now() + lifetime_s
    starts_at = max(clock.now() - EARLY_S, expires_at - LONGEST_S)
    with BlobServiceClient(place.url, line.credential, **line.options()) as client:
        key = line.call(
            lambda: client.get_user_delegation_key(_moment(starts_at), _moment(expires_at)),
            f"take a key to sign with from account {place.account}",
        )
    redact.hide(str(key.value))
    return Signer(place, key, starts_at, expires_at)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
