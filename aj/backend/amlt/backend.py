"""The external program amlt: it is given a YAML file, and whatever becomes of the job then is between it and Azure.

amlt tells nothing but what it prints. A run that ended well has submitted; one that was ended, by its time limit or
by the end of the daemon, may have: then nobody but a person with `amlt status` can tell.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from aj.backend.amlt import payload
from aj.backend.amlt.commands import command
from aj.backend.amlt.output import Output
from aj.backend.protocol import Request, Status, Traits
from aj.base import proc, units
from aj.base.errors import AjError, ConfigError, OutcomeUnknown, UserError
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.model.code import CodeRef
from aj.model.commandjob import experiment
from aj.model.handle import Handle
from aj.model.job import JobSpec, injected
from aj.model.step import Kind, Step
from aj.store import atomic
from aj.store.keys import EXPERIMENT
from aj.template import dump

SERVICE = "amlt"
LIMIT_S = 1800.0  # an upload of gigabytes over a slow line; AJ_AMLT_TIMEOUT sets another
FOLDER = "submission"
KEEP = 200  # files of attempts that are over: enough to look up what was sent last month


class Run(Protocol):
    """Runs a program in a folder to its end, line by line, and ends it when this process ends.

    Raises TimeoutError, InterruptedError, and OSError when it cannot start.
    """

    def __call__(
        self,
        argv: Sequence[str],
        hear: Callable[[str], None],
        *,
        cwd: Path,
        env: Mapping[str, str],
        timeout_s: float,
    ) -> int: ...


@dataclass(frozen=True)
class Means:
    """What a submission needs of the house.

    `settings` is the environment of the daemon; `tell` passes on what happens to the submission of an AJ ID;
    `is_over` tells whether one of a project is settled for good.
    """

    settings: Settings
    tell: Callable[[str, Step], None]
    is_over: Callable[[Path, str], bool]
    run: Run


@dataclass(frozen=True)
class AmltRequest(Request):
    """The document, and how amlt will be called. `env` are the variables of the job."""

    aj_id: str
    program: str
    experiment: str
    project: Path
    limit_s: float
    env: Mapping[str, str]

    @property
    def path(self) -> Path:
        return self.project / FOLDER / f"{self.aj_id}.yaml"

    @property
    def argv(self) -> list[str]:
        return [self.program, "run", str(self.path), self.experiment, "-y"]


class AmltBackend:
    """Jobs that amlt submits."""

    traits = Traits(driven=False, moves_code=False, answers=False)

    def __init__(self, means: Means) -> None:
        self._means = means

    def plan(self, spec: JobSpec, code: CodeRef | None, *, accepted_at: str) -> AmltRequest:
        """Build the document. Raises UserError or ConfigError on what amlt could not be called with."""
        if spec.project is None:
            raise UserError("amlt needs a project", hint="`aj init`")
        env = {**spec.env, **injected(spec, accepted_at=accepted_at, digest=None, archive_sha256=None)}
        return AmltRequest(
            SERVICE,
            spec.name,
            payload.document(spec, env),
            is_named=False,
            aj_id=spec.id,
            program=program(self._means.settings),
            experiment=experiment_of(spec),
            project=Path(spec.project),
            limit_s=limit_s(self._means.settings),
            env=spec.env,
        )

    def submit(self, request: Request) -> Handle:
        """Write the file and run amlt. Raises OutcomeUnknown when there may be a job and nobody knows."""
        assert isinstance(request, AmltRequest), "a request of this service's own plan"
        self._prune(request.project)
        atomic.make_folder(request.path.parent)
        atomic.write_bytes(request.path, dump.dump(request.body).encode())
        output = Output(request.env)
        words = f"amlt run {request.path.name} {request.experiment}, limit {units.duration(request.limit_s)}"
        self._means.tell(request.aj_id, Step(Kind.SUBMIT, words))
        _mind_code(self._run(request, output), request, output)
        return _handle(request, output)

    def find(self, spec: JobSpec) -> Handle | None:
        """Raise OutcomeUnknown: amlt cannot be asked for a submission without its name."""
        raise OutcomeUnknown(
            f"amlt does not tell aj what it has submitted: nobody but you can look for {spec.name}",
            hint=_look(spec.experiment or "EXPERIMENT", spec.id),
            code="not-remembered",
        )

    def status(self, handle: Handle) -> Status | None:
        """Say that amlt knows."""
        return Status(None, "managed by amlt", f"`{command('status', handle.place, handle.name)}`")

    def cancel(self, handle: Handle) -> None:
        """Raise UserError with the command of amlt that ends a job."""
        raise UserError("managed by amlt", hint=f"`{command('cancel', handle.place, handle.name)}`")

    def _run(self, request: AmltRequest, output: Output) -> int:
        env = {name: value for name, value in self._means.settings.env.items() if not name.startswith("AJ_")}
        try:
            return self._means.run(
                request.argv,
                lambda line: self._means.tell(request.aj_id, Step(Kind.LOG, output.take(line))),
                cwd=request.project.parent,
                env=env,
                timeout_s=request.limit_s,
            )
        except TimeoutError as error:
            words = f"amlt did not end within {units.duration(request.limit_s)}, and was ended"
            raise _unknown(words, request, output) from error
        except InterruptedError as error:
            raise _unknown("amlt was ended together with the daemon", request, output) from error
        except OSError as error:
            raise AjError(f"cannot start {request.program}: {error.strerror}", code="cannot-start") from error

    def _prune(self, project: Path) -> None:
        """Remove the oldest files of attempts that are over. One that cannot be removed does no harm."""
        files = sorted((project / FOLDER).glob("*.yaml"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        over = [path for path in files if self._means.is_over(project, path.stem)] if len(files) >= KEEP else []
        for path in over[KEEP - 1 :]:  # one more is about to be written
            with contextlib.suppress(AjError):
                atomic.remove(path)


def program(settings: Settings) -> str:
    """Return where amlt is on this PATH. Raises ConfigError naming the PATH."""
    found = proc.find("amlt", settings.get("PATH"))
    if found is None:
        raise ConfigError(
            f"no program `amlt` on the daemon's PATH: {settings.get('PATH') or 'it is empty'}",
            hint="install it, `aj init amlt`, then `aj daemon restart` with the right PATH",
            code="no-amlt",
        )
    return found


def limit_s(settings: Settings) -> float:
    """Return how long one run of amlt may take, in seconds. Raises ConfigError."""
    found = settings.seconds("AJ_AMLT_TIMEOUT", LIMIT_S)
    if found <= 0:
        raise ConfigError("AJ_AMLT_TIMEOUT=0 leaves amlt no time", hint="a duration such as 30m; or leave it unset")
    return found


def experiment_of(spec: JobSpec) -> str:
    """Return the experiment. Raises UserError when there is none, or one that amlt would take for an option."""
    name = experiment(spec)
    try:
        return str(EXPERIMENT.check(name))
    except ValueError:
        raise UserError(f"experiment {name!r}: it takes {EXPERIMENT.due}") from None


def _mind_code(code: int, request: AmltRequest, output: Output) -> None:
    """Raise when amlt failed: OutcomeUnknown after it had named a job, else AjError."""
    if code == 0:
        return
    how = f"ended with exit status {code}" if code > 0 else f"was ended by signal {-code}"
    if output.shows_a_job:
        raise _unknown(f"amlt {how} after it had named a job", request, output)
    details = {"exit_status": code, "last_lines": output.last}
    raise AjError(_with_last(f"amlt {how}", output), code="amlt-failed", details=details)


def _unknown(words: str, request: AmltRequest, output: Output) -> OutcomeUnknown:
    details = {
        "azure_name": output.name,
        "portal_url": output.portal_url,
        "experiment": request.experiment,
        "last_lines": output.last,
    }
    hint = _look(request.experiment, request.aj_id)
    return OutcomeUnknown(_with_last(words, output), hint=hint, code="amlt", details=details)


def _look(experiment: str, aj_id: str) -> str:
    return f"`amlt status {experiment}` tells; if it is not there, `aj queue retry q-{aj_id} --force` submits it again"


def _with_last(words: str, output: Output) -> str:
    return f"{words}: {output.last[-1]}" if output.last else words


def _handle(request: AmltRequest, output: Output) -> Handle:
    """Name the job as amlt did; where it named none, by our own name, and say so."""
    note = f"managed by amlt: `{command('status', request.experiment, request.name)}`"
    name = output.name or request.name
    is_named = output.name is not None
    return Handle(SERVICE, request.experiment, name, portal_url=output.portal_url, note=note, is_named=is_named)


def make(means: Means) -> AmltBackend:
    """Return the service."""
    return AmltBackend(means)
