"""An image by its reference: where it is kept, its name there, and which of its versions is meant.

`ubuntu:24.04` is short for `docker.io/library/ubuntu:24.04`. `local/host` is no image: it is this machine
itself, whose programs a job then runs as they are.
"""

from __future__ import annotations

import re

from aj.base.errors import UserError
from aj.base.noun import dataclass

HOST = "local/host"
HUB = "docker.io"
UNKEPT = "localhost"  # what an engine of containers on this machine has built and keeps for itself
_COMPONENT = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:(?P<registry>(?:[A-Za-z0-9-]+\.)*[A-Za-z0-9-]+(?::[0-9]{{1,5}})?|\[[0-9A-Fa-f:]+\](?::[0-9]{{1,5}})?)/)??"
    rf"(?P<repository>{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?\Z",
    re.ASCII,
)


@dataclass(frozen=True)
class Image:
    """One image. `tag` is `latest` where the reference says nothing; `digest` is given when it names one."""

    registry: str
    repository: str
    tag: str
    digest: str | None = None

    @property
    def is_unkept(self) -> bool:
        """Whether no registry has it: it was built on this machine."""
        return self.registry == UNKEPT

    def at(self, digest: str) -> str:
        """Return the reference that always means the same content."""
        return f"{self.registry}/{self.repository}@{digest}"

    def __str__(self) -> str:
        return f"{self.registry}/{self.repository}:{self.tag}" + (f"@{self.digest}" if self.digest else "")


def is_host(reference: str | None) -> bool:
    """Tell whether a job runs on the machine itself: no image is named, or `local/host`."""
    return reference is None or reference == HOST


def parse(reference: str) -> Image:
    """Read a reference as every program of containers does. Raises UserError when it is none."""
    found = _REFERENCE.match(reference)
    if not found or (found["registry"] and not _names_registry(found["registry"]) and not found["registry"].islower()):
        raise UserError(
            f"`{reference}` is no image", hint="an image is such as registry.example/train:1", code="bad-image"
        )
    registry, repository = _split(found["registry"], found["repository"])
    return Image(registry, repository, found["tag"] or "latest", found["digest"])


def _split(registry: str | None, repository: str) -> tuple[str, str]:
    """Tell a registry from the first part of a name: only the former has a dot, a colon, or is `localhost`."""
    first, slash, rest = repository.partition("/")
    if registry is None and slash and _names_registry(first):
        registry, repository = first, rest
    if registry is not None and not _names_registry(registry):
        registry, repository = None, f"{registry}/{repository}"
    if registry in (None, HUB, f"index.{HUB}"):
        return HUB, repository if "/" in repository else f"library/{repository}"
    return registry, repository


def _names_registry(word: str) -> bool:
    return "." in word or ":" in word or word == UNKEPT
