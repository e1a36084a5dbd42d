"""Credential sources: what each one needs to be set up, and how to sign in when it is not.

All of them are those of `azure-identity`; here stands only what it takes to make one, and what its
failure means: not set up, refused, or nobody answered. None of them opens a browser or writes a file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from aj.base import packs, proc, redact, text
from aj.base.errors import Unavailable
from aj.base.noun import dataclass
from aj.base.settings import CREDENTIALS, Settings
from aj.net import proxies
from aj.net.clouds import Cloud

if TYPE_CHECKING:
    from azure.core.credentials import SupportsTokenInfo, TokenRequestOptions

CLI_S = 30  # `az` on a cold disk needs more than the library's 10
SHOWN = 300  # characters of a reason: the first sentence tells, the rest is trace ids


class NotSetUp(Exception):
    """This source is not there on this machine."""


class Refusal(Exception):
    """This source is there, and gave no token."""


@dataclass(frozen=True)
class Source:
    """One credential source. One that `is_probing` cannot tell "not there" from "refused", so it is "not there"."""

    name: str
    credential: SupportsTokenInfo
    is_probing: bool = False

    def token(self, scope: str, *, tenant: str | None, claims: str | None) -> tuple[str, float]:
        """Return a token and when it expires. Raises NotSetUp, Refusal, or Unavailable when nobody answers."""
        from azure.core.exceptions import AzureError
        from azure.identity import CredentialUnavailableError

        options: TokenRequestOptions = {}
        if tenant:
            options["tenant_id"] = tenant
        if claims:
            options["claims"] = claims
        try:
            found = self.credential.get_token_info(scope, options=options)
        except CredentialUnavailableError as error:
            raise NotSetUp(reason(str(error.message))) from error
        except (AzureError, ValueError, OSError) as error:  # OSError: a token file that is gone
            if _was_unreachable(error):
                raise Unavailable(f"the sign-in service cannot be reached: {reason(str(error))}") from error
            if self.is_probing:
                raise NotSetUp(reason(str(error))) from error
            raise Refusal(reason(str(error))) from error
        return found.token, float(found.expires_on)

    def close(self) -> None:
        """Hang up."""
        close = getattr(self.credential, "close", None)
        if close is not None:
            close()


def chosen(settings: Settings) -> tuple[str, ...]:
    """Return the names of the sources to try: all, or the one of AJ_CREDENTIAL. Raises ConfigError."""
    name = settings.credential
    return CREDENTIALS if name is None else (name,)


def tenant(settings: Settings, *, target: str | None = None, configured: str | None = None) -> str | None:
    """Return the tenant to ask for: the target's, the setting's, AZURE_TENANT_ID, or None for the credential's own."""
    return target or configured or settings.get("AZURE_TENANT_ID")


def hint(name: str, tenant: str | None, settings: Settings | None = None) -> str:
    """Return what would make a source work; `settings` have the PATH on which `az` is looked for."""
    words = {
        "environment": "set AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET, then `aj daemon restart`",
        "workload": "set AZURE_FEDERATED_TOKEN_FILE, AZURE_CLIENT_ID and AZURE_TENANT_ID, then `aj daemon restart`",
        "managed": "assign a managed identity to this machine",
    }
    if name in words:
        return words[name]
    login = f"`az login --tenant {tenant}`" if tenant else "`az login`"
    if settings is not None and proc.find("az", settings.get("PATH")) is None:
        return f"install the Azure CLI, then {login}; or {words['environment']}"
    return login


def source(name: str, cloud: Cloud, settings: Settings, tenant: str | None, *, alone: bool) -> Source:
    """Make a source; `alone` when no other may be tried. Raises NotSetUp with what is missing, or Refusal."""
    packs.need("cloud")
    quiet()
    try:
        credential = _MAKERS[name](cloud, settings, tenant, alone)
    except ValueError as error:  # an id with characters that no id has
        raise Refusal(reason(str(error))) from error
    return Source(name, credential, is_probing=name == "managed" and not alone)


def reason(words: str) -> str:
    """Return the first line of what a library says, secrets taken out."""
    lines = [text.visible(line.strip()) for line in words.splitlines()]
    # A chain tells its members' reasons one a line, below a heading of its own.
    told = [line for line in lines if line and not line.startswith(("ChainedTokenCredential", "Attempted credentials"))]
    first = told[0].removeprefix("ManagedIdentityCredential: ") if told else "no reason given"
    return redact.text(first).removesuffix(".")[:SHOWN]


