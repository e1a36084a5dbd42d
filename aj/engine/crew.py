"""The replicas of all deployments: started, watched, started again with back-off, replaced, ended.

One thread looks at what is wanted and what is there, and makes up the difference; each replica that runs
has a thread that waits for its end. What is written about a replica is written before it is done, so the
next daemon finds every program that still runs, and starts none twice.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from aj.backend.local.replica import Program, Replicas
from aj.backend.protocol import Fate, Observation, SetupFailed
from aj.base import crash, redact
from aj.base.clock import Clock, from_rfc3339, rfc3339
from aj.base.errors import AjError
from aj.base.noun import dataclass
from aj.engine import tokens
from aj.engine.claims import Claims
from aj.engine.drive import Log
from aj.model.claim import Bearer
from aj.model.deployment import Deployment, Replica, ReplicaState, Start
from aj.store import atomic, deployments, joblogs, jobs
from aj.store.layout import Layout
from aj.store.runtime import Place

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 300.0  # before a program that ended is started again
STEADY_S = 60.0  # one that ran so long did not end for a fault of its start
KEPT_STARTS = 3  # whose logs are kept
LOG_BYTES = 64 << 20  # of each stream of an earlier start
LONGEST_SLEEP_S = 3600.0
LEAVE_S = 2.0  # for all threads together to notice that the daemon is leaving

Key = tuple[str, int]


@dataclass(frozen=True)
class Member:
    """One replica in memory: its newest start, whether that may still run, and whether it was told to end."""

    start: Start = field(default_factory=Start)
    runs: bool = False
    ends: bool = False
    heard: bool = False
    token_at: float = 0.0


class Crew:
    """The replicas of one daemon. Safe to use from any thread. `claims` is set before `begin`."""

    claims: Claims

    def __init__(self, layout: Layout, clock: Clock, driver: Replicas, log: Log) -> None:
        self._layout = layout
        self._clock = clock
        self._driver = driver
        self._log = log
        self._guard = threading.RLock()
        self._deployments: dict[str, Deployment] = {}
        self._members: dict[Key, Member] = {}
        self._threads: list[threading.Thread] = []
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._begun = False
        self.key = b""

    # what claims ask

    def is_current(self, deployment: str, slot: int, attempt: int) -> bool:
        """Whether this start of a replica may still be running."""
        member = self._members.get((deployment, slot))
        return member is not None and member.runs and member.start.attempt == attempt

    def may_claim(self, who: Bearer) -> bool:
        """Whether a replica takes more jobs: it is not about to end."""
        wanted, member = self._deployments.get(who.deployment), self._members.get((who.deployment, who.slot))
        if wanted is None or member is None or wanted.uid != who.uid or wanted.deleting_since is not None:
            return False
        fits = member.start.revision == wanted.revision and who.slot < wanted.replicas
        return fits and not member.ends and self.is_current(who.deployment, who.slot, who.attempt)

    def places(self, deployment: str) -> int:
        """How many jobs one replica holds at once."""
        wanted = self._deployments.get(deployment)
        return wanted.jobs_per_replica if wanted is not None else 0

    def fence(self, deployment: str, slot: int, attempt: int) -> None:
        """End this start of a replica by force. Once it is no longer current, its jobs are released."""
        self._end((deployment, slot), attempt, 0.0)

    def hear(self, who: Bearer) -> None:
        """Note that a replica asked for work."""
        with self._guard:
            key = (who.deployment, who.slot)
            member = self._members.get(key)
            if member is not None and not member.heard and member.start.attempt == who.attempt:
                self._members[key] = replace(member, heard=True)

    # what is wanted

    def all(self) -> list[Deployment]:
        """Return all deployments, by name."""
        with self._guard:
            return [self._deployments[name] for name in sorted(self._deployments)]

    def get(self, name: str) -> Deployment:
        """Return one deployment. Raises NotFound."""
        found = self._deployments.get(name)
        if found is None:
            raise deployments.missing(name)
        return found

    def want(self, wanted: Deployment) -> None:
        """Take note of a deployment that is on disk, new or changed."""
        with self._guard:
            self._deployments[wanted.name] = wanted
        self.wake()

    def force(self, name: str) -> None:
        """End the replicas that are not as they are wanted, whatever they hold."""
        for key, member in self._of(name):
            if member.runs and self._is_outdated(self.get(name), key[1], member):
                self._end(key, member.start.attempt, self.get(name).grace_s)

    def wake(self) -> None:
        """Look again at what is wanted and what is there."""
        self._wake.set()

    def running(self) -> int:
        """Count the replicas that run."""
        return sum(member.runs for member in list(self._members.values()))

    # coming and going

    def adopt(self, told: Log) -> None:
        """Take up what an earlier daemon left. Raises AjError."""
        deployments.sweep(self._layout)
        self.key = deployments.key(self._layout)
        for wanted in deployments.listing(self._layout, told):
            self._deployments[wanted.name] = wanted
            for slot, start in deployments.starts(self._layout, wanted.name, told).items():
                runs = start.attempt > 0 and start.ended_at is None
                self._members[wanted.name, slot] = Member(start, runs=runs)
                if runs:
                    self._write_token(wanted, slot, start)
                    self._begin(partial(self._carry, wanted, slot, start))

    def begin(self) -> None:
        """Begin to look after the replicas, once."""
        with self._guard:
            if self._begun:
                return
            self._begun = True
        self._begin(self._work)

    def stop(self) -> None:
        """Let go of all replicas; they go on under their supervisors."""
        self._stop.set()
        self._wake.set()
        leave_at = self._clock.monotonic() + LEAVE_S
        with self._guard:
            threads = list(self._threads)
        for thread in threads:
            thread.join(max(0.0, leave_at - self._clock.monotonic()))

    def _begin(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name="replicas", daemon=True)
        with self._guard:
            self._threads = [one for one in self._threads if one.is_alive()] + [thread]
        thread.start()

    def _work(self) -> None:
        while not self._stop.is_set():
            self._wake.clear()
            next_at = self.round()
            now = self._clock.now()
            sleep_s = LONGEST_SLEEP_S if next_at is None else max(0.0, min(next_at - now, LONGEST_SLEEP_S))
            self._clock.wait(self._wake, sleep_s)

    # making up the difference

    def round(self) -> float | None:
        """Do what is due; return the moment of the next thing, seconds since the epoch, or None."""
        moments = [self.claims.round()]
        for wanted in self.all():
            try:
                moments += [self._tend(wanted, slot) for slot in self._slots(wanted)]
                self._finish(wanted)
            except (AjError, OSError) as error:
                self._log(f"deployment {wanted.name}: {error}")
                moments.append(self._clock.now() + FIRST_PAUSE_S * 10)
        return min((at for at in moments if at is not None), default=None)

    def _slots(self, wanted: Deployment) -> list[int]:
        asked = range(wanted.replicas) if wanted.deleting_since is None else ()
        return sorted({*asked, *(slot for (name, slot), _ in self._of(wanted.name) if name == wanted.name)})

    def _of(self, name: str) -> list[tuple[Key, Member]]:
        with self._guard:
            return [(key, member) for key, member in self._members.items() if key[0] == name]

    def _tend(self, wanted: Deployment, slot: int) -> float | None:
        """Bring one replica nearer to what is wanted; return when it is due again."""
        key = (wanted.name, slot)
        member, now = self._members.get(key, Member()), self._clock.now()
        if member.runs:
            return self._tend_running(wanted, slot, member, now)
        if wanted.deleting_since is not None or slot >= wanted.replicas:
            self._drop(wanted, slot)
            return None
        if member.start.due_at > now:
            return member.start.due_at
        self._start(wanted, slot, member)
        return now + tokens.RENEW_S

    def _tend_running(self, wanted: Deployment, slot: int, member: Member, now: float) -> float | None:
        if member.ends:
            return None  # whoever waits for its end wakes us
        if self._is_outdated(wanted, slot, member):
            if wanted.deleting_since is not None or not self.claims.holds(wanted.name, slot):
                self._end((wanted.name, slot), member.start.attempt, wanted.grace_s)
            return None  # else the end of its job wakes us
        if member.token_at + tokens.RENEW_S <= now:
            self._write_token(wanted, slot, member.start)
        return now + tokens.RENEW_S

    @staticmethod
    def _is_outdated(wanted: Deployment, slot: int, member: Member) -> bool:
        is_wanted = wanted.deleting_since is None and slot < wanted.replicas
        return not is_wanted or member.start.revision != wanted.revision

    def _start(self, wanted: Deployment, slot: int, member: Member) -> None:
        """Start a replica once more: on disk first, then in a thread of its own."""
        now, before = self._clock.now(), member.start
        start = Start(
            attempt=before.attempt + 1,
            revision=wanted.revision,
            failures=before.failures,
            restarts=before.restarts + (before.attempt > 0),
            started_at=rfc3339(now),
        )
        deployments.save_start(self._layout, wanted.name, slot, start)
        crash.point("replica.after-start-noted")
        with self._guard:
            self._members[wanted.name, slot] = Member(start, runs=True)
        self._write_token(wanted, slot, start)
        self._begin(partial(self._carry, wanted, slot, start))

    def _write_token(self, wanted: Deployment, slot: int, start: Start) -> None:
        now = self._clock.now()
        token = tokens.sign(self.key, Bearer(wanted.name, wanted.uid, slot, start.attempt), now)
        atomic.make_folder(self._folder(wanted.name, slot))
        atomic.write_bytes(self._folder(wanted.name, slot) / "token", token.encode())
        with self._guard:
            member = self._members.get((wanted.name, slot))
            if member is not None and member.start.attempt == start.attempt:
                self._members[wanted.name, slot] = replace(member, token_at=now)

    def _end(self, key: Key, attempt: int, grace_s: float) -> None:
        """Tell one start to end, once."""
        with self._guard:
            member = self._members.get(key)
            if member is None or not member.runs or member.start.attempt != attempt:
                return
            if member.ends and grace_s > 0:
                return
            self._members[key] = replace(member, ends=True)
        self._driver.end(self._place(*key, attempt), grace_s)

    def _drop(self, wanted: Deployment, slot: int) -> None:
        """Forget a replica that is no longer wanted and does not run."""
        if self.claims.holds(wanted.name, slot):
            return  # its jobs are released first, and that wakes us
        jobs.remove_tree(self._folder(wanted.name, slot))
        with self._guard:
            self._members.pop((wanted.name, slot), None)

    def _finish(self, wanted: Deployment) -> None:
        """Remove a deployment of which nothing is left."""
        if wanted.deleting_since is None or self._of(wanted.name) or self.claims.unfinished(wanted.name):
            return
        deployments.remove(self._layout, wanted.name)
        with self._guard:
            self._deployments.pop(wanted.name, None)

    # one replica, from its start to its end

    def _carry(self, wanted: Deployment, slot: int, start: Start) -> None:
        folder, place = self._folder(wanted.name, slot), self._place(wanted.name, slot, start.attempt)
        work = folder / "work"
        try:
            atomic.make_folder(work)
            program = Program(
                wanted.argv, self._environment(wanted, folder, work), wanted.directory, folder,
                umask=wanted.umask, grace_s=wanted.grace_s,
            )  # fmt: skip
            self._driver.start(place, start.attempt, program)
        except (SetupFailed, AjError, OSError) as error:
            self._ended(wanted, slot, start, Observation(Fate.LOST, message=str(error)))
            return
        crash.point("replica.after-spawn")
        seen = self._driver.wait(place, work, self._stop)
        while seen.fate is Fate.RUNNING and not self._stop.is_set():
            self._log(f"deployment {wanted.name}: replica {slot}: {seen.message}")
            seen = self._driver.wait(place, work, self._stop)
        if not self._stop.is_set():
            self._ended(wanted, slot, start, seen)

    def _environment(self, wanted: Deployment, folder: Path, work: Path) -> Mapping[str, str]:
        return {
            **wanted.inherited,
            "PYTHONUNBUFFERED": "1",
            **wanted.env,
            "AJ_API_URL": f"unix://{Place(self._layout).socket}",
            "AJ_DEPLOYMENT_ID": wanted.name,
            "AJ_WORKLOAD_TOKEN_FILE": str(folder / "token"),
            "AJ_WORKDIR": str(work),
        }

    def _ended(self, wanted: Deployment, slot: int, start: Start, seen: Observation) -> None:
        """Note the end of a replica; its jobs are released by the next round."""
        now, key = self._clock.now(), (wanted.name, slot)
        with self._guard:
            was_told = self._members.get(key, Member()).ends
        lived_s = now - from_rfc3339(start.started_at) if start.started_at else 0.0
        failures = 0 if was_told or lived_s >= STEADY_S else start.failures + 1
        pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures - 1, 16)) if failures else 0.0
        over = replace(
            start, failures=failures, due_at=now + pause_s, ended_at=rfc3339(now), exit_code=seen.exit_code,
            message=seen.message,
        )  # fmt: skip
        with contextlib.suppress(AjError):  # the next daemon finds that it has ended, too
            deployments.save_start(self._layout, wanted.name, slot, over)
        self._tidy(wanted.name, slot, start.attempt)
        with self._guard:
            self._members[key] = Member(over)
        self.wake()

    def _tidy(self, name: str, slot: int, newest: int) -> None:
        """Keep the logs of the last starts, each within its limit."""
        folder = self._folder(name, slot)
        for number in joblogs.attempts(folder):
            if number <= newest - KEPT_STARTS:
                with contextlib.suppress(AjError, OSError):  # tried again after the next end
                    jobs.remove_tree(joblogs.attempt_folder(folder, number))
                    jobs.remove_tree(jobs.attempt_folder(folder, number))
        with contextlib.suppress(AjError, OSError):
            joblogs.trim(folder, LOG_BYTES)

    # looking

    def replicas(self, wanted: Deployment) -> list[Replica]:
        """Return the replicas of a deployment as they stand, by slot."""
        return [self._replica(wanted, slot) for slot in self._slots(wanted)]

    def _replica(self, wanted: Deployment, slot: int) -> Replica:
        member = self._members.get((wanted.name, slot), Member())
        start, folder = member.start, self._folder(wanted.name, slot)
        # the newest start that has ended, where there is one and it did not end because it was told to
        ended = start.attempt - member.runs if start.failures or not member.runs else 0
        return Replica(
            slot=slot,
            state=self._state(wanted, slot, member),
            attempt=start.attempt,
            revision=start.revision,
            restarts=start.restarts,
            pid=self._driver.pid(self._place(wanted.name, slot, start.attempt)) if member.runs else None,
            started_at=start.started_at,
            due_at=None if member.runs or not start.due_at else rfc3339(start.due_at),
            exit_code=start.exit_code,
            message=start.message,
            logs=str(joblogs.attempt_folder(folder, start.attempt)) if start.attempt else None,
            last_words=redact.text(joblogs.last_words(folder, ended) or "") or None if ended else None,
            last_logs=str(joblogs.attempt_folder(folder, ended)) if ended else None,
        )

    def _state(self, wanted: Deployment, slot: int, member: Member) -> ReplicaState:
        if not member.runs:
            return ReplicaState.WAITING if slot < wanted.replicas else ReplicaState.ENDED
        if member.ends:
            return ReplicaState.ENDING
        held = self.claims.holds(wanted.name, slot)
        if held >= wanted.jobs_per_replica:
            return ReplicaState.BUSY
        return ReplicaState.READY if member.heard or held else ReplicaState.STARTING

    def _folder(self, name: str, slot: int) -> Path:
        return deployments.replica(self._layout, name, slot)

    def _place(self, name: str, slot: int, attempt: int) -> Path:
        return jobs.attempt_folder(self._folder(name, slot), attempt)
