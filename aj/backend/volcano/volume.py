"""Code on a volume: into a folder of the job, through a pod that is there for this alone; and old code off it.

Nothing is kept that was not proved: the file gets its name on the volume only when all of it has the right hash.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from aj.azure import blocks
from aj.backend.volcano import names, porter, transfer
from aj.backend.volcano.options import Volume
from aj.backend.volcano.porter import Helper, Pod
from aj.backend.volcano.telling import Tell, Telling
from aj.backend.volcano.transfer import LIMITS, Limits, Line, Sent, Source
from aj.base.errors import AjError, NotFound, Refused
from aj.base.noun import dataclass
from aj.kube.client import Cluster
from aj.kube.resources import CLAIMS, JOBS
from aj.model.code import CodeRef
from aj.store.traces import Traces

_RECEIVE = ("sh", "-c", 'eval "$AJ_RECEIVE"', "aj")
_TIDY = ("sh", "-c", 'eval "$AJ_TIDY"', "aj")


def check(cluster: Cluster, namespace: str, volume: Volume, nodes: int) -> None:
    """Refuse a volume that cannot take the code, or that not all nodes could see.

    Raises NotFound, Refused, and as `Cluster.get`.
    """
    found = cluster.find(CLAIMS, volume.claim, namespace)
    if found is None:
        raise NotFound(
            f"no volume claim {volume.claim} in namespace {namespace}",
            code="no-claim",
            hint=f"`AMLT_PERSISTENT_VOLUME_NAME`; `kubectl get pvc -n {namespace}` lists them",
        )
    phase = found.text("status", "phase")
    # A claim may wait until a first pod wants it: then it is bound together with that pod.
    if phase not in ("Bound", "Pending") or found.text("metadata", "deletionTimestamp"):
        gone = "being deleted" if found.text("metadata", "deletionTimestamp") else phase
        raise Refused(f"volume claim {volume.claim} of namespace {namespace} is {gone}", code="claim-not-ready")
    modes = found.words("spec", "accessModes")
    if not any(mode in ("ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod") for mode in modes):
        raise Refused(f"volume claim {volume.claim} is for reading only: {', '.join(modes)}", code="claim-read-only")
    if nodes > 1 and "ReadWriteMany" not in modes:
        raise Refused(
            f"volume claim {volume.claim} is {', '.join(modes)}: one node has it, and the job has {nodes}",
            code="claim-of-one-node",
            hint="take a claim with ReadWriteMany, or `_extra: {code_upload: {strategy: blob, …}}`",
        )


@dataclass(frozen=True)
class Upload:
    """The code of one job on its way to a volume. `keep_s` is how old the code of a job that is gone may become."""

    cluster: Cluster
    helper: Helper
    archive: Path
    code: CodeRef
    keep_s: float
    limits: Limits = LIMITS

    def carry_out(self, traces: Traces, tell: Tell) -> Sent:
        """Bring it, or find it there; its pod is gone afterwards, whatever happened.

        Raises Unavailable (codes `stalled`, `line-broke`) when running again resumes, RemoteError when the volume
        does not take it, and as `porter.running`.
        """
        telling = Telling(self.cluster.clock, tell)
        telling.begin(f"starting pod {self.helper.name}")
        with (
            blocks.of_file(self.archive, self.code.archive_sha256, "application/gzip") as file,
            porter.running(self.cluster, self.helper, traces, warn=telling.warn) as pod,
        ):
            source = Source(file.size, file.sha256, file.read)
            sent = transfer.send(
                source,
                lambda: self._line(pod, source),
                where=pod.label,
                clock=self.cluster.clock,
                check=lambda: porter.check(self.cluster, pod),
                progress=telling.moved,
                limits=self.limits,
            )
            telling.end(sent.size_bytes, sent.sent_bytes, sent.skipped_bytes)
            self._tidy(pod, telling.warn)
        return sent

    def _line(self, pod: Pod, source: Source) -> Line:
        from aj.kube import exec as programs  # its library is there since the first request

        folder = names.code_folder(porter.ROOT, self.helper.job)
        argv = [*_RECEIVE, folder, names.ARCHIVE, str(source.size), source.sha256]
        return programs.start(self.cluster, pod.name, argv, namespace=pod.namespace, container=porter.CONTAINER)

    def _tidy(self, pod: Pod, warn: Callable[[str], None]) -> None:
        """Remove the code of jobs that are long gone; when that does not work, the next upload tries again."""
        try:
            living = _living(self.cluster, pod.namespace)
            old = [job for job, age_s in _listed(self.cluster, pod) if age_s > self.keep_s and job not in living]
            if old:
                _remove(self.cluster, pod, old)
        except AjError as error:
            warn(f"old code was left on the volume: {error.message}")


def forget(cluster: Cluster, wanted: Helper, jobs: Sequence[str], traces: Traces) -> None:
    """Remove the code of jobs from a volume, through a pod made for it. Raises as `porter.running`, RemoteError."""
    with porter.running(cluster, wanted, traces) as pod:
        _remove(cluster, pod, jobs)


def _living(cluster: Cluster, namespace: str) -> Collection[str]:
    found = cluster.list(JOBS, namespace, labels={names.MANAGED_BY: "aj"})
    return {job.text("metadata", "labels", names.ID) or "" for job in found}


def _listed(cluster: Cluster, pod: Pod) -> list[tuple[str, int]]:
    """Return every job with code on the volume, and the age of that in seconds."""
    said = _run(cluster, pod, "list", []).decode("ascii", "replace").split("\n")
    pairs = [line.split() for line in said if line]
    return [(job, int(age)) for job, age in pairs]


def _remove(cluster: Cluster, pod: Pod, jobs: Sequence[str]) -> None:
    for at in range(0, len(jobs), 100):  # words of one command: its address stays short
        _run(cluster, pod, "remove", jobs[at : at + 100])


def _run(cluster: Cluster, pod: Pod, act: str, words: Sequence[str]) -> bytes:
    from aj.kube import exec as programs

    argv = [*_TIDY, act, f"{porter.ROOT}/{names.CODE_FOLDER}", *words]
    done = programs.run(cluster, pod.name, argv, namespace=pod.namespace, container=porter.CONTAINER)
    return programs.succeeded(done, f"{act} code on the volume")
