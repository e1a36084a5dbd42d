"""The word by which a replica's program says who it is: signed, good for one start of one replica, for a while.

Nothing about a token is remembered: the signature proves it, also to a daemon that was started later.
"""

from __future__ import annotations

import hashlib
import hmac

from aj.base.errors import AuthError
from aj.model.claim import Bearer

LIFE_S = 3600.0  # one that got into wrong hands is of no use after this
RENEW_S = LIFE_S / 2  # so a daemon may be away for half an hour and the token still holds
HEAD = "aj1"


def sign(key: bytes, who: Bearer, now: float) -> str:
    """Return a token for a replica that is good from now on. `now` is seconds since the epoch."""
    words = ".".join((HEAD, who.deployment, who.uid, str(who.slot), str(who.attempt), str(int(now + LIFE_S))))
    return f"{words}.{_mark(key, words)}"


def read(key: bytes, token: str, now: float) -> Bearer:
    """Return whose token this is. Raises AuthError when it is not one of ours, or too old."""
    words, _, mark = token.strip().rpartition(".")
    if not hmac.compare_digest(_mark(key, words).encode(), mark.encode("utf-8", "replace")):
        raise refused("it is not one of this daemon")
    head, deployment, uid, slot, attempt, until = words.split(".")
    if head != HEAD or now >= int(until):
        raise refused("it is too old")
    return Bearer(deployment, uid, int(slot), int(attempt))


def refused(why: str) -> AuthError:
    """Say that a token does not hold."""
    hint = "a replica reads AJ_WORKLOAD_TOKEN_FILE anew for each call"
    return AuthError(f"the token of the replica does not hold: {why}", code="bad-token", hint=hint)


def _mark(key: bytes, words: str) -> str:
    return hmac.new(key, words.encode("utf-8", "replace"), hashlib.sha256).hexdigest()
