"""A gang is there once or not at all, whatever breaks, and nothing is left on its cluster that it does not need.

`python -m tests.kube.reconcile_proof 1000 [FIRST]` makes so many runs, each drawn from its seed: what the job brings
along, what happens to one of the requests that make it, and when the daemon is killed. Runs in a row go through every
pair of the last two. Afterwards somebody asks what became of it, and a day later a daemon looks after what was left.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from aj.store.traces import Traces
from tests import forked
from tests.engine import host
from tests.forked import POINTS, Zygote
from tests.servers import kube
from tests.servers.kube import Cut, Undone
from tests.servers.kube_store import kind_of
from tests.servers.loopback import Answer, Fault, Got

JOBS = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{kube.NAMESPACE}/jobs"
PODS, SECRETS = (f"/api/v1/namespaces/{kube.NAMESPACE}/{word}" for word in ("pods", "secrets"))
LOOK = f"GET {JOBS}?"
HEAD = """base:
config:
  target: {service: volcano, gpus_per_node: 8, cpus_per_node: 96, memory: 512Gi}
  environment: {image: "registry.example/train:1"}
"""
STORAGE = "  storage: {data: {storage_account_name: stuff, container_name: ccc, mount_dir: /mnt/d}}\n"
BODY = '  jobs:\n  - sku: "{nodes}x80G{processes}-H100"\n    instance_count: 2\n'
VOLUME = "    submit_args: {env: {AMLT_PERSISTENT_VOLUME_NAME: team-data, AMLT_PERSISTENT_VOLUME_MOUNT_DIR: /mnt/s}}\n"
BARE, CODE, SECRET, BOTH = "nothing", "code", "a secret", "code and a secret"
TEMPLATES = {
    BARE: HEAD + BODY,
    CODE: HEAD + BODY + VOLUME,
    SECRET: HEAD + STORAGE + BODY,
    BOTH: HEAD + STORAGE + BODY + VOLUME,
}
# What becomes of one request: whether the cluster does what it asks, and what comes back.
WHOLE = "answered"
BEFORE_SEND, AFTER_HEADERS = "cut before it was sent", "cut after its head"
AFTER_BODY, BEFORE_ANSWER = "cut after its body, not done", "cut before the answer, done"
MID_ANSWER = "cut within the answer"
DOWN, DOWN_DONE, BUSY, REFUSED = "answered 503, not done", "answered 500, done", "answered 429", "answered 403"
ENDS = (
    *(WHOLE, BEFORE_SEND, AFTER_HEADERS, AFTER_BODY, BEFORE_ANSWER, MID_ANSWER),
    *(DOWN, DOWN_DONE, BUSY, REFUSED),
)
FAULTS: dict[str, Fault | Undone] = {
    AFTER_HEADERS: Cut.AFTER_HEADERS,
    AFTER_BODY: Undone(),
    BEFORE_ANSWER: Cut.AFTER_BODY,
    MID_ANSWER: Cut.MID_ANSWER,
    DOWN: kube.unavailable(),
    BUSY: kube.too_many(),
    REFUSED: kube.status(403, "not today"),
}
# The requests that change something, as `METHOD /path?query`, and with what a job has to come for there to be one.
JOB = "the job"
CHANGES = {
    JOB: (f"POST {JOBS}?fieldValidation=Strict", tuple(TEMPLATES)),
    "its rehearsal": (f"POST {JOBS}?fieldValidation=Strict&dryRun=All", tuple(TEMPLATES)),
    "the secret": (f"POST {SECRETS}?", (SECRET, BOTH)),
    "the secret's owner": (f"PUT {SECRETS}/", (SECRET, BOTH)),
    "the helper": (f"POST {PODS}?", (CODE, BOTH)),
    "the helper's program": (f"GET {PODS}/", (CODE, BOTH)),
    "the helper's end": (f"DELETE {PODS}/", (CODE, BOTH)),
}
# When the daemon is killed, as the cluster sees it.
ON_LOOK, ON_SENT, ON_DONE = "as it looks for the job", "as the job arrives", "as the job was made"
ON_SECRET, ON_OWNER = "as the secret was made", "as the secret gets its owner"
ON_HELPER, ON_PROGRAM = "as the helper was made", "as the helper is spoken to"
SEEN = (ON_LOOK, ON_SENT, ON_DONE, ON_SECRET, ON_OWNER, ON_HELPER, ON_PROGRAM)
NEVER, AT_WRITE = "never", "at a write"
# Each break together with each death; most deaths are at writes, since there are so many of them.
PAIRS = tuple(itertools.product(ENDS, (NEVER, *(AT_WRITE,) * 4, *POINTS, *SEEN)))
MOST_WRITES = 80  # a submission needs fewer; a number beyond its last one means that nobody is killed
DAY_S = 86400.0 + 3600.0


@dataclass(frozen=True)
class Plan:
    """One run, as drawn."""

    brings: str
    mode: str
    end: str
    breaks: str
    kill: str
    write: int
    is_after: bool
    look_fails: bool
    second_write: int
    tidy_write: int
    has_ended: bool

    def __str__(self) -> str:
        kill = f"write {self.write}{' after' * self.is_after}" if self.write else self.kill
        more = [f"again at write {self.second_write}"] if self.second_write else []
        more += [f"tidying at write {self.tidy_write}"] if self.tidy_write else []
        more += ["looks fail"] * self.look_fails + ["it has ended"] * self.has_ended
        return "; ".join([f"{self.brings}, {self.mode}", f"{self.breaks} {self.end}", f"killed: {kill}", *more])


def draw(seed: int) -> Plan:
    """Draw a run."""
    dice = random.Random(seed)
    end, kill = PAIRS[seed % len(PAIRS)]
    breaks = JOB if end == BEFORE_SEND or dice.random() < 0.5 else dice.choice(list(CHANGES))
    choice = CHANGES[breaks][1]
    needed = {ON_SECRET: (SECRET, BOTH), ON_OWNER: (SECRET, BOTH), ON_HELPER: (CODE, BOTH), ON_PROGRAM: (CODE, BOTH)}
    fitting = [brings for brings in choice if brings in needed.get(kill, choice)]
    return Plan(
        brings=dice.choice(fitting),
        mode=dice.choice(("direct", "queued")),
        end=end,
        breaks=breaks,
        kill=kill,
        write=dice.randint(1, MOST_WRITES) if kill == AT_WRITE else 0,
        is_after=dice.random() < 0.5,
        look_fails=dice.random() < 0.25,
        second_write=dice.randint(1, 30) if dice.random() < 0.25 else 0,
        tidy_write=dice.randint(1, 4) if dice.random() < 0.25 else 0,
        has_ended=dice.random() < 0.25,
    )


@dataclass
class Service:
    """The cluster that the job is sent to: it does what the plan says to one request, and counts."""

    cluster: kube.Cluster
    plan: Plan
    sent: int = 0
    made: int = 0
    victim: int = 0
    is_broken: bool = False
    is_armed: bool = True
    known: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.real = self.cluster.server.answer
        self.words = CHANGES[self.plan.breaks][0]

    def take(self, target: str) -> Fault | Undone | None:
        """Say what happens to a request of which the head was read."""
        is_job = is_creation(target)
        self.sent += is_job
        self._kill_when(ON_SENT, is_job)
        self._kill_when(ON_LOOK, target.startswith(LOOK))
        self._kill_when(ON_PROGRAM, "/exec?" in target)
        self._kill_when(ON_OWNER, target.startswith(f"PUT {SECRETS}/"))
        if self.plan.look_fails and not self.is_armed and target.startswith(LOOK):
            return kube.status(403, "not now")
        if not self._is_meant(target) or self.plan.end in (WHOLE, BEFORE_SEND, DOWN_DONE):
            return None
        self.is_broken = True
        return FAULTS[self.plan.end]

    def answer(self, got: Got) -> Answer:
        """Do what a request asks for, and answer it."""
        target = f"{got.method} {got.path}?" + "&".join(f"{name}={value}" for name, value in got.query)
        answer = self.real(got)
        is_done = answer.status < 300
        self.made += is_done and is_creation(target)
        self._kill_when(ON_DONE, is_creation(target))
        self._kill_when(ON_SECRET, target.startswith(f"POST {SECRETS}?"))
        self._kill_when(ON_HELPER, target.startswith(f"POST {PODS}?"))
        if self.plan.end == BEFORE_SEND and self.victim and self._is_last_before_the_job(target):
            self.cluster.server.hangs_up = True  # a change leaves over a connection of its own: the next one
        if self.plan.end == DOWN_DONE and self._is_meant(target):
            self.is_broken = True
            return kube.unavailable(500)
        return answer

    def _is_meant(self, target: str) -> bool:
        if self.is_broken or not self.victim or not self.is_armed or not target.startswith(self.words):
            return False
        if self.plan.breaks == JOB:
            return is_creation(target)
        return self.plan.breaks != "the helper's program" or "/exec?" in target

    def _is_last_before_the_job(self, target: str) -> bool:
        if self.plan.brings in (SECRET, BOTH):
            return target.startswith(f"POST {SECRETS}?")
        if self.plan.brings == CODE:
            is_gone = not self.cluster.kube.names("pods")
            return target.startswith(f"GET {PODS}/") and is_gone
        return "dryRun=All" in target

    def _kill_when(self, moment: str, is_now: bool) -> None:
        if is_now and self.is_armed and self.plan.kill == moment:
            forked.kill(self)


def is_creation(target: str) -> bool:
    """Tell whether a request creates a job for real."""
    return target.startswith(f"POST {JOBS}?") and "dryRun" not in target


@dataclass
class Proof:
    """Where the processes come from."""

    zygote: Zygote

    def run(self, seed: int, root: Path) -> str:
        """Make one run. Raises AssertionError when it is not as it must be."""
        plan, aj_id = draw(seed), f"{seed:08x}"
        (root / "project").mkdir()
        (root / "project" / "train.py").write_text("print('hello')\n")
        with kube.running(root / "cluster", tls=False) as cluster:
            service = Service(cluster, plan)
            cluster.server.answer, cluster.server.take = service.answer, service.take  # type: ignore[method-assign]
            asked = {"root": str(root), "kubeconfig": str(cluster.config), "id": aj_id}
            self._submit(service, asked)
            self._settle(service, asked)
            found = self._check(service, root, aj_id)
            self._tidy(service, asked)
            check_what_is_left(cluster, plan, root, aj_id)
        return found

    def _submit(self, service: Service, asked: dict[str, str]) -> None:
        plan = service.plan
        code = self.zygote.run(
            service,
            **asked,
            do="submit",
            template=TEMPLATES[plan.brings],
            mode=plan.mode,
            point=plan.kill if plan.kill in POINTS else None,
            write=plan.write,
            is_after=plan.is_after,
        )
        assert code in (0, -signal.SIGKILL), f"the daemon ended with {code}"
        service.cluster.server.hangs_up = False

    def _settle(self, service: Service, asked: dict[str, str]) -> None:
        """Let the next daemons take up what was left; the last one is not disturbed."""
        plan, cluster = service.plan, service.cluster
        for name in cluster.kube.names("jobs") if plan.has_ended else []:
            cluster.play(name, "Completed")
        if plan.second_write:
            self.zygote.run(service, **asked, do="settle", write=plan.second_write, is_after=plan.is_after)
        service.is_armed = cluster.server.hangs_up = False
        if plan.look_fails:
            assert self.zygote.run(**asked, do="settle") == 0
            service.plan = replace(plan, look_fails=False)
        assert self.zygote.run(**asked, do="settle") == 0

    def _tidy(self, service: Service, asked: dict[str, str]) -> None:
        """Let a day pass and a daemon look after what is there."""
        plan = service.plan
        if plan.tidy_write:
            self.zygote.run(**asked, do="tidy", later_s=DAY_S, write=plan.tidy_write, is_after=plan.is_after)
        assert self.zygote.run(**asked, do="tidy", later_s=DAY_S) == 0

    def _check(self, service: Service, root: Path, aj_id: str) -> str:
        there = [name for name in service.cluster.kube.names("jobs") if label_of(service.cluster, name) == aj_id]
        assert len(there) == service.made <= 1, f"it is there {len(there)} times, made {service.made} times"
        assert service.sent <= 1, f"it was sent {service.sent} times"
        name = there[0] if there else None
        return forked.told(root, aj_id, is_there=bool(there), was_sent=bool(service.sent), name=name)


def label_of(cluster: kube.Cluster, job: str) -> str:
    return cluster.kube.stored("jobs", job)["metadata"]["labels"]["aj-id"]


def check_what_is_left(cluster: kube.Cluster, plan: Plan, root: Path, aj_id: str) -> None:
    """What is on the cluster and noted here is what a job that is there needs, and no more. Raises AssertionError."""
    store = cluster.kube.store
    helpers = [
        one["metadata"]["name"]
        for one in store.page(kind_of("pods"), kube.NAMESPACE, {}).items
        if one["metadata"]["name"].endswith("-upload")
    ]
    assert helpers == [], "a helper was left"
    secrets, jobs = cluster.kube.names("secrets"), cluster.kube.names("jobs")
    noted = [trace.name for trace in Traces(host.home(root, host.variables(root)).layout.clusters).all()]
    if not jobs or plan.brings not in (SECRET, BOTH):
        assert secrets == [], "a secret was left without its job"
        assert noted == [], f"what is gone is still noted: {noted}"
        return
    assert secrets == [f"aj-{aj_id}"], "a job is without its secret"
    (job,) = jobs
    owners = cluster.kube.stored("secrets", secrets[0])["metadata"].get("ownerReferences", [])
    stored = cluster.kube.stored("jobs", job)
    assert [owner["uid"] for owner in owners] == [stored["metadata"]["uid"]], "the secret would outlive its job"
    is_over = stored.get("status", {}).get("state", {}).get("phase") == "Completed"
    assert noted == ([] if is_over else [f"secret-{aj_id}.json"]), noted


@contextlib.contextmanager
def proving() -> Iterator[Proof]:
    """Start the process that others are forked off, for the length of a block."""
    zygote = Zygote("tests.kube.reconcile_host")
    try:
        yield Proof(zygote)
    finally:
        zygote.close()


def main(argv: list[str]) -> int:
    with proving() as proof:
        return forked.many(argv, proof.run, draw)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
