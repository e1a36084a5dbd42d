"""A small daemon for tests that kill it while it saves: runs one spot job that writes epochs, saving all the time.

python -m tests.engine.buckethost ROOT ID LINE
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from aj.backend.local.driver import LocalDriver
from aj.base import paths, settings
from aj.base.clock import SYSTEM
from aj.bucket import checkpoint
from aj.bucket.door import Door
from aj.engine import artifacts
from aj.engine.buckets import JobBuckets
from aj.engine.jobs import Jobs
from aj.model.bucket import Buckets, Wanted
from aj.model.ticket import Mode
from aj.store.layout import Layout
from tests.jobs import EARLY, packed, spec


def main(root: Path, job_id: str, line: str) -> None:
    environment = settings.read()
    layout = Layout(paths.folders(environment))
    layout.prepare()
    artifacts.EVERY_S = checkpoint.PAUSE_S = 0.01
    buckets = JobBuckets(layout, Door(layout, environment), SYSTEM)
    engine = Jobs(layout, {"local": LocalDriver(layout, environment)}, SYSTEM, lambda *_: None, artifacts=buckets)
    engine.adopt("_none")
    asked = Buckets(output=Wanted("results"))
    wanted = spec(job_id, "sh", "-c", line, directory=str(root), spot=True, buckets=asked)
    code = packed(layout, root, {"train.py": "pass\n"})
    engine.admit(wanted, code, ticket=f"aj-{job_id}", project_key="_none", accepted_at=EARLY, mode=Mode.DIRECT)
    answer = engine.show(job_id)
    while not answer.workload.is_over:
        answer = engine.wait(job_id, answer.events[-1].number, 1.0)
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
