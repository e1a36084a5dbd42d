"""Routes of watches: list them, add one, remove one."""

from __future__ import annotations

from collections.abc import Mapping

from aj.daemon.call import Answer, Call, Handler, reply
from aj.wire import paths
from aj.wire.paths import Route
from aj.wire.watch import WatchWish


def listing(call: Call) -> Answer:
    """List the watches of the caller's project, or of all."""
    return reply(call.engine.watches.listing(None if call.flag("all") else call.key))


def add(call: Call) -> Answer:
    """Watch a job."""
    wish = call.decode(WatchWish)
    folder = str(call.project.directory) if call.project else None
    return reply(call.engine.watches.add(call.key, folder, wish))


def remove(call: Call) -> Answer:
    """Watch a job no longer."""
    (job_id,) = call.segments
    return reply(call.engine.watches.remove(call.key, job_id))


HANDLERS: Mapping[Route, Handler] = {paths.WATCHES: listing, paths.WATCH_ADD: add, paths.WATCH_REMOVE: remove}
