"""Changes that were asked for already: the same key and body gets the first answer, and nothing is done twice.

Only in memory: after a restart a key is unknown, and its sender, whose answer was lost with the old
daemon, is told that the outcome is unknown rather than being served by luck.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import field

from aj.base.digest import sha256
from aj.base.errors import Refused
from aj.base.noun import dataclass
from aj.daemon.front import Reply

KEPT = 1000  # answers, of at most some kilobytes each: an hour of hard scripting


@dataclass
class _First:
    """The first call with a key: what it asked, and its answer once there is one."""

    asked: str
    answered: threading.Event = field(default_factory=threading.Event)
    reply: Reply | None = None


class Replays:
    """The answers of the newest keys. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._firsts: OrderedDict[str, _First] = OrderedDict()

    def once(self, key: str, asked: bytes, act: Callable[[], Reply]) -> Reply:
        """Act, unless this key was seen: then wait for the first call and give its answer.

        Raises Refused when the key was used for something else.
        """
        digest = sha256(asked).hexdigest()
        with self._lock:
            first, is_mine = self._firsts.get(key), False
            if first is None:
                first, is_mine = _First(digest), True
                self._firsts[key] = first
                while len(self._firsts) > KEPT:
                    self._firsts.popitem(last=False)
        if first.asked != digest:
            raise Refused(f"the key {key} was used for another change", code="key-reused")
        return self._act(key, first, act) if is_mine else self._answer(key, first, asked, act)

    def _act(self, key: str, first: _First, act: Callable[[], Reply]) -> Reply:
        try:
            first.reply = act()
        finally:
            if first.reply is None:  # it broke off in an unforeseen way: the key is free again
                with self._lock:
                    self._firsts.pop(key, None)
            first.answered.set()
        return first.reply

    def _answer(self, key: str, first: _First, asked: bytes, act: Callable[[], Reply]) -> Reply:
        first.answered.wait()
        return first.reply if first.reply is not None else self.once(key, asked, act)
