"""What is done about one thing that was made on a cluster: renewed, given to its job, or removed.

A Secret is removed only when no job bears its id and it is a day old: a job whose creation was not answered may still
be found. A pod that brings code is removed when it was made from this state folder and no upload uses it: none of this
process, and none of another machine that has the same folder.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence

from aj.azure.arm import Session
from aj.backend.volcano import names, porter, sas
from aj.backend.volcano.backend import is_final
from aj.backend.volcano.pins import Chosen
from aj.base.clock import Clock, rfc3339
from aj.base.errors import NotFound, UserError
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.engine.upkeep import SOON_S
from aj.kube import jobs, secrets
from aj.kube.client import Cluster
from aj.kube.jobs import Job
from aj.kube.resources import JOBS
from aj.store.traces import HELPER, SECRET, Trace, Traces
from aj.wire.kube import Refreshed, Signature

DAY_S = 86400.0
LEFT = 0.25  # of its lifetime: then a signature is renewed
LONGEST_H = 168.0  # of a signature that a user's key made


@dataclass(frozen=True)
class KubeCare:
    """One daemon's care. `session` opens a session of Azure, `chosen` reads what settings say: both for the path of a
    project, None for the user's own.

    `owner` is the word of the state folder, which tells what was made from it from what others made.
    """

    open: Callable[[str, str], Cluster]
    session: Callable[[str | None], Session]
    chosen: Callable[[str | None], Chosen]
    settings: Settings
    clock: Clock
    traces: Traces
    owner: str

    def tend(self, trace: Trace) -> None:
        """Do what is due about a trace. Raises ConfigError, AuthError, Refused, Unavailable."""
        if trace.kind == HELPER and not porter.is_in_use(trace.job):
            self._sweep(trace)
        elif trace.kind == SECRET:
            self._secret(trace)

    def refresh(self, cluster: Cluster, job: Job, hours: float | None = None) -> Refreshed:
        """Sign anew what a job's Secret holds, for so many hours or as long as before.

        Raises UserError on other hours, NotFound without a Secret, and as `sas.make` and `secrets.renew`.
        """
        if hours is not None and not 0 < hours <= LONGEST_H:
            raise UserError(f"a signature cannot live for {hours:g} hours", hint=f"at most {LONGEST_H:g}")
        name = names.secret(job.aj_id or "")
        there = secrets.find(cluster, name, job.namespace) if job.aj_id else None
        if there is None or job.aj_id is None:
            raise NotFound(f"job {job.name} has no secret: nothing was signed for it", code="no-secret")
        project = self._project(job.aj_id)
        session = self.session(project)
        document = cluster.get(JOBS, job.name, job.namespace)
        wants = sas.of_job(document, there.data, session.cloud.blob_endpoint, self.chosen(project).storage_sas_s)
        signed = sas.make(session, self.settings, sas.only(wants, hours))
        secrets.renew(cluster, name, job.namespace, signed.values)
        context, now = cluster.access.context, self.clock.now()
        self.traces.note(Trace(SECRET, job.aj_id, context, job.namespace, now, signed.first_end, project=project))
        rows = [
            Signature(key, _moment(sas.end_of(there.data[key])), _moment(end))
            for key, end in sorted(signed.expires_at.items())
        ]
        return Refreshed(job.name, job.namespace, name, tuple(rows))

    def _sweep(self, trace: Trace) -> None:
        """Remove pods that no upload uses. What is still there, as of another machine, stays noted."""
        cluster = self.open(trace.context, trace.namespace)
        porter.sweep(cluster, trace.namespace, self.owner, self._is_used)
        is_left = trace.host not in ("", platform.node()) and porter.is_there(cluster, trace.job, trace.namespace)
        if not is_left and not porter.is_in_use(trace.job):
            self.traces.forget(HELPER, trace.job)

    def _is_used(self, job: str) -> bool:
        """Tell whether an upload uses the pod of a job; a pod is noted before it is made, and so found here."""
        noted = self.traces.find(HELPER, job)
        return porter.is_in_use(job) or (noted is not None and noted.host not in ("", platform.node()))

    def _project(self, job: str) -> str | None:
        """Return the project of a job; None when it has none, or was not submitted from this state folder."""
        noted = self.traces.find(SECRET, job)
        return noted.project if noted is not None else None

    def _secret(self, trace: Trace) -> None:
        cluster = self.open(trace.context, trace.namespace)
        found = jobs.by_id(cluster, trace.job, trace.namespace)
        if found:
            self._keep(trace, cluster, found)
        else:
            self._drop(trace, cluster)

    def _keep(self, trace: Trace, cluster: Cluster, found: Sequence[Job]) -> None:
        """Let a Secret die with its job, also one that has ended, and renew in time what a living one needs."""
        name = names.secret(trace.job)
        there = secrets.find(cluster, name, trace.namespace)
        if there is not None and not there.is_owned and len(found) == 1:
            jobs.own_secret(cluster, found[0], name)
        living = [job for job in found if not is_final(job)]
        if there is None or not living:
            self.traces.forget(SECRET, trace.job)  # it goes with the job
        elif self._is_due(trace) and self.chosen(trace.project).auto_refresh:
            self.refresh(cluster, living[0])

    def _is_due(self, trace: Trace) -> bool:
        if trace.expires_at is None:
            return False
        left_s = trace.expires_at - self.clock.now()
        return left_s < max(LEFT * (trace.expires_at - trace.noted_at), SOON_S)

    def _drop(self, trace: Trace, cluster: Cluster) -> None:
        """Remove a Secret without a job, once nobody can be looking for that any more."""
        there = secrets.find(cluster, names.secret(trace.job), trace.namespace)
        if there is not None:
            if self.clock.now() - trace.noted_at < DAY_S:
                return
            if there.labels.get(names.ID) == trace.job and not there.is_owned:
                secrets.remove(cluster, there.name, trace.namespace, uid=there.uid)
        self.traces.forget(SECRET, trace.job)


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else rfc3339(seconds)
