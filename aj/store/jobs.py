"""Jobs on disk: one folder each, with the record, what was asked for, the events, logs and outputs.

    jobs/ID/record.json    the job as it stands, without environment values; replaced as a whole
            spec.json      what was asked for, with values; written once
            events.jsonl   one line a change of state
            attempts/N/    what passes between the daemon and the supervisor of one start
            logs/N/        output of one start, by process
            mnt/           input, output and checkpoint, where the job has buckets; sync/ what of them is where
            work/node0/    the code as submitted, and what the job wrote beside it

The record is written first and is the truth; it carries the newest event, so an event line that a crash
kept from the disk is known and is added by the next writer. A job's folder appears whole or not at all.
Reading needs no daemon and changes nothing; only the daemon that owns the job's project writes.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from aj.base.clock import SYSTEM
from aj.base.errors import AjError, NotFound, Refused, UserError
from aj.model.bucket import Purpose
from aj.model.job import JobSpec
from aj.model.state import JobState
from aj.model.workload import Event, Workload
from aj.store import atomic, jsonl
from aj.store.layout import Layout
from aj.wire import codec

SCHEMA = 1
NEW_S = 600.0  # making a job's folder takes milliseconds; one so old was cut off by a crash
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z", re.ASCII)
_NEW, _GONE = ".new-", ".gone-"  # a folder being made, and one being removed

Told = Callable[[str], None]


def record_file(folder: Path) -> Path:
    """Return where the record of a job folder stands."""
    return folder / "record.json"


def spec_file(folder: Path) -> Path:
    """Return where the request of a job folder stands."""
    return folder / "spec.json"


def events_file(folder: Path) -> Path:
    """Return where the events of a job folder stand."""
    return folder / "events.jsonl"


def attempt_folder(folder: Path, attempt: int) -> Path:
    """Return the folder that the daemon and the supervisor of one start share."""
    return folder / "attempts" / str(attempt)


def work_folder(folder: Path, node: int) -> Path:
    """Return the directory in which the processes of one node start."""
    return folder / "work" / f"node{node}"


def mount_folder(folder: Path, purpose: Purpose) -> Path:
    """Return the folder that a job finds as `/mnt/PURPOSE`."""
    return folder / "mnt" / purpose.value


def unsaved_folder(folder: Path, attempt: int, purpose: Purpose) -> Path:
    """Return where it is kept what a start of a job wrote that no bucket took; never one that is there already."""
    number, found = 1, folder / "work" / f"unsaved-{attempt}" / purpose.value
    while os.path.lexists(found):
        number += 1
        found = folder / "work" / f"unsaved-{attempt}.{number}" / purpose.value
    return found


def sync_folder(folder: Path) -> Path:
    """Return where it is kept what of the job's buckets is here and there."""
    return folder / "sync"


def check_id(job_id: str) -> str:
    """Return the id. Raises UserError when it cannot name a job (it also names a folder)."""
    if not _ID.match(job_id):
        raise UserError(
            f"`{job_id}` is not a job id", hint="letters, digits, `.`, `_` and `-`, at most 64, the first no `.` or `-`"
        )
    return job_id


def exists(layout: Layout, job_id: str) -> bool:
    """Tell whether there is a folder for this id."""
    return bool(_ID.match(job_id)) and layout.job(job_id).is_dir()


def create(layout: Layout, workload: Workload) -> None:
    """Make the folder of a new job, durably and exclusively.

    Raises Refused when the id is taken, AjError when the disk refuses.
    """
    target = layout.job(check_id(workload.id))
    atomic.make_folder(layout.jobs)
    beside = layout.jobs / f"{_NEW}{workload.id}-{os.urandom(4).hex()}"
    try:
        _fill(beside, workload)
        os.rename(beside, target)  # fails on a folder that is there and not empty
        atomic.sync_folder(layout.jobs)
    except OSError as error:
        if target.exists():
            raise Refused(f"there is a job {workload.id} already", code="job-exists") from error
        raise atomic.cannot_write(target, error) from error
    finally:
        remove_tree(beside)


