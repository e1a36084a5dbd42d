"""The door of the single file: find the unpacked program, or unpack it, and walk in.

A part of the program lives unpacked in a folder of the user's cache, named by its content. It
appears there whole, by one rename. Whoever runs from it holds a shared lock on its file `.use`,
and nobody removes a folder without holding that lock alone. What only the first run of a build
needs stands in `unpack.py` beside it: this file is compiled at every start.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False  # importing `typing` for it would cost each start a few milliseconds
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType
    from typing import NoReturn

# "311-linux-x86_64" -> {"core": content id, "cloud": content id}; filled in by zipapp.py
PARTS: Mapping[str, Mapping[str, str]] = {}

DAY_S = 24 * 3600


def complain(line: str, hint: str | None = None) -> None:
    """Say on stderr what is wrong, and the next step."""
    if sys.stderr is not None:
        sys.stderr.write(f"aj: {line}\n" + (f"hint: {hint}\n" if hint else ""))


def platform() -> str:
    """Return the word for this operating system and processor, such as `linux-x86_64`."""
    system = "macos" if sys.platform == "darwin" else sys.platform
    # A 32-bit Python on a 64-bit kernel is told the kernel's machine.
    return f"{system}-{os.uname().machine if sys.maxsize > 2**32 else '32bit'}"


def tag() -> str:
    """Return the word for this Python on this platform, such as `311-linux-x86_64`."""
    kind = "" if sys.implementation.name == "cpython" else sys.implementation.name
    threads = "t" if "t" in sys.abiflags else ""  # without the GIL compiled modules differ
    return f"{kind}{sys.version_info[0]}{sys.version_info[1]}{threads}-{platform()}"


def cache_folder(environ: Mapping[str, str]) -> str | None:
    """Return the user's cache folder of aj, or None when AJ_CACHE_DIR is not absolute.

    The same answer as `aj.base.paths`, which cannot be asked before it is unpacked.
    """
    chosen = environ.get("AJ_CACHE_DIR")
    if chosen:
        return chosen if os.path.isabs(chosen) else None
    xdg = environ.get("XDG_CACHE_HOME") or ""
    if os.path.isabs(xdg):
        return os.path.join(xdg, "aj")
    home = environ.get("HOME") or ""
    if not os.path.isabs(home):
        return os.path.join(environ.get("TMPDIR") or "/tmp", f"aj-{os.getuid()}", "cache")
    return os.path.join(home, "Library/Caches/aj" if sys.platform == "darwin" else ".cache/aj")


def distrust(cache: str) -> str | None:
    """Return why no program may run from a cache folder, or None."""
    try:
        found = os.stat(cache)
    except OSError:
        return None  # not there, or not to be reached: then nothing runs from it either
    if found.st_uid != os.getuid():
        return f"belongs to another user (uid {found.st_uid})"
    if found.st_mode & 0o022:
        return f"can be written by other users (mode {found.st_mode & 0o777:03o})"
    return None


def hold(folder: str) -> bool:
    """Mark an unpacked folder as used until this process ends; False when it is not there."""
    import fcntl

    try:
        mark = os.open(os.path.join(folder, ".use"), os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(mark, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(mark)  # it is being removed right now
        return False
    except OSError:
        pass  # a file system without locks: there nothing is ever removed
    found = os.fstat(mark)
    if found.st_nlink == 0:
        os.close(mark)  # it was removed between the two calls above
        return False
    try:
        if found.st_mtime < time.time() - DAY_S:
            os.utime(mark)
    except OSError:
        pass  # a cache that is read-only by now can still be run from
    return True


class Parts:
    """The parts of one file for one Python. Each is unpacked when it is first opened."""

    def __init__(self, archive: str, tag: str, cache: str) -> None:
        self.archive = archive
        self.tag = tag
        self.cache = cache
        self.seen = self.fingerprint()

    def fingerprint(self) -> tuple[int, int, int, int]:
        found = os.stat(self.archive)
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def open(self, group: str) -> str | None:
        """Return the folder of a part, or None when this file has no such part. Raises OSError."""
        content = PARTS[self.tag].get(group)
        if content is None:
            return None
        name = f"{content}-{self.tag}" if group == "core" else f"{content}-{self.tag}-{group}"
        folder = os.path.join(self.cache, name)
        if distrust(self.cache) is None and hold(folder):
            return folder
        if self.fingerprint() != self.seen:
            raise OSError(f"{self.archive} was replaced while this process ran")
        unpack = machinery()
        source = unpack.Source(self.archive, self.tag, group, name)
        folder = str(unpack.first_use(source, self.cache, hold, distrust))
        self.cache = os.path.dirname(folder)  # a private folder, when the cache cannot be used
        return folder


def machinery() -> ModuleType:
    """Import `unpack.py` out of the file, which is no longer on the module path once the program runs."""
    from importlib.util import module_from_spec

    spec = __loader__.find_spec("unpack")  # type: ignore[name-defined]
    module: ModuleType = module_from_spec(spec)
    sys.modules["unpack"] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    return module


def library_path() -> list[str]:
    """Return the module path of the standard library, without anything of the user's own Python."""
    library = os.path.dirname(os.__file__)
    frozen = f"python{sys.version_info[0]}{sys.version_info[1]}.zip"
    return [at for at in sys.path if at == library or os.path.basename(at) in ("lib-dynload", frozen)]


def start(archive: str) -> int:
    """Find or unpack the program and run it. Returns the exit code only when it cannot be started."""
    mine = tag()
    if mine not in PARTS:
        complain(
            f"{archive} holds no program for Python {mine}, only for {', '.join(sorted(PARTS))}",
            f"`python3.12 {archive}` if there is one, or build with `python3 zipapp.py --all`",
        )
        return 2
    cache = cache_folder(os.environ)
    if cache is None:
        complain(f"AJ_CACHE_DIR={os.environ['AJ_CACHE_DIR']!r} is not an absolute path", "export AJ_CACHE_DIR=/…")
        return 2
    sys.path[:] = library_path()
    try:
        parts = Parts(archive, mine, cache)
        root = parts.open("core")
    except OSError as error:
        complain(f"cannot unpack {archive}: {error}", getattr(error, "hint", None))
        return 1
    except KeyboardInterrupt:
        return 130
    assert root is not None  # every tag has a core
    return walk_in(root, parts)


def walk_in(root: str, parts: Parts) -> NoReturn:
    """Run the program as an installed one is run, and end the process."""
    sys.path.insert(0, root)
    sys._aj_pyz = parts.archive  # type: ignore[attr-defined]
    sys._aj_open = parts.open  # type: ignore[attr-defined]
    from aj.main import console

    console()
