"""Secrets out of text: what must never stand in a log, a journal or an error."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping

MASK = "***"
_SECRET_NAME = r"(?i)TOKEN|KEY|SECRET|PASSWORD|PASSWD|SAS|CREDENTIAL"
_PATTERNS = (
    r"(?i)(?P<keep>[?&;](?:sig|se|sp|skoid)=)[^&\s\"']+",
    r"(?i)(?P<keep>\b(?:Bearer|SharedKey)\s+)[A-Za-z0-9._~+/=:-]{8,}",
    r"(?i)(?P<keep>\b(?:AccountKey|SharedAccessKey|SharedAccessSignature)=)[^;\s\"']+",
    r"(?P<keep>://)[^/@\s:\"']*:[^/\s\"']+(?=@)",
    r"(?i)(?P<keep>\bhttps?://)[^/@\s:\"']+(?=@)",
    r"(?i)(?P<keep>\b[A-Za-z0-9_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_KEY|ACCESS_KEY|CREDENTIAL)[A-Za-z0-9_]*[=:]\s*)"
    r"[^\s,;\"']+",
    r"(?i)(?P<keep>--?(?:token|password|api-key|secret)[ =])\S+",
)

# Secrets that this process was given or made, newest last: of a kind that no pattern would know.
_LITERALS: dict[str, None] = {}
_LOCK = threading.Lock()
KEPT = 200  # an old one has expired long since
SHORTEST = 8  # a shorter one would mask ordinary words


def hide(secret: str) -> None:
    """Mask this very text from now on, wherever it would appear."""
    if len(secret) < SHORTEST:
        return
    with _LOCK:
        _LITERALS.pop(secret, None)
        _LITERALS[secret] = None
        if len(_LITERALS) > KEPT:
            del _LITERALS[next(iter(_LITERALS))]


def is_secret_name(name: str) -> bool:
    """Tell whether an environment variable's name says that its value is a secret."""
    return bool(re.search(_SECRET_NAME, name))


def text(words: str) -> str:
    """Return the text with everything that is, or looks like, a secret replaced by `***`."""
    with _LOCK:
        literals = tuple(_LITERALS)
    for literal in literals:
        words = words.replace(literal, MASK)
    for pattern in _PATTERNS:
        words = re.sub(pattern, lambda found: found["keep"] + MASK, words)
    return words


def values(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the values of secret names masked."""
    return {name: MASK if is_secret_name(name) else value for name, value in env.items()}
