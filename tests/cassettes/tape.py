"""How conversations with Azure are taped: what goes onto a cassette, and what never does.

Addresses are written as those of a machine without servers, so that a replay that reaches for the network fails.
"""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aj.azure.arm import Session
from aj.base.settings import Settings
from aj.net import clouds, http
from tests.conftest import MovedClock
from tests.servers import azure as small
from tests.servers import whole
from tests.servers.azure import TENANT, Issuer, SmallAzure
from tests.servers.azurite import KEY, Accepted, Azurite

HOUSE = Path(__file__).resolve().parents[2]
CASSETTES = HOUSE / "cassettes"
CONTAINER = "azureml-blobstore-taped"
ARM, PLANE, BLOBS = "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"
LEFT_OUT = ("authorization", "x-ms-client-request-id", "x-ms-request-id", "date", "x-ms-date", "user-agent", "cookie")
SIGNED = ("sig", "se", "st", "sp", "sv", "sr", "skoid", "sktid", "skt", "ske", "sks", "skv")
# A key of the right form that opens nothing.
NO_KEY = base64.b64encode(b"redacted" * 8).decode()
_SECRETS = re.compile(rb'("(?:key|sasToken|access_token|secret)"\s*:\s*")[^"]*(")')


@dataclass
class Tape:
    """Rewrites what is about to be taped, and the requests that are looked up on a tape."""

    names: dict[str, str] = field(default_factory=dict)  # a server's own host and port, and what stands for it

    @classmethod
    def replayed(cls) -> Tape:
        """What reads a tape: addresses stand there as they are asked for."""
        return cls({netloc: netloc for netloc in (ARM, PLANE, BLOBS)})

    @property
    def config(self) -> dict[str, Any]:
        """What the recorder is told."""
        return {
            "filter_headers": list(LEFT_OUT),
            "filter_query_parameters": list(SIGNED),
            "match_on": ["method", "scheme", "host", "port", "path", "query", "body"],
            "before_record_request": self.request,
            "before_record_response": self.response,
            "decode_compressed_response": True,
        }

    def __deepcopy__(self, memo: object) -> Tape:
        return self  # the recorder copies what it is told, and the servers are named later

    def request(self, request: Any) -> Any:
        """Write a request: plain bytes for a body, and addresses that lead nowhere. None before the story begins."""
        if not self.names:
            return None
        body = request.body
        if hasattr(body, "read"):  # else the tape would hold the program's own object
            body = body.read()
        request._was_file = request._was_iter = False
        request.body = self._nowhere(body or b"")
        request.uri = self._nowhere(request.uri.encode()).decode()
        return request

    def response(self, response: dict[str, Any]) -> dict[str, Any]:
        """Write an answer, its secrets taken out."""
        found = {name: values for name, values in response["headers"].items() if name.lower() not in LEFT_OUT}
        before = response["body"]["string"]
        body = _SECRETS.sub(rb"\g<1>%s\g<2>" % NO_KEY.encode(), self._nowhere(before))
        if body != before:
            found = {name: [str(len(body))] if name.lower() == "content-length" else v for name, v in found.items()}
        return {**response, "headers": found, "body": {"string": body}}

    def _nowhere(self, data: bytes) -> bytes:
        for real, written in self.names.items():
            data = data.replace(real.encode(), written.encode())
        return data


@dataclass(frozen=True)
class Studio:
    """Where a story takes place: the same to it whether it is taped or replayed."""

    session: Session
    settings: Settings
    clock: MovedClock
    azure: SmallAzure | None = None  # there while it is taped


@contextlib.contextmanager
def taping(tape: Tape, azurite: Azurite, clock: MovedClock) -> Iterator[Studio]:
    """Serve a story to be taped: servers that check each request, and real blob storage."""
    from azure.storage.blob import ContainerClient

    with small.running(Settings({}), clock) as azure:
        whole.furnish(azure, CONTAINER)
        url = azurite.place(CONTAINER).url
        with ContainerClient(url, CONTAINER, credential=KEY, connection_verify=str(azurite.bundle)) as container:
            container.create_container()
        netlocs = (azure.arm_server.netloc, azure.plane_server.netloc, azurite.url.partition("//")[2])
        tape.names = dict(zip(netlocs, (ARM, PLANE, BLOBS)))
        cloud = replace(azure.cloud, blob_endpoint=azurite.endpoint)
        session = replace(azure.session, cloud=cloud, tokens=Accepted(azure.issuer.known))
        yield Studio(session, azurite.settings, clock, azure)


@contextlib.contextmanager
def replaying(clock: MovedClock) -> Iterator[Studio]:
    """Serve a story from its tape: nobody is at these addresses."""
    table = {
        **small.table(f"http://{ARM}", f"http://{PLANE}"),
        "blob_endpoint": f"https://{BLOBS}/{{account}}",
    }
    with http.connect(Settings({}), clock) as pool:
        session = Session(pool, clouds.find("small", {"small": table}), Issuer({}), clock, TENANT)
        yield Studio(session, Settings({}), clock)


Story = Callable[[Studio, Path], None]
