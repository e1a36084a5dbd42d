"""Jobs of Volcano as jobs of other places are told: listed, shown with the reason of a failure, ended, read.

A cluster forgets a job: its user deletes it, or its time is over. What was last seen of one that had ended is kept,
and told as such. When the cluster itself cannot be reached, the error names the `kubectl` line that does the same.
"""

from __future__ import annotations

import base64
import contextlib
import json
import shlex
from collections.abc import Iterator, Set
from dataclasses import replace

from aj.azure.memory import Memory
from aj.backend.volcano import states
from aj.backend.volcano.backend import is_final, split
from aj.base.clock import Clock, rfc3339
from aj.base.errors import AjError, NotFound, Refused, Unavailable, UserError
from aj.base.noun import dataclass
from aj.base.paths import Project
from aj.engine.cloudjobs import sample
from aj.engine.kube import Clusters
from aj.kube import endings, events, jobs, obstacles, podlogs, pods
from aj.kube.client import Cluster
from aj.kube.jobs import Job
from aj.kube.podlogs import Cursor
from aj.kube.pods import Pod
from aj.kube.resources import JOBS
from aj.model import handle, tally
from aj.model.cloudjob import CloudJob
from aj.model.state import JobState
from aj.wire import codec
from aj.wire.azure import CloudJobAnswer, CloudJobList, CloudStats, FilePage, JobQuery, LogFile, LogFiles
from aj.wire.messages import Done

SERVICE = "volcano"
LAST = "last"  # the memory of how a job was last seen
FORGOTTEN = "its cluster has forgotten it; this is how it was last seen"


