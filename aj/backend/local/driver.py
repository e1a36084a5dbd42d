"""The steps by which the engine runs a job on this machine.

    provisioning   the job's folders
    initializing   the submitted archive, unpacked for each node; the live tree is never run
    downloading    the image, by its digest, for a job that has one
    starting       its containers are made; a supervisor, which runs the setup lines and the command

Every step looks first at what is there, so it may be called again after the daemon was killed at any
moment. A start happens once: whoever supervises it claims its folder, and a second one goes away.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from aj.backend.local import (
    attempt,
    containers,
    foresight,
    limits,
    machine,
    mounts,
    options,
    podman,
    ranks,
    spawn,
    strays,
)
from aj.backend.protocol import Fate, Observation, SetupFailed, SetupInvalid
from aj.base import crash, proc
from aj.base.clock import SYSTEM, Clock
from aj.base.errors import AjError, Refused, UserError
from aj.base.noun import dataclass
from aj.base.proc import Identity
from aj.base.settings import Settings
from aj.base.text import decoded
from aj.model import image
from aj.model.bucket import Purpose
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.model.state import JobState
from aj.model.workload import Needs, Workload
from aj.net import ports
from aj.pack import archive, unpack
from aj.store import atomic, jobs, secrets
from aj.store.layout import Layout
from aj.wire.messages import Exec, ExecPlan

GRACE_S = 30.0  # between TERM and KILL when nobody said otherwise
LOOK_S = 0.5  # how soon a wait notices that the daemon is leaving
STRAY_GRACE_S = 1.0  # between TERM and KILL for what has lost its supervisor
GIVE_UP_S = 30.0  # a process that cannot be killed waits for a device; the teardown goes on trying
GPUS = "gpu_indices"  # where the engine puts the numbers of a job's GPUs
WORKDIR = containers.WORKDIR
KILLED = 137  # 128 + KILL, by which the kernel ends what is over its memory
NOT_MOUNTED = "/mnt: no namespaces here; AJ_INPUT_DIR, AJ_OUTPUT_DIR and AJ_CHECKPOINT_DIR name the folders"


@dataclass(frozen=True)
class Arranged:
    """What was settled for one start before it began; kept beside it, without values of the environment."""

    port: int
    shell: str
    groups: tuple[str, ...] = ()
    cpus: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    mounted: bool = False


class LocalDriver:
    """Runs jobs as processes of this machine. Safe between threads."""

    def __init__(
        self,
        layout: Layout,
        settings: Settings,
        clock: Clock = SYSTEM,
        *,
        slots: int | None = None,
        gpus: int | None = None,
    ) -> None:
        self._layout = layout
        self._settings = settings
        self._clock = clock
        self._slots = slots
        self._gpus = gpus
        self._found: Needs | None = None
        self._finding = threading.Lock()

    def steps(self, job: Workload) -> Sequence[JobState]:
        """Return the states a job goes through; one with an image also pulls it."""
        pulls = () if image.is_host(job.image) else (JobState.DOWNLOADING,)
        return (JobState.PROVISIONING, JobState.INITIALIZING, *pulls, JobState.STARTING)

    def capacity(self) -> Needs:
        """What this machine has. Looked up once: asking for GPUs may take seconds."""
        with self._finding:
            if self._found is None:
                self._found = machine.capacity(self._settings, self._gpus)
            return self._found

    def slots(self) -> int:
        """How many jobs may run at once: the setting `local.slots`, else one a cpu."""
        return self._slots or machine.cpu_count()

    def needs(self, spec: JobSpec) -> Needs:
        """What a job takes with all its nodes. Raises UserError on bad options."""
        return foresight.needs(spec, self._settings)

    # the steps

    def step(self, state: JobState, job: Workload, folder: Path) -> Mapping[str, Json]:
        """Do the work of one setup state. Raises SetupFailed, SetupInvalid, AjError."""
        if state is JobState.PROVISIONING:
            for name in ("logs", "work", "tmp", *(f"mnt/{purpose}" for purpose in _purposes(job))):
                atomic.make_folder(folder / name)
            return {}
        if state is JobState.INITIALIZING:
            self._unpack(job, folder)
            crash.point("drive.after-unpack")
            return {}
        if state is JobState.DOWNLOADING:
            return self._pull(job)
        return self._start(job, folder)

    def _pull(self, job: Workload) -> Mapping[str, Json]:
        """Bring the image here, by the digest that it had at admission."""
        engine, reference = podman.need(self._settings), containers.reference(job)
        if not image.parse(job.image or "").is_unkept:
            engine.pull(image.parse(job.image or ""), job.image_digest or "")
        elif not engine.has(reference):
            raise SetupInvalid(f"the image {job.image} is no longer here as it was")
        crash.point("image.after-pull")
        return {WORKDIR: engine.workdir(reference)}

    def _unpack(self, job: Workload, folder: Path) -> None:
        """Unpack the submitted code once for each node, in place of what an earlier submission left."""
        _set_earlier_aside(folder / "work", job.submission_revision)
        for node in range(_spec(job).shape.nodes):
            target = jobs.work_folder(folder, node)
            for part in target.parent.glob(f".{target.name}.*.part"):
                jobs.remove_tree(part)  # unpacking was cut off by a crash
            if not target.is_dir():
                self._extract(job, target)

    def _extract(self, job: Workload, target: Path) -> None:
        if job.code is None:
            atomic.make_folder(target)
            return
        found = archive.find(self._layout.code, job.code)
        if found is None:
            raise SetupInvalid(f"the submitted code {job.code.digest[:12]} is no longer kept")
        try:
            unpack.extract(found, job.code.archive_sha256, target)
        except AjError as error:
            if error.code == "damaged-archive":
                raise SetupInvalid(error.message) from error
            raise

    def _start(self, job: Workload, folder: Path) -> Mapping[str, Json]:
        job = self._with_secrets(job)
        place = jobs.attempt_folder(folder, job.attempt)
        atomic.make_folder(place)
        arranged = _arranged(place) or self._arrange(job, folder, place)
        if attempt.supervisor(place) is None:
            request = self._request(job, folder, arranged)
            attempt.write_request(place, request)
            crash.point("drive.before-spawn")
            spawn.supervisor(place, self._settings)
            crash.point("drive.after-spawn")
        if attempt.supervisor(place) is None:
            raise SetupFailed(f"the supervisor did not start: {_last_words(place)}")
        return {
            "port": arranged.port,
            "groups": list(arranged.groups),
            "mounted": arranged.mounted,
            "notes": list(arranged.notes),
        }

    def _arrange(self, job: Workload, folder: Path, place: Path) -> Arranged:
        spec = _spec(job)
        if not image.is_host(job.image):
            arranged = Arranged(ports.free_port(), "/bin/sh", mounted=True)  # podman keeps the limits
        else:
            found = limits.setup(f"{job.id}-{zlib.crc32(os.fsencode(folder)):08x}", job.needs)
            path = spec.inherited.get("PATH") or self._settings.get("PATH")
            wants = bool(_purposes(job)) or options.of(spec).shm_bytes is not None
            mounted = wants and mounts.are_possible()
            notes = (*found.notes, *((NOT_MOUNTED,) if wants and not mounted else ()))
            shell = proc.find("bash", path) or "/bin/sh"
            arranged = Arranged(ports.free_port(), shell, found.groups, found.cpus, notes, mounted)
        atomic.write_json(place / "arranged.json", asdict(arranged))
        return arranged

    def _request(self, job: Workload, folder: Path, arranged: Arranged) -> attempt.Request:
        spec, facts = _spec(job), self._facts(job, folder, arranged)
        if not image.is_host(job.image):
            started = self._containers(job, folder, facts)
            return attempt.Request(str(folder), job.attempt, (), started, grace_s=GRACE_S, spared=podman.PROGRAMS)
        return attempt.Request(
            job=str(folder),
            attempt=job.attempt,
            setups=tuple(vars(process) for process in ranks.setups(spec, facts)),
            ranks=tuple(vars(process) for process in ranks.ranks(spec, facts)),
            groups=arranged.groups,
            cpus=arranged.cpus,
            umask=spec.umask,
            grace_s=GRACE_S,
            mounts=_mounts(job, folder) if arranged.mounted else None,
        )

    def _with_secrets(self, job: Workload) -> Workload:
        """Return the job with the values of its secrets among its variables. Raises NotFound, AjError."""
        spec = _spec(job)
        if not spec.secrets:
            return job
        return replace(job, spec=replace(spec, env={**secrets.values(self._layout, spec.secrets), **spec.env}))

    def _containers(self, job: Workload, folder: Path, facts: ranks.Facts) -> tuple[Mapping[str, Json], ...]:
        """Make the containers of one start, one a process; return what starts them."""
        engine = podman.need(self._settings)
        found: list[Mapping[str, Json]] = []
        for wanted in containers.of(job, folder, facts):
            engine.make(wanted)
            start: dict[str, Json] = {"node": 0, "cwd": "/", "argv": engine.start_words(wanted.name)}
            found.append({**start, "env": {**engine.env}})
        crash.point("image.after-make")
        return tuple(found)

    def _facts(self, job: Workload, folder: Path, arranged: Arranged) -> ranks.Facts:
        return ranks.Facts(
            shell=arranged.shell,
            workdirs=_workdirs(job, folder),
            folders=_folders(job, folder, arranged.mounted),
            scratch=None if _spec(job).brings_code or not image.is_host(job.image) else str(folder / "tmp"),
            port=arranged.port,
            accepted_at=job.submitted_at.replace("Z", "+00:00"),
            notes=str(jobs.attempt_folder(folder, job.attempt)),
            gpus=_gpu_indices(job) if self.capacity().gpus else None,
            digest=job.code.digest if job.code else None,
            archive_sha256=job.code.archive_sha256 if job.code else None,
        )

    # watching and ending

    def observe(self, job: Workload, folder: Path) -> Observation:
        """Look at the processes; never waits."""
        place = jobs.attempt_folder(folder, job.attempt)
        who = attempt.supervisor(place)
        if who is not None and proc.is_alive(who):
            return Observation(Fate.RUNNING, in_setup=not attempt.is_started(place))
        record = attempt.exit_record(place)
        if record is None:
            return Observation(Fate.LOST, message=f"the supervisor is gone: {_last_words(place)}")
        return Observation(
            Fate.EXITED,
            exit_code=record.exit_code,
            oom_killed=record.oom_killed or self._was_out_of_memory(job, folder, record.exit_code),
            in_setup=record.in_setup,
            started_at=record.started_at,
            ended_at=record.ended_at,
            message=record.message,
        )

    def wait(self, job: Workload, folder: Path, stop: threading.Event) -> Observation:
        """Wait until the processes ended or were lost and nothing of them is left, or `stop` is set."""
        place = jobs.attempt_folder(folder, job.attempt)
        who = attempt.supervisor(place)
        while who is not None and not proc.wait_any(who, LOOK_S):
            if stop.is_set():
                return self.observe(job, folder)
        if who is not None:
            proc.reap(who.pid)
        self._end_strays(job, folder, place)
        return self.observe(job, folder)

    def _end_strays(self, job: Workload, folder: Path, place: Path) -> set[int]:
        """End what has no supervisor any more; return what cannot be ended."""
        arranged = _arranged(place)
        groups = arranged.groups if arranged else ()
        if not image.is_host(job.image) and attempt.exit_record(place) is None:
            podman.need(self._settings).remove_all(podman.tag(folder, job.id))
        orderly = attempt.exit_record(place) is not None and not attempt.had_exec(place)
        if orderly and not limits.members(groups):
            return set()
        workdirs = () if orderly else _workdirs(job, folder)
        return strays.end(groups, workdirs, self._clock, grace_s=STRAY_GRACE_S, give_up_s=GIVE_UP_S)

    def terminate(self, job: Workload, folder: Path, grace_s: float) -> None:
        """Ask the processes to end: TERM at once, KILL after the grace. Returns without waiting."""
        place = jobs.attempt_folder(folder, job.attempt)
        if not place.is_dir():
            return
        with contextlib.suppress(AjError):  # on a full disk the supervisor gives its own grace
            attempt.ask_end(place, grace_s)
        who = attempt.supervisor(place)
        if who is not None:
            proc.send(who, signal.SIGTERM)

    def _was_out_of_memory(self, job: Workload, folder: Path, code: int) -> bool:
        if image.is_host(job.image) or code != KILLED:
            return False
        name = podman.name(podman.tag(folder, job.id), job.attempt, 0)
        return podman.need(self._settings).was_out_of_memory(name)

    def exec_plan(self, job: Workload, folder: Path, asked: Exec) -> ExecPlan:
        """Say how to run a command inside the running job. Raises Refused when it does not run, UserError."""
        place = jobs.attempt_folder(folder, job.attempt)
        arranged = _arranged(place)
        job = self._with_secrets(job)
        spec, rank = _spec(job), asked.rank
        if not 0 <= rank < spec.shape.world_size:
            raise UserError(f"no rank {rank}: the job has {spec.shape.world_size}, counted from 0")
        seen = self.observe(job, folder)
        if job.state is not JobState.RUNNING or arranged is None or seen.fate is not Fate.RUNNING:
            over = f"`aj logs {job.id}` shows what it printed, `aj resubmit {job.id}` runs it again"
            hint = over if job.state.is_final else f"`aj status {job.id} --watch` tells when it does"
            raise Refused(f"job {job.id} does not run: {job.state}", code="not-running", hint=hint)
        attempt.mark_exec(place)
        node, local = divmod(rank, spec.shape.processes_per_node)
        facts = self._facts(job, folder, arranged)
        argv, cwd = ranks.shell_words(asked.argv, arranged.shell), facts.workdirs[node]
        if not image.is_host(job.image):
            name, engine = podman.name(podman.tag(folder, job.id), job.attempt, rank), podman.need(self._settings)
            words = engine.exec_words(name, argv, stdin=asked.stdin, tty=asked.tty)
            return ExecPlan(argv=words, env=engine.env, cwd="/")
        if arranged.mounted:
            argv = mounts.inside(attempt.started_pid(place, rank), argv, cwd)
        return ExecPlan(argv=argv, env=ranks.environment(spec, facts, node, local), cwd=cwd)

    # hosts

    def preempt(self, job: Workload, folder: Path) -> None:
        """Take the job's processes away as a machine does that goes off: at once, and nobody writes how they ended."""
        place = jobs.attempt_folder(folder, job.attempt)
        self._end_supervisor(attempt.supervisor(place))
        if not image.is_host(job.image):
            podman.need(self._settings).remove_all(podman.tag(folder, job.id))

    def revive(self, job: Workload, folder: Path) -> None:
        """Be there again: the machine is, unless it was said that this host is lost. Raises SetupFailed."""
        if job.preempted and not job.can_restart:
            raise SetupFailed("the host is gone", "capacity")

    def release(self, job: Workload, folder: Path) -> None:
        """End what is left on a lost host, and put away what it had: the next host begins with what was submitted.

        Raises AjError to be tried again.
        """
        self.teardown(job, folder)
        count = sum(host.ended_at is not None for host in job.hosts)
        aside = folder / "work" / f"host-{count}"
        for left in (*sorted((folder / "work").glob("node[0-9]*")), folder / "mnt"):
            if left.is_dir() and any(left.iterdir()):
                atomic.make_folder(aside)
                jobs.remove_tree(aside / left.name)  # of a release that was cut off
                os.rename(left, aside / left.name)
        for name in ("mnt", "tmp", "sync"):
            jobs.remove_tree(folder / name)

    def teardown(self, job: Workload, folder: Path) -> None:
        """Leave nothing behind but logs, outputs and the record. Raises AjError to be tried again."""
        for place in sorted((folder / "attempts").glob("[0-9]*")):
            self._end_supervisor(attempt.supervisor(place))
            attempt.forget_request(place)
            left = self._end_strays(job, folder, place)
            if left:
                pids = ", ".join(str(pid) for pid in sorted(left)[:5])
                raise AjError(f"processes do not end: {pids}", code="still-alive")
            arranged = _arranged(place)
            limits.remove(arranged.groups if arranged else ())
        if not image.is_host(job.image):
            podman.need(self._settings).remove_all(podman.tag(folder, job.id))
        jobs.remove_tree(folder / "tmp")

    def _end_supervisor(self, who: Identity | None) -> None:
        """Kill a supervisor that did not answer; its processes die with it."""
        if who is None or not proc.send(who, signal.SIGKILL):
            return
        proc.wait_any(who, GIVE_UP_S)
        proc.reap(who.pid)


