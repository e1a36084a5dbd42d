"""Routes of what Azure has for this user: who is signed in, quota, machines, images, workspaces and resources."""

from __future__ import annotations

from collections.abc import Mapping

from aj.base.errors import UserError
from aj.daemon.call import Answer, Call, Handler, reply
from aj.wire import paths
from aj.wire.azure import InventoryQuery
from aj.wire.paths import Route


def auth(call: Call) -> Answer:
    """Tell who is signed in."""
    with call.line.alive():
        return reply(call.engine.cloud.sign_in(call.project))


def quota(call: Call) -> Answer:
    """List quota of both services, or of one."""
    query = _query(call)
    with call.line.alive():
        return reply(call.engine.cloud.quota(call.project, query))


def skus(call: Call) -> Answer:
    """List types of machines."""
    query = _query(call)
    with call.line.alive():
        return reply(call.engine.cloud.skus(call.project, query))


def images(call: Call) -> Answer:
    """List images of the service's own."""
    query = _query(call)
    with call.line.alive():
        return reply(call.engine.cloud.images(call.project, query))


def workspaces(call: Call) -> Answer:
    """List workspaces."""
    query = _query(call)
    with call.line.alive():
        return reply(call.engine.cloud.workspaces(call.project, query))


def workspace(call: Call) -> Answer:
    """Read one workspace."""
    (word,) = call.segments
    with call.line.alive():
        return reply(call.engine.cloud.workspace(call.project, word))


def datastores(call: Call) -> Answer:
    """List the datastores of a workspace."""
    (word,), query = call.segments, _query(call)
    with call.line.alive():
        return reply(call.engine.cloud.datastores(call.project, word, query))


def datastore(call: Call) -> Answer:
    """Read one datastore."""
    word, name = call.segments
    with call.line.alive():
        return reply(call.engine.cloud.datastore(call.project, word, name))


def environments(call: Call) -> Answer:
    """List the environments of a workspace."""
    (word,), query = call.segments, _query(call)
    with call.line.alive():
        return reply(call.engine.cloud.environments(call.project, word, query))


def environment(call: Call) -> Answer:
    """Read the versions of one environment."""
    (word, name), limit = call.segments, call.whole("limit", 0)
    with call.line.alive():
        return reply(call.engine.cloud.environment(call.project, word, name, limit=limit))


def accounts(call: Call) -> Answer:
    """List storage accounts."""
    query = _query(call)
    with call.line.alive():
        return reply(call.engine.cloud.accounts(call.project, query))


def identities(call: Call) -> Answer:
    """List user-assigned identities."""
    query = _query(call)
    with call.line.alive():
        return reply(call.engine.cloud.identities(call.project, query))


def _query(call: Call) -> InventoryQuery:
    known = InventoryQuery().services
    services = tuple(call.query["service"].split(",")) if "service" in call.query else known
    if unknown := sorted(set(services) - set(known)):
        raise UserError(f"query.service: {unknown[0]!r} is none of {', '.join(known)}", code="bad-field")
    return InventoryQuery(
        subscription=call.query.get("subscription") or None,
        refresh=call.flag("refresh"),
        every=call.flag("every"),
        full=call.flag("full"),
        services=services,
        text=call.query.get("text"),
    )


HANDLERS: Mapping[Route, Handler] = {
    paths.AUTH: auth,
    paths.QUOTA: quota,
    paths.SKUS: skus,
    paths.IMAGES: images,
    paths.WORKSPACES: workspaces,
    paths.WORKSPACE: workspace,
    paths.DATASTORES: datastores,
    paths.DATASTORE: datastore,
    paths.ENVIRONMENTS: environments,
    paths.ENVIRONMENT: environment,
    paths.ACCOUNTS: accounts,
    paths.IDENTITIES: identities,
}