def _fill(folder: Path, workload: Workload) -> None:
    atomic.make_folder(folder)
    if workload.spec is not None:
        atomic.write_json(spec_file(folder), codec.dump(workload.spec))
    if workload.last_event is not None:
        _append(folder, workload.last_event)
    _save(folder, workload)


def save(layout: Layout, workload: Workload) -> None:
    """Replace the record durably. Raises AjError when the disk refuses; the old record then stays."""
    _save(layout.job(workload.id), workload)


def _save(folder: Path, workload: Workload) -> None:
    atomic.write_json(record_file(folder), codec.dump(replace(workload, spec=None)))


def append_event(layout: Layout, job_id: str, event: Event) -> None:
    """Add one line to the history. Raises AjError when the disk refuses."""
    _append(layout.job(job_id), event)


def _append(folder: Path, event: Event) -> None:
    line = codec.dump(event)
    assert isinstance(line, dict)
    jsonl.append(events_file(folder), line)


def read(layout: Layout, job_id: str) -> Workload:
    """Read one record; it has no `spec`. Raises NotFound, or AjError when it cannot be read or is damaged."""
    folder = layout.job(job_id)
    if not exists(layout, job_id):
        raise NotFound(f"no job {job_id}", hint="`aj job list` shows those that are known")
    return _read(folder)


def _read(folder: Path) -> Workload:
    path = record_file(folder)
    try:
        value = json.loads(path.read_bytes())
        newer = isinstance(value, dict) and int(value.get("schema_version", SCHEMA)) > SCHEMA
        if newer:
            raise AjError(f"{path} was written by a newer release", code="newer-record", hint="upgrade `aj`")
        return codec.load(Workload, value, where=str(path), lenient=True)
    except OSError as error:
        raise AjError(f"{path}: {error.strerror}", code="unreadable-record") from error
    except (ValueError, RecursionError, TypeError, UserError) as error:
        raise AjError(f"{path} is damaged: {error}", code="damaged-record") from error


def with_logs(layout: Layout, job_id: str) -> Workload:
    """Read the record of a job that may have logs of its own. Raises as `read`, and Refused for a targeted one."""
    job = read(layout, job_id)
    if job.targeted is not None:
        raise is_inside(job, "no logs of its own")
    return job


def is_inside(job: Workload, but: str) -> Refused:
    """Say what a job that was sent to a deployment cannot have: it shares a program with others."""
    assert job.targeted is not None, "only such jobs are refused this"
    name = job.targeted.deployment
    hint = f"`aj deployment status {name}` shows the replicas; their logs are in its JSON"
    return Refused(f"job {job.id} runs inside of deployment `{name}`: {but}", code="targeted", hint=hint)


def spec(layout: Layout, job_id: str) -> JobSpec:
    """Read what was asked for, with its environment values. Raises AjError when it cannot be read."""
    path = spec_file(layout.job(job_id))
    try:
        return codec.load(JobSpec, json.loads(path.read_bytes()), where=str(path), lenient=True)
    except FileNotFoundError as error:
        raise AjError(f"{path} is gone", code="damaged-record") from error
    except OSError as error:
        raise AjError(f"{path}: {error.strerror}", code="unreadable-record") from error
    except (ValueError, RecursionError, UserError) as error:
        raise AjError(f"{path} is damaged: {error}", code="damaged-record") from error


def has_ended(folder: Path) -> bool:
    """Tell whether a job needs no more watching: final, or no longer there. Cheap enough to ask often."""
    try:
        value = json.loads(record_file(folder).read_bytes())
        return JobState(value["state"]).is_final
    except FileNotFoundError:
        return True
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return False  # unreadable just now, or damaged: who follows it sees no end and can be interrupted