def _spec(job: Workload) -> JobSpec:
    assert job.spec is not None, "the engine hands over records with what was asked for"
    return job.spec


def _workdirs(job: Workload, folder: Path) -> tuple[str, ...]:
    return tuple(str(jobs.work_folder(folder, node)) for node in range(job.nodes))


def _gpu_indices(job: Workload) -> tuple[int, ...]:
    found = job.facts.get(GPUS, ())
    return tuple(int(str(index)) for index in found) if isinstance(found, list | tuple) else ()


def _purposes(job: Workload) -> tuple[str, ...]:
    """The names of the folders below /mnt that the job has."""
    return tuple(sorted(job.attached.bound)) if job.attached else ()


def _folders(job: Workload, folder: Path, mounted: bool) -> dict[str, str]:
    """Where the job finds each of its folders."""
    return {name: f"/mnt/{name}" if mounted else str(folder / "mnt" / name) for name in _purposes(job)}


def _mounts(job: Workload, folder: Path) -> mounts.Mounts:
    stage = atomic.make_folder(jobs.attempt_folder(folder, job.attempt) / "mnt")
    found = tuple((name, str(folder / "mnt" / name)) for name in _purposes(job))
    return mounts.Mounts(found, str(stage), (Purpose.INPUT.value,), options.of(_spec(job)).shm_bytes)


def _arranged(place: Path) -> Arranged | None:
    try:
        return attempt.read(place / "arranged.json", Arranged)
    except (FileNotFoundError, ValueError):
        return None


def _set_earlier_aside(work: Path, revision: int) -> None:
    """Keep what an earlier submission wrote, out of the way of this one."""
    mark = work / ".revision"
    try:
        earlier = int(mark.read_text())
    except (FileNotFoundError, ValueError):
        earlier = revision
    if earlier != revision:
        aside = atomic.make_folder(work / f"submission-{earlier}")
        for folder in sorted(work.glob("node[0-9]*")):
            os.rename(folder, aside / folder.name)
    atomic.write_bytes(mark, f"{revision}\n".encode())


def _last_words(place: Path) -> str:
    """What the supervisor wrote last, for the message."""
    with contextlib.suppress(OSError):
        lines = decoded((place / "supervisor.log").read_bytes()).strip().splitlines()
        if lines:
            return lines[-1][:300]
    return "it left no word"
