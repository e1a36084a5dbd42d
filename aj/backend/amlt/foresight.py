"""What a job would be refused for before amlt is called; whether the daemon finds amlt, only the daemon knows."""

from __future__ import annotations

from collections.abc import Iterator

from aj.backend.amlt import backend
from aj.base.errors import AjError, UserError
from aj.base.settings import Settings
from aj.model.job import JobSpec
from aj.store.config import Config
from aj.store.layout import Layout


def refusals(spec: JobSpec, config: Config, settings: Settings, layout: Layout) -> Iterator[AjError]:
    """Yield why amlt could not be called."""
    try:
        if spec.project is None:
            raise UserError("amlt needs a project", hint="`aj init`")
        backend.experiment_of(spec)
        backend.limit_s(settings)
    except AjError as error:
        yield error
