"""What an engine stands on in its tests: services that are folders on disk, so that they survive a crash.

A job at the far service is a file; every call that sends is a line in `sent`, so that a job that was
sent twice shows, whatever the engine believes.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from aj.backend.protocol import Backend, Request, Status, Traits
from aj.base.clock import Clock
from aj.base.errors import Refused, UserError
from aj.base.paths import Folders
from aj.base.settings import Settings
from aj.engine.engine import Engine
from aj.engine.means import Packed
from aj.model.code import CodePlan, CodeRef
from aj.model.handle import Handle
from aj.model.job import JobSpec
from aj.model.state import JobState
from aj.model.ticket import Mode
from aj.model.workload import Needs, Workload
from aj.store import atomic
from aj.store.layout import Layout
from aj.wire.messages import Submission
from tests.store import nouns


class Home(Protocol):
    """Folders of a test's own."""

    @property
    def root(self) -> Path: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def folders(self) -> Folders: ...
    @property
    def layout(self) -> Layout: ...


FAR, NEAR, BARE, SHUT = "far", "near", "bare", "shut"
TRAITS = {
    FAR: Traits(driven=False, moves_code=True),
    NEAR: Traits(driven=True, moves_code=True),
    BARE: Traits(driven=False, moves_code=False),
    SHUT: Traits(driven=False, moves_code=True, submits=False),
}


def _line(path: Path, words: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, words.encode() + b"\n")
    os.close(handle)


def _lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


@dataclass
class Far:
    """A service with a scheduler of its own. `before` and `after` may raise, wait, or look."""

    folder: Path
    before: Callable[[str], None] = lambda _: None
    after: Callable[[str], None] = lambda _: None
    planning: Callable[[JobSpec], None] = lambda _: None
    looking: Callable[[JobSpec], None] = lambda _: None
    looks: int = 0
    traits: Traits = TRAITS[FAR]

    def plan(self, spec: JobSpec, code: CodeRef | None, *, accepted_at: str) -> Request:
        self.planning(spec)
        body = {"argv": list(spec.argv), "code": code.digest if code else None, "at": accepted_at}
        return Request(spec.service, f"far-{spec.name}", body)

    def submit(self, request: Request) -> Handle:
        _line(self.folder / "sent", request.name)
        self.before(request.name)
        (self.folder / f"{request.name}.job").write_text(str(request.body))
        self.after(request.name)
        return Handle(FAR, "cluster", request.name)

    def find(self, spec: JobSpec) -> Handle | None:
        self.looks += 1
        self.looking(spec)
        name = f"far-{spec.name}"
        return Handle(FAR, "cluster", name) if (self.folder / f"{name}.job").exists() else None

    def status(self, handle: Handle) -> Status | None:
        return None

    def cancel(self, handle: Handle) -> None:
        (self.folder / f"{handle.name}.job").unlink(missing_ok=True)

    @property
    def sent(self) -> list[str]:
        """The names that were sent, in order, once for each call."""
        return _lines(self.folder / "sent")

    @property
    def jobs(self) -> set[str]:
        """The names of the jobs that exist."""
        return {path.stem for path in self.folder.glob("*.job")}


@dataclass
class Near:
    """The jobs of our own engine, reduced to what a submission needs: one file each."""

    folder: Path
    before: Callable[[str], None] = lambda _: None
    after: Callable[[str], None] = lambda _: None
    open_project: Callable[[str], object] | None = None
    adopted: list[str] = field(default_factory=list)
    unfinished: set[str] = field(default_factory=set)
    is_stopped: bool = False

    def settle(self, spec: JobSpec) -> JobSpec:
        return spec

    def admit(
        self, spec: JobSpec, code: CodeRef | None, *, ticket: str, project_key: str, accepted_at: str, mode: Mode
    ) -> Handle:
        _line(self.folder / "admitted", spec.id)
        self.before(spec.id)
        atomic.write_json(self.folder / f"{spec.id}.job", {"ticket": ticket, "project": project_key, "at": accepted_at})
        self.after(spec.id)
        return Handle(NEAR, "jobs", spec.id)

    def find(self, aj_id: str) -> Workload | None:
        if not (self.folder / f"{aj_id}.job").exists():
            return None
        return Workload(
            id=aj_id,
            name=aj_id,
            service=NEAR,
            template="t",
            project=None,
            project_key="",
            ticket=f"q-{aj_id}",
            state=JobState.QUEUED,
            created_at="",
            submitted_at="",
            needs=Needs(),
        )

    def adopt(self, project_key: str) -> None:
        self.adopted.append(project_key)

    def running(self) -> int:
        return 0

    def queued(self) -> int:
        return len(self.jobs)

    def unfinished_projects(self) -> set[str]:
        return self.unfinished

    def digests(self) -> set[str]:
        return set()

    def stop(self) -> None:
        self.is_stopped = True

    @property
    def admitted(self) -> list[str]:
        """The ids that were handed over, in order, once for each call."""
        return _lines(self.folder / "admitted")

    @property
    def jobs(self) -> set[str]:
        """The ids of the jobs that exist."""
        return {path.stem for path in self.folder.glob("*.job")}


