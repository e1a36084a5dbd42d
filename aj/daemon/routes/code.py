"""Routes of packed code: remove what nothing needs any more."""

from __future__ import annotations

from collections.abc import Mapping

from aj.daemon.call import Answer, Call, Handler, reply
from aj.wire import paths
from aj.wire.messages import Prune
from aj.wire.paths import Route


def prune(call: Call) -> Answer:
    """Remove old archives, or only name them."""
    asked = call.decode(Prune)
    return reply(call.engine.code_prune(asked.keep_s, asked.dry_run))


def prune_remote(call: Call) -> Answer:
    """Remove old archives of a workspace, or only name them."""
    (workspace,), asked = call.segments, call.decode(Prune)
    return reply(call.engine.cloud_code_prune(call.project, workspace, asked))


HANDLERS: Mapping[Route, Handler] = {paths.CODE_PRUNE: prune, paths.CLOUD_PRUNE: prune_remote}
