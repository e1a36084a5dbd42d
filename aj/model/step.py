"""What happens while a job is being submitted, told step by step to whoever listens."""

from __future__ import annotations

from enum import StrEnum

from aj.base.noun import dataclass


class Kind(StrEnum):
    """The steps in their order, and what may be said between any two of them."""

    RESOLVE = "resolve"
    AUTH = "auth"
    PACKAGE = "package"
    UPLOAD = "upload"
    ENVIRONMENT = "environment"
    STORAGE = "storage"
    SUBMIT = "submit"
    DONE = "done"
    WARNING = "warning"
    LOG = "log"
    ERROR = "error"


@dataclass(frozen=True)
class Step:
    """One thing that happened. Numbers are bytes; they are None where there is nothing to count.

    `skipped` is what was there already, `current` the name of what is being worked on.
    """

    kind: Kind
    detail: str
    completed: int | None = None
    total: int | None = None
    skipped: int | None = None
    current: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether this is more than word of how far something has come."""
        return self.completed is None or self.completed == self.total

    def follows(self, earlier: Step) -> bool:
        """Tell whether this only says how far the same thing has come."""
        return self.completed is not None and (self.kind, self.current) == (earlier.kind, earlier.current)
