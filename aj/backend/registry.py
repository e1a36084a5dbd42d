"""The services that `aj` knows, by name. Naming them imports none of them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from aj.backend.protocol import Traits
from aj.base import text
from aj.base.errors import UserError
from aj.base.noun import dataclass

if TYPE_CHECKING:
    from aj.backend.protocol import Backend, Foresight, Manifest, Preview
    from aj.template.service import Parser


@dataclass(frozen=True)
class Entry:
    """One service: the folder of its rooms, a line for help pages, and its facts."""

    module: str
    says: str
    traits: Traits


ENTRIES: Mapping[str, Entry] = {
    "local": Entry(
        "aj.backend.local",
        "this machine",
        Traits(driven=True, moves_code=True, is_local=True),
    ),
    "aml": Entry(
        "aj.backend.aml",
        "Azure Machine Learning computes",
        Traits(driven=False, moves_code=True, native=True, needs_experiment=True),
    ),
    "sing": Entry(
        "aj.backend.sing",
        "Singularity virtual clusters",
        Traits(driven=False, moves_code=True, native=True, needs_experiment=True),
    ),
    "volcano": Entry(
        "aj.backend.volcano",
        "gangs of pods on Kubernetes",
        Traits(driven=False, moves_code=True, manifest=True),
    ),
    "amlt": Entry(
        "aj.backend.amlt",
        "the external amlt program",
        Traits(driven=False, moves_code=False, answers=False, needs_experiment=True),
    ),
}


def entry(service: str) -> Entry:
    """Return the entry of a service. Raises UserError with the nearest name."""
    if service in ENTRIES:
        return ENTRIES[service]
    near = text.nearest(service, ENTRIES)
    hint = f"`{near}` is the nearest name" if near else f"known: {', '.join(ENTRIES)}"
    raise UserError(f"no service is called `{service}`", hint=hint)


def traits(service: str) -> Traits:
    """Return the facts about a service. Raises UserError for an unknown one."""
    return entry(service).traits


def options(service: str) -> Parser:
    """Return what reads a template's options for a service. Raises UserError for an unknown one."""
    room = importlib.import_module(f"{entry(service).module}.options")
    return cast("Parser", room.parse)


def preview(service: str) -> Preview:
    """Return what builds the body of a native service's request without asking anybody. Raises UserError."""
    room = importlib.import_module(f"{entry(service).module}.payload")
    return cast("Preview", room.preview)


def manifest(service: str) -> Manifest:
    """Return what builds the objects of a service of Kubernetes without asking anybody. Raises UserError."""
    room = importlib.import_module(f"{entry(service).module}.known")
    return cast("Manifest", room.manifest)


def foresight(service: str) -> Foresight:
    """Return what tells why a job would be refused, without asking anybody. Raises UserError for an unknown one."""
    room = importlib.import_module(f"{entry(service).module}.foresight")
    return cast("Foresight", room.refusals)


def backend(service: str, *means: object) -> Backend:
    """Make a service that jobs are handed to, with the means that its room asks for.

    Raises UserError for one that takes none.
    """
    found = entry(service)
    if found.traits.driven:
        raise UserError(f"jobs of `{service}` are run by aj itself and handed to nobody")
    if not found.traits.submits:
        hint = "`aj template validate` checks it, `aj run -d` renders it"
        raise UserError(f"`{service}` cannot be submitted to yet", hint=hint, code="not-submitted")
    room = importlib.import_module(f"{found.module}.backend")
    return cast("Backend", room.make(*means))
