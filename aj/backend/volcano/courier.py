"""Who brings code and signatures to a cluster for one submission: onto a volume, or through blob storage.

What is made on the cluster and must not stay there is noted on disk before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aj.azure.arm import Session
from aj.backend.volcano import blob, porter, sas, volume
from aj.backend.volcano.backend import Parcel
from aj.backend.volcano.options import BLOB, Options
from aj.backend.volcano.pins import Chosen
from aj.backend.volcano.variables import Facts
from aj.base.clock import Clock
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.kube.client import Cluster
from aj.model.job import JobSpec
from aj.model.step import Step
from aj.store.traces import SECRET, Trace, Traces


@dataclass(frozen=True)
class Courier:
    """One daemon's courier. `session` opens a session of Azure for a job, `chosen` reads what its settings say.

    `owner` is a word that tells this daemon's helper pods from those of others.
    """

    session: Callable[[JobSpec], Session]
    chosen: Callable[[JobSpec], Chosen]
    settings: Settings
    clock: Clock
    traces: Traces
    owner: str
    tell: Callable[[str, Step], None]

    def deliver(self, cluster: Cluster, spec: JobSpec, chosen: Options, facts: Facts, parcel: Parcel) -> int | None:
        """Bring the code to where the pods look for it; return the bytes that left for it.

        Raises as `volume.Upload.carry_out` and `blob.Upload.carry_out`.
        """

        def tell(step: Step) -> None:
            self.tell(spec.id, step)

        if chosen.upload.strategy == BLOB:
            sending = blob.Upload(self.session(spec), self.settings, chosen, parcel.archive, parcel.code)
            return sending.carry_out(tell).sent_bytes
        image = self.chosen(spec).helper_image
        wanted = porter.of_job(spec, chosen, facts, image=image, owner=self.owner)
        upload = volume.Upload(cluster, wanted, parcel.archive, parcel.code, chosen.upload.keep_s)
        return upload.carry_out(self.traces, tell).sent_bytes

    def secrets(
        self, cluster: Cluster, spec: JobSpec, chosen: Options, facts: Facts, keys: Sequence[str]
    ) -> Mapping[str, str]:
        """Sign what the pods read and write, and return the values of the job's Secret. Raises as `sas.make`."""
        wants = sas.of_template(chosen, facts.archive_sha256, self.chosen(spec).storage_sas_s)
        signed = sas.make(self.session(spec), self.settings, [want for want in wants if want.key in keys])
        context, now = cluster.access.context, self.clock.now()
        self.traces.note(Trace(SECRET, spec.id, context, facts.namespace, now, signed.first_end, project=spec.project))
        return signed.values
