"""A journal record: one line of history about one submission. The last line of an id holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from aj.base.noun import dataclass
from aj.model.code import CodeRef
from aj.model.job import Shape
from aj.model.json import Json
from aj.model.ticket import Fault


class RecordState(StrEnum):
    """How far a submission got."""

    INTENDED = "intended"
    SUBMITTED = "submitted"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Record:
    """One line of the journal. Names of environment variables only, never a value."""

    ts: str
    id: str
    ticket: str
    mode: str
    state: RecordState
    project: str | None
    template: str
    service: str
    name: str
    outcome: str | None = None
    azure_name: str | None = None
    handle: str | None = None
    portal_url: str | None = None
    experiment: str | None = None
    target: Mapping[str, Json] = field(default_factory=dict)
    sku: str | None = None
    shape: Shape | None = None
    image: str | None = None
    command: str = ""
    env_names: tuple[str, ...] = ()
    code: CodeRef | None = None
    git: Mapping[str, Json] | None = None
    error: Fault | None = None
    note: str | None = None
    agent: str | None = None
    session: str | None = None
    session_title: str | None = None
    version: str = ""
    schema_version: int = 1
