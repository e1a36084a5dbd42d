"""Volcano: a gang of pods on a cluster of Kubernetes, whose own scheduler runs it.

What can be refused is refused before anything is sent, also by the cluster itself. The job is created once.
When the answer to that is lost, the id that the job bears is looked for, and only what is seen is believed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from aj.azure.memory import Memory
from aj.backend.protocol import Request, Status, Traits
from aj.backend.volcano import gang, names, payload, states, volume
from aj.backend.volcano.options import Options
from aj.backend.volcano.payload import Objects
from aj.backend.volcano.variables import Facts
from aj.base.clock import Clock, rfc3339
from aj.base.errors import AjError, NotFound, OutcomeUnknown, Refused, RemoteError, Unavailable, UserError
from aj.base.noun import dataclass
from aj.kube import endings, jobs, queues, secrets
from aj.kube.client import Cluster
from aj.kube.jobs import Job
from aj.kube.resources import JOBS
from aj.model.code import CodeRef
from aj.model.handle import Handle
from aj.model.job import JobSpec
from aj.model.step import Kind, Step

SERVICE = "volcano"
LOOKS_S = (1.0, 3.0, 10.0)  # after a lost answer: a creation is listed within moments, or it never came
NO_DRY_RUN = "the cluster makes no dry runs: the job is checked when it is created"
_NO_DRY_RUN = re.compile(r"dry ?run.*(disabled|not support)|not support.*dry ?run", re.IGNORECASE)
SENT = "sent"  # the memory of where a submission went


@dataclass(frozen=True)
class Parcel:
    """Packed code that goes along."""

    archive: Path
    code: CodeRef


class Courier(Protocol):
    """Who brings code and secrets to a cluster."""

    def deliver(self, cluster: Cluster, spec: JobSpec, chosen: Options, facts: Facts, parcel: Parcel) -> int | None:
        """Bring the code to where the pods look for it; return the bytes that left for it. Raises what stopped it."""

    def secrets(
        self, cluster: Cluster, spec: JobSpec, chosen: Options, facts: Facts, keys: Sequence[str]
    ) -> Mapping[str, str]:
        """Return the values of the job's Secret. Raises AuthError, Refused."""


@dataclass(frozen=True)
class Means:
    """What this service needs of the house. `open` opens a cluster by context and namespace, None for the usual ones.

    `facts` are those that the settings of a job's project say; `heard` is told of each cluster that is used.
    """

    open: Callable[[str | None, str | None], Cluster]
    facts: Callable[[JobSpec, str], Facts]
    archive: Callable[[CodeRef], Path]
    courier: Courier
    memory: Memory
    clock: Clock
    tell: Callable[[str, Step], None]
    heard: Callable[[Cluster], None] = lambda cluster: None


@dataclass(frozen=True)
class Planned(Request):
    """The job to create, where, and all that must be there before."""

    spec: JobSpec
    chosen: Options
    cluster: Cluster
    facts: Facts
    objects: Objects
    parcel: Parcel | None = None
    known: Job | None = None