def _was_unreachable(error: BaseException | None) -> bool:
    """Tell whether an error goes back to a sign-in service that gave no answer: the library calls that a refusal."""
    from azure.core.exceptions import ServiceRequestError, ServiceResponseError

    while error is not None:
        if isinstance(error, ServiceRequestError | ServiceResponseError):
            return True
        error = error.__cause__
    return False


def _needed(settings: Settings, *names: str) -> tuple[str, ...]:
    values = tuple(settings.get(name) for name in names)
    missing = [name for name, value in zip(names, values) if value is None]
    if missing:
        raise NotSetUp(f"{', '.join(missing)} not set")
    return tuple(value for value in values if value is not None)


def _environment(cloud: Cloud, settings: Settings, tenant: str | None, alone: bool) -> SupportsTokenInfo:
    """A service principal, by secret or certificate."""
    (client,) = _needed(settings, "AZURE_CLIENT_ID")
    own = settings.get("AZURE_TENANT_ID") or tenant
    if own is None:
        raise NotSetUp("AZURE_TENANT_ID not set")
    certificate = settings.get("AZURE_CLIENT_CERTIFICATE_PATH")
    secret = settings.get("AZURE_CLIENT_SECRET")
    if secret is None and certificate is None:
        raise NotSetUp("neither AZURE_CLIENT_SECRET nor AZURE_CLIENT_CERTIFICATE_PATH set")
    from azure.identity import CertificateCredential, ClientSecretCredential

    if secret is not None:
        redact.hide(secret)
        return ClientSecretCredential(own, client, secret, **_common(cloud, settings))
    password = settings.get("AZURE_CLIENT_CERTIFICATE_PASSWORD")
    if password is not None:
        redact.hide(password)
    try:
        return CertificateCredential(own, client, certificate, password=password, **_common(cloud, settings))
    except (OSError, ValueError) as error:
        raise NotSetUp(f"AZURE_CLIENT_CERTIFICATE_PATH: {reason(str(error))}") from error


def _workload(cloud: Cloud, settings: Settings, tenant: str | None, alone: bool) -> SupportsTokenInfo:
    """A pod's federated identity."""
    file, client, own = _needed(settings, "AZURE_FEDERATED_TOKEN_FILE", "AZURE_CLIENT_ID", "AZURE_TENANT_ID")
    from azure.identity import WorkloadIdentityCredential

    return WorkloadIdentityCredential(tenant_id=own, client_id=client, token_file_path=file, **_common(cloud, settings))


def _managed(cloud: Cloud, settings: Settings, tenant: str | None, alone: bool) -> SupportsTokenInfo:
    """The machine's own identity. Within a chain the library looks for it for one second, and off Azure gives up."""
    from azure.identity import ChainedTokenCredential, ManagedIdentityCredential

    credential = ManagedIdentityCredential(client_id=settings.get("AZURE_CLIENT_ID"))
    return credential if alone else ChainedTokenCredential(credential)


def _cli(cloud: Cloud, settings: Settings, tenant: str | None, alone: bool) -> SupportsTokenInfo:
    """Whoever is signed in with `az`."""
    from azure.identity import AzureCliCredential

    return AzureCliCredential(additionally_allowed_tenants=["*"], process_timeout=CLI_S)


def _common(cloud: Cloud, settings: Settings) -> dict[str, object]:
    """What every credential that speaks to the authority itself is given."""
    options: dict[str, object] = {
        "authority": str(cloud.authority),
        "additionally_allowed_tenants": ["*"],
        "retry_total": 1,  # at once; who waits and asks again is our own transport
    }
    if cloud.is_private:
        options["disable_instance_discovery"] = True  # the public directory does not know a private authority
    _, bundle = proxies.bundle(settings)
    if bundle is not None:
        options["connection_verify"] = bundle
    return options


def quiet() -> None:
    """Keep the libraries from writing to the log by themselves: each of their failures reaches us as an error."""
    for name in ("azure", "msal", "urllib3"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
        logger.propagate = False


_MAKERS: Mapping[str, Callable[[Cloud, Settings, str | None, bool], SupportsTokenInfo]] = MappingProxyType(
    {"environment": _environment, "workload": _workload, "managed": _managed, "cli": _cli}
)
