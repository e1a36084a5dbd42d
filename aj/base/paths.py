"""Where things are: the project directory, and the state, config, cache and runtime folders.

Nothing here creates anything. On Linux the folders follow the XDG variables by hand, because
`platformdirs` costs 20 ms at start; a test holds both to the same answer.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from aj.base.digest import sha256
from aj.base.errors import ConfigError, UserError
from aj.base.noun import dataclass
from aj.base.settings import Settings

PROJECT_FOLDER = ".azure_jobs"
NO_PROJECT = "_none"


@dataclass(frozen=True)
class Folders:
    """The user's own folders. Absolute; they need not exist."""

    config: Path
    state: Path
    cache: Path
    runtime: Path


@dataclass(frozen=True)
class Project:
    """A project: its `.azure_jobs` folder and the folder that holds it."""

    directory: Path

    @property
    def root(self) -> Path:
        return self.directory.parent

    @property
    def key(self) -> str:
        """The name of this project in the state directory: folder name and 12 hex of its real path."""
        real = os.path.realpath(self.directory)
        digest = sha256(os.fsencode(real)).hexdigest()[:12]
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", os.path.basename(os.path.dirname(real))).strip("-.") or "project"
        return f"{name[:40]}-{digest}"


def home(settings: Settings) -> Path | None:
    """Return the home directory, or None when HOME is unset or not absolute."""
    word = settings.get("HOME")
    return Path(word) if word and os.path.isabs(word) else None


def _ours(settings: Settings, variable: str) -> Path | None:
    word = settings.get(variable)
    if word is None:
        return None
    if not os.path.isabs(word):
        raise ConfigError(f"{variable}={word!r} is not an absolute path", hint=f"export {variable}=/…")
    return Path(word)


def _by_platform(settings: Settings, kind: str) -> Path:
    """The platform's folder for `config`, `state` or `cache`."""
    if not sys.platform.startswith("linux"):
        import platformdirs  # 20 ms, off Linux only

        return Path(getattr(platformdirs, f"user_{kind}_dir")("aj", appauthor=False))
    xdg = settings.get(f"XDG_{kind.upper()}_HOME")
    if xdg and os.path.isabs(xdg):
        return Path(xdg) / "aj"
    base = home(settings)
    if base is None:
        # No home at all: a private folder of this user, so that everything offline still works.
        return Path(settings.get("TMPDIR") or "/tmp") / f"aj-{os.getuid()}" / kind
    return base / {"config": ".config", "state": ".local/state", "cache": ".cache"}[kind] / "aj"


def folders(settings: Settings) -> Folders:
    """Return the four folders of this user. Raises ConfigError on a relative `AJ_*_DIR`."""
    state = _ours(settings, "AJ_STATE_DIR") or _by_platform(settings, "state")
    runtime = _ours(settings, "AJ_RUNTIME_DIR")
    if runtime is None:
        xdg = settings.get("XDG_RUNTIME_DIR")
        usable = xdg is not None and os.path.isabs(xdg) and os.path.isdir(xdg)
        runtime = Path(xdg) / "aj" if xdg and usable else state / "run"
    return Folders(
        config=_ours(settings, "AJ_CONFIG_DIR") or _by_platform(settings, "config"),
        state=state,
        cache=_ours(settings, "AJ_CACHE_DIR") or _by_platform(settings, "cache"),
        runtime=runtime,
    )


def working_directory(settings: Settings) -> Path:
    """Return the current directory, also when it was deleted or shut (then `PWD`, which may no longer exist)."""
    try:
        return Path.cwd()
    except OSError:
        return Path(settings.get("PWD") or "/")


def invocation_directory(settings: Settings, chosen: str | None) -> Path:
    """Return the folder that `-C` names, else the working directory. Raises UserError."""
    here = working_directory(settings)
    if chosen is None:
        return here
    there = here / chosen
    if not there.is_dir():
        raise UserError(f"-C {chosen}: no such directory")
    return Path(os.path.abspath(there))


def find_project(settings: Settings, start: Path) -> Project | None:
    """Find the project directory of a folder, or None.

    `AJ_HOME` wins; else the nearest `.azure_jobs` upwards. One that belongs to a user other than
    the caller or root is not used, since its templates would run as us.
    Raises ConfigError when `.azure_jobs` is a plain file.
    """
    chosen = settings.get("AJ_HOME")
    if chosen:
        return Project(Path(os.path.abspath(start / chosen)))
    for folder in (start, *start.parents):
        candidate = folder / PROJECT_FOLDER
        try:
            found = candidate.stat()
        except OSError:
            continue
        if not candidate.is_dir():
            raise ConfigError(f"{candidate} is a file, not a folder", hint="move it away, then `aj init local`")
        if folder != start and found.st_uid not in (os.getuid(), 0):
            continue
        return Project(candidate)
    return None


def need_project(settings: Settings, start: Path) -> Project:
    """Find the project directory. Raises UserError with the way to make one."""
    project = find_project(settings, start)
    if project is None:
        raise UserError(f"no {PROJECT_FOLDER} folder in {start} or above", hint="`aj init local` makes one")
    if not project.directory.is_dir():
        raise UserError(f"the project directory {project.directory} does not exist", hint="`aj init local` makes one")
    return project


def shown(path: Path | str, start: Path) -> str:
    """Write a path relative to the invocation directory when it lies below it."""
    try:
        return str(Path(path).relative_to(start))
    except ValueError:
        return str(path)


def program() -> list[str]:
    """Return the words that start this same program again, isolated from the caller's Python settings."""
    archive = getattr(sys, "_aj_pyz", None)  # set by the boot file of the single-file build
    if archive:
        return [sys.executable, "-IS", str(archive)]
    return [sys.executable, "-I", "-m", "aj"]
