"""Names on a cluster: whatever belongs to one submission is found by its id, and bears it."""

from __future__ import annotations

from aj.model.job import JobSpec

MANAGED_BY = "app.kubernetes.io/managed-by"
ID, TASK = "aj-id", "aj-task"  # labels
NAME, TEMPLATE, SUBMITTER, CANCELLED = "aj-name", "aj-template", "aj-submitter", "aj-cancelled"  # annotations
CODE_FOLDER = "aj_code"  # of a volume; below it one folder a job
ARCHIVE = "code.tar.gz"
CODE_URL = "code.url"  # the keys of the Secret
STORAGE = "storage."


def labels(job_id: str) -> dict[str, str]:
    """Return what every object of a job bears. The id alone selects all of them."""
    return {ID: job_id, MANAGED_BY: "aj"}


def generated(stem: str) -> str:
    """Return the begin of the job's name, to which the server adds five characters."""
    return f"{stem}-"


def secret(job_id: str) -> str:
    """Return the name of the Secret of a job."""
    return f"aj-{job_id}"


def helper(job_id: str) -> str:
    """Return the name of the pod that takes the code of a job to its volume."""
    return f"aj-{job_id}-upload"


def code_folder(folder: str, job_id: str) -> str:
    """Return the folder of a job's code on a volume that is mounted at `folder`."""
    return f"{folder}/{CODE_FOLDER}/{job_id}"


def archive(folder: str, job_id: str) -> str:
    """Return the path of a job's packed code on a volume that is mounted at `folder`."""
    return f"{code_folder(folder, job_id)}/{ARCHIVE}"


def base(spec: JobSpec) -> str:
    """Return the part of a job's name that was made of the user's words."""
    return spec.name.removesuffix(f"-{spec.id}")
