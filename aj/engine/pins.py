"""What the tag of an image means at this moment: asked once, when a job is admitted, and kept with the job."""

from __future__ import annotations

import functools

from aj.backend.local import podman
from aj.base.clock import Clock
from aj.base.errors import NotFound
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.model import image
from aj.model.image import Image
from aj.net import http
from aj.net.registry import Registry
from aj.net.retry import Retrying


@dataclass(frozen=True)
class Pins:
    """Finds digests. What speaks to registries is imported with the first image."""

    settings: Settings
    clock: Clock

    def digest(self, reference: str) -> str:
        """Return the digest of an image. Raises UserError, NotFound, AuthError, Refused, Unavailable."""
        wanted = image.parse(reference)
        return self._here(wanted) if wanted.is_unkept else self._registry.digest(wanted)

    def _here(self, wanted: Image) -> str:
        """Look among the images that were built on this machine. Raises NotFound, Refused without podman."""
        found = podman.need(self.settings).digest(f"{wanted.registry}/{wanted.repository}:{wanted.tag}")
        if found is None:
            raise NotFound(f"there is no image {wanted} on this machine", code="no-image", hint="`podman build`")
        return found

    @functools.cached_property
    def _registry(self) -> Registry:
        return Registry(Retrying(http.connect(self.settings, self.clock), self.clock), self.settings)
