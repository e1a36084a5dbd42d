"""HTTP over a Unix socket: one request, one answer, and exactly how far it got when it fails.

A caller that changed something must know whether the other side may have acted. So a failure is one
of four: NotSent (the whole request never left, so nothing happened), Lost (it left, and the answer
did not come), Silent (a Lost for want of any sign of life) and Nonsense (what answered is not ours).
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from aj.base.noun import dataclass

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

CONNECT_S = 2.0
# LOCAL_PEERCRED of <sys/un.h> on macOS, where Python has no name for it: level 0, a struct xucred.
_MAC_PEERCRED = (0, 1)


class NotSent(Exception):
    """Nobody took the whole request, so nothing happened. `absent` when nobody listens at all."""

    def __init__(self, words: str, *, absent: bool = False) -> None:
        super().__init__(words)
        self.absent = absent


class Lost(Exception):
    """The request was sent and no whole answer came."""


class Silent(Lost):
    """There was no sign of life for too long."""


class Nonsense(Exception):
    """What listens there is not ours: another owner, too wide a mode, or no HTTP."""


@dataclass(frozen=True)
class Answer:
    """One whole answer. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def peer_uid(connection: socket.socket) -> int:
    """Return the user at the other end of a Unix socket. Raises OSError."""
    if sys.platform == "darwin":
        raw = connection.getsockopt(*_MAC_PEERCRED, 8)
        return int(struct.unpack("II", raw)[1])
    _pid, uid, _gid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(uid)


def check(path: Path) -> None:
    """Look whether a socket of ours stands there. Raises NotSent when none does, Nonsense when it is not ours."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        raise NotSent(f"no socket at {path}", absent=True) from None
    except OSError as error:
        raise NotSent(f"{path}: {error.strerror}") from error
    if not stat.S_ISSOCK(found.st_mode):
        raise Nonsense(f"{path} is not a socket")
    if found.st_uid != os.getuid():
        raise Nonsense(f"{path} belongs to user {found.st_uid}")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise Nonsense(f"{path} is open to other users (mode {stat.S_IMODE(found.st_mode):04o})")


def dial(path: Path) -> socket.socket:
    """Connect within two seconds. Raises NotSent or Nonsense."""
    check(path)
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        line.settimeout(CONNECT_S)
        line.connect(os.fsencode(path))
        owner = peer_uid(line)
    except (ConnectionRefusedError, FileNotFoundError):
        line.close()
        raise NotSent(f"nobody listens at {path}", absent=True) from None
    except OSError as error:
        line.close()
        raise NotSent(f"{path}: {error.strerror or error}") from error
    if owner != os.getuid():
        line.close()
        raise Nonsense(f"user {owner} listens at {path}")
    return line


class Wire:
    """Connections to one socket: a fresh one for each change, a kept one for reads. Not for several threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: HTTPConnection | None = None

    def read(self, target: str, headers: Mapping[str, str], *, silence_s: float) -> Answer:
        """Ask for something. Asked once more when the kept connection had been closed meanwhile."""
        kept, self._kept = self._kept, None
        if kept is not None:
            try:
                return self._keep(kept, _exchange(kept, "GET", target, headers, None, silence_s))
            except Silent:
                raise
            except (NotSent, Lost):
                pass  # the other side closes an idle connection: normal
        fresh = self._connection()
        return self._keep(fresh, _exchange(fresh, "GET", target, headers, None, silence_s))

    def change(self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, silence_s: float) -> Answer:
        """Ask for a change, over a connection of its own, exactly once."""
        fresh = self._connection()
        try:
            return _exchange(fresh, method, target, headers, body, silence_s)
        finally:
            fresh.close()

    def stream(self, target: str, headers: Mapping[str, str], *, silence_s: float) -> Stream:
        """Open an answer that goes on; its lines come as they are written."""
        fresh = self._connection()
        try:
            return Stream(fresh, _begin(fresh, "GET", target, headers, None, silence_s))
        except (NotSent, Lost, Nonsense):
            fresh.close()
            raise

    def close(self) -> None:
        """Hang up."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _connection(self) -> HTTPConnection:
        import http.client  # 30 ms, only where somebody really calls

        connection = http.client.HTTPConnection("localhost")
        connection.sock = dial(self._path)
        connection.auto_open = 0
        return connection

    def _keep(self, connection: HTTPConnection, answer: Answer) -> Answer:
        if connection.sock is not None:
            self._kept = connection
        return answer


class Stream:
    """An answer that is still being written."""

    def __init__(self, connection: HTTPConnection, response: HTTPResponse) -> None:
        self._connection = connection
        self._response = response
        self.status = response.status

    def lines(self) -> Iterator[bytes]:
        """Yield lines until the other side ends. Raises Silent or Lost."""
        while True:
            try:
                line = self._response.readline()
            except TimeoutError:
                raise Silent("no sign of life") from None
            except OSError as error:
                raise Lost(str(error)) from error
            if not line:
                return
            yield line

    def rest(self) -> bytes:
        """Return what is left as a whole."""
        return b"".join(self.lines())

    def close(self) -> None:
        """Hang up."""
        self._response.close()
        self._connection.close()


def _exchange(
    connection: HTTPConnection,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes | None,
    silence_s: float,
) -> Answer:
    """Send one request and read the whole answer; the connection is closed on any failure."""
    import http.client

    try:
        response = _begin(connection, method, target, headers, body, silence_s)
        whole = response.read()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, whole)
    except TimeoutError:
        connection.close()
        raise Silent(f"no sign of life for {silence_s:g} s") from None
    except (http.client.IncompleteRead, OSError) as error:
        connection.close()
        raise Lost(str(error)) from error
    except (NotSent, Lost, Nonsense):
        connection.close()
        raise


def _begin(
    connection: HTTPConnection,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes | None,
    silence_s: float,
) -> HTTPResponse:
    """Send one request and read the head of its answer, passing over signs of life before it."""
    import http.client

    if connection.sock is None:
        raise NotSent("the connection was closed")
    connection.sock.settimeout(silence_s)
    sent = True
    try:
        connection.request(method, target, body=body, headers=dict(headers))
    except TimeoutError:
        raise NotSent("the request was not taken in time") from None
    except OSError:
        sent = False  # it may have been refused with a word: look for it
    try:
        return connection.getresponse()
    except TimeoutError:
        raise Silent(f"no sign of life for {silence_s:g} s") from None
    except (http.client.RemoteDisconnected, OSError) as error:
        raise (Lost(str(error)) if sent else NotSent(str(error))) from error
    except http.client.ResponseNotReady as error:
        raise NotSent(str(error)) from error
    except http.client.HTTPException as error:
        raise Nonsense(f"{type(error).__name__}: {str(error)[:80]!r}") from error
