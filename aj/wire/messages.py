"""What crosses the socket besides the nouns themselves: one dataclass for each request and answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aj.base.noun import dataclass
from aj.model.bucket import Checkpoints
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.model.log import Chunk
from aj.model.record import Record
from aj.model.step import Step
from aj.model.ticket import Mode, Ticket
from aj.model.workload import Event, Workload


@dataclass(frozen=True)
class Hello:
    """Who answers the socket, and how busy it is. Keeps its form in every version."""

    name: str
    version: str
    protocol_min: int
    protocol_max: int
    instance: str
    pid: int
    start_time: str
    started_at: str
    uptime_s: float
    retiring: bool
    capabilities: tuple[str, ...]
    busy: Busy
    env: Mapping[str, str]
    socket: str
    log: str
    projects: tuple[ProjectQueue, ...] = ()


@dataclass(frozen=True)
class Busy:
    """What would be disturbed by a stop."""

    requests: int = 0
    tickets_running: int = 0
    tickets_queued: int = 0
    jobs_running: int = 0
    jobs_queued: int = 0
    replicas: int = 0
    watches: int = 0

    @property
    def is_idle(self) -> bool:
        tickets, jobs = self.tickets_running or self.tickets_queued, self.jobs_running or self.jobs_queued
        return not (self.requests or tickets or jobs or self.replicas or self.watches)


@dataclass(frozen=True)
class ProjectQueue:
    """How many tickets wait in one project. `path` is the project directory, None when unknown."""

    key: str
    path: str | None
    queued: int


@dataclass(frozen=True)
class Submission:
    """A request to submit. `key` is the AJ ID; the same key and body again gives the first answer."""

    key: str
    mode: Mode
    spec: JobSpec


@dataclass(frozen=True)
class TicketAnswer:
    """A ticket as it stands, without its request, and warnings for the caller to print.

    `steps` are what happened to it since the number that was asked for, `told` the number of the last of them.
    """

    ticket: Ticket
    warnings: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    told: int = 0


@dataclass(frozen=True)
class TicketList:
    """Tickets, oldest first."""

    tickets: tuple[Ticket, ...]
    projects: tuple[ProjectQueue, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobAnswer:
    """One driven job: its record without environment values, and its events so far."""

    workload: Workload
    events: tuple[Event, ...] = ()
    events_total: int = 0
    jobs_ahead: int | None = None
    logs: str | None = None
    warnings: tuple[str, ...] = ()
    checkpoints: Checkpoints | None = None


@dataclass(frozen=True)
class JobList:
    """Driven jobs, newest first."""

    jobs: tuple[Workload, ...]
    truncated: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Terminate:
    """Ask for the end. `grace_s` is the time between TERM and KILL."""

    grace_s: float | None = None


@dataclass(frozen=True)
class Resubmit:
    """Run a cleaned, final job again under its own id."""

    when_clean: bool = False
    start_timeout_s: float | None = None
    refresh_image: bool = False


@dataclass(frozen=True)
class Exec:
    """A command to run inside a running job. One word is a shell line, several are the exact argv.

    `stdin` and `tty` say what the caller hands on.
    """

    argv: tuple[str, ...]
    rank: int = 0
    stdin: bool = False
    tty: bool = False


@dataclass(frozen=True)
class Preempt:
    """Play the loss of a job's host; with `restartable` the same host comes back."""

    restartable: bool = False


@dataclass(frozen=True)
class ExecPlan:
    """How the caller runs it on this machine: words, whole environment, directory."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    cwd: str


@dataclass(frozen=True)
class Retire:
    """Ask the daemon to leave. `force` does not wait for a running submission."""

    force: bool = False
    timeout_s: float | None = None


@dataclass(frozen=True)
class Prune:
    """Remove archives that nothing needs and that were not used for so long; a dry run only names them."""

    keep_s: float
    dry_run: bool = False


@dataclass(frozen=True)
class Archive:
    """One archive of packed code and its size."""

    digest: str
    bytes: int


@dataclass(frozen=True)
class Pruned:
    """The archives that were removed, or would be, the oldest first."""

    archives: tuple[Archive, ...]


@dataclass(frozen=True)
class Hold:
    """Start no job for so many seconds. With `stop` the running ones are ended and run again later."""

    lease_s: float
    stop: bool = False


@dataclass(frozen=True)
class Done:
    """A plain yes, with what was done and what to know."""

    status: str = "ok"
    detail: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Health:
    """How the daemon itself is. Ages in seconds; None when there is nothing of that kind."""

    threads: int
    requests: int
    oldest_request_s: float | None
    oldest_queued_s: float | None
    longest_running_s: float | None
    busy: Busy


@dataclass(frozen=True)
class Notice:
    """One event as it is told to listeners. Numbers grow within one daemon's life.

    `dropped` counts events that this listener was too slow for and that came before this one.
    """

    number: int
    topic: str
    project: str | None
    payload: Mapping[str, Json] = field(default_factory=dict)
    dropped: int = 0


@dataclass(frozen=True)
class Journal:
    """Submissions as they stand, newest first."""

    records: tuple[Record, ...]
    truncated: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class LogPage:
    """What a job wrote until now, in the order of time."""

    chunks: tuple[Chunk, ...]
