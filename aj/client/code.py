"""Packed code that the daemon keeps: remove what nothing needs any more."""

from __future__ import annotations

from aj.base.errors import OutcomeUnknown
from aj.client.line import AnswerLost, Line
from aj.wire import paths
from aj.wire.messages import Prune, Pruned


class Code:
    """What a caller can do with archives of code."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def prune(self, *, keep_s: float, dry_run: bool = False) -> Pruned:
        """Remove archives that nothing may need and that were not used for `keep_s`; a dry run only names them.

        Raises OutcomeUnknown when the answer is lost.
        """
        try:
            return self._line.change(Pruned, paths.CODE_PRUNE, body=Prune(keep_s, dry_run))
        except AnswerLost as lost:
            raise OutcomeUnknown(f"the answer was lost: {lost}", hint="`aj code prune -d`") from lost

    def prune_remote(self, workspace: str, *, keep_s: float, dry_run: bool = False) -> Pruned:
        """Remove our archives of a workspace that no live job names; a dry run only names them.

        Raises OutcomeUnknown when the answer is lost, NotFound without such a workspace, AuthError, Refused.
        """
        try:
            return self._line.change(Pruned, paths.CLOUD_PRUNE, workspace, body=Prune(keep_s, dry_run))
        except AnswerLost as lost:
            raise OutcomeUnknown(f"the answer was lost: {lost}", hint="`aj code prune --remote -d`") from lost
