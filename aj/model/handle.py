"""A handle names one job at one place: `local://jobs/1a2b3c4d`, `volcano://context/namespace/name`."""

from __future__ import annotations

from dataclasses import field
from urllib.parse import quote, unquote

from aj.base.noun import dataclass


@dataclass(frozen=True)
class Handle:
    """Where a submitted job is: the service, the place within it, and the name there.

    `portal_url` is the address where a person can look at it, when the place told one; `uploaded_bytes` is how
    much code left for it just now, None when none goes that way; `note` is what its user should know of it. Without
    `is_named` the place told no name, and `name` is ours.
    """

    service: str
    place: str
    name: str
    portal_url: str | None = field(default=None, compare=False)
    uploaded_bytes: int | None = field(default=None, compare=False)
    note: str | None = field(default=None, compare=False)
    is_named: bool = field(default=True, compare=False)

    def __str__(self) -> str:
        place = "/".join(quote(part, safe="") for part in self.place.split("/"))
        return f"{self.service}://{place}/{quote(self.name, safe='')}"


def parse(text: str) -> Handle:
    """Read what `str(handle)` wrote. Raises ValueError on anything else."""
    service, separator, rest = text.partition("://")
    place, slash, name = rest.rpartition("/")
    if not (service and separator and slash and name):
        raise ValueError(f"`{text}` is not a handle")
    return Handle(service, "/".join(unquote(part) for part in place.split("/")), unquote(name))
