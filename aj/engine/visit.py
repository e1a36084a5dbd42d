"""One question to Azure: on whose behalf, by which settings, and how fresh its answer must be."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TypeVar

from aj.azure import asker, chosen
from aj.azure.arm import Session
from aj.azure.asker import Asker
from aj.azure.chosen import Chosen
from aj.azure.fan import Failure, Gathered
from aj.azure.workplace import Places
from aj.base.clock import rfc3339
from aj.base.errors import AuthError, NotFound, Refused, RemoteError
from aj.base.noun import dataclass
from aj.engine.kept import Held, Shelf, Wish
from aj.store.config import Config
from aj.store.layout import Layout
from aj.wire.azure import FailedPart, Told

T = TypeVar("T")


@dataclass(frozen=True)
class Visit:
    """A caller at Azure. `subscription` narrows what is looked at; `refresh` wants nothing that was kept."""

    session: Session
    config: Config
    layout: Layout
    shelf: Shelf
    subscription: str | None = None
    refresh: bool = False

    @property
    def chosen(self) -> Chosen:
        """What the settings say. Raises ConfigError at file and line."""
        return chosen.read(self.config)

    def places(self) -> tuple[Places, tuple[str, ...]]:
        """Return where to look, and the subscriptions there."""
        places = Places(self.session)
        return places, places.subscriptions(self.subscription)

    def kept(self, kind: type[T], scope: str, fetch: Callable[[], T]) -> Held[T]:
        """Return what was kept for this caller, or fetch it. Raises AuthError, and what fetching raised."""
        who = asker.known(self.session, self.layout.answers)
        wish = Wish(self.config.seconds("quota.max_age"), self.refresh, who.problem)
        return self.shelf.get(kind, self._key(who, scope), fetch, wish)

    def told(self, *held: Held[object], failures: Iterable[FailedPart], warnings: Iterable[str]) -> Told:
        """Say how old an answer is that was put together from several: as old as the oldest."""
        age_s = max((one.age_s for one in held), default=0.0)
        problem = next((one.problem.message for one in held if one.problem is not None), None)
        return Told(
            as_of=rfc3339(self.session.clock.now() - age_s),
            age_s=round(age_s, 3),
            is_stale=any(one.is_stale for one in held),
            problem=problem,
            failures=tuple(failures),
            warnings=tuple(dict.fromkeys(warnings)),
        )

    def _key(self, who: Asker, scope: str) -> str:
        words = (who.key, self.session.tenant or "", self.subscription or "", scope)
        return hashlib.sha256(chr(0).join(words).encode()).hexdigest()[:32]


def parts(failures: Iterable[Failure]) -> tuple[FailedPart, ...]:
    """Return failures as they are told."""
    return tuple(FailedPart(failure.part, failure.error.message, failure.error.code) for failure in failures)


def refuse_silence(found: Gathered[T], doing: str) -> None:
    """Raise RemoteError, or AuthError, when there were parts to ask and none gave an answer."""
    if found.values or not found.failures:
        return
    try:
        found.strictly(doing)
    except AuthError:
        raise
    except (NotFound, Refused) as error:  # what was refused is a part, and not what the caller named
        raise RemoteError(error.message, hint=error.hint, details=error.details) from error
