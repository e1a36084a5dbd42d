"""What Azure has for this user: who is signed in, quota, types of machines, images."""

from __future__ import annotations

from aj.client.line import Line, Query
from aj.wire import paths
from aj.wire.azure import ImageList, InventoryQuery, QuotaList, SignIn, SkuList


class Inventory:
    """What a caller can ask about what there is. Each raises AuthError, and RemoteError when no part answered."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def auth(self) -> SignIn:
        """Return who is signed in. Raises AuthError when nobody is."""
        return self._line.read(SignIn, paths.AUTH)

    def quota(self, query: InventoryQuery) -> QuotaList:
        """Return what is left of clusters, machine families and computes."""
        words = {**_words(query), "service": ",".join(query.services), "full": _flag(query.full)}
        return self._line.read(QuotaList, paths.QUOTA, query={**words, "every": _flag(query.every)})

    def skus(self, query: InventoryQuery) -> SkuList:
        """Return the types of machines that a job can ask for."""
        return self._line.read(SkuList, paths.SKUS, query={**_words(query), "every": _flag(query.every)})

    def images(self, query: InventoryQuery) -> ImageList:
        """Return the images of the service's own."""
        return self._line.read(ImageList, paths.IMAGES, query={**_words(query), "text": query.text})


def _words(query: InventoryQuery) -> Query:
    return {"subscription": query.subscription, "refresh": _flag(query.refresh)}


def _flag(is_set: bool) -> int | None:
    return 1 if is_set else None
