"""Images of the service's own, by every name they have."""

from __future__ import annotations

from aj.azure import images
from aj.base.noun import dataclass
from aj.engine.visit import Visit, parts, refuse_silence
from aj.wire.azure import FailedPart, ImageList, ImageRow


@dataclass(frozen=True)
class Images:
    """What is kept: images, and the subscriptions that gave no answer."""

    images: tuple[ImageRow, ...] = ()
    failures: tuple[FailedPart, ...] = ()
    notices: tuple[str, ...] = ()


def listing(visit: Visit, *, text: str | None) -> ImageList:
    """List images, those alone of which a name holds `text`, in any case. Raises AuthError, RemoteError."""
    held = visit.kept(Images, "images", lambda: _found(visit))
    told = visit.told(held, failures=held.value.failures, warnings=held.value.notices)
    wanted = (text or "").lower()
    rows = tuple(row for row in held.value.images if any(wanted in name.lower() for name in row.names))
    return ImageList(rows, told)


def _found(visit: Visit) -> Images:
    places, subscriptions = visit.places()
    found = images.list_all(visit.session, subscriptions)
    refuse_silence(found, "list images")
    rows = tuple(ImageRow(image.shown, image.names) for image in found.values)
    return Images(rows, parts(found.failures), tuple(places.notices))