@dataclass
class Services:
    """Where the names of services lead."""

    far: Far

    def traits(self, service: str) -> Traits:
        if service not in TRAITS:
            raise UserError(f"no service is called `{service}`")
        return TRAITS[service]

    def backend(self, service: str) -> Backend:
        return self.far


@dataclass
class Packer:
    """Packs one file of a tree, so that tests can change the tree afterwards."""

    home: Home
    before: Callable[[JobSpec], None] = lambda _: None
    after: Callable[[JobSpec], None] = lambda _: None
    warnings: tuple[str, ...] = ()

    def __call__(self, spec: JobSpec) -> Packed:
        self.before(spec)
        data = (Path(spec.code.root) / "train.py").read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        path = self.home.layout.archive(digest)
        atomic.make_folder(path.parent)
        if not path.exists():
            atomic.write_bytes(path, data)
        code = CodeRef(digest, digest, 1, len(data), len(data))
        note = {"digest": digest, "archive_sha256": digest, "files": 1, "bytes": len(data), "archive_bytes": len(data)}
        atomic.write_json(path.with_name(f"{digest}.json"), note)
        self.after(spec)
        return Packed(code, self.warnings)


class Stand:
    """An engine with its services; `again` is what a restarted daemon would have."""

    def __init__(
        self, home: Home, clock: Clock, *, keep_final: int = 200, pack: Callable[[JobSpec], Packed] | None = None
    ) -> None:
        self.home = home
        self.clock = clock
        self.keep_final = keep_final
        world = home.root / "world"
        for name in ("far", "near", "tree"):
            (world / name).mkdir(parents=True, exist_ok=True)
        self.tree = world / "tree"
        if not (self.tree / "train.py").exists():
            (self.tree / "train.py").write_text("print('hello')\n")
        self.far = Far(world / "far")
        self.near = Near(world / "near")
        self.pack = Packer(home)
        self.engine: Engine[Near] = Engine(
            home.settings,
            home.folders,
            self.clock,
            lambda _: self.near,
            places=Services(self.far),
            pack=pack or self.pack,
            keep_final=keep_final,
        )
        self.engine.start()

    def again(self) -> Stand:
        """Let this daemon go and start another."""
        self.engine.drain(10)
        self.engine.stop()
        return Stand(self.home, self.clock, keep_final=self.keep_final)

    def submission(self, number: int, *, service: str = FAR, mode: Mode = Mode.QUEUED, **more: object) -> Submission:
        """A request to run the test's tree."""
        root = str(self.tree)
        spec = replace(nouns.spec(number, service=service), directory=root, code=CodePlan(root), **more)  # type: ignore[arg-type]
        return Submission(spec.id, mode, spec)


class Held:
    """A step that waits until the test lets it go on, and tells the test when somebody waits."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self._go = threading.Event()
        self.names: list[str] = []

    def __call__(self, name: object) -> None:
        self.names.append(name.name if isinstance(name, JobSpec) else str(name))
        self.entered.release()
        if not self._go.wait(20):
            raise TimeoutError("the test forgot to let this go on")

    def wait_entered(self) -> None:
        """Wait until somebody is here."""
        assert self.entered.acquire(timeout=20)

    def let_go(self) -> None:
        """Let everybody go on, now and later."""
        self._go.set()


def raising(error: BaseException) -> Callable[[object], None]:
    """Return a step that raises."""

    def step(_: object) -> None:
        raise error

    return step


REFUSED = Refused("the place said no", code="no-way", hint="ask nicely", details={"status": 409})
