"""Every error that `aj` raises on purpose, each with its exit code and, when there is one, the next step.

    AjError                      exit 1   something that was asked for did not work
    ├─ UserError                 exit 2   wrong words, wrong file, not possible
    │  ├─ TemplateError                   a template, at a file, line and column
    │  ├─ ConfigError                     a setting or an environment variable
    │  └─ OptionError                     an option of the command line
    ├─ NotFound                  exit 3   job, template, bucket, ticket
    ├─ AuthError                 exit 4   not signed in; the hint is the command that signs in
    ├─ Refused                   exit 5   by policy or conflict; says who and since when
    ├─ OutcomeUnknown            exit 6   the change may have happened; the hint is how to find out
    ├─ DaemonError               exit 7   the daemon: not reachable, hung, another version
    ├─ RemoteError               exit 1   an answer of a remote service
    │  └─ Unavailable                     5xx, throttled or no network; may carry `retry_after_s`
    ├─ JobFailed                 exit 1   the job itself did not succeed
    └─ TimedOut                  exit 124 a time limit of the caller ran out; nothing was stopped

Ctrl-C ends with 130, SIGTERM with 143, a closed pipe with 0, anything unexpected with 70.
"""

from __future__ import annotations

from collections.abc import Mapping

from aj.base.noun import dataclass

EXIT_UNEXPECTED = 70
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143

# From the gravest to the lightest: which code speaks for a call that named several items.
GRAVITY = (70, 6, 7, 4, 5, 3, 2, 124, 1, 0)


@dataclass(frozen=True)
class Place:
    """A spot in a file. `line` and `column` count from 1; 0 means unknown."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        parts = [self.file, *(str(number) for number in (self.line, self.column) if number)]
        return ":".join(parts)


class AjError(Exception):
    """Something that was asked for did not work."""

    exit_code = 1
    default_code = "failed"
    retryable = False

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        code: str | None = None,
        place: Place | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or self.default_code
        self.place = place if place and place.file else None  # what stands in no file has no place to show
        self.details: dict[str, object] = dict(details or {})

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class UserError(AjError):
    """Wrong words, a wrong file, or something that cannot be."""

    exit_code = 2
    default_code = "bad-input"


class TemplateError(UserError):
    """A template says something it may not say."""

    default_code = "bad-template"


class ConfigError(UserError):
    """A setting or an environment variable is wrong."""

    default_code = "bad-config"


class OptionError(UserError):
    """An option of the command line is wrong."""

    default_code = "bad-option"


class NotFound(AjError):
    """What was named does not exist."""

    exit_code = 3
    default_code = "not-found"


class AuthError(AjError):
    """Not signed in."""

    exit_code = 4
    default_code = "not-signed-in"


class Refused(AjError):
    """Not now or not so: a policy, a lock, a conflict."""

    exit_code = 5
    default_code = "refused"


class OutcomeUnknown(AjError):
    """A change may or may not have happened."""

    exit_code = 6
    default_code = "outcome-unknown"


class DaemonError(AjError):
    """The daemon cannot be reached, hangs, or speaks another language."""

    exit_code = 7
    default_code = "daemon"


class RemoteError(AjError):
    """A remote service answered with an error."""

    default_code = "remote"


class Unavailable(RemoteError):
    """A remote service does not answer just now."""

    default_code = "unavailable"
    retryable = True


class JobFailed(AjError):
    """The job ended without success."""

    default_code = "job-failed"


class TimedOut(AjError):
    """A time limit that the caller gave ran out. Nothing was stopped by it."""

    exit_code = 124
    default_code = "timed-out"


KINDS: tuple[type[AjError], ...] = (
    AjError,
    UserError,
    TemplateError,
    ConfigError,
    OptionError,
    NotFound,
    AuthError,
    Refused,
    OutcomeUnknown,
    DaemonError,
    RemoteError,
    Unavailable,
    JobFailed,
    TimedOut,
)


def gravest(codes: list[int]) -> int:
    """Return the exit code that speaks for several items (0 for none)."""
    return min(codes, key=lambda code: GRAVITY.index(code) if code in GRAVITY else -1, default=0)
