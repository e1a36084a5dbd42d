"""What every test stands on: by default it may touch nothing.

The state, config, cache and runtime folders, the network, other programs and waiting by the real clock
raise. A test asks by naming a fixture:

    home        folders of its own, with Settings, Layout and projects
    programs    other programs may be started (they are ended with the test's own folders)
    loopback    TCP on 127.0.0.1 and ::1
    real_clock  waiting that really waits, for tests of threads and processes
    daemon      all of it, and a real daemon on the test's own folders, ended whatever happens
    clock       a clock that the test moves: hours pass in no time
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from aj.base import clock as clocks
from aj.base import paths, proc
from aj.base import settings as environment
from aj.base.paths import Folders, Project
from aj.base.settings import Settings
from aj.store.layout import Layout
from aj.store.runtime import Place

if TYPE_CHECKING:
    from aj.client.client import Client
    from aj.client.launch import Telling
    from aj.wire.messages import Hello

NOWHERE = "/dev/null/aj-test"  # below a device: nothing can be made or read there, not even by root
# By these a coding agent is detected; a test must not depend on who runs it.
AGENTS = ("CLAUDE", "CODEX", "CURSOR", "AIDER")


# Whoever runs the tests by `nohup` ignores HUP, which every child would inherit: a shell can then never trap it.
for _ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(_ignored) is signal.SIG_IGN:
        signal.signal(_ignored, signal.default_int_handler if _ignored is signal.SIGINT else signal.SIG_DFL)


class ThisTestTouchedTheRealStateDirectory(AssertionError):
    """Give the test its own: use the `home` fixture."""


class ThisTestUsedTheNetwork(AssertionError):
    """Use the `loopback` fixture for a server of the test's own; nothing else is allowed."""


class ThisTestStartedAProgram(AssertionError):
    """Ask for it: use the `programs` fixture."""


class ThisTestWaitedByTheRealClock(AssertionError):
    """Inject the `clock` fixture, or ask: use the `real_clock` fixture."""


@dataclass
class Guard:
    """What the running test may do."""

    active: bool = False
    programs: bool = False
    loopback: bool = False
    real_clock: bool = False

    def reset(self, *, active: bool) -> None:
        self.active, self.programs, self.loopback, self.real_clock = active, False, False, False


GUARD = Guard()


def _watch_paths(arguments: tuple[object, ...]) -> None:
    path = arguments[0] if arguments else None
    if isinstance(path, str | bytes) and os.fsdecode(path).startswith(NOWHERE):
        raise ThisTestTouchedTheRealStateDirectory(f"{os.fsdecode(path)}: use the `home` fixture")


def _watch_programs(arguments: tuple[object, ...]) -> None:
    if not GUARD.programs:
        raise ThisTestStartedAProgram(f"{arguments[:2]}: use the `programs` fixture")


def _watch_network(arguments: tuple[object, ...]) -> None:
    where = arguments[1] if len(arguments) > 1 else None
    if isinstance(where, tuple) and not (GUARD.loopback and where[0] in ("127.0.0.1", "::1", "localhost")):
        raise ThisTestUsedTheNetwork(f"{where}: use the `loopback` fixture")


def _watch_names(arguments: tuple[object, ...]) -> None:
    if not (GUARD.loopback and arguments[0] in ("127.0.0.1", "::1", "localhost", None)):
        raise ThisTestUsedTheNetwork(f"looked up {arguments[0]}")


WATCHES = {
    "open": _watch_paths,
    "os.mkdir": _watch_paths,
    "os.listdir": _watch_paths,
    "os.scandir": _watch_paths,
    "os.rename": _watch_paths,
    "os.remove": _watch_paths,
    "subprocess.Popen": _watch_programs,
    "os.posix_spawn": _watch_programs,
    "os.exec": _watch_programs,
    "os.system": _watch_programs,
    "socket.connect": _watch_network,
    "socket.sendto": _watch_network,
    "socket.getaddrinfo": _watch_names,
}


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if GUARD.active and (watch := WATCHES.get(event)):
        watch(arguments)


sys.addaudithook(_audit)


