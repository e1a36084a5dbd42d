"""Processes with the daemon's own engine that submit to the cluster of another process.

Run as `python -m tests.kube.reconcile_host`.
"""

from __future__ import annotations

import base64
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from azure.storage.blob import UserDelegationKey

from aj.azure import signatures
from aj.azure.line import ByToken, Limits, Place
from aj.azure.signatures import Signer
from aj.backend.volcano import backend, courier
from aj.base.clock import Clock
from aj.base.settings import Settings
from aj.engine import compose, kubecare
from aj.kube import exec as programs
from aj.kube import line
from aj.model.job import JobSpec
from aj.net import pool
from tests import forked
from tests.engine import host
from tests.template.kit import Request, built, project

__all__ = ["backend", "courier", "kubecare", "line", "pool", "programs"]  # imported here, so that a fork need not
LONG_S = 60.0  # what is waited for so long is a round that comes anew, and comes only once here


class Patient(forked.Hurrying):
    """Waits for nothing but the next round of somebody who looks around now and then."""

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        return event.wait(timeout_s) if timeout_s >= LONG_S else event.is_set()


def signer(
    place: Place, access: ByToken, settings: Settings, clock: Clock, *, lifetime_s: float, limits: Limits | None = None
) -> Signer:
    """Sign as the service's own library does, with a key that no service gave."""
    key = UserDelegationKey()
    key.signed_oid = key.signed_tid = "99999999-0000-0000-0000-000000000001"
    key.signed_start = key.signed_expiry = "2026-01-01T00:00:00Z"
    key.signed_service, key.signed_version = "b", "2025-01-05"
    key.value = base64.b64encode(b"k" * 32).decode()
    return Signer(place, key, clock.now(), clock.now() + lifetime_s)


@dataclass
class House:
    """An engine as the daemon has it."""

    asked: dict[str, Any]

    def __post_init__(self) -> None:
        self.root = Path(self.asked["root"])
        variables = host.variables(self.root) | {"KUBECONFIG": self.asked["kubeconfig"]}
        self.home = host.home(self.root, variables)
        clock = Patient(self.asked.get("later_s", 0.0))
        self.engine = compose.engine(self.home.settings, self.home.folders, clock)

    def spec(self) -> JobSpec:
        """The job that is asked for."""
        one, folder = self.asked, self.root / "project"
        where = project(folder, {"t": one["template"]})
        request = Request(one["id"], folder, ("python", "train.py"), where, name="work", experiment="aj")
        return replace(built(folder, one["template"], request=request).spec, project=None)


def live(asked: dict[str, Any]) -> None:
    """Do what one process does in its life."""
    house, does = House(asked), asked["do"]
    if does == "tidy":
        upkeep = house.engine._upkeep
        assert upkeep is not None
        upkeep.round()
        return
    house.engine.start()
    if does == "settle":
        forked.settle(house.engine)
    else:
        forked.submit(house.engine, house.spec(), asked["mode"])


if __name__ == "__main__":
    signatures.signer = signer
    forked.serve(live)
