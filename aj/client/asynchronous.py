"""The same client for programs of asyncio: `from aj import AsyncClient`.

Each call runs in a thread of its own with a connection of its own, so many may be under way at once. A call that
is cancelled ends at once for its caller; its thread notices within a second. What was asked for before that, such
as a submission, may have been done: nothing is undone by a cancellation.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from aj.base import paths
from aj.base import settings as environment
from aj.base.paths import Project
from aj.base.settings import Settings
from aj.client.api import Client
from aj.client.job import Job, Ran, Status

if TYPE_CHECKING:
    from aj.model.deployment import DeploymentStatus
    from aj.model.workload import Workload

T = TypeVar("T")
AHEAD = 256  # pieces of a log that may wait for a slow reader


class AsyncClient:
    """Submits jobs and follows them; the methods and errors are those of `Client`."""

    def __init__(self, settings: Settings | None = None, project: Project | None = None) -> None:
        if settings is None:
            settings = environment.read()
            project = project or paths.find_project(settings, paths.working_directory(settings))
        self._settings = settings
        self._project = project
        self._open: set[threading.Event] = set()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let the calls that are still under way end."""
        for stop in list(self._open):
            stop.set()

    async def submit(self, image: str | None = None, **asked: object) -> AsyncJob:
        """Submit a job; the arguments are those of `Client.submit`."""
        job = await self.call(lambda client: client.submit(image, **asked))  # type: ignore[arg-type]
        return AsyncJob(self, job.id, job.revision)

    async def get(self, job_id: str) -> AsyncJob:
        """Return the handle of a job that was submitted before. Raises NotFound."""
        job = await self.call(lambda client: client.get(job_id))
        return AsyncJob(self, job.id, job.revision)

    async def list(self, **asked: object) -> Sequence[Workload]:
        """List jobs; the arguments are those of `Client.list`."""
        return await self.call(lambda client: client.list(**asked))  # type: ignore[arg-type]

    async def get_deployment(self, name: str) -> DeploymentStatus:
        """Return a deployment. Raises NotFound."""
        return await self.call(lambda client: client.get_deployment(name))

    async def call(self, act: Callable[[Client], T]) -> T:
        """Run a call in a thread of its own; when the caller is cancelled, the thread is told to stop."""
        loop, stop = asyncio.get_running_loop(), threading.Event()
        future: asyncio.Future[T] = loop.create_future()

        def run() -> None:
            found: T | None = None
            failed: BaseException | None = None
            try:
                with Client(self._settings, self._project, stop=stop) as client:
                    found = act(client)
            except BaseException as error:
                failed = error
                if isinstance(error, KeyboardInterrupt | SystemExit):
                    raise
            finally:
                self._open.discard(stop)
                tell = _settled(future, found, failed)
                _soon(loop, tell)

        self._open.add(stop)
        threading.Thread(target=run, name="aj call", daemon=True).start()
        try:
            return await future
        finally:
            stop.set()


class AsyncJob:
    """A job that was submitted, by its id; the methods are those of `Job`."""

    def __init__(self, client: AsyncClient, job_id: str, revision: int = 0) -> None:
        self._client = client
        self.id = job_id
        self.revision = revision

    def __repr__(self) -> str:
        return f"AsyncJob({self.id!r})"

    async def _do(self, act: Callable[[Job], T]) -> T:
        return await self._client.call(lambda client: act(_job(client, self)))

    async def status(self) -> Status:
        """Return where it stands. Raises NotFound."""
        return await self._do(lambda job: job.status())

    async def wait(self, timeout: float | None = None, *, cleaned: bool = False) -> Workload:
        """Wait until it has completed. Raises as `Job.wait`."""
        return await self._do(lambda job: job.wait(timeout, cleaned=cleaned))

    async def wait_for_claim(self, timeout: float | None = None) -> None:
        """Wait until a replica has taken it up. Raises as `Job.wait_for_claim`."""
        await self._do(lambda job: job.wait_for_claim(timeout))

    async def terminate(self, grace: float | None = None) -> Status:
        """Ask for its end. Raises as `Job.terminate`."""
        return await self._do(lambda job: job.terminate(grace))

    async def resubmit(self, timeout: float | None = None, *, wait: bool = False, when_clean: bool = False) -> Status:
        """Run it again under its id. Raises as `Job.resubmit`."""
        status = await self._do(lambda job: job.resubmit(timeout, wait=wait, when_clean=when_clean))
        self.revision = status.workload.submission_revision
        return status

    async def exec(self, command: str | Sequence[str], *, rank: int = 0, timeout: float | None = None) -> Ran:
        """Run a command inside of it. Raises as `Job.exec`."""
        return await self._do(lambda job: job.exec(command, rank=rank, timeout=timeout))

    async def logs(self, *, follow: bool = False, tail: int | None = None) -> AsyncIterator[bytes]:
        """Yield what it wrote; with `follow` as it is written. Raises as `Job.logs`."""
        loop, pieces = asyncio.get_running_loop(), asyncio.Queue[bytes | None](AHEAD)

        def read(client: Client) -> None:
            job = _job(client, self)
            for piece in job.logs(follow=follow, tail=tail):
                asyncio.run_coroutine_threadsafe(pieces.put(piece), loop).result()

        reading = asyncio.ensure_future(self._client.call(read))
        reading.add_done_callback(lambda _: asyncio.ensure_future(pieces.put(None)))
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            await reading
        finally:
            reading.cancel()


def _job(client: Client, of: AsyncJob) -> Job:
    return Job(client, of.id, revision=of.revision, stop=client.stopping)


def _settled(future: asyncio.Future[T], found: T | None, failed: BaseException | None) -> Callable[[], None]:
    """Return what hands a result to whoever waits for it, unless that was cancelled."""

    def tell() -> None:
        if future.done():
            return
        if failed is not None:
            future.set_exception(failed)
        else:
            future.set_result(found)  # type: ignore[arg-type]

    return tell


def _soon(loop: asyncio.AbstractEventLoop, tell: Callable[[], None]) -> None:
    """Let the loop do something, if it still runs."""
    try:
        loop.call_soon_threadsafe(tell)
    except RuntimeError:
        return  # the loop was closed meanwhile: nobody waits
