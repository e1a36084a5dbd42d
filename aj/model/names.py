"""Names and ids: what a job is called, here and at each kind of place.

Two forms. The *plain* form joins a base and the id with `_` and may be long; the *DNS* form follows the
naming rules of Kubernetes and must leave room for what the cluster adds. Only the base is ever cut.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Mapping
from enum import StrEnum

ID_LENGTH = 8
PLAIN_LIMIT = 255  # of a remote job's name
DNS_LIMIT = 63  # of a label, and so of every pod, service and label value
GENERATED = 5  # characters that a cluster adds after the `-` of a generated name
_BASE_MIN = 1
_ID = r"[0-9a-f]{8}\Z"
_PLAIN = r"[a-zA-Z0-9][a-zA-Z0-9_-]{0,254}\Z"
_DNS = r"[a-z](?:[a-z0-9-]*[a-z0-9])?\Z"
_EXPERIMENT = r"[A-Za-z0-9][A-Za-z0-9_-]{0,254}\Z"
_ENV = r"[A-Za-z_][A-Za-z0-9_]*\Z"


class NameStyle(StrEnum):
    """How a place names jobs."""

    PLAIN = "plain"
    DNS = "dns"


def draw(taken: Callable[[str], bool], source: Callable[[int], bytes] = os.urandom) -> str:
    """Draw an id of eight hex characters that is not taken."""
    while True:
        found = source(ID_LENGTH // 2).hex()
        if not taken(found):
            return found


def is_id(text: str) -> bool:
    """Tell whether a text has the form of an id."""
    return bool(re.match(_ID, text))


def is_experiment(text: str) -> bool:
    """Tell whether an experiment may have this name."""
    return bool(re.match(_EXPERIMENT, text))


def is_env(text: str) -> bool:
    """Tell whether an environment variable may have this name."""
    return bool(re.match(_ENV, text))


def base(chosen: str | None, directory: str, stem: str | None) -> str:
    """Return what a name is made of: the chosen word, else the folder's name and the stem of a direct file."""
    if chosen and chosen.strip():
        return chosen
    return f"{directory}_{stem}" if stem else directory


def plain(word: str, job_id: str) -> str:
    """Return the name of a job in the plain form."""
    limit = PLAIN_LIMIT - 1 - len(job_id)
    return f"{_cleaned(word, '[^A-Za-z0-9_-]+', '-_', limit)}_{job_id}"


def dns(word: str, job_id: str, *, limit: int) -> str:
    """Return the stem of a job's names in the DNS form, at most `limit` long (see `stem_limit`)."""
    room = limit - 1 - len(job_id)
    cleaned = _cleaned(_ascii(word).lower(), "[^a-z0-9]+", "-", None)
    if not cleaned[0].isalpha():
        cleaned = f"j-{cleaned}"
    return f"{cleaned[:room].rstrip('-')}-{job_id}"


def stem_limit(tasks: Mapping[str, int]) -> tuple[int, str]:
    """Return how long a stem may be so that every pod's name fits, and the task that decides it.

    `tasks` maps the name of each task to its replicas. A pod is called STEM-xxxxx-TASK-INDEX.
    """
    added = {name: len(name) + 1 + len(str(replicas - 1)) for name, replicas in tasks.items()}
    longest = max(added, key=lambda name: added[name])
    return DNS_LIMIT - 1 - GENERATED - 1 - added[longest], longest


def has_room(limit: int) -> bool:
    """Tell whether a stem of this length holds the id and at least one letter."""
    return limit >= _BASE_MIN + 1 + ID_LENGTH


def is_plain(name: str) -> bool:
    """Tell whether a name has the plain form."""
    return bool(re.match(_PLAIN, name))


def is_dns(name: str) -> bool:
    """Tell whether a name has the DNS form (its length is another matter)."""
    return bool(re.match(_DNS, name))


def _ascii(word: str) -> str:
    """Take the marks off letters: `Ü` gives `U`."""
    parts = unicodedata.normalize("NFKD", word)
    return "".join(letter for letter in parts if not unicodedata.combining(letter))


def _cleaned(word: str, others: str, outer: str, limit: int | None) -> str:
    """Make every run of other characters one `-`, take `outer` off the ends, cut; nothing left gives `job`."""
    cleaned = re.sub(others, "-", _ascii(word)).strip(outer)
    return cleaned[:limit].rstrip(outer) or "job"


LEAST_BEGIN = 4  # characters of an id: 65536 begins, so few jobs rarely share one


def is_begin(word: str, aj_id: str) -> bool:
    """Tell whether a word is the begin of an AJ ID, or of its ticket, and long enough to mean one."""
    begin = word.removeprefix("q-")
    return len(begin) >= LEAST_BEGIN and aj_id.startswith(begin)
