"""The buckets of jobs: settled when a job is admitted, restored before it starts, saved while it runs and at its end.

The data travel here, in the daemon, which alone holds the credentials: a job gets none, so it can reach nothing but
its own folders, and each folder is tied to one prefix of one bucket.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from aj.base import crash
from aj.base.clock import Clock
from aj.base.errors import AjError, NotFound, Refused, UserError
from aj.base.noun import dataclass
from aj.bucket import fetch, mirror, prices, scan
from aj.bucket.checkpoint import Checkpoint
from aj.bucket.digest import Moving
from aj.bucket.door import Door, check_word
from aj.bucket.mirror import Upload
from aj.bucket.scope import Scope
from aj.bucket.storage import Storage
from aj.bucket.transfer import Pace, Stopped
from aj.engine.artifacts import NOT_SAVABLE
from aj.model.bucket import HERE, Attached, Bound, Buckets, Checkpoints, Health, Owner, Purpose, Wanted
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.model.workload import Workload
from aj.store import atomic, buckets, credentials, jobs, secrets
from aj.store.layout import Layout
from aj.wire import codec

LOGS = ".aj/logs/"  # the prefix of an output bucket under which the logs of jobs are kept
_SAFE = re.compile(r"[^a-z0-9-]+")

T = TypeVar("T")
Log = Callable[[str], None]


class JobBuckets:
    """What the engine does with the buckets of its jobs; see `aj.engine.artifacts`. Safe between threads."""

    def __init__(self, layout: Layout, door: Door, clock: Clock, log: Log = lambda _: None) -> None:
        self._layout = layout
        self._door = door
        self._clock = clock
        self._log = log
        self._guard = threading.Lock()
        self._savers: dict[tuple[str, int], _Saver] = {}

    # admission

    def check(self, spec: JobSpec) -> None:
        """Look whether the buckets and secrets of a request can serve it; an output bucket may be missing.

        Changes nothing. Raises Refused for another storage and without a right, NotFound for what is not there,
        UserError.
        """
        secrets.values(self._layout, spec.secrets)
        asked = spec.buckets or Buckets()
        if asked.checkpoint_keep < 1:
            raise UserError("at least one checkpoint has to be kept", hint="`--checkpoint-keep 1`")
        if asked.require_output and not (asked.output or asked.checkpoint or spec.spot):
            raise UserError("`--require-output` needs a bucket", hint="add `--output-bucket NAME`")
        for purpose in Purpose:
            wanted = asked.wanted(purpose)
            if wanted is not None and wanted.bucket is not None:
                self._check_one(purpose, wanted.bucket, wanted)
        if _is_automatic(spec):
            self._open(_name_of(spec.id), asked.checkpoint)

    def _check_one(self, purpose: Purpose, bucket: str, wanted: Wanted) -> None:
        storage = self._open(bucket, wanted, purpose)
        seen = _insist(self._clock, storage.look)
        if seen is None and purpose is not Purpose.OUTPUT:
            words = f"there is no {purpose} bucket {storage.label}"
            raise NotFound(words, code="no-such-bucket", hint=self._way(bucket, wanted, purpose))

    def _way(self, bucket: str, wanted: Wanted, purpose: Purpose) -> str:
        whose = f" --credentials {wanted.credential}" if wanted.credential else ""
        known = buckets.way(self._layout, bucket, wanted.credential, purpose=purpose)
        return known or f"`aj bucket create {bucket}{whose}`"

    def _open(self, bucket: str, wanted: Wanted | None, purpose: Purpose = Purpose.CHECKPOINT) -> Storage:
        name = wanted.credential if wanted else None
        try:
            return self._door.open(check_word(bucket), name)
        except NotFound as error:
            raise NotFound(
                f"`--{purpose}-storage-credentials`: {error.message}", code=error.code, hint=error.hint
            ) from error

    def admit(self, job: Workload) -> Workload:
        """Settle the buckets of a new job for all its attempts; make its output bucket and one of its own.

        Raises as `check`, and Refused when a bucket cannot be made.
        """
        spec = job.spec
        if spec is None or (spec.buckets is None and not spec.spot):
            return job
        asked = spec.buckets or Buckets()
        bound: dict[str, Bound] = {}
        for purpose in Purpose:
            wanted = asked.wanted(purpose)
            if wanted is not None and wanted.bucket is not None:
                bound[purpose.value] = self._bind(job.id, purpose, wanted.bucket, wanted)
        if _is_automatic(spec):
            bound[Purpose.CHECKPOINT.value] = self._own(job, asked.checkpoint or Wanted())
        if not bound:
            return job
        attached = Attached(bound, asked.checkpoint_keep, asked.require_output)
        return replace(job, attached=attached, notes=job.notes + _notes(attached))

    def _bind(self, job_id: str, purpose: Purpose, bucket: str, wanted: Wanted) -> Bound:
        self._check_one(purpose, bucket, wanted)
        if purpose is Purpose.OUTPUT:
            _insist(self._clock, self._open(bucket, wanted, purpose).create)
        kind = self._door.credential(wanted.credential).kind
        prefix = "" if purpose is Purpose.INPUT else f"{job_id}/"
        return Bound(bucket, kind, wanted.credential or HERE, prefix, wanted.region)

    def _own(self, job: Workload, wanted: Wanted) -> Bound:
        """Make a bucket for this job alone, or use a foreign one of that name, which then stays."""
        name = _name_of(job.id)
        owner = Owner(job.id, credentials.nonce(self._layout, f"{job.id} {job.ticket}"))
        storage = self._open(name, wanted)
        kind = self._door.credential(wanted.credential).kind
        found = Bound(name, kind, wanted.credential or HERE, "", wanted.region, owner)
        if self._make(storage, owner, job.id) or self._is_ours(storage, owner):
            return found
        return replace(found, prefix=f"{job.id}/", owner=None, is_foreign=True)

    def _make(self, storage: Storage, owner: Owner, job_id: str) -> bool:
        try:
            return _insist(self._clock, lambda: storage.create(owner))
        except Refused as error:
            hint = "`--checkpoint-bucket NAME`, or submit it again: it gets another id then"
            words = f"job {job_id} cannot have a bucket of its own: {error.message}"
            raise Refused(words, code=error.code, hint=hint, details=error.details) from error

    def _is_ours(self, storage: Storage, owner: Owner) -> bool:
        seen = _insist(self._clock, storage.look)
        return seen is not None and seen.owner == owner

    # what the life of a job asks

    def restores(self, job: Workload) -> bool:
        """Tell whether something has to be there before the job starts."""
        return job.attached is not None and (job.attached.restores or job.attached.saves)

    def saves(self, job: Workload) -> bool:
        """Tell whether something of the job is kept in a bucket."""
        return job.attached is not None and job.attached.saves

    def requires(self, job: Workload) -> bool:
        """Tell whether a job has failed whose last upload did not work."""
        return job.attached is not None and job.attached.require_output

    def restore(self, job: Workload, folder: Path, stop: threading.Event) -> Mapping[str, Json]:
        """Make the folders of a job what its buckets say, for a start. Raises AjError."""
        attached = _attached(job)
        pace = Pace(self._clock, stop)
        notes: list[Json] = []
        self._drop_saver(job.id)
        for purpose, bound in _each(attached):
            atomic.make_folder(jobs.mount_folder(folder, purpose))
            if purpose is Purpose.INPUT:
                notes += self._bring_input(bound, folder, pace)
            elif purpose is Purpose.OUTPUT:
                notes += self._begin_output(job, bound, folder, pace)
            else:
                notes += self._bring_checkpoint(job, bound, folder, pace)
        crash.point("sync.after-restore")
        return {"notes": notes}

    def _bring_input(self, bound: Bound, folder: Path, pace: Pace) -> list[Json]:
        root = jobs.mount_folder(folder, Purpose.INPUT)
        notes = jobs.sync_folder(folder) / "input.notes"
        brought = mirror.download(self._storage(bound), root, pace, notes=notes, exact=True)
        price = prices.egress_words(bound.kind, brought.bytes)
        told: list[Json] = [f"input from {bound.bucket}: {price}"] if price else []
        return [*told, f"input: {scan.shown(brought.told)}"] if brought.told else told

    def _begin_output(self, job: Workload, bound: Bound, folder: Path, pace: Pace) -> list[Json]:
        """Bring up what a start before this one left, then begin with an empty folder.

        What cannot go up has its only copy here: then all of it is put aside.
        """
        root, notes = jobs.mount_folder(folder, Purpose.OUTPUT), jobs.sync_folder(folder) / "output.json"
        upload = Upload(self._storage(bound), root, notes)
        left = upload.round(pace)
        if left.failed:
            raise AjError(f"what the last start wrote is not in {bound.bucket}: {left.problem}", code="not-saved")
        told = [self._put_aside(job, folder, Purpose.OUTPUT, left.problem)] if left.problem else []
        fetch.clear(root)
        upload.forget()
        return told

    def _put_aside(self, job: Workload, folder: Path, purpose: Purpose, why: str) -> Json:
        """Keep a folder of an earlier start out of the way of this one, and tell where. Raises AjError."""
        root, aside = jobs.mount_folder(folder, purpose), jobs.unsaved_folder(folder, job.attempt, purpose)
        atomic.make_folder(aside.parent)
        try:
            os.rename(root, aside)
        except OSError as error:
            raise atomic.cannot_write(aside, error) from error
        atomic.sync_folder(aside.parent)
        atomic.make_folder(root)
        return f"{purpose} of start {job.attempt} that was not saved is kept in {aside}: {why}"

    def _bring_checkpoint(self, job: Workload, bound: Bound, folder: Path, pace: Pace) -> list[Json]:
        storage = self._door.open(bound.bucket, bound.credential)
        if bound.owner is not None and _insist(self._clock, storage.look) is None:
            self._make(storage, bound.owner, job.id)  # the job was submitted again after its bucket had gone with it
        root = jobs.mount_folder(folder, Purpose.CHECKPOINT)
        kept = Checkpoint(Scope(storage, bound.prefix), root)
        aside: list[Json] = []
        if (problem := _read_health(folder).problem) and not kept.holds(pace):
            aside.append(self._put_aside(job, folder, Purpose.CHECKPOINT, problem))
        found = kept.restore(pace)
        if found is None:
            self._write_health(folder, Health())
            return aside
        health = Health(len(found.files), found.size_bytes, found.at, kept.kept, None)
        self._write_health(folder, health)
        restored = f"checkpoint {found.number} was restored from {bound.bucket}"
        return [*aside, restored] if job.attempt else aside

    def save(self, job: Workload, folder: Path, *, last: bool, stop: threading.Event) -> None:
        """Bring up what the job wrote since the last time; `last` means that its processes have ended.

        Raises AjError when something is not there; with code `not-savable` when another try would not help.
        """
        saver = self._saver(job, folder)
        if saver is None:
            return
        problem: AjError | None = None
        for act in (saver.checkpoint, saver.output):
            try:
                act(Pace(self._clock, stop), last)
            except Stopped:
                raise
            except AjError as error:
                problem = problem or error
        if last:
            crash.point("sync.after-last")
        if problem is not None:
            raise problem

    def _saver(self, job: Workload, folder: Path) -> _Saver | None:
        attached = job.attached
        if attached is None or not attached.saves:
            return None
        with self._guard:
            known = self._savers.get((job.id, job.attempt))
            if known is None:
                known = self._savers[job.id, job.attempt] = self._new_saver(job, attached, folder)
            return known

    def _new_saver(self, job: Workload, attached: Attached, folder: Path) -> _Saver:
        checkpoint, output, logs = None, None, None
        if (bound := attached.get(Purpose.CHECKPOINT)) is not None:
            root = jobs.mount_folder(folder, Purpose.CHECKPOINT)
            keep = attached.checkpoint_keep
            checkpoint = Checkpoint(self._storage(bound), root, keep=keep, attempt=job.attempt)
        if (bound := attached.get(Purpose.OUTPUT)) is not None:
            notes = jobs.sync_folder(folder)
            root = jobs.mount_folder(folder, Purpose.OUTPUT)
            output = Upload(self._storage(bound), root, notes / "output.json")
            whole = self._door.open(bound.bucket, bound.credential)
            logs = Upload(Scope(whole, f"{LOGS}{job.id}/"), folder / "logs", notes / "logs.json", _is_log)
        return _Saver(checkpoint, output, logs, lambda health: self._write_health(folder, health))

    def _drop_saver(self, job_id: str) -> None:
        with self._guard:
            for key in [key for key in self._savers if key[0] == job_id]:
                del self._savers[key]

    def remove(self, job: Workload, folder: Path) -> None:
        """Remove the bucket that was made for a job, if it still bears the job's mark. Raises AjError."""
        self._drop_saver(job.id)
        bound = job.attached.get(Purpose.CHECKPOINT) if job.attached else None
        if bound is None or bound.owner is None:
            return
        storage = self._door.open(bound.bucket, bound.credential)
        if self._is_ours(storage, bound.owner):
            _insist(self._clock, storage.delete)

    # telling

    def checkpoints(self, job: Workload, folder: Path) -> Checkpoints | None:
        """Tell where the checkpoints of a job are and what has reached that place; None when it has none."""
        bound = job.attached.get(Purpose.CHECKPOINT) if job.attached else None
        if bound is None:
            return None
        return Checkpoints(
            bound.bucket,
            bound.kind,
            bound.credential,
            f"/mnt/{Purpose.CHECKPOINT}",
            is_kept=bound.is_kept,
            is_foreign=bound.is_foreign,
            health=_read_health(folder),
        )

    def _write_health(self, folder: Path, health: Health) -> None:
        atomic.make_folder(jobs.sync_folder(folder))
        atomic.write_json(jobs.sync_folder(folder) / "health.json", codec.dump(health))

    def _storage(self, bound: Bound) -> Storage:
        return Scope(self._door.open(bound.bucket, bound.credential), bound.prefix)


