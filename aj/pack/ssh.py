"""Files of `~/.ssh` that a template lists: they travel with the code, in a folder of their own, and none else does.

A private key is known by what is in it, and stays here unless the template says in a second word that it may go.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from aj.base import text
from aj.base.errors import UserError
from aj.model.code import CodePlan, CodeWarning
from aj.pack.archive import NOTHING, Generated
from aj.pack.content import PIECE

FOLDER = ".ssh"
MODE = 0o600
_PRIVATE = b"PRIVATE KEY-----"  # ends the first line of a key, whatever its kind


def payload(plan: CodePlan, home: Path | None) -> Generated:
    """Read the listed files, each to go to `.ssh/NAME`. Raises UserError naming one that cannot go."""
    if not plan.ssh:
        return NOTHING
    if home is None:
        raise UserError("`code.ssh` lists files of ~/.ssh, and HOME is not set", hint="`aj daemon restart` with HOME")
    return {f"{FOLDER}/{name}".encode(): (_read(plan, home / FOLDER / name), MODE) for name in plan.ssh}


def warnings(found: Generated) -> tuple[CodeWarning, ...]:
    """Name each of these files, so that nobody is surprised."""
    begin = f"{FOLDER}/".encode()
    return tuple(
        _warning(text.decoded(path), _is_private(data)) for path, (data, _) in found.items() if path.startswith(begin)
    )


def _warning(path: str, is_private: bool) -> CodeWarning:
    if is_private:
        return CodeWarning(
            "private-key", f"the private key ~/{path} travels, and stays readable where the code is kept"
        )
    return CodeWarning("ssh-file", f"~/{path} travels with the code (`code.ssh`)")


def _read(plan: CodePlan, path: Path) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # never waits for a pipe's other end
        try:
            is_file = stat.S_ISREG(os.fstat(handle).st_mode)
            data = os.read(handle, PIECE + 1) if is_file else b""
        finally:
            os.close(handle)
    except OSError as error:
        raise UserError(
            f"{path}, which `code.ssh` lists, cannot be read: {error.strerror}", code="no-ssh-file"
        ) from None
    if not is_file or len(data) > PIECE:
        raise UserError(f"{path}, which `code.ssh` lists, is no small file", code="no-ssh-file")
    if _is_private(data) and not plan.ssh_private_keys:
        hint = "write `ssh_private_keys: true` beside it if it must travel"
        raise UserError(f"{path}, which `code.ssh` lists, is a private key", code="private-key", hint=hint)
    return data


def _is_private(data: bytes) -> bool:
    return _PRIVATE in data
