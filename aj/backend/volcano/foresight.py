"""What a job would be refused for before a cluster is asked: what its objects cannot say."""

from __future__ import annotations

from collections.abc import Iterator

from aj.backend.volcano import known
from aj.base.errors import AjError
from aj.base.settings import Settings
from aj.model.commandjob import UNPACKED
from aj.model.job import JobSpec
from aj.store.config import Config
from aj.store.layout import Layout

SOME_TIME = "2000-01-01T00:00:00.000000+00:00"  # stands for the moment of the submission, which decides nothing


def refusals(spec: JobSpec, config: Config, settings: Settings, layout: Layout) -> Iterator[AjError]:
    """Yield why no objects could be built."""
    digest, archive = UNPACKED.digest, UNPACKED.archive_sha256
    try:
        known.manifest(spec, config, settings, digest=digest, archive_sha256=archive, accepted_at=SOME_TIME)
    except AjError as error:
        yield error
