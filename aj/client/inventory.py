"""What Azure has for this user: who is signed in, quota, types of machines, images."""

from __future__ import annotations

from aj.client.line import Line, Query
from aj.client.queue import named
from aj.wire import paths
from aj.wire.azure import ImageList, InventoryQuery, QuotaList, SignIn, SkuList
from aj.wire.resources import (
    AccountList,
    DatastoreList,
    DatastoreRow,
    EnvironmentAnswer,
    EnvironmentList,
    IdentityList,
    WorkspaceAnswer,
    WorkspaceList,
)


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

    def workspaces(self, query: InventoryQuery) -> WorkspaceList:
        """Return the workspaces that this user sees."""
        return self._line.read(WorkspaceList, paths.WORKSPACES, query=_words(query))

    def workspace(self, word: str) -> WorkspaceAnswer:
        """Return one workspace, named by one word (see `aj.client.cloudjobs`). Raises NotFound."""
        return self._line.read(WorkspaceAnswer, paths.WORKSPACE, word)

    def datastores(self, workspace: str, query: InventoryQuery) -> DatastoreList:
        """Return the datastores of a workspace. Raises NotFound."""
        return self._line.read(DatastoreList, paths.DATASTORES, workspace, query=_words(query))

    def datastore(self, workspace: str, name: str) -> DatastoreRow:
        """Return one datastore. Raises NotFound."""
        return self._line.read(DatastoreRow, paths.DATASTORE, workspace, named(name, "datastore"))

    def environments(self, workspace: str, query: InventoryQuery) -> EnvironmentList:
        """Return the environments of a workspace. Raises NotFound."""
        return self._line.read(EnvironmentList, paths.ENVIRONMENTS, workspace, query=_words(query))

    def environment(self, workspace: str, name: str, *, limit: int = 0) -> EnvironmentAnswer:
        """Return the versions of one environment, `limit` of them (0 means all). Raises NotFound."""
        return self._line.read(
            EnvironmentAnswer, paths.ENVIRONMENT, workspace, named(name, "environment"), query={"limit": limit}
        )

    def accounts(self, query: InventoryQuery) -> AccountList:
        """Return the storage accounts that this user sees."""
        return self._line.read(AccountList, paths.ACCOUNTS, query=_words(query))

    def identities(self, query: InventoryQuery) -> IdentityList:
        """Return the user-assigned identities that this user sees."""
        return self._line.read(IdentityList, paths.IDENTITIES, query=_words(query))


def _words(query: InventoryQuery) -> Query:
    return {"subscription": query.subscription, "refresh": _flag(query.refresh)}


def _flag(is_set: bool) -> int | None:
    return 1 if is_set else None