@dataclass(frozen=True)
class KubeJobs:
    """What can be asked about jobs on clusters. A place is written as a handle without a name."""

    clusters: Clusters
    memory: Memory
    clock: Clock

    def jobs(self, project: Project | None, place: str, query: JobQuery) -> CloudJobList:
        """List the jobs of `aj` in a namespace, newest first. Raises UserError, Refused, Unavailable."""
        with self._at(place, "get") as cluster:
            every = [self._told(cluster, job) for job in jobs.every(cluster, ours=True)]
        oldest = None if query.since_s is None else rfc3339(self.clock.now() - query.since_s)
        words = {word.lower() for word in query.states}
        fitting = [job for job in every if _is_wanted(job, words, oldest)]
        shown = fitting[: query.limit or None]
        stopped = f"stopped after {query.limit} jobs: `-n N` shows more" if len(shown) < len(fitting) else None
        where = f"{cluster.access.context}/{cluster.namespace}"
        return CloudJobList(tuple(shown), where, len(every), truncated=stopped is not None, stopped=stopped)

    def stats(self, project: Project | None, place: str, query: JobQuery) -> CloudStats:
        """Count jobs. Raises as `jobs`."""
        found = self.jobs(project, place, replace(query, limit=0))
        return CloudStats(tally.of([sample(job) for job in found.jobs]), found.workspace, found.read)

    def job(self, project: Project | None, place: str, name: str, *, why: bool = False) -> CloudJobAnswer:
        """Return one job; of one that failed, with the reason; with `why`, what keeps it. Raises NotFound."""
        with self._at(place, "get", name) as cluster:
            found = jobs.find(cluster, name)
            if found is None:
                return self._last_seen(place, name)
            told, warnings = self._with_reason(cluster, found)
            reasons = _obstacles(cluster, found) if why else ()
            by_hand = kubectl(cluster, "get", name)
        if told.is_final:
            self._keep(place, told)
        return CloudJobAnswer(told, warnings=warnings, reasons=reasons, by_hand=by_hand)

    def cancel(self, project: Project | None, place: str, name: str) -> CloudJobAnswer:
        """End a job by deleting it. Raises Refused, OutcomeUnknown, NotFound when nobody knows it."""
        with self._at(place, "delete", name) as cluster:
            ended = endings.cancel(cluster, name, is_final=is_final)
        if ended.job is None:
            return replace(self._last_seen(place, name), was_final=True)
        told = self._told(cluster, ended.job)
        if ended.was_final:
            return CloudJobAnswer(told, was_final=True)
        gone = self._gone(told)
        self._keep(place, gone)
        return CloudJobAnswer(gone)

    def delete(self, project: Project | None, place: str, name: str) -> Done:
        """Delete a job that has ended. Raises Refused when it has not, OutcomeUnknown."""
        with self._at(place, "delete", name) as cluster:
            found = jobs.find(cluster, name)
            if found is None:
                return Done("noop")
            if not is_final(found):
                raise Refused(f"job {name} is {found.phase}", code="not-final", hint=f"`aj terminate {name}` ends it")
            self._keep(place, self._told(cluster, found))
            endings.delete(cluster, name)
        return Done("ok")

    def files(self, project: Project | None, place: str, name: str, *, sizes: bool) -> LogFiles:
        """List the logs of a job, one a pod, by rank. Raises NotFound."""
        with self._at(place, "logs", name) as cluster:
            found = jobs.find(cluster, name)
            if found is None:
                return LogFiles((), self._last_seen(place, name).job)
            members = pods.of_job(cluster, name)
            return LogFiles(tuple(LogFile(path_of(pod)) for pod in members), self._told(cluster, found))

    def log(
        self, project: Project | None, place: str, name: str, path: str, cursor: str | None, tail: int | None
    ) -> FilePage:
        """Read what a pod printed since the last look. Raises NotFound, UserError."""
        start = Cursor() if cursor is None else decoded(cursor)
        with self._at(place, "logs", name) as cluster:
            pod = next((pod for pod in pods.of_job(cluster, name) if path_of(pod) == path), None)
            if pod is None:
                raise NotFound(f"{name} has no pod {path.rpartition('/')[2]}", hint="`--list` names them all")
            page = podlogs.read(cluster, pod, start, tail=tail)
        return FilePage(page.data, encoded(page.cursor), page.was_reset)

    # How

    @contextlib.contextmanager
    def _at(self, place: str, verb: str, name: str | None = None) -> Iterator[Cluster]:
        """Open the cluster of a place. When it cannot be reached, say what does the same without us."""
        context, namespace = split(handle.parse(f"{place}/x").place)
        cluster = self.clusters.open(context, namespace)
        try:
            yield cluster
        except Unavailable as error:
            line = kubectl(cluster, verb, name)
            error.hint = f"{error.hint}; or `{line}`" if error.hint else f"`{line}`"
            raise

    def _told(self, cluster: Cluster, job: Job, error: str | None = None) -> CloudJob:
        """Return a job as it is told."""
        state = states.state_of(job.phase, is_cancelled=job.is_cancelled)
        ended_at = job.changed_at if state is not None and state.is_final else None
        now = self.clock.now()
        gpus = {task.gpus for task in job.tasks}
        return CloudJob(
            name=job.name,
            workspace=f"{cluster.access.context}/{job.namespace}",
            service=SERVICE,
            status=job.phase,
            state=state,
            kind="Job",
            display_name=job.title,
            created_at=_moment(job.created_at),
            started_at=_moment(job.started_at),
            ended_at=_moment(ended_at),
            duration_s=_between(job.started_at, ended_at or now),
            queued_s=_between(job.created_at, job.started_at),
            compute=job.queue,
            environment=job.tasks[0].image if job.tasks else None,
            nodes=job.replicas,
            gpus=gpus.pop() if len(gpus) == 1 else None,
            aj_id=job.aj_id,
            error=error,
        )

    def _with_reason(self, cluster: Cluster, job: Job) -> tuple[CloudJob, tuple[str, ...]]:
        """Return a job with why it failed: the first pod that did, and what was last told of that."""
        told = self._told(cluster, job)
        if told.state not in (JobState.ERRORED, JobState.TERMINATED):
            return told, ()
        try:
            return replace(told, error=reason(cluster, job)), ()
        except AjError as error:
            return told, (f"why {job.name} is {job.phase} could not be read: {error.message}",)

    def _gone(self, told: CloudJob) -> CloudJob:
        now = rfc3339(self.clock.now())
        return replace(told, status="Deleted", state=JobState.TERMINATED, ended_at=now, error="ended by its user")

    def _keep(self, place: str, told: CloudJob) -> None:
        self.memory.keep(LAST, place, told.name, value=json.dumps(codec.dump(told)))

    def _last_seen(self, place: str, name: str) -> CloudJobAnswer:
        kept = self.memory.recall(LAST, place, name)
        if kept is None:
            raise NotFound(
                f"no job {name} in {place.partition('://')[2]}",
                hint="it may have been deleted, or its time is over; `aj list` has its submission",
            )
        return CloudJobAnswer(codec.load(CloudJob, json.loads(kept)), warnings=(FORGOTTEN,))


