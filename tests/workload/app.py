"""The program of a deployment in tests: what it does with a job stands in the job's id.

    work-…   does it and completes        fail-…   ends as an error
    bad-…    says that it cannot be done  stop-…   works until it is cancelled, then puts its work away
    hang-…   works and hears nothing      gate-…   completes once the file `go` is there

Every start of a job is a line of `begun`, every end one of `ended`; run as `python -m tests.workload.app FOLDER`.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from aj.workload import AjError, CurrentJob, current_deployment

LIMIT_S = 60.0  # nothing here goes on longer, whatever becomes of the test


def tell(path: Path, words: str) -> None:
    with path.open("a") as out:
        out.write(f"{words} {os.getpid()}\n")


def work(job: CurrentJob, folder: Path) -> None:
    kind = job.id.partition("-")[0]
    tell(folder / "begun", job.id)
    if kind == "fail":
        job.error("it does not work")
    elif kind == "bad":
        job.invalid("nobody can do this")
    elif kind == "stop":
        while not job.cancelled(timeout=5):
            pass
        job.cleanup()
    elif kind == "hang":
        time.sleep(LIMIT_S)
    else:
        while kind == "gate" and not (folder / "go").exists():
            time.sleep(0.02)
        job.complete()
    tell(folder / "ended", job.id)


def main(folder: Path) -> None:
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until:
        try:
            job = current_deployment().next_job(timeout=5)
        except AjError:
            time.sleep(1)
            continue
        if job is not None:
            try:
                work(job, folder)
            except AjError as error:
                tell(folder / "errors", f"{job.id} {error.code}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
