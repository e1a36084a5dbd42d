"""Virtual clusters with their quota and their machines, as they were when somebody last asked."""

from __future__ import annotations

from aj.azure import supply
from aj.base.noun import dataclass
from aj.engine.kept import Held
from aj.engine.visit import Visit, parts
from aj.model.quota import VirtualCluster
from aj.wire.azure import FailedPart


@dataclass(frozen=True)
class Clusters:
    """What is kept: clusters, the parts that gave no answer, and what to tell about those left out."""

    clusters: tuple[VirtualCluster, ...] = ()
    failures: tuple[FailedPart, ...] = ()
    notices: tuple[str, ...] = ()


def kept(visit: Visit) -> Held[Clusters]:
    """Return the clusters that this caller sees. Raises AuthError, RemoteError when none could be listed."""
    sizes = visit.chosen.gpu_sizes
    scope = ",".join(["clusters", *(f"{model}={size}" for model, size in sorted(sizes.items()))])
    return visit.kept(Clusters, scope, lambda: _found(visit))


def _found(visit: Visit) -> Clusters:
    places, subscriptions = visit.places()
    found = supply.find(visit.session, subscriptions, gpu_sizes=visit.chosen.gpu_sizes)
    return Clusters(found.clusters, parts(found.failures), tuple(places.notices))
