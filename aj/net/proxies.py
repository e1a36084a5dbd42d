"""Which way out of this network: the proxy for a host, and the certificates to trust, by the usual variables."""

from __future__ import annotations

import base64
import re
from urllib.parse import unquote, urlsplit

from aj.base import redact
from aj.base.errors import ConfigError
from aj.base.settings import Settings
from aj.net.origin import Origin

BUNDLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")


def bundle(settings: Settings) -> tuple[str, str] | tuple[None, None]:
    """Return the variable that names a certificate bundle, and the bundle; or neither."""
    for name in BUNDLES:
        if path := settings.get(name):
            return name, path
    return None, None


def of(settings: Settings, origin: Origin) -> str | None:
    """Return the proxy by which an origin is reached, or None. Raises ConfigError when it is no address.

    Lower-case spellings of the variables count too, and first, as everywhere.
    """
    if _is_exempt(origin, _variable(settings, "NO_PROXY") or ""):
        return None
    return chosen(settings, origin.scheme)


def chosen(settings: Settings, scheme: str) -> str | None:
    """Return the proxy for a scheme, whatever host is meant. Raises ConfigError when it is no address."""
    name = f"{scheme.upper()}_PROXY"
    proxy = _variable(settings, name)
    if proxy is None:
        return None
    return checked(name, proxy, f"export {name}=http://HOST:PORT")


def checked(name: str, proxy: str, hint: str) -> str:
    """Return a whole address of a proxy, its password hidden from now on. Raises ConfigError, which shows `name` alone.

    What is wrong with an address is not said: anything of it may be a piece of its password.
    """
    whole = proxy if "://" in proxy else f"http://{proxy}"
    try:
        parts = urlsplit(whole)
        place = Origin.parse(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}")
        is_plain = not re.search(r"[^\x21-\x7e]", whole) and not place.has_wildcard
    except ValueError:
        is_plain = False
    if not is_plain:
        problem = "an address without spaces is due, with a host and a port of 1 to 65535"
        raise ConfigError(f"{name} names no proxy: {problem}", hint=hint)
    for secret in (parts.password or "", unquote(parts.password or "")):
        redact.hide(secret)
    return whole


def headers(proxy: str) -> dict[str, str]:
    """Return what a proxy wants to hear from who may use it: the name and password of its address."""
    parts = urlsplit(proxy)
    if parts.username is None:
        return {}
    secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Proxy-Authorization": "Basic " + base64.b64encode(secret.encode()).decode()}


def _variable(settings: Settings, name: str) -> str | None:
    return settings.get(name.lower()) or settings.get(name)


def _is_exempt(origin: Origin, rules: str) -> bool:
    """Tell whether a host needs no proxy: `*`, a host, a domain with or without its first dot; a port narrows."""
    for rule in (word.strip().lower() for word in rules.split(",")):
        host, _, port = rule.partition(":") if rule.count(":") == 1 else (rule, "", "")
        if port and port != str(origin.port):
            continue
        plain = host.removeprefix("*").removeprefix(".")
        if host == "*" or (plain and (origin.host.strip("[]") == plain or origin.host.endswith("." + plain))):
            return True
    return False
