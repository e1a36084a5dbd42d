"""The desktop of this machine: the command that shows a line on it."""

from __future__ import annotations

import json

from aj.base import proc
from aj.base.errors import AjError


def command(path: str | None, words: str) -> list[str]:
    """Return what shows a line, found on a PATH. Raises AjError when nothing there can."""
    if program := proc.find("notify-send", path):
        return [program, "--app-name=aj", "aj", words]
    if program := proc.find("osascript", path):
        return [program, "-e", f'display notification {json.dumps(words)} with title "aj"']
    raise AjError("desktop: neither notify-send nor osascript is on the daemon's PATH", code="no-desktop")
