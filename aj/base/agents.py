"""Which coding agent calls, in which session of its own, and what that session is called.

Told from the environment alone, and only where no person sits: with both stdin and stdout at a terminal nobody
is detected. AJ_AGENT and AJ_SESSION override what is found, wherever the command runs; `AJ_AGENT=none` says
that no agent calls. The title of a session is read from the agent's own files, a bounded part of them; whatever
is wrong with those, there is only no title. Ask for it when something is submitted, and not before.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from aj.base import paths
from aj.base.noun import dataclass

if TYPE_CHECKING:
    from aj.base.settings import Settings

NOBODY = "none"
LONGEST_ID, LONGEST_TITLE = 200, 120  # characters
# Bytes of a file of titles: both programs append to it, so the newest title stands near the end, and a
# conversation's first one near its beginning.
LAST, FIRST = 1 << 20, 256 << 10
FOLDERS = 4096  # of projects of Claude Code that are looked through for a session
_ID = r"[A-Za-z0-9][A-Za-z0-9._-]*"


@dataclass(frozen=True)
class Agent:
    """One agent: any of `signs` gives it away, a variable that is set or a `NAME=VALUE`; `session` holds its id.

    A person may have set one of the `weak` signs too: they count only with no terminal at all.
    """

    name: str
    signs: tuple[str, ...]
    session: str | None = None
    weak: tuple[str, ...] = ()


@dataclass(frozen=True)
class Caller:
    """Who calls. `agent` is None where only AJ_SESSION says something."""

    agent: str | None
    session: str


@dataclass(frozen=True)
class Tag:
    """What a submission keeps of who made it; the title is the one that the session had then."""

    agent: str | None = None
    session: str | None = None
    title: str | None = None


# In this order where one runs inside another. Claude Code documents CLAUDECODE and CLAUDE_CODE_SESSION_ID at
# https://code.claude.com/docs/en/env-vars, Codex its own at https://developers.openai.com/codex; Cursor sets
# CURSOR_AGENT for the commands of its agent; Aider (aider/llm.py) sets OR_APP_NAME for all its children, and
# AIDER_MODEL is a setting of it.
AGENTS: Mapping[str, Agent] = MappingProxyType(
    {
        agent.name: agent
        for agent in (
            Agent("claude", ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID"), "CLAUDE_CODE_SESSION_ID"),
            Agent("codex", ("CODEX_THREAD_ID", "CODEX_BIN_PATH", "CODEX_SANDBOX"), "CODEX_THREAD_ID"),
            Agent("cursor", ("CURSOR_AGENT",)),
            Agent("aider", ("OR_APP_NAME=Aider", "AIDER_VERSION"), weak=("AIDER_MODEL",)),
        )
    }
)
ALIASES: Mapping[str, str] = MappingProxyType({"claude-code": "claude"})


def named(word: str) -> str:
    """Return the name of an agent as it is kept: `Codex` is `codex`, `claude-code` is `claude`; others stay."""
    low = word.strip().lower()
    low = ALIASES.get(low, low)
    return low if low in AGENTS or low == NOBODY else _clean(word, LONGEST_ID)


def session_named(word: str) -> str:
    """Return the id of a session as it is kept: on one line, of printable characters, and not too long."""
    return _clean(word, LONGEST_ID)


def terminals() -> int:
    """Return how many of stdin and stdout are terminals."""
    return os.isatty(0) + os.isatty(1)


def caller(settings: Settings, at: int) -> Caller | None:
    """Return who calls, or None. `at` is how many of stdin and stdout are terminals."""
    said = settings.get("AJ_AGENT")
    name = named(said) if said is not None else None
    if name == NOBODY:
        return None
    agent = AGENTS.get(name) if name else _detected(settings, at)
    name = name or (agent.name if agent else None)
    session = session_named(settings.get("AJ_SESSION") or "")
    if not session and name:
        own = settings.get(agent.session) if agent and agent.session else None
        session = _clean(own or "", LONGEST_ID) or f"{name}-{os.getppid()}"
    return Caller(name, session) if session else None


def _detected(settings: Settings, at: int) -> Agent | None:
    if at == 2:
        return None
    strong = (agent for agent in AGENTS.values() if any(_shows(settings, sign) for sign in agent.signs))
    weak = (agent for agent in AGENTS.values() if at == 0 and any(_shows(settings, sign) for sign in agent.weak))
    return next(strong, None) or next(weak, None)


def _shows(settings: Settings, sign: str) -> bool:
    name, _, value = sign.partition("=")
    found = settings.get(name)
    return found is not None and (not value or found == value)


def _clean(words: str, most: int) -> str:
    """Return words on one line, of printable characters alone, and not too many."""
    line = " ".join(words[: 4 * most].split())
    return "".join(char for char in line if char.isprintable())[:most].strip()


def title(who: Caller | None, settings: Settings, directory: Path) -> str | None:
    """Return what the caller's session is called now; None when that cannot be told. `directory` is where it works.

    Never raises, and reads a bounded part of any file.
    """
    find = _TITLES.get(who.agent or "") if who else None
    if who is None or find is None or not re.fullmatch(_ID, who.session):
        return None
    try:
        found = find(who.session, settings, directory)
    except (OSError, ValueError):
        return None
    if found is None:
        return None
    from aj.base import redact

    return _clean(redact.text(found[: 4 * LONGEST_TITLE]), LONGEST_TITLE) or None


def tag(who: Caller | None, settings: Settings, directory: Path) -> Tag:
    """Return what a submission keeps of its caller; reads the title."""
    return Tag(who.agent, who.session, title(who, settings, directory)) if who else Tag()


def _of_codex(session: str, settings: Settings, _: Path) -> str | None:
    """The last line of the index that names the thread holds: `id`, `thread_name`."""
    folder = _folder(settings, "CODEX_HOME", ".codex")
    if folder is None:
        return None
    lines = _records(_last(folder / "session_index.jsonl"), session)
    return next((_text(line, "thread_name") for line in lines if line.get("id") == session), None)


def _of_claude(session: str, settings: Settings, directory: Path) -> str | None:
    """The user's own title of a conversation, else the one that was made up for it, else its summary."""
    folder = _folder(settings, "CLAUDE_CONFIG_DIR", ".claude")
    transcript = _transcript(folder / "projects", session, directory) if folder else None
    if transcript is None:
        return None
    parts = (_last(transcript), _first(transcript))
    for kind, key in (("custom-title", "customTitle"), ("ai-title", "aiTitle"), ("summary", "summary")):
        for part in parts:
            for line in _records(part, f'"{kind}"'):
                found = _text(line, key)
                if line.get("type") == kind and line.get("sessionId", session) == session and found:
                    return found
    return None


