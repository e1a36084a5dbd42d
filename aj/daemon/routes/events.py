"""The route of events: everything that changes, as it changes."""

from __future__ import annotations

from collections.abc import Mapping

from aj.base.noun import dataclass
from aj.daemon import stream
from aj.daemon.call import Answer, Call, Handler, Streaming
from aj.wire import paths
from aj.wire.paths import Route


@dataclass(frozen=True)
class Events:
    """The events of one daemon's life."""

    instance: str

    def listen(self, call: Call) -> Answer:
        """Stream events of one project or of all, from now on or from where a lost stream ended."""
        after = stream.number(call.headers.get(paths.LAST_EVENT), self.instance)
        subscription = call.engine.hub.subscribe(call.query.get("project") or None, after)
        limit_s = call.seconds("timeout_s") if "timeout_s" in call.query else None
        return Streaming(stream.events(subscription, self.instance, call.line.keepalive_s, timeout_s=limit_s))

    def handlers(self) -> Mapping[Route, Handler]:
        """Return which of these answers which route."""
        return {paths.EVENTS: self.listen}
