"""Who asks: what Azure told one person is never shown to another.

Whoever is signed in is remembered, so that without a network his own answers can still be found. As soon
as somebody else has signed in, what was found out for the first is dropped.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from aj.azure import identity
from aj.azure.arm import Session
from aj.base.errors import RemoteError, Unavailable
from aj.base.noun import dataclass
from aj.store import cache

FOUND_OUT = ("quota", "names", "azure/compute")  # below the folder of answers: what depends on who asked


@dataclass(frozen=True)
class Asker:
    """One person at one cloud. `key` names both, and tells nothing of either."""

    key: str
    problem: Unavailable | None = None

    @property
    def is_offline(self) -> bool:
        """Whether the sign-in service gave no answer, and this is who asked the last time."""
        return self.problem is not None


def known(session: Session, folder: Path) -> Asker:
    """Return who the next request comes from; `folder` is that of kept answers.

    When that is another than the last time, what was found out for the first is dropped. Without a network it
    is who asked the last time. Raises AuthError, and Unavailable when nobody asked yet.
    """
    file = folder / "who" / f"{_digest(session.cloud.name, str(session.cloud.arm), session.tenant or '')}.json"
    last = cache.get(file, clock=session.clock)
    before = last[0] if last is not None and isinstance(last[0], str) else None
    try:
        now = _digest(session.cloud.name, str(session.cloud.arm), *_names(session))
    except Unavailable as error:
        if before is None:
            raise
        return Asker(before, error)
    if now != before:
        if before is not None:
            _drop(folder)
        cache.put(file, now, clock=session.clock)
    return Asker(now)


def _names(session: Session) -> tuple[str, str]:
    """Tenant and object id of a token; of one that does not tell, its very text."""
    try:
        person = identity.whoami(session)
    except RemoteError as error:
        if error.code != "opaque-token":
            raise
        return "", session.tokens.get(session.cloud.arm_scope, tenant=session.tenant).value
    return person.tenant or "", person.object_id or ""


def _drop(folder: Path) -> None:
    for name in FOUND_OUT:
        shutil.rmtree(folder / name, ignore_errors=True)


def _digest(*words: str) -> str:
    return hashlib.sha256(chr(0).join(words).encode()).hexdigest()[:32]