@pytest.fixture(autouse=True)
def _nothing_real(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take away the caller's environment, and everything that has to be asked for."""
    for name in list(os.environ):
        known = name in environment.OURS or name in environment.FOREIGN
        if name == "AJ_TEST_KUBECONFIG":
            continue  # names the cluster of the tests that ask for one
        if (known and name != "TMPDIR") or name.startswith(("AJ_", "XDG_", *AGENTS)):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", NOWHERE + "/home")
    for kind in ("CONFIG", "STATE", "CACHE", "RUNTIME"):
        monkeypatch.setenv(f"AJ_{kind}_DIR", f"{NOWHERE}/{kind.lower()}")
    _stop_the_clock(monkeypatch)
    GUARD.reset(active=True)
    yield
    GUARD.reset(active=False)


def _stop_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse to wait by the machine's clock unless the test asked for it."""
    really_sleep, really_wait = clocks.SystemClock.sleep, clocks.SystemClock.wait

    def sleep(self: clocks.SystemClock, seconds: float) -> None:
        if GUARD.active and not GUARD.real_clock:
            raise ThisTestWaitedByTheRealClock("use the `clock` or the `real_clock` fixture")
        really_sleep(self, seconds)

    def wait(self: clocks.SystemClock, event: threading.Event, timeout_s: float) -> bool:
        if GUARD.active and not GUARD.real_clock:
            raise ThisTestWaitedByTheRealClock("use the `clock` or the `real_clock` fixture")
        return really_wait(self, event, timeout_s)

    monkeypatch.setattr(clocks.SystemClock, "sleep", sleep)
    monkeypatch.setattr(clocks.SystemClock, "wait", wait)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cluster", action="store_true", help="run what needs the cluster that AJ_TEST_KUBECONFIG names")


@pytest.fixture
def real_cluster(_nothing_real: None, request: pytest.FixtureRequest) -> Path:
    """The kubeconfig of a real cluster, for a test that may then do everything. Skipped unless asked for."""
    if not request.config.getoption("--cluster"):
        pytest.skip("needs a cluster: name its kubeconfig in AJ_TEST_KUBECONFIG and run `pytest --cluster`")
    kubeconfig = os.environ.get("AJ_TEST_KUBECONFIG")
    assert kubeconfig, "`--cluster` needs the name of a kubeconfig in AJ_TEST_KUBECONFIG"
    GUARD.reset(active=False)
    return Path(kubeconfig)


@pytest.fixture
def programs(_nothing_real: None) -> None:
    """Let this test start other programs."""
    GUARD.programs = True


@pytest.fixture
def loopback(_nothing_real: None) -> None:
    """Let this test speak TCP with itself."""
    GUARD.loopback = True


@pytest.fixture
def real_clock(_nothing_real: None) -> None:
    """Let this test really wait."""
    GUARD.real_clock = True


@dataclass
class MovedClock:
    """A clock that stands still until somebody sleeps, waits or moves it."""

    at: float = 1_800_000_000.0
    ran: float = 1_000.0
    slept: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.ran

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.move(seconds)

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        if not event.is_set():
            self.move(timeout_s)
        return event.is_set()

    def move(self, seconds: float) -> None:
        """Let time pass."""
        self.at += seconds
        self.ran += seconds


@pytest.fixture
def clock() -> MovedClock:
    """A clock that the test moves."""
    return MovedClock()


@dataclass(frozen=True)
class Home:
    """Folders of one test's own, and the environment that points to them."""

    root: Path
    settings: Settings
    folders: Folders
    layout: Layout

    @property
    def env(self) -> Mapping[str, str]:
        return self.settings.env

    def having(self, **variables: str) -> Home:
        """The same folders, seen with more variables set."""
        settings = Settings({**self.settings.env, **variables})
        return Home(self.root, settings, paths.folders(settings), Layout(paths.folders(settings)))

    def project(self, name: str = "project") -> Project:
        """Make a project and return it."""
        directory = self.root / name / ".azure_jobs"
        (directory / "template").mkdir(parents=True, exist_ok=True)
        return Project(directory)

    def aj(
        self,
        *words: str,
        cwd: Path | None = None,
        stdin: bytes | None = None,
        timeout_s: float = 60,
        **variables: str,
    ) -> proc.Result:
        """Run the real command on these folders (needs `programs` or `daemon`)."""
        env = {**self.settings.env, **variables}
        return proc.run([*paths.program(), *words], cwd=cwd or self.root, env=env, stdin=stdin, timeout_s=timeout_s)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _nothing_real: None) -> Iterator[Home]:
    """Give the test its own home, state, config, cache and runtime folders; none but home exists yet."""
    # A Unix socket's path is short, and the runtime folder must not be: it does not live below tmp_path.
    runtime = Path(tempfile.mkdtemp(prefix="aj-t-"))
    root = tmp_path / "home"
    root.mkdir()
    monkeypatch.setenv("HOME", str(root))
    for kind in ("CONFIG", "STATE", "CACHE"):
        monkeypatch.setenv(f"AJ_{kind}_DIR", str(tmp_path / "aj" / kind.lower()))
    monkeypatch.setenv("AJ_RUNTIME_DIR", str(runtime / "run"))
    settings = environment.read()
    folders = paths.folders(settings)
    try:
        yield Home(root, settings, folders, Layout(folders))
    finally:
        end_processes_of(folders.state)
        shutil.rmtree(runtime, ignore_errors=True)


@dataclass
class RunningDaemon:
    """A real daemon on a test's own folders. It is not started before it is needed."""

    home: Home
    clients: list[Client] = field(default_factory=list)

    def client(self, project: Project | None = None, telling: Telling | None = None, **variables: str) -> Client:
        """A caller of its own, hung up at the end of the test."""
        from aj.client.client import Client

        home = self.home.having(**variables) if variables else self.home
        self.clients.append(Client(home.settings, project, telling=telling))
        return self.clients[-1]

    def start(self, **variables: str) -> Hello:
        """Start it, with more variables in its environment if given."""
        return self.client(**variables).daemon.start().hello

    @property
    def who(self) -> proc.Identity | None:
        """The process that `daemon.json` names, or None."""
        said = Place(self.home.layout).read()
        return said.who if said else None

    def kill(self) -> proc.Identity:
        """End it as a power cut would; return who it was."""
        who = self.who
        assert who is not None, "a daemon runs"
        assert proc.send(who, signal.SIGKILL)
        assert proc.wait_gone(who, 10)
        return who


@pytest.fixture
def daemon(home: Home, programs: None, real_clock: None) -> Iterator[RunningDaemon]:
    """A real daemon, ended with everything it started whatever happens in the test."""
    running = RunningDaemon(home)
    yield running
    for client in running.clients:
        client.close()


def end_processes_of(state: Path) -> list[int]:
    """Kill every process that was started with this test's own state folder; return their pids."""
    found = proc.with_environment("AJ_STATE_DIR", str(state)) if GUARD.programs else []
    who = []
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            who.append(proc.identity(pid))
    for one in who:
        proc.send(one, signal.SIGKILL)
    for one in who:
        proc.wait_gone(one, 5)
    return found
