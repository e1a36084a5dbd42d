"""What amlt prints, read for what a user wants to keep: the name of the job it made, and where to look at it."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping

from aj.base import redact

KEPT_LINES = 20  # of the end of the output, for an error
SHORTEST_SECRET = 4  # a shorter value would mask ordinary words
_PORTAL = re.compile(r"https://(?:[a-z0-9-]+\.)*(?:ml|portal)\.azure\.com(?=[/?#\s]|$)[^\s\"'<>`|\x1b]*", re.IGNORECASE)
_RUN = re.compile(r"/(?:runs|experiments/[^/?#]+/runs)/(?P<name>[A-Za-z0-9][A-Za-z0-9_-]{0,254})(?=[/?#]|$)")
_NAMED = re.compile(
    r"(?:^|[\s(])(?:job|run|azure)[ _-]?(?:name|id)\s*[:=]\s*[\"'`]?"
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9_-]{0,254})(?![\w./-])",
    re.IGNORECASE,
)
_COLOUR = re.compile(r"\x1b\[[0-9;:?]*[A-Za-z]")


class Output:
    """The lines of one run, without secrets. `env` are the variables of the job: secret values are masked."""

    def __init__(self, env: Mapping[str, str]) -> None:
        secrets = {value for name, value in env.items() if redact.is_secret_name(name)}
        self._secrets = sorted((one for one in secrets if len(one) >= SHORTEST_SECRET), key=len, reverse=True)
        self._last: deque[str] = deque(maxlen=KEPT_LINES)
        self.portal_url: str | None = None
        self.name: str | None = None

    def take(self, line: str) -> str:
        """Take a line in, and return it as it may be told."""
        for secret in self._secrets:
            line = line.replace(secret, redact.MASK)
        line = redact.text(_COLOUR.sub("", line)).rstrip()
        self._last.append(line)
        link = _PORTAL.search(line)
        if link and self.portal_url is None:
            self.portal_url = link[0].rstrip(".,;:)]}")
        self.name = self.name or _name(line, link[0] if link else "")
        return line

    @property
    def shows_a_job(self) -> bool:
        """Whether amlt named a job or told where it is, so that there may be one whatever happened then."""
        return self.name is not None or self.portal_url is not None

    @property
    def last(self) -> tuple[str, ...]:
        """The last lines."""
        return tuple(self._last)


def _name(line: str, link: str) -> str | None:
    found = _RUN.search(link) or _NAMED.search(line)
    return found["name"] if found else None
