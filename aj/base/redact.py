"""Secrets out of text: what must never stand in a log, a journal or an error."""

from __future__ import annotations

import re
from collections.abc import Mapping

MASK = "***"
_SECRET_NAME = re.compile(r"TOKEN|KEY|SECRET|PASSWORD|PASSWD|SAS|CREDENTIAL", re.IGNORECASE)
_PATTERNS = (
    re.compile(r"(?P<keep>[?&;](?:sig|se|sp|skoid)=)[^&\s\"']+", re.IGNORECASE),
    re.compile(r"(?P<keep>\b(?:Bearer|SharedKey)\s+)[A-Za-z0-9._~+/=:-]{8,}", re.IGNORECASE),
    re.compile(r"(?P<keep>\b(?:AccountKey|SharedAccessKey|SharedAccessSignature)=)[^;\s\"']+", re.IGNORECASE),
    re.compile(r"(?P<keep>://)[^/@\s:]+:[^/@\s]+(?=@)"),
    re.compile(
        r"(?P<keep>\b[A-Za-z0-9_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_KEY|ACCESS_KEY|CREDENTIAL)[A-Za-z0-9_]*[=:]\s*)"
        r"[^\s,;\"']+",
        re.IGNORECASE,
    ),
    re.compile(r"(?P<keep>--?(?:token|password|api-key|secret)[ =])\S+", re.IGNORECASE),
)


def is_secret_name(name: str) -> bool:
    """Tell whether an environment variable's name says that its value is a secret."""
    return bool(_SECRET_NAME.search(name))


def text(words: str) -> str:
    """Return the text with everything that looks like a secret replaced by `***`."""
    for pattern in _PATTERNS:
        words = pattern.sub(lambda found: found["keep"] + MASK, words)
    return words


def values(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the values of secret names masked."""
    return {name: MASK if is_secret_name(name) else value for name, value in env.items()}
