"""Routes of what Azure has for this user: who is signed in, quota, types of machines, images."""

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
}
