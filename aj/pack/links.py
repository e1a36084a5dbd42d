"""Which links may travel: those whose target stays in the tree. Decided from the selection alone, without the disk.

A link is never followed on the disk: what is not selected is not in the archive either, so a target that the
selection does not know is simply missing there.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from enum import StrEnum

MAX_HOPS = 40  # as the kernel: more links on one way are a loop


class Fate(StrEnum):
    """Where a link leads."""

    INSIDE = "inside"
    MISSING = "missing"
    LOOP = "loop"
    ABSOLUTE = "absolute"
    OUTSIDE = "outside"

    @property
    def leaves(self) -> bool:
        return self in (Fate.ABSOLUTE, Fate.OUTSIDE)


def fate(link: bytes, targets: Mapping[bytes, bytes], selected: Set[bytes], *, boundary: bytes = b"") -> Fate:
    """Follow a link through the selection.

    `selected` holds paths from the root, folders with a final slash. The way may not leave `boundary`, a folder
    given with its final slash.
    """
    if targets[link].startswith(b"/"):
        return Fate.ABSOLUTE
    limit = boundary.count(b"/")
    hops = 0
    missing = False
    at = link.split(b"/")[:-1]
    to_do = targets[link].split(b"/")[::-1]
    while to_do:
        name = to_do.pop()
        if name in (b"", b"."):
            continue
        if name == b"..":
            if len(at) <= limit:
                return Fate.OUTSIDE
            at.pop()
            continue
        at.append(name)
        path = b"/".join(at)
        if missing or path not in targets:
            # From a missing place on, only the way up can still be followed.
            missing |= path + b"/" not in selected and (path not in selected or any(to_do))
            continue
        hops += 1
        if hops > MAX_HOPS:
            return Fate.LOOP
        if targets[path].startswith(b"/"):
            return Fate.ABSOLUTE
        at.pop()
        to_do += targets[path].split(b"/")[::-1]
    return Fate.MISSING if missing else Fate.INSIDE
