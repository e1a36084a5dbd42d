"""Where the names of services lead: each is made at its first use, with what it needs of this house."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from aj.backend import registry
from aj.backend.protocol import Backend, Traits


class Services:
    """The services of one daemon. Safe between threads.

    `native` makes what those in a workspace of Azure need, `own` what a service of that name needs.
    """

    def __init__(self, native: Callable[[], object], own: Mapping[str, Callable[[], object]] | None = None) -> None:
        self._native = native
        self._own = own or {}
        self._guard = threading.Lock()
        self._made: dict[str, Backend] = {}

    def traits(self, service: str) -> Traits:
        """Return the facts about a service. Raises UserError when there is none of that name."""
        return registry.traits(service)

    def backend(self, service: str) -> Backend:
        """Return a handed-off service. Raises UserError for one that takes no jobs."""
        with self._guard:
            if service not in self._made:
                self._made[service] = registry.backend(service, *self._means(service))
            return self._made[service]

    def _means(self, service: str) -> tuple[object, ...]:
        if registry.traits(service).native:
            return (self._native(),)
        return (self._own[service](),) if service in self._own else ()
