"""For programs that run in a deployment and take its jobs: `from aj.workload import current_deployment`.

    deployment = current_deployment()
    while True:
        job = deployment.next_job(timeout=20)
        if job is None:
            continue
        try:
            work(load(job.id))
        except BadInput as error:
            job.invalid(str(error))
        except Exception as error:
            job.error(str(error))
        else:
            job.complete()

It imports next to nothing, and speaks to the daemon over the socket that AJ_API_URL names.
"""

from __future__ import annotations

from aj.base.errors import AjError, AuthError, DaemonError, Refused
from aj.model.claim import SelectedJob
from aj.workload.deployment import Deployment, current_deployment
from aj.workload.job import CurrentJob, ExecutionOver, JobTerminated

__all__ = [
    "AjError",
    "AuthError",
    "CurrentJob",
    "DaemonError",
    "Deployment",
    "ExecutionOver",
    "JobTerminated",
    "Refused",
    "SelectedJob",
    "current_deployment",
]
