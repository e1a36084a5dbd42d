"""Processes with an engine that submits to the servers of another process, each forked off one that has all imported.

Run as `python -m tests.azure.reconcile_host`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aj.azure.arm import Session
from aj.azure.submission import Means
from aj.backend.aml import backend as aml
from aj.backend.sing import backend as sing
from aj.base.settings import Settings
from aj.engine import compose
from aj.engine.engine import Engine
from aj.engine.native import Native
from aj.engine.services import Services
from aj.engine.steps import Steps
from aj.model.job import JobSpec
from aj.net import clouds, http, pool
from aj.store.config import Config
from tests import forked
from tests.backend.azure import Courier
from tests.engine import host
from tests.engine.stand import Near
from tests.servers.azure import TENANT, Issuer
from tests.template.kit import Request, built, project

__all__ = ["aml", "pool", "sing"]  # imported here, so that a fork need not


@dataclass
class House:
    """An engine as the daemon has it, over the servers of the test."""

    asked: dict[str, Any]

    def __post_init__(self) -> None:
        self.root = Path(self.asked["root"])
        self.home = host.home(self.root, host.variables(self.root))
        self.clock = forked.Hurrying()
        steps = Steps()
        cloud = clouds.find("small", {"small": self.asked["table"]})
        carrier = http.connect(Settings({}), self.clock)
        tokens = Issuer({})

        def session(config: Config, tenant: str | None) -> Session:
            return Session(carrier, cloud, tokens, self.clock, TENANT)

        native = Native(session, self.home.layout, self.home.settings, self.clock, steps)
        courier = Courier()

        def means() -> Means:
            return replace(native.means(), deliver=courier)

        near = self.root / "near"
        near.mkdir(exist_ok=True)
        self.engine: Engine[Near] = Engine(
            self.home.settings,
            self.home.folders,
            self.clock,
            lambda _: Near(near),
            places=Services(means),
            pack=compose.packer(self.home.layout),
            steps=steps,
        )
        self.engine.start()

    def spec(self) -> JobSpec:
        """The job that is asked for."""
        one, folder = self.asked, self.root / "project"
        where = project(folder, {"t": one["template"]})
        request = Request(one["id"], folder, ("python", "train.py"), where, name="work", experiment="aj")
        return replace(built(folder, one["template"], request=request).spec, project=None)


def live(asked: dict[str, Any]) -> None:
    """Do what one process does in its life."""
    house = House(asked)
    if asked["do"] == "settle":
        forked.settle(house.engine)
    else:
        forked.submit(house.engine, house.spec(), asked["mode"])


if __name__ == "__main__":
    forked.serve(live)