def reason(cluster: Cluster, job: Job) -> str | None:
    """Say why a job failed: `worker-3 failed on node n: exit 137 (OOMKilled)`, with the last event of that pod."""
    failed = pods.first_failed(pods.of_job(cluster, job.name, job.namespace))
    if failed is None:
        return job.message or job.reason
    where = f" on node {failed.node}" if failed.node else ""
    words = f"{failed.member} failed{where}: {failed.how_it_ended}"
    try:
        told = [one for one in events.of_object(cluster, failed.name, job.namespace) if one.is_warning]
    except (Refused, NotFound):
        return words
    return f"{words}; {told[-1].reason}: {told[-1].message}" if told else words


def _obstacles(cluster: Cluster, job: Job) -> tuple[str, ...]:
    state = states.state_of(job.phase, is_cancelled=job.is_cancelled)
    if state is not None and state.is_final:
        return (f"it has ended: {job.phase}" + (f", {why}" if (why := reason(cluster, job)) else ""),)
    if job.min_available and job.running >= job.min_available:
        return ("nothing: it runs",)
    return obstacles.of(cluster, job) or ("nothing that can be seen: the scheduler has not looked at it yet",)


def _is_wanted(job: CloudJob, words: Set[str], oldest: str | None) -> bool:
    said = {job.status.lower(), job.state.value if job.state else "unknown"}
    return bool(not words or words & said) and (oldest is None or (job.created_at or "") >= oldest)


def kubectl(cluster: Cluster, verb: str, name: str | None, *, file: str | None = None) -> str:
    """Return the line that asks a cluster the same by hand; `file` is a kubeconfig other than the usual ones."""
    config = ["--kubeconfig", file] if file else []
    words = ["kubectl", *config, "--context", cluster.access.context, "-n", cluster.namespace, verb]
    if verb == "logs":
        return shlex.join([*words, "-l", f"{pods.JOB_NAME}={name}", "--tail", "200", "--prefix"])
    return shlex.join([*words, JOBS.resource, *([name] if name else [])])


def path_of(pod: Pod) -> str:
    """Return the name of a pod's log, which tells its rank."""
    return f"rank_{pod.rank}/{pod.member}" if pod.rank is not None else pod.name


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else rfc3339(seconds)


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else round(max(0.0, end - start), 3)


def encoded(cursor: Cursor) -> str:
    """Write a cursor as one word."""
    whole = json.dumps([cursor.uid, cursor.at, cursor.count, cursor.mark], separators=(",", ":"))
    return base64.urlsafe_b64encode(whole.encode()).decode().rstrip("=")


def decoded(word: str) -> Cursor:
    """Read what `encoded` wrote. Raises UserError on anything else."""
    try:
        uid, at, count, mark = json.loads(base64.urlsafe_b64decode(word + "=" * (-len(word) % 4)))
        is_text = all(isinstance(one, str) for one in (uid, at, mark))
        if is_text and isinstance(count, int) and count >= 0:
            return Cursor(uid, at, count, mark)
    except (ValueError, TypeError):
        pass  # said below
    raise UserError("query.cursor: it is none", code="bad-field")
