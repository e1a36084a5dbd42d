"""Azure Machine Learning computes: a workspace takes the job, and its own scheduler runs it."""

from __future__ import annotations

from aj.azure import states, submission
from aj.azure.office import Office, Where
from aj.azure.submission import Means, Planned
from aj.azure.workplace import Places, Wish
from aj.backend.aml import payload, target
from aj.backend.aml.options import Options
from aj.backend.aml.payload import Facts
from aj.backend.aml.target import Search
from aj.backend.protocol import Request, Status, Traits
from aj.base.noun import dataclass
from aj.model.code import CodeRef
from aj.model.handle import Handle
from aj.model.job import JobSpec
from aj.model.step import Kind

SERVICE = "aml"


@dataclass(frozen=True)
class AmlRequest(Request):
    """The body, and all that must be there before it is sent."""

    planned: Planned


class AmlBackend:
    """Computes of workspaces."""

    traits = Traits(driven=False, moves_code=True, native=True)

    def __init__(self, means: Means) -> None:
        self._means = means
        self._office = Office(SERVICE, means)

    def plan(self, spec: JobSpec, code: CodeRef | None, *, accepted_at: str) -> AmlRequest:
        """Find the compute and build the request. Raises what stops the job, before anything is written."""
        chosen = payload.options(spec)
        self._office.check(spec)
        image, parcel = payload.image(spec), self._office.parcel(code)
        search, tenant = self._search(spec, chosen)
        session, cloud = search.session, search.session.cloud.name
        found = search.target()
        target.check(found.compute, spec.shape.nodes)
        self._office.tell(spec.id, Kind.RESOLVE, f"compute {found.compute.name} of workspace {found.workspace}")
        self._office.warn(spec.id, *search.places.notices, *found.warnings)
        known = submission.image(session, found.workspace, image)
        unregistered = submission.unregistered(session, found.workspace, payload.stores(chosen, cloud))
        facts = Facts(cloud, found.compute.id, known.environment_id)
        body = payload.build(spec, chosen, parcel.code, facts, accepted_at=accepted_at)
        planned = Planned(
            SERVICE, session, found.workspace, spec.name, spec.id, body, known, parcel, unregistered, tenant=tenant
        )
        submission.remember(planned, self._means.memory)
        return AmlRequest(SERVICE, planned.name, body, planned)

    def submit(self, request: Request) -> Handle:
        """Send it. Sending the same request twice yields the same handle."""
        assert isinstance(request, AmlRequest), "a request of this service's own plan"
        return self._office.submit(request.planned)

    def find(self, spec: JobSpec) -> Handle | None:
        """Look for what a submission of this spec would have made; None when it is definitely absent."""
        return self._office.find(spec, lambda: self._where(spec))

    def status(self, handle: Handle) -> Status | None:
        """None when the workspace has no such job."""
        job = self._office.job(handle)
        return None if job is None else Status(states.state_of(job.status), job.status)

    def cancel(self, handle: Handle) -> None:
        """Ask for the end. No error when it has already ended."""
        self._office.cancel(handle)

    def _where(self, spec: JobSpec) -> Where:
        """Where a submission must have gone, now that nobody remembers."""
        search, tenant = self._search(spec, payload.options(spec))
        return Where(search.workspace(), tenant, is_certain=search.wish.workspace is not None)

    def _search(self, spec: JobSpec, chosen: Options) -> tuple[Search, str | None]:
        """Return the search for a job's compute, and the tenant that template or settings name."""
        settings = self._means.chosen(spec)
        tenant = chosen.tenant_id or settings.tenant
        wish = Wish(chosen.workspace_name, chosen.subscription_id, chosen.resource_group)
        places = Places(self._means.session(spec, tenant))
        return Search(places, chosen.compute, wish, settings.workspace, self._means.memory), tenant


def make(means: Means) -> AmlBackend:
    """Return the service."""
    return AmlBackend(means)