@dataclass
class _Saver:
    """What is known of one start's uploads, so that a round only looks at what changed. One round at a time."""

    _checkpoint: Checkpoint | None
    _output: Upload | None
    _logs: Upload | None
    _tell: Callable[[Health], None]

    def checkpoint(self, pace: Pace, last: bool) -> None:
        """Save the checkpoint. Raises AjError; one that is written to just now is saved in the next round."""
        if self._checkpoint is None:
            return
        try:
            saved = self._checkpoint.save(pace)
        except Stopped:
            raise
        except AjError as error:
            self._tell(self._health(self._checkpoint, pace, error.message))
            if isinstance(error, Moving) and not last:
                return
            raise
        words = None
        if saved.left:
            words = f"not in the bucket: {scan.shown(saved.left)}"
        elif saved.by_file:
            words = "its files change all the time: each was taken by itself"
        self._tell(self._health(self._checkpoint, pace, words))
        if saved.left:
            raise AjError(f"checkpoint: {words}", code=NOT_SAVABLE)

    def output(self, pace: Pace, last: bool) -> None:
        """Save the output, and the logs beside it. Raises AjError."""
        if self._output is None or self._logs is None:
            return
        self._logs.round(pace)
        done = self._output.round(pace)
        if done.failed or (last and done.moving):
            raise AjError(f"output: {done.problem}", code="not-saved")
        if done.left:
            raise AjError(f"output: {done.problem}", code=NOT_SAVABLE)

    @staticmethod
    def _health(checkpoint: Checkpoint, pace: Pace, problem: str | None) -> Health:
        newest = checkpoint.newest
        at = newest.at if newest else None
        count, size = (len(newest.files), newest.size_bytes) if newest else (0, 0)
        return Health(count, size, at, checkpoint.kept, pace.clock.now(), problem)


