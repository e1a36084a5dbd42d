"""Singularity: a workspace holds the job, and a virtual cluster, chosen by quota or named, runs it."""

from __future__ import annotations

from collections.abc import Mapping

from aj.azure import states, submission
from aj.azure.office import Office, Where
from aj.azure.submission import Means, Planned
from aj.backend.protocol import Request, Status, Traits
from aj.backend.sing import payload
from aj.backend.sing.match import Offer, Wanted
from aj.backend.sing.options import Options
from aj.backend.sing.payload import Facts
from aj.backend.sing.target import Search
from aj.base.errors import UserError
from aj.base.noun import dataclass
from aj.model import sku
from aj.model.code import CodeRef
from aj.model.handle import Handle
from aj.model.job import JobSpec
from aj.model.quota import Tier
from aj.model.sku import SkuProblem
from aj.model.step import Kind

SERVICE = "sing"


@dataclass(frozen=True)
class SingRequest(Request):
    """The body, and all that must be there before it is sent."""

    planned: Planned


class SingBackend:
    """Virtual clusters."""

    traits = Traits(driven=False, moves_code=True, native=True)

    def __init__(self, means: Means) -> None:
        self._means = means
        self._office = Office(SERVICE, means)

    def plan(self, spec: JobSpec, code: CodeRef | None, *, accepted_at: str) -> SingRequest:
        """Choose where it runs and build the request. Raises what stops the job, before anything is written."""
        chosen = payload.options(spec)
        self._office.check(spec)
        asked, parcel = wanted(spec, chosen), self._office.parcel(code)
        search = self._search(spec, chosen)
        workspace = search.facts.at
        facts, offer = self._facts(spec, chosen, search, asked)
        image = payload.image(spec, chosen, search.placeholder_image)
        known = submission.image(search.session, workspace, image)
        stores = payload.stores(chosen, facts.cloud)
        unregistered = submission.unregistered(search.session, workspace, stores)
        settled = facts.in_environment(known.environment_id)
        body = payload.build(spec, chosen, parcel.code, settled, accepted_at=accepted_at)
        planned = Planned(
            SERVICE,
            search.session,
            workspace,
            spec.name,
            spec.id,
            body,
            known,
            parcel,
            unregistered,
            search.tenant,
            offer.numbers,
        )
        submission.remember(planned, self._means.memory)
        return SingRequest(SERVICE, planned.name, body, planned, instances=facts.types)

    def submit(self, request: Request) -> Handle:
        """Send it. Sending the same request twice yields the same handle."""
        assert isinstance(request, SingRequest), "a request of this service's own plan"
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

    def _facts(self, spec: JobSpec, chosen: Options, search: Search, asked: Wanted) -> tuple[Facts, Offer]:
        """Ask what only the service knows, and tell what was found. The environment is not settled yet."""
        client_id = search.client_id()
        alias_warning = search.check_alias()
        offer = search.offer(asked)
        self._tell(spec, offer, [*search.places.notices, *([alias_warning] if alias_warning else [])])
        cluster, best = offer.cluster, offer.best
        facts = Facts(
            search.session.cloud.name,
            cluster_id=cluster.id,
            types=tuple(kind.full for kind in offer.types),
            tier=best.tier.value,
            region=best.kind.region if len(cluster.regions) > 1 else None,
            client_id=client_id,
        )
        return facts, offer

    def _tell(self, spec: JobSpec, offer: Offer, more: list[str]) -> None:
        best = offer.best
        tier = f"{best.tier} (the default)" if _has_default_tier(spec) else best.tier.value
        where = f"{offer.cluster.name} in {best.kind.region}, {best.kind.short} at {tier}"
        self._office.tell(spec.id, Kind.RESOLVE, "; ".join([f"{where}: {offer.numbers}", *offer.notes]))
        self._office.warn(spec.id, *more, *offer.warnings)

    def _where(self, spec: JobSpec) -> Where:
        """Where a submission must have gone, now that nobody remembers."""
        search = self._search(spec, payload.options(spec))
        return Where(search.workspace, search.tenant, is_certain=False)

    def _search(self, spec: JobSpec, chosen: Options) -> Search:
        settings = self._means.chosen(spec)
        return Search(self._means.session(spec, chosen.tenant_id or settings.tenant), chosen, settings)


def wanted(spec: JobSpec, chosen: Options) -> Wanted:
    """Return what a job asks for. Raises UserError on a text that is no SKU."""
    try:
        found = sku.parse(spec.sku or "")
    except SkuProblem as problem:
        raise UserError(problem.message, hint=f"write {problem.near}") from None
    return Wanted(found, spec.shape.nodes, spec.shape.sku_processes, Tier(chosen.sla_tier), chosen.group_policy)


def _has_default_tier(spec: JobSpec) -> bool:
    """Tell whether the template leaves the tier open."""
    jobs = spec.config.get("jobs")
    first = jobs[0] if isinstance(jobs, list | tuple) and jobs else None
    return not (isinstance(first, Mapping) and first.get("sla_tier"))


def make(means: Means) -> SingBackend:
    """Return the service."""
    return SingBackend(means)