def events(layout: Layout, workload: Workload, told: Told) -> tuple[Event, ...]:
    """Return the history of a job, oldest first; broken lines are told and passed over."""
    found = list(_events(layout.job(workload.id), told))
    newest = workload.last_event
    if newest is not None and (not found or found[-1].number < newest.number):
        found.append(newest)
    return tuple(found)


def _events(folder: Path, told: Told) -> Iterator[Event]:
    path = events_file(folder)
    for value in jsonl.read(path, lambda where: told(f"{where} is not a line of history")):
        try:
            yield codec.load(Event, value, where=str(path), lenient=True)
        except UserError as error:
            told(f"{path}: {error.message}")


def listing(layout: Layout, told: Told) -> list[Workload]:
    """Read all records, newest first; a damaged one is told and hides no other."""
    found = []
    for folder in _folders(layout):
        try:
            found.append(_read(folder))
        except AjError as error:
            if folder.exists():  # else it was deleted between the listing and the look
                told(error.message)
    return _newest_first(found)


def _newest_first(found: list[Workload]) -> list[Workload]:
    return sorted(found, key=lambda job: (job.submitted_at, job.id), reverse=True)


def _folders(layout: Layout) -> Iterator[Path]:
    try:
        names = sorted(os.listdir(layout.jobs))
    except FileNotFoundError:
        return
    for name in names:
        if _ID.match(name) and (folder := layout.jobs / name).is_dir():
            yield folder


def opened(layout: Layout, project_key: str, told: Told) -> list[Workload]:
    """Read the records of a project as their only writer, newest first, and put right what a crash left.

    A damaged record tells no project any more: it is set aside by whoever finds it, and told.
    """
    _sweep(layout)
    found = []
    for folder in _folders(layout):
        try:
            job = _read(folder)
        except AjError as error:
            words = error.message
            if error.code == "damaged-record":
                words += f"; set aside as {atomic.set_aside(record_file(folder)).name}"
            told(words)
            continue
        if job.project_key == project_key:
            atomic.sweep(folder)
            found.append(job)
    return _newest_first(found)


def repair(layout: Layout, workload: Workload) -> None:
    """Add the event line that a crash kept from the disk. Raises AjError when the disk refuses."""
    newest = workload.last_event
    known = list(_events(layout.job(workload.id), lambda _: None))
    if newest is not None and (not known or known[-1].number < newest.number):
        append_event(layout, workload.id, newest)


def remove(layout: Layout, job_id: str) -> None:
    """Remove a job with everything it left. It disappears at once, also when the removal is cut off."""
    folder = layout.job(check_id(job_id))
    gone = layout.jobs / f"{_GONE}{job_id}-{os.urandom(4).hex()}"
    try:
        os.rename(folder, gone)
    except FileNotFoundError:
        return
    except OSError as error:
        raise atomic.cannot_write(folder, error) from error
    remove_tree(gone)


def _sweep(layout: Layout) -> None:
    if not layout.jobs.is_dir():
        return
    for name in os.listdir(layout.jobs):
        path = layout.jobs / name
        if name.startswith(_GONE) or (name.startswith(_NEW) and _age_s(path) > NEW_S):
            remove_tree(path)


def _age_s(path: Path) -> float:
    try:
        return SYSTEM.now() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0  # it has its name by now


def remove_tree(path: Path) -> None:
    """Remove a folder with all below it, also what a job made read-only. Raises AjError when it stays."""
    import shutil

    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except OSError:
        _open_up(path)
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise AjError(f"cannot remove {error.filename or path}: {error.strerror}", code="cannot-remove") from error


def _open_up(path: Path) -> None:
    """Give ourselves back the right to look into and change every folder of a tree of ours."""
    path.chmod(0o700)
    for folder, names, _ in os.walk(path):
        for name in names:  # before the walk goes down into them
            inner = Path(folder, name)
            if stat.S_ISDIR(inner.lstat().st_mode):
                inner.chmod(0o700)
