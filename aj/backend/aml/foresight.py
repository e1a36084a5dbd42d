"""What a job would be refused for by Azure Machine Learning's own rules: known without asking it."""

from __future__ import annotations

from collections.abc import Iterator

from aj.backend.aml import payload
from aj.base.errors import AjError
from aj.base.settings import Settings
from aj.model.commandjob import UNPACKED
from aj.model.job import JobSpec
from aj.store.config import Config
from aj.store.layout import Layout


def refusals(spec: JobSpec, config: Config, settings: Settings, layout: Layout) -> Iterator[AjError]:
    """Yield why no request could be built."""
    try:
        payload.preview(spec, UNPACKED, cloud=config.text("cloud") or "public", accepted_at="")
    except AjError as error:
        yield error
