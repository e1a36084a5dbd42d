"""The route of logs: what jobs of this machine wrote until now."""

from __future__ import annotations

from collections.abc import Mapping

from aj.base.noun import dataclass
from aj.daemon.call import Answer, Call, Handler, reply
from aj.store import joblogs, jobs
from aj.store.layout import Layout
from aj.wire import paths
from aj.wire.messages import LogPage
from aj.wire.paths import Route

TAIL = 1000  # lines when nobody says how many


@dataclass(frozen=True)
class Logs:
    """Reads the logs of the state directory; changes nothing in them."""

    layout: Layout

    def show(self, call: Call) -> Answer:
        """Give the end of what a start of a job wrote, by default of the newest."""
        jobs.with_logs(self.layout, call.name)
        chunks = joblogs.read(
            self.layout.job(call.name),
            attempt=call.whole("attempt", 0) or None,
            rank=call.whole("rank", 0) if "rank" in call.query else None,
            tail=call.whole("tail", TAIL),
            since=call.seconds("since") if "since" in call.query else None,
        )
        return reply(LogPage(tuple(chunks)))

    def handlers(self) -> Mapping[Route, Handler]:
        """Return which of these answers which route."""
        return {paths.JOB_LOGS: self.show}
