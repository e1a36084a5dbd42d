"""A submission is there once or not at all, whatever breaks, and afterwards `aj` can tell which.

`python -m tests.azure.reconcile_proof 1000 [FIRST]` makes so many runs, each drawn from its seed: a service, a mode,
what happens to the request that puts the job, and when the daemon is killed. Runs in a row go through every pair
of the last two.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from aj.base.clock import SYSTEM
from aj.base.settings import Settings
from aj.net.clouds import BLOB_SCOPE
from tests import forked
from tests.engine import host
from tests.forked import POINTS, Zygote
from tests.servers import azure as small
from tests.servers import whole
from tests.servers.authority import jwt
from tests.servers.azure import ONE, TENANT, WORKSPACE, SmallAzure
from tests.servers.loopback import Answer, Cut, Got, problem

JOBS = f"{WORKSPACE.id}/jobs/"
PERSON = "99999999-0000-0000-0000-000000000001"
FULL = f"workspace_name: ws-one, subscription_id: {ONE}, resource_group: rg-one, "
TEMPLATES = {
    "aml": """base:
config:
  target: {{service: aml, {where}name: gpu-cluster, gpus_per_node: 1}}
  environment: {{image: "train:1"}}
  jobs: [{{sku: G1, instance_count: 1}}]
""",
    "sing": """base:
config:
  target: {{service: sing, {where}gpus_per_node: 4}}
  environment: {{image: "train:1"}}
  jobs: [{{sku: "80G4-H100", instance_count: 1, process_count_per_node: 4}}]
