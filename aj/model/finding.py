"""What a look at this machine found: a check, how it stands, and what mends it."""

from __future__ import annotations

from enum import StrEnum

from aj.base.noun import dataclass


class Verdict(StrEnum):
    """How a check stands. `absent` is something that is not here and need not be."""

    OK = "ok"
    ABSENT = "absent"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True)
class Finding:
    """One check. `hint` is the command or the change that mends it."""

    check: str
    verdict: Verdict
    message: str
    hint: str | None = None


def ok(check: str, message: str) -> Finding:
    """Say that something is as it should be."""
    return Finding(check, Verdict.OK, message)


def absent(check: str, message: str, hint: str | None = None) -> Finding:
    """Say that something that is not needed by everybody is not here."""
    return Finding(check, Verdict.ABSENT, message, hint)


def warning(check: str, message: str, hint: str | None = None) -> Finding:
    """Say that something works, and may not for long or not for all."""
    return Finding(check, Verdict.WARNING, message, hint)


def failed(check: str, message: str, hint: str | None = None) -> Finding:
    """Say that something is broken."""
    return Finding(check, Verdict.FAILED, message, hint)