_TITLES: Mapping[str, Callable[[str, Settings, Path], str | None]] = {"codex": _of_codex, "claude": _of_claude}


def _folder(settings: Settings, name: str, otherwise: str) -> Path | None:
    said = settings.get(name)
    if said is not None:
        return Path(said)
    home = paths.home(settings)
    return home / otherwise if home else None


def _transcript(projects: Path, session: str, directory: Path) -> Path | None:
    """Find the file of a conversation: in the folder of a project above `directory`, else in any."""
    name = f"{session}.jsonl"
    for above in (directory, *directory.parents):
        guess = projects / re.sub(r"[^A-Za-z0-9]", "-", str(above)) / name
        if os.path.isfile(guess):
            return guess
    with os.scandir(projects) as folders:
        found = (Path(folder.path) / name for folder in islice(folders, FOLDERS))
        return next((path for path in found if os.path.isfile(path)), None)


def _last(path: Path) -> bytes:
    """Return the end of a file, from the beginning of a line. Raises OSError, ValueError when it is no file."""
    return _part(path, -LAST)


def _first(path: Path) -> bytes:
    """Return the beginning of a file. Raises as `_last`."""
    return _part(path, FIRST)


def _part(path: Path, most: int) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not make us wait
    with os.fdopen(handle, "rb", buffering=0) as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{path} is no file")
        start = max(0, status.st_size + most) if most < 0 else 0
        file.seek(start)
        found = file.read(abs(most))
        return found.partition(b"\n")[2] if start else found


def _records(part: bytes, mark: str) -> Iterator[Mapping[str, object]]:
    """Yield the objects in whose lines the mark stands, the last first. No other line is looked into."""
    import json  # only for who has something to submit

    sought = mark.encode()
    for line in reversed(part.split(b"\n")):
        if sought not in line:
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def _text(line: Mapping[str, object], key: str) -> str | None:
    found = line.get(key)
    return found if isinstance(found, str) and found.strip() else None