def _is_log(name: str) -> bool:
    return not name.endswith("/times")


def _insist(clock: Clock, act: Callable[[], T]) -> T:
    return Pace(clock).insist(act)


def _attached(job: Workload) -> Attached:
    return job.attached or Attached()


def _each(attached: Attached) -> list[tuple[Purpose, Bound]]:
    return [(purpose, bound) for purpose in Purpose if (bound := attached.get(purpose)) is not None]


def _is_automatic(spec: JobSpec) -> bool:
    """Tell whether a job gets a checkpoint bucket of its own: one that may lose its host and names none."""
    asked = spec.buckets or Buckets()
    return spec.spot and (asked.checkpoint is None or asked.checkpoint.bucket is None)


def _name_of(job_id: str) -> str:
    """Return the name of a job's own bucket: its id, or, where that is no name for a bucket, one like it."""
    plain = re.sub(r"-+", "-", _SAFE.sub("-", job_id.lower())).strip("-")
    if plain == job_id and 3 <= len(plain) <= 63:
        return plain
    return f"{plain[:50]}-{hashlib.sha256(job_id.encode()).hexdigest()[:8]}".strip("-")


def _notes(attached: Attached) -> tuple[str, ...]:
    bound = attached.get(Purpose.CHECKPOINT)
    if bound is None or not bound.is_foreign:
        return ()
    return (f"bucket {bound.bucket} was there before this job: it is used, and stays when the job goes",)


def _read_health(folder: Path) -> Health:
    try:
        value = json.loads((jobs.sync_folder(folder) / "health.json").read_bytes())
        return codec.load(Health, value, lenient=True)
    except (OSError, ValueError, UserError):
        return Health()
