"""Notices on their way out of this machine's memory: a command line, a web address, the desktop.

Each is tried once and has a limit. What is told holds the job, its states and its reason, and never a variable
of the job or a secret; the address of a web hook is a secret itself, and no error shows more than its host.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from aj.base import desktop, proc, redact
from aj.base.clock import Clock
from aj.base.errors import AjError
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.model.json import Json
from aj.model.watch import COMMAND, WEBHOOK, Watch, Way
from aj.net import http
from aj.net.http import Request, Transport

LIMIT_S = 30.0  # for a command: who needs longer starts something of its own


@dataclass(frozen=True)
class Notice:
    """One move of a job. `before` is None when it is seen for the first time."""

    watch: Watch
    before: str | None

    @property
    def payload(self) -> Mapping[str, Json]:
        """What is told, as JSON values."""
        watch = self.watch
        return {
            "id": watch.id,
            "name": watch.name,
            "project": watch.project,
            "state": watch.state,
            "before": self.before,
            "final": watch.is_over,
            "message": redact.text(watch.message) if watch.message else None,
            "at": watch.changed_at,
        }

    @property
    def words(self) -> str:
        """The same in one line."""
        watch = self.watch
        return f"{watch.name} is {watch.state}" + (f": {redact.text(watch.message)}" if watch.message else "")


class Notifier:
    """Sends notices. Safe between threads. `connect` makes the transport of web hooks when one is first needed."""

    def __init__(self, settings: Settings, clock: Clock, connect: Callable[[], Transport] | None = None) -> None:
        self._settings = settings
        self._connect = connect or (lambda: http.connect(settings, clock))
        self._transport: Transport | None = None

    def send(self, way: Way, notice: Notice) -> None:
        """Send a notice, once. Raises AjError when it did not arrive, or may not have."""
        if way.kind == COMMAND:
            self._run(["/bin/sh", "-c", way.value], notice, str(way))
        elif way.kind == WEBHOOK:
            self._post(way, notice)
        else:
            self._run(desktop.command(self._settings.get("PATH"), notice.words), notice, "desktop")

    def _run(self, words: list[str], notice: Notice, shown: str) -> None:
        env = {name: value for name, value in self._settings.env.items() if not redact.is_secret_name(name)}
        told = {f"AJ_WATCH_{name.upper()}": _word(value) for name, value in notice.payload.items()}
        text = json.dumps(notice.payload, ensure_ascii=False).encode() + b"\n"
        root = Path(notice.watch.folder).parent if notice.watch.folder else None
        folder = root if root and root.is_dir() else None
        try:
            ran = proc.run(words, cwd=folder, env={**env, **told}, stdin=text, timeout_s=LIMIT_S)
        except OSError as error:  # it cannot start, or its time is over
            raise AjError(f"{shown}: {error.strerror or error}", code="notify-failed") from error
        if ran.code != 0:
            last = redact.text(ran.err.decode(errors="replace").strip().rpartition("\n")[2])
            raise AjError(
                f"{shown} ended with exit code {ran.code}" + (f": {last}" if last else ""), code="notify-failed"
            )

    def _post(self, way: Way, notice: Notice) -> None:
        redact.hide(way.value)
        body = json.dumps({"text": notice.words, **notice.payload}, ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json"}
        self._transport = self._transport or self._connect()
        doing = f"send a notice to {way}"
        self._transport.send(Request("POST", way.value, doing, headers, body, http.QUICK, is_answer_read=False))


def _word(value: Json) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)
