"""Under which credentials a bucket of some name is known: what one needs to hear who looked with another one.

Folders are looked at. Of storage elsewhere it is remembered what was made or reached from here; nobody is asked.
"""

from __future__ import annotations

import os
from pathlib import Path

from aj.base.clock import SYSTEM, Clock
from aj.base.errors import AjError
from aj.model.bucket import HERE, Kind
from aj.store import cache, credentials
from aj.store.layout import Layout


def remember(layout: Layout, bucket: str, credential: str, *, clock: Clock = SYSTEM) -> None:
    """Note that a bucket was seen under a credential. A disk that refuses costs a hint."""
    known = _remembered(layout, bucket)
    if credential != HERE and credential not in known:
        cache.put(_file(layout, bucket), [*known, credential], clock=clock)


def forget(layout: Layout, bucket: str, credential: str, *, clock: Clock = SYSTEM) -> None:
    """Note that a bucket is no longer there under a credential."""
    known = _remembered(layout, bucket)
    if credential in known:
        cache.put(_file(layout, bucket), [name for name in known if name != credential], clock=clock)


def elsewhere(layout: Layout, bucket: str, credential: str | None) -> tuple[str, ...]:
    """Return the other credentials under which there is a bucket of this name, as far as this machine knows."""
    remembered = _remembered(layout, bucket)
    names = (name for name in (HERE, *credentials.names(layout)) if name != (credential or HERE))
    return tuple(name for name in names if name in remembered or _is_in_folder(layout, bucket, name))


def way(layout: Layout, bucket: str, credential: str | None, *, purpose: str | None = None) -> str | None:
    """Return the hint that leads to the bucket of this name under another credential, None where none is known.

    `purpose` is what the bucket was to be to a job.
    """
    found = elsewhere(layout, bucket, credential)
    if not found:
        return None
    option = f"--{purpose}-storage-credentials" if purpose else "--credentials"
    if found[0] == HERE:
        return f"this machine itself has a bucket `{bucket}`: leave out `{option}`"
    return f"`{option} {found[0]}`: there is a bucket `{bucket}`"


def _is_in_folder(layout: Layout, bucket: str, name: str) -> bool:
    try:
        found = credentials.read(layout, name)
    except AjError:
        return False
    return found.kind is Kind.DIR and os.path.isdir(Path(found.root or layout.buckets) / bucket)


def _remembered(layout: Layout, bucket: str) -> list[str]:
    kept = cache.get(_file(layout, bucket))
    return [str(name) for name in kept[0]] if kept and isinstance(kept[0], list) else []


def _file(layout: Layout, bucket: str) -> Path:
    return layout.answers / "buckets" / f"{bucket}.json"