class VolcanoBackend:
    """Clusters with Volcano."""

    traits = Traits(driven=False, moves_code=True, manifest=True)

    def __init__(self, means: Means) -> None:
        self._means = means
        self._sent_bytes: dict[str, int] = {}

    def plan(self, spec: JobSpec, code: CodeRef | None, *, accepted_at: str) -> Planned:
        """Check the job against its cluster and build it. Raises what stops it, before anything is written."""
        chosen = payload.options(spec)
        cluster = self._means.open(chosen.where.context, chosen.where.namespace)
        self._tell(spec, Kind.RESOLVE, _where(cluster, chosen))
        self._check(spec, chosen, cluster)
        parcel = Parcel(self._means.archive(code), code) if code and payload.moves_code(chosen) else None
        facts = self._facts(spec, cluster, parcel, accepted_at)
        objects = payload.build(spec, chosen, facts)
        known = _only(jobs.by_id(cluster, spec.id), spec)
        if known is None:
            self._rehearse(spec, cluster, objects)
        return Planned(
            SERVICE,
            spec.name,
            objects.job,
            spec,
            chosen,
            cluster,
            facts,
            objects,
            parcel,
            known,
            is_named=False,
        )

    def prepare(self, request: Request) -> None:
        """Bring the code and the Secret to the cluster. Raises what stopped that."""
        assert isinstance(request, Planned), "a request of this service's own plan"
        planned, spec = request, request.spec
        self._means.memory.keep(SENT, spec.id, value=_place(planned.cluster))
        self._means.heard(planned.cluster)
        if planned.known is not None:
            return
        if planned.parcel is not None:
            left = self._means.courier.deliver(planned.cluster, spec, planned.chosen, planned.facts, planned.parcel)
            if left is not None:
                self._sent_bytes[spec.id] = left
        if planned.objects.secret_keys:
            self._make_secret(planned)

    def submit(self, request: Request) -> Handle:
        """Create the job, once. Raises OutcomeUnknown when it may be there, else what the cluster said."""
        assert isinstance(request, Planned), "a request of this service's own plan"
        job = request.known or self._create(request)
        if request.objects.secret_keys:
            self._own_secret(request, job)
        self._tell(request.spec, Kind.DONE, f"submitted as {job.name}")
        left = self._sent_bytes.pop(request.spec.id, None)
        return Handle(SERVICE, _place(request.cluster), job.name, uploaded_bytes=left)

    def find(self, spec: JobSpec) -> Handle | None:
        """Look for the job of a submission where it was sent; None when there is none for certain.

        Raises Refused naming them when there are several, and OutcomeUnknown when nobody knows where to look.
        """
        place = self._means.memory.recall(SENT, spec.id)
        where = payload.options(spec).where
        context, namespace = split(place) if place else (where.context, where.namespace)
        cluster = self._means.open(context, namespace)
        self._means.heard(cluster)
        found = _only(jobs.by_id(cluster, spec.id), spec)
        if found is not None:
            return Handle(SERVICE, _place(cluster), found.name)
        if place is None and where.context is None:
            words = f"{_named(cluster)} has no job of {spec.id}, and whether it was sent there is not remembered"
            raise OutcomeUnknown(words, code="not-remembered", details={"place": _place(cluster)})
        return None

    def status(self, handle: Handle) -> Status | None:
        """None when the cluster has no such job, or has forgotten it."""
        job = jobs.find(self.cluster(handle), handle.name)
        return None if job is None else Status(states.state_of(job.phase, is_cancelled=job.is_cancelled), job.phase)

    def cancel(self, handle: Handle) -> None:
        """End a job by deleting it. No error when it has ended or is gone."""
        endings.cancel(self.cluster(handle), handle.name, is_final=is_final)

    def cluster(self, handle: Handle) -> Cluster:
        """Open the cluster of a handle. Raises ConfigError when the kubeconfig has lost it."""
        return self._means.open(*split(handle.place))

    # How

    def _facts(self, spec: JobSpec, cluster: Cluster, parcel: Parcel | None, accepted_at: str) -> Facts:
        found = replace(self._means.facts(spec, accepted_at), namespace=cluster.namespace)
        if parcel is None:
            return found
        return replace(found, digest=parcel.code.digest, archive_sha256=parcel.code.archive_sha256)

    def _check(self, spec: JobSpec, chosen: Options, cluster: Cluster) -> None:
        """Check queue and volume. Raises Refused."""
        warning = queues.check(cluster, chosen.where.queue)
        if warning is not None:
            self._tell(spec, Kind.WARNING, warning)
        if chosen.volume is not None:
            volume.check(cluster, cluster.namespace, chosen.volume, gang.nodes(gang.roles(spec, chosen)))

    def _rehearse(self, spec: JobSpec, cluster: Cluster, objects: Objects) -> None:
        """Let the cluster check the job without creating it. Raises Refused with its words."""
        try:
            cluster.dry_run(JOBS, objects.job)
        except Refused as error:
            if error.code == "invalid" and _NO_DRY_RUN.search(error.message):
                self._tell(spec, Kind.WARNING, NO_DRY_RUN)
                return
            raise

    def _make_secret(self, planned: Planned) -> None:
        spec = planned.spec
        keys = planned.objects.secret_keys
        values = self._means.courier.secrets(planned.cluster, spec, planned.chosen, planned.facts, keys)
        self._tell(spec, Kind.STORAGE, f"secret {names.secret(spec.id)} in namespace {planned.cluster.namespace}")
        secrets.create(planned.cluster, payload.secret(spec, planned.facts, values), planned.cluster.namespace)

    def _create(self, planned: Planned) -> Job:
        spec, cluster = planned.spec, planned.cluster
        self._tell(spec, Kind.SUBMIT, f"creating {spec.name} in {_named(cluster)}")
        try:
            return jobs.create(cluster, planned.body)
        except OutcomeUnknown as error:
            return self._seen(planned, error)
        except AjError as error:
            if error.code == "bad-answer":  # it said yes, in words that we do not understand
                return self._seen(planned, error)
            self._drop_secret(planned)
            raise

    def _seen(self, planned: Planned, lost: AjError) -> Job:
        """Look for the job whose creation was not answered. Raises OutcomeUnknown when it is not seen."""
        spec, cluster = planned.spec, planned.cluster
        for pause_s in LOOKS_S:
            self._means.clock.sleep(pause_s)
            try:
                found = _only(jobs.by_id(cluster, spec.id), spec)
            except (Unavailable, NotFound, RemoteError, OutcomeUnknown):
                continue  # the next look may find it
            if found is not None:
                self._tell(spec, Kind.WARNING, f"the answer to the creation was lost; {found.name} is there")
                return found
        details = {
            **lost.details,
            "backend": SERVICE,
            "place": _place(cluster),
            "at": rfc3339(self._means.clock.now()),
            "reason": lost.message,
        }
        raise OutcomeUnknown(
            f"the answer to the creation of {spec.name} was lost; not seen yet",
            hint=f"`aj queue reconcile q-{spec.id}`",
            details=details,
        ) from lost

    def _own_secret(self, planned: Planned, job: Job) -> None:
        """Let the Secret die with the job. That it could not is no failure: it is tried again later."""
        try:
            jobs.own_secret(planned.cluster, job, names.secret(planned.spec.id))
        except AjError as error:
            self._tell(planned.spec, Kind.WARNING, f"the secret has no owner yet: {error.message}")

    def _drop_secret(self, planned: Planned) -> None:
        if not planned.objects.secret_keys:
            return
        name = names.secret(planned.spec.id)
        try:
            secrets.remove(planned.cluster, name, planned.cluster.namespace)
        except AjError as error:
            self._tell(planned.spec, Kind.WARNING, f"the secret {name} is still there: {error.message}")

    def _tell(self, spec: JobSpec, kind: Kind, detail: str) -> None:
        self._means.tell(spec.id, Step(kind, detail))


