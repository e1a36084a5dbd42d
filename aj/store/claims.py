"""Executions of targeted jobs that are over, one line each, in the job's folder.

The newest one that is over stands in the job's record; it comes here just before the next one takes its
place there. So record and file together know every execution, whatever a crash cut off. A line that
stands twice says nothing more than once. Beside it stand the executions that were refused a claim.
"""

from __future__ import annotations

from pathlib import Path

from aj.base.errors import UserError
from aj.model.claim import Execution
from aj.store import jsonl
from aj.wire import codec


def file(folder: Path) -> Path:
    """Return where the executions of a job folder stand."""
    return folder / "executions.jsonl"


def append(folder: Path, over: Execution) -> None:
    """Add one execution. Raises AjError when the disk refuses."""
    line = codec.dump(over)
    assert isinstance(line, dict)
    jsonl.append(file(folder), line)


def refuse(folder: Path, execution_id: str) -> None:
    """Note that an execution does not get the job, and never will. Raises AjError when the disk refuses."""
    jsonl.append(_refused(folder), {"id": execution_id})


def was_refused(folder: Path, execution_id: str) -> bool:
    """Tell whether an execution was refused."""
    path = _refused(folder)
    return path.exists() and any(line.get("id") == execution_id for line in jsonl.read(path, lambda _: None))


def _refused(folder: Path) -> Path:
    return folder / "refused.jsonl"


def find(folder: Path, execution_id: str) -> Execution | None:
    """Return one execution that is over and no longer in the record, or None."""
    return next((one for one in read(folder) if one.id == execution_id), None)


def read(folder: Path) -> list[Execution]:
    """Return the executions of a job, oldest first; a damaged line hides no other."""
    found: dict[str, Execution] = {}
    if not file(folder).exists():
        return []
    for value in jsonl.read(file(folder), lambda _: None):
        try:
            one = codec.load(Execution, value, where=str(file(folder)), lenient=True)
        except UserError:
            continue  # the line is damaged: what it told is not known any more
        found.setdefault(one.id, one)
    return list(found.values())
