"""What a job would be refused for by Singularity's own rules: known without asking it."""

from __future__ import annotations

from collections.abc import Iterator

from aj.backend.sing import payload
from aj.base.errors import AjError, ConfigError
from aj.base.settings import Settings
from aj.model.commandjob import UNPACKED
from aj.model.job import JobSpec
from aj.store.config import Config
from aj.store.layout import Layout


def refusals(spec: JobSpec, config: Config, settings: Settings, layout: Layout) -> Iterator[AjError]:
    """Yield why no request could be built or sent."""
    try:
        payload.preview(spec, UNPACKED, cloud=config.text("cloud") or "public", accepted_at="")
        if payload.options(spec).workspace_name is None and config.text("workspace.name") is None:
            hint = "write target.workspace_name, or `aj config set workspace.name NAME`"
            yield ConfigError("no workspace is named", hint=hint, code="no-workspace")
    except AjError as error:
        yield error
