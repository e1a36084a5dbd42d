"""Azurite, Microsoft's emulator of blob storage, run as it is: `python -m tests.house setup` installs it from npm."""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import platform
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from aj.azure.datastores import Secret
from aj.azure.line import Place
from aj.base.clock import SYSTEM
from aj.base.settings import Settings
from aj.net.clouds import BLOB_SCOPE
from aj.net.token import Token
from tests.servers.azure import TENANT, Issuer

MAIN = Path(__file__).resolve().parents[1] / "node_modules/azurite/dist/src/blob/main.js"
ACCOUNT = "devstoreaccount1"
# The one key of the emulator, the same everywhere and printed in its manual.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
STARTS_S = 60  # seconds; it takes one on an idle machine
_LISTENS = re.compile(rb"successfully listens on (\S+)")
PR_SET_PDEATHSIG = 1
# The library tells the service what it runs on, and Python starts a program to learn it, once: here and now.
platform.platform()


@dataclass(frozen=True)
class Azurite:
    """A running emulator. `bundle` names its certificates when it speaks https."""

    url: str
    bundle: Path | None = None

    @property
    def key(self) -> Secret:
        """What opens everything in it."""
        return Secret("AccountKey", KEY)

    @property
    def settings(self) -> Settings:
        """Settings by which it is trusted."""
        return Settings({} if self.bundle is None else {"SSL_CERT_FILE": str(self.bundle)})

    @property
    def endpoint(self) -> str:
        """What a cloud of `aj.toml` calls its `blob_endpoint`."""
        return self.url + "/{account}"

    def place(self, container: str, url: str | None = None) -> Place:
        """A container of it, reached through another address if one is given."""
        return Place(ACCOUNT, container, f"{url or self.url}/{ACCOUNT}")


class Accepted(Issuer):
    """A source of tokens that the emulator accepts: it looks at whom they are for, from whom, and until when."""

    def get(self, scope: str, *, tenant: str | None = None, claims: str | None = None) -> Token:
        given = super().get(scope, tenant=tenant, claims=claims)
        if scope != BLOB_SCOPE:
            return given
        now = int(SYSTEM.now())
        more = {"aud": "https://storage.azure.com", "iss": "https://sts.windows.net/t/", "iat": now, "nbf": now - 60}
        more |= {"oid": self.person, "tid": TENANT}
        head, _, end = given.value.split(".")
        body = base64.urlsafe_b64encode(json.dumps({**more, "exp": now + 3600}).encode()).decode().rstrip("=")
        return Token(f"{head}.{body}.{end}", given.expires_at, given.source)


@contextlib.contextmanager
def running(folder: Path, *, tls: bool = False) -> Iterator[Azurite]:
    """Run an emulator for the length of a block. Skips the test, loudly, where it is not installed."""
    node = shutil.which("node")
    if node is None or not MAIN.exists():
        pytest.skip("Azurite is not installed: `python -m tests.house setup` installs it where there is Node and npm")
    words, bundle = _certified(folder) if tls else ([], None)
    child = subprocess.Popen(
        [
            *(node, str(MAIN), "--blobHost", "127.0.0.1", "--blobPort", "0"),
            *("--disableTelemetry", "--skipApiVersionCheck", "--inMemoryPersistence", *words),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        preexec_fn=_end_with_us,
    )
    with child:
        try:
            yield Azurite(_address(child), bundle)
        finally:
            child.kill()


def _certified(folder: Path) -> tuple[list[str], Path]:
    """Make certificates; return the words that name them, and the bundle to trust."""
    authority = trustme.CA()
    own = authority.issue_cert("127.0.0.1")
    bundle, cert, key = folder / "ca.pem", folder / "cert.pem", folder / "key.pem"
    authority.cert_pem.write_to_path(str(bundle))
    own.cert_chain_pems[0].write_to_path(str(cert))
    own.private_key_pem.write_to_path(str(key))
    return ["--cert", str(cert), "--key", str(key), "--oauth", "basic"], bundle


def _end_with_us() -> None:
    """End the emulator with the tests, however they end."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _address(child: subprocess.Popen[bytes]) -> str:
    assert child.stdout is not None
    said, limit = b"", time.monotonic() + STARTS_S
    while time.monotonic() < limit:
        if select.select([child.stdout], [], [], 0.5)[0]:
            piece = child.stdout.read1(65536)
            said += piece
            if found := _LISTENS.search(said):
                return found[1].decode()
            if not piece:
                break
    raise AssertionError(f"Azurite did not start: {said.decode(errors='replace')}")
