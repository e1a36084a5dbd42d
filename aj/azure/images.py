"""Images of the service's own: each known by several names, listed by subscription."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aj.azure.arm import Call, Session
from aj.azure.fan import Gathered, gather
from aj.base.noun import dataclass
from aj.net.document import Document

API = "2020-12-01-preview"
_PARTS = ("providers", "Microsoft.Singularity", "images")


@dataclass(frozen=True)
class Image:
    """One image and all its names."""

    names: tuple[str, ...]

    @property
    def shown(self) -> str:
        """The name by which it is shown: the one with a tag, if there is one."""
        return next((name for name in self.names if ":" in name), self.names[-1])


def list_all(session: Session, subscriptions: Sequence[str]) -> Gathered[Image]:
    """List the images that any of the subscriptions has, each once, and the subscriptions that gave no answer."""
    found = gather(subscriptions, lambda subscription: _of(session, subscription))
    return Gathered(_once(image for images in found.values for image in images), found.failures)


def _of(session: Session, subscription: str) -> tuple[Image, ...]:
    call = Call(
        session, ("subscriptions", subscription, *_PARTS), API, f"list the images of subscription {subscription}"
    )
    return tuple(image for image in call.read(_made).rows if image.names)


def _made(row: Document) -> Image:
    return Image(row.words("names"))


def _once(images: Iterable[Image]) -> tuple[Image, ...]:
    found: dict[str, Image] = {}
    for image in images:
        found.setdefault(image.shown, image)
    return tuple(found[name] for name in sorted(found))
