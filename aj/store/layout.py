"""The names of all files in the state directory, in one place."""

from __future__ import annotations

from pathlib import Path

from aj.base.noun import dataclass
from aj.base.paths import Folders
from aj.store import atomic

README = """This folder belongs to `aj`. It holds, and nothing else does:

  queue/PROJECT/         tickets: one file a promised submission
  journal/PROJECT.jsonl  history of submissions, one line each
  jobs/ID/               jobs of this machine: record, events, logs, work/ (the files a job wrote)
  deployments/NAME/      programs that run for long and take jobs: record, replicas with their logs
  buckets/               buckets of this machine: a folder each
  credentials/           what opens storage elsewhere; secrets/ what jobs are given; nobody prints either
  code/                  archives of submitted code, by digest
  spend/                 caps on spending, and what jobs cost that are no longer on record
  clusters/              what was made on clusters and must not stay there: one file each
  dryrun/                what `aj run -d` wrote
  cache/                 what Azure told and what downloads brought, with when; may be deleted at any time
  locks/                 who is writing
  run/                   the daemon's socket, when the system has no runtime folder
  reports/               reports of unexpected errors
  daemon.log

Files are private (0600). `aj job delete` and the retention settings remove what is old. While no
daemon runs it is safe to move the folder; deleting it forgets every ticket and job.

A file named NAME.damaged-N could not be read and was set aside: look at it, then remove it.
"""


@dataclass(frozen=True)
class Layout:
    """Paths below the user's folders. Making a Layout makes no file."""

    folders: Folders

    @property
    def state(self) -> Path:
        return self.folders.state

    @property
    def queue(self) -> Path:
        return self.state / "queue"

    def tickets(self, key: str) -> Path:
        return self.queue / key

    def ticket(self, key: str, ticket: str) -> Path:
        return self.queue / key / f"{ticket}.json"

    def project(self, key: str) -> Path:
        return self.queue / key / "project.json"

    @property
    def journals(self) -> Path:
        return self.state / "journal"

    def journal(self, key: str) -> Path:
        return self.journals / f"{key}.jsonl"

    @property
    def jobs(self) -> Path:
        return self.state / "jobs"

    def job(self, job_id: str) -> Path:
        return self.jobs / job_id

    @property
    def deployments(self) -> Path:
        return self.state / "deployments"

    @property
    def buckets(self) -> Path:
        return self.state / "buckets"

    @property
    def credentials(self) -> Path:
        return self.state / "credentials"

    @property
    def secrets(self) -> Path:
        return self.state / "secrets"

    @property
    def code(self) -> Path:
        return self.state / "code"

    def archive(self, digest: str) -> Path:
        return self.code / f"{digest}.tar.gz"

    @property
    def spend(self) -> Path:
        return self.state / "spend"

    @property
    def caps(self) -> Path:
        return self.spend / "caps.json"

    @property
    def caps_lock(self) -> Path:
        return self.state / "locks" / "caps.lock"

    @property
    def ledger_lock(self) -> Path:
        return self.state / "locks" / "ledger.lock"

    @property
    def dryrun(self) -> Path:
        return self.state / "dryrun"

    @property
    def watches(self) -> Path:
        return self.state / "watches"

    @property
    def clusters(self) -> Path:
        return self.state / "clusters"

    @property
    def answers(self) -> Path:
        return self.state / "cache"

    @property
    def downloads(self) -> Path:
        return self.answers / "downloads"

    @property
    def reports(self) -> Path:
        return self.state / "reports"

    @property
    def daemon_log(self) -> Path:
        return self.state / "daemon.log"

    def ownership(self, key: str) -> Path:
        return self.state / "locks" / f"{key}.lock"

    def journal_lock(self, key: str) -> Path:
        return self.state / "locks" / f"{key}.journal.lock"

    @property
    def stat_cache(self) -> Path:
        return self.folders.cache / "code"

    @property
    def user_settings(self) -> Path:
        return self.folders.config / "aj.toml"

    @property
    def prices(self) -> Path:
        return self.folders.config / "prices.toml"

    @property
    def socket(self) -> Path:
        return self.folders.runtime / "daemon.sock"

    @property
    def daemon_file(self) -> Path:
        return self.folders.runtime / "daemon.json"

    @property
    def daemon_lock(self) -> Path:
        return self.folders.runtime / "daemon.lock"

    def prepare(self) -> None:
        """Make the state directory and say in it whose it is. Raises AjError when it cannot be made."""
        atomic.make_folder(self.state)
        note = self.state / "README"
        if not note.exists():
            atomic.write_bytes(note, README.encode())
