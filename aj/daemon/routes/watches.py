"""Routes of watches: list them, add one, remove one."""

from __future__ import annotations

from collections.abc import Mapping

from aj.base.paths import NO_PROJECT
from aj.daemon.call import Answer, Call, Handler, reply
from aj.wire import paths
from aj.wire.paths import Route
from aj.wire.watch import WatchWish


def listing(call: Call) -> Answer:
    """List the watches of the caller's project, or of all."""
    return reply(call.engine.watches.listing(None if call.flag("all") else _key(call)))


def add(call: Call) -> Answer:
    """Watch a job."""
    wish = call.decode(WatchWish)
    folder = str(call.project.directory) if call.project else None
    return reply(call.engine.watches.add(_key(call), folder, wish))


def remove(call: Call) -> Answer:
    """Watch a job no longer."""
    (job_id,) = call.segments
    return reply(call.engine.watches.remove(_key(call), job_id))


def _key(call: Call) -> str:
    return call.project.key if call.project else NO_PROJECT


HANDLERS: Mapping[Route, Handler] = {paths.WATCHES: listing, paths.WATCH_ADD: add, paths.WATCH_REMOVE: remove}
