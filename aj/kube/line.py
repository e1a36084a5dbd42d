"""The line to one cluster: the official client's own configuration and connections, in our hands.

Certificates that stand in a kubeconfig itself are written to private files, since the libraries below
read them from nowhere else; files are named by what is in them, so there is one of each.
"""

from __future__ import annotations

import base64
import hashlib
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

import certifi
import kubernetes.client.configuration as official
import kubernetes.client.rest as rest

from aj.base.errors import ConfigError
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.kube.config import Access, Pem
from aj.kube.credentials import Credential
from aj.net import proxies
from aj.net.origin import Origin
from aj.store import atomic
from aj.version import VERSION

if TYPE_CHECKING:
    from urllib3 import PoolManager

USER_AGENT = f"aj/{VERSION}"


@dataclass(frozen=True)
class Line:
    """How one cluster is reached from this machine. `folder` holds certificates and is ours alone."""

    access: Access
    settings: Settings
    folder: Path

    def configuration(self, credential: Credential) -> official.Configuration:
        """Return the official client's configuration, with who we are in it. Raises ConfigError."""
        access = self.access
        found = official.Configuration(host=access.server)
        found.verify_ssl = not access.is_insecure
        found.ssl_ca_cert = self._authority()
        found.cert_file, found.key_file = self._file(credential.certificate), self._file(credential.key)
        found.tls_server_name = access.tls_server_name
        found.retries = False
        proxy = self._proxy()
        found.proxy, found.no_proxy = proxy, None  # decided here: what it read from its own environment is not asked
        found.proxy_headers = proxies.headers(proxy) if proxy else None
        header = authorization(credential)
        if header:
            found.api_key = {"authorization": header}
        return found

    def _proxy(self) -> str | None:
        """Return the proxy of the cluster: the kubeconfig's, else the environment's. Raises ConfigError."""
        if named := self.access.proxy:
            return proxies.checked("`proxy-url` of the cluster in the kubeconfig", named, "proxy-url: http://HOST:PORT")
        return proxies.of(self.settings, Origin.of_url(self.access.server))

    def dial(self, credential: Credential) -> PoolManager:
        """Return connections to the cluster. Raises ConfigError on certificates that are none."""
        try:
            manager: PoolManager = rest.RESTClientObject(self.configuration(credential)).pool_manager
        except (OSError, ValueError) as error:
            raise ConfigError(f"{self.access.server} cannot be reached as the kubeconfig says: {error}") from error
        return manager

    def _authority(self) -> str:
        """Return whom to trust: who the kubeconfig says, else the bundle that is named, else the system's."""
        if self.access.authority is not None:
            return self._file(self.access.authority) or ""
        _, bundle = proxies.bundle(self.settings)
        return bundle or ssl.get_default_verify_paths().cafile or certifi.where()

    def _file(self, pem: Pem | None) -> str | None:
        if pem is None or pem.content is None:
            return None if pem is None else str(pem.file)
        path = self.folder / f"{hashlib.sha256(pem.content).hexdigest()[:32]}.pem"
        if not path.exists():
            atomic.make_folder(self.folder)
            atomic.write_bytes(path, pem.content)
        return str(path)


def authorization(credential: Credential) -> str | None:
    """Return the value of the header that says who we are, or None when a certificate does."""
    if credential.token:
        return f"Bearer {credential.token}"
    if credential.basic:
        return "Basic " + base64.b64encode(":".join(credential.basic).encode()).decode()
    return None