""",
}
# What becomes of the request that puts the job: whether the service takes it, and what comes back.
WHOLE = "answered"
BEFORE_SEND, AFTER_HEADERS = "cut before it was sent", "cut after its head"
AFTER_BODY, BEFORE_ANSWER = "cut after its body, not taken", "cut before the answer, taken"
MID_ANSWER = "cut within the answer"
DOWN, DOWN_TAKEN, BUSY, REFUSED = "answered 503, not taken", "answered 500, taken", "answered 429", "answered 409"
ENDS = (
    *(WHOLE, BEFORE_SEND, AFTER_HEADERS, AFTER_BODY, BEFORE_ANSWER, MID_ANSWER),
    *(DOWN, DOWN_TAKEN, BUSY, REFUSED),
)
# When the daemon is killed, as the service sees it.
ON_LOOK, ON_PUT, ON_TAKEN = "as it looks for the job", "as the job arrives", "as the job was taken"
SEEN = (ON_LOOK, ON_PUT, ON_TAKEN)
NEVER, AT_WRITE = "never", "at a write"
# Each break together with each death; most deaths are at writes, since there are so many of them.
PAIRS = tuple(itertools.product(ENDS, (NEVER, *(AT_WRITE,) * 4, *POINTS, *SEEN)))
MOST_WRITES = 60  # a submission needs fewer; a number beyond its last one means that nobody is killed


@dataclass(frozen=True)
class Plan:
    """One run, as drawn."""

    service: str
    template: str
    mode: str
    end: str
    kill: str
    write: int = 0
    is_after: bool = False
    look_fails: bool = False
    second_write: int = 0

    def __str__(self) -> str:
        kill = f"write {self.write}{' after' * self.is_after}" if self.write else self.kill
        more = ", looks fail" * self.look_fails + f", again at write {self.second_write}" * bool(self.second_write)
        return f"{self.service}, {self.mode}, {self.end}; killed: {kill}{more}"


def draw(seed: int) -> Plan:
    """Draw a run."""
    dice = random.Random(seed)
    service = dice.choice(("aml", "sing"))
    template = TEMPLATES[service].format(where=dice.choice((FULL, "workspace_name: ws-one, ", "")))
    mode = dice.choice(("direct", "queued"))
    end, kill = PAIRS[seed % len(PAIRS)]
    look_fails, second = dice.random() < 0.25, dice.randint(1, 30) if dice.random() < 0.25 else 0
    if kill == AT_WRITE:
        return Plan(
            *(service, template, mode, end, kill, dice.randint(1, MOST_WRITES), dice.random() < 0.5),
            look_fails=look_fails,
            second_write=second,
        )
    return Plan(service, template, mode, end, kill, look_fails=look_fails, second_write=second)


@dataclass
class Service:
    """The service that the job is put to: it does what the plan says to the one request, and counts."""

    azure: SmallAzure
    plan: Plan
    puts: int = 0
    taken: int = 0
    victim: int = 0
    known: threading.Event = field(default_factory=threading.Event)

    def __call__(self, got: Got) -> Answer:
        if not got.path.startswith(JOBS):
            return self.azure.arm.answer(got)
        if got.method == "GET":
            return self._look(got)
        self.puts += 1
        self._kill_when(ON_PUT)
        if self.plan.end in (AFTER_BODY, DOWN):
            return problem(503, "Busy", "try later")
        if self.plan.end == BUSY:
            return problem(429, "TooManyRequests", "slowly")
        if self.plan.end == REFUSED:
            return problem(409, "Conflict", "no")
        answer = self.azure.arm.answer(got)
        self.taken += answer.status < 300
        self._kill_when(ON_TAKEN)
        return problem(500, "InternalError", "something broke") if self.plan.end == DOWN_TAKEN else answer

    def _look(self, got: Got) -> Answer:
        self._kill_when(ON_LOOK)
        answer = self.azure.arm.answer(got)
        if self.plan.end == BEFORE_SEND and self.victim:
            self.azure.arm_server.hangs_up = True  # a change leaves over a connection of its own: the next one
        return answer

    def _kill_when(self, moment: str) -> None:
        if self.plan.kill == moment:
            forked.kill(self)


@dataclass
class Proof:
    """The servers, and where the processes come from."""

    azure: SmallAzure
    zygote: Zygote

    def run(self, seed: int, root: Path) -> str:
        """Make one run. Raises AssertionError when it is not as it must be."""
        plan, aj_id = draw(seed), f"{seed:08x}"
        service = Service(self.azure, plan)
        server = self.azure.arm_server
        server.answer = service
        self._furnish(root)
        asked = {"root": str(root), "table": small.table(server.url, self.azure.plane_server.url), "id": aj_id}
        self._script(plan)
        point = plan.kill if plan.kill in POINTS else None
        code = self.zygote.run(
            service,
            **asked,
            do="submit",
            template=plan.template,
            mode=plan.mode,
            point=point,
            write=plan.write,
            is_after=plan.is_after,
        )
        assert code in (0, -signal.SIGKILL), f"the daemon ended with {code}"
        server.hangs_up = False
        if plan.second_write:
            self.zygote.run(**asked, do="settle", write=plan.second_write, is_after=plan.is_after)
        self._forget_scripts()
        if plan.look_fails:
            server.on(f"GET {JOBS}", problem(403, "AuthorizationFailed", "no"))
            assert self.zygote.run(**asked, do="settle") == 0
            self._forget_scripts()
        assert self.zygote.run(**asked, do="settle") == 0
        return self._check(plan, service, root, aj_id)

    def _furnish(self, root: Path) -> None:
        (root / "project").mkdir()
        (root / "project" / "train.py").write_text("print('hello')\n")
        layout = host.home(root, host.variables(root)).layout
        layout.user_settings.parent.mkdir(parents=True)
        where = f'subscription_id = "{ONE}"\nresource_group = "rg-one"\n'
        layout.user_settings.write_text(f'[workspace]\nname = "ws-one"\n{where}')

    def _script(self, plan: Plan) -> None:
        cuts = {
            AFTER_HEADERS: Cut.AFTER_HEADERS,
            AFTER_BODY: Cut.AFTER_BODY,
            BEFORE_ANSWER: Cut.AFTER_BODY,
            MID_ANSWER: Cut.MID_ANSWER,
        }
        if plan.end in cuts:
            self.azure.arm_server.on(f"PUT {JOBS}", cuts[plan.end])

    def _forget_scripts(self) -> None:
        with self.azure.arm_server.lock:
            self.azure.arm_server._scripts.clear()

    def _check(self, plan: Plan, service: Service, root: Path, aj_id: str) -> str:
        name = f"work_{aj_id}"
        there = sum(path.endswith(f"/jobs/{name}") for path in self.azure.arm.resources)
        assert there == service.taken <= 1, f"it is there {there} times, taken {service.taken} times"
        assert service.puts <= 1, f"it was put {service.puts} times"
        return forked.told(root, aj_id, is_there=bool(there), was_sent=bool(service.puts), name=name)


@contextlib.contextmanager
def proving() -> Iterator[Proof]:
    """Start servers and the process that others are forked off, for the length of a block."""
    with small.running(Settings({}), SYSTEM) as azure:
        whole.furnish(azure, "code")
        for scope in (azure.cloud.arm_scope, azure.cloud.ml_scope, BLOB_SCOPE):
            azure.arm.tokens.update({jwt(number, scope, TENANT, PERSON): scope for number in range(1, 8)})
        zygote = Zygote("tests.azure.reconcile_host")
        try:
            yield Proof(azure, zygote)
        finally:
            zygote.close()


def main(argv: list[str]) -> int:
    with proving() as proof:
        return forked.many(argv, proof.run, draw)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
