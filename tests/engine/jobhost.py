"""A small daemon for tests that kill it: adopts, submits one job if told to, and carries it to its end.

    python -m tests.engine.jobhost ROOT ID LINE [lost|restartable]

With a last word the job is on spot, and loses its host as soon as it has written `up`. Where its state is
and whether it crashes is said by the environment.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from aj.backend.local.driver import LocalDriver
from aj.base import paths, settings
from aj.base.clock import SYSTEM
from aj.engine.jobs import Jobs
from aj.model.state import JobState
from aj.model.ticket import Mode
from aj.store.layout import Layout
from tests.jobs import EARLY, packed, spec


def main(root: Path, job_id: str, line: str, loss: str = "") -> None:
    environment = settings.read()
    layout = Layout(paths.folders(environment))
    layout.prepare()
    engine = Jobs(layout, {"local": LocalDriver(layout, environment)}, SYSTEM, lambda *_: None)
    engine.adopt("_none")
    wanted = spec(job_id, "sh", "-c", line, directory=str(root), spot=bool(loss))
    code = packed(layout, root, {"train.py": "pass\n"})
    engine.admit(wanted, code, ticket=f"aj-{job_id}", project_key="_none", accepted_at=EARLY, mode=Mode.DIRECT)
    if loss:
        while engine.show(job_id).workload.state is not JobState.RUNNING or not (root / "up").exists():
            SYSTEM.sleep(0.01)
        engine.preempt(job_id, loss == "restartable")
    answer = engine.show(job_id)
    while not answer.workload.is_over:
        answer = engine.wait(job_id, answer.events[-1].number, 1.0)
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