def make(means: Means) -> VolcanoBackend:
    """Return the service."""
    return VolcanoBackend(means)


def is_final(job: Job) -> bool:
    """Tell whether a job has ended."""
    state = states.state_of(job.phase, is_cancelled=job.is_cancelled)
    return state is not None and state.is_final


def split(place: str) -> tuple[str, str]:
    """Return the context and the namespace of a handle's place. Raises UserError when it is none."""
    context, slash, namespace = place.rpartition("/")
    if not (context and slash and namespace):
        raise UserError(f"`{place}` is not the place of a job: a context and a namespace are due")
    return context, namespace


def _place(cluster: Cluster) -> str:
    return f"{cluster.access.context}/{cluster.namespace}"


def _named(cluster: Cluster) -> str:
    return f"namespace {cluster.namespace} of {cluster.access.context}"


def _where(cluster: Cluster, chosen: Options) -> str:
    access = cluster.access
    return f"queue {chosen.where.queue}, {_named(cluster)} ({access.server}; namespace: {access.namespace_from})"


def _only(found: Sequence[Job], spec: JobSpec) -> Job | None:
    """Return the one job that bears an id, None for none. Raises Refused naming them when there are several."""
    if len(found) <= 1:
        return found[0] if found else None
    listed = ", ".join(sorted(job.name for job in found))
    raise Refused(
        f"{len(found)} jobs bear the id {spec.id}: {listed}",
        code="several-jobs",
        hint="nothing was deleted; `aj k8s delete NAME` ends one that should not be there",
        details={"jobs": sorted(job.name for job in found)},
    )
