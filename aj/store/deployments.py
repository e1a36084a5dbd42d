"""Deployments on disk: one folder each, with what was asked for and a folder for every replica.

    deployments/NAME/record.json        what was asked for, with values; replaced as a whole
                     replicas/0/start.json     its newest start
                                attempts/N/    what passes between the daemon and the supervisor of start N
                                logs/N/        output of start N
                                token          by which its program speaks to the daemon; renewed by the daemon
                                work/          a folder of its own
                .key                    what tokens are signed with

A deployment's folder appears whole or not at all. Only the daemon that owns the deployments writes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from aj.base.errors import AjError, NotFound, Refused, UserError
from aj.model.deployment import Deployment, Start
from aj.store import atomic, jobs
from aj.store.layout import Layout
from aj.wire import codec

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z", re.ASCII)
_NEW, _GONE = ".new-", ".gone-"  # a folder being made, and one being removed
KEY_BYTES = 32

T = TypeVar("T")
Told = Callable[[str], None]


def check_name(name: str) -> str:
    """Return the name. Raises UserError when it cannot name a deployment."""
    if not NAME.match(name):
        hint = "small letters, digits and `-`, at most 63, a letter or digit at both ends"
        raise UserError(f"`{name}` is not a name of a deployment", hint=hint, code="bad-name")
    return name


def folder(layout: Layout, name: str) -> Path:
    """Return where a deployment stands."""
    return layout.deployments / name


def replica(layout: Layout, name: str, slot: int) -> Path:
    """Return the folder of one replica."""
    return folder(layout, name) / "replicas" / str(slot)


def create(layout: Layout, deployment: Deployment) -> None:
    """Make the folder of a new deployment, durably and exclusively. Raises Refused when there is one, AjError."""
    target = folder(layout, check_name(deployment.name))
    atomic.make_folder(layout.deployments)
    beside = layout.deployments / f"{_NEW}{deployment.name}-{os.urandom(4).hex()}"
    try:
        atomic.make_folder(beside / "replicas")
        atomic.write_json(beside / "record.json", codec.dump(deployment))
        os.rename(beside, target)  # fails on a folder that is there and not empty
        atomic.sync_folder(layout.deployments)
    except OSError as error:
        if target.exists():
            raise taken(deployment.name) from error
        raise atomic.cannot_write(target, error) from error
    finally:
        jobs.remove_tree(beside)


def taken(name: str) -> Refused:
    """Say that there is a deployment of this name."""
    hint = f"`aj deployment upgrade {name}` changes it"
    return Refused(f"there is a deployment `{name}` already", code="deployment-exists", hint=hint)


def missing(name: str) -> NotFound:
    """Say that there is no such deployment."""
    hint = "`aj deployment list` shows them"
    return NotFound(f"no deployment `{name}`", code="no-such-deployment", hint=hint, details={"deployment": name})


def save(layout: Layout, deployment: Deployment) -> None:
    """Replace what was asked for, durably. Raises AjError; the old record then stays."""
    atomic.write_json(folder(layout, deployment.name) / "record.json", codec.dump(deployment))


def listing(layout: Layout, told: Told) -> list[Deployment]:
    """Read all of them, by name; a damaged one is told and hides no other."""
    found = []
    for name in _names(layout):
        try:
            found.append(_read(folder(layout, name) / "record.json", Deployment))
        except FileNotFoundError:
            continue  # it was removed between the listing and the look
        except AjError as error:
            told(error.message)
    return found


def sweep(layout: Layout) -> None:
    """Remove what a crash left of deployments that were being made or removed. Only for their owner."""
    if not layout.deployments.is_dir():
        return
    for name in os.listdir(layout.deployments):
        if name.startswith((_NEW, _GONE)):
            jobs.remove_tree(layout.deployments / name)
    for name in _names(layout):
        atomic.sweep(folder(layout, name))


def _names(layout: Layout) -> list[str]:
    try:
        return sorted(name for name in os.listdir(layout.deployments) if NAME.match(name))
    except FileNotFoundError:
        return []


def remove(layout: Layout, name: str) -> None:
    """Remove a deployment with its logs. It disappears at once, also when the removal is cut off. Raises AjError."""
    gone = layout.deployments / f"{_GONE}{name}-{os.urandom(4).hex()}"
    try:
        os.rename(folder(layout, name), gone)
        atomic.sync_folder(layout.deployments)
    except FileNotFoundError:
        return
    except OSError as error:
        raise atomic.cannot_write(folder(layout, name), error) from error
    jobs.remove_tree(gone)


def save_start(layout: Layout, name: str, slot: int, start: Start) -> None:
    """Note the newest start of a replica, durably. Raises AjError."""
    place = atomic.make_folder(replica(layout, name, slot))
    atomic.write_json(place / "start.json", codec.dump(start))


def starts(layout: Layout, name: str, told: Told) -> dict[int, Start]:
    """Read the newest start of every replica that ever was, by slot."""
    found: dict[int, Start] = {}
    base = folder(layout, name) / "replicas"
    for word in sorted(os.listdir(base)) if base.is_dir() else ():
        if word.isdecimal():
            found[int(word)] = _start(base / word, told)
    return found


def _start(place: Path, told: Told) -> Start:
    """Read one start; where it cannot be read, the folders of its attempts tell its number."""
    try:
        return _read(place / "start.json", Start)
    except FileNotFoundError:
        return Start()
    except AjError as error:
        told(error.message)
        numbers = [int(path.name) for path in (place / "attempts").glob("[0-9]*") if path.name.isdecimal()]
        return Start(attempt=max(numbers, default=0))


def _read(path: Path, kind: type[T]) -> T:
    """Read one file of ours. Raises FileNotFoundError, AjError when it cannot be read or is damaged."""
    try:
        return codec.load(kind, json.loads(path.read_bytes()), where=str(path), lenient=True)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise AjError(f"{path}: {error.strerror}", code="unreadable-record") from error
    except (ValueError, RecursionError, UserError) as error:
        raise AjError(f"{path} is damaged: {error}", code="damaged-record") from error


def key(layout: Layout) -> bytes:
    """Return what tokens are signed with, drawn when there is none. Only for the owner. Raises AjError."""
    path = layout.deployments / ".key"
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        found = b""
    except OSError as error:
        raise AjError(f"{path}: {error.strerror}", code="unreadable-record") from error
    if len(found) == KEY_BYTES:
        return found
    drawn = os.urandom(KEY_BYTES)
    atomic.make_folder(layout.deployments)
    atomic.write_bytes(path, drawn)
    return drawn
