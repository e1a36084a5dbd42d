"""A TCP port of this machine that nobody uses just now."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a port of the loopback address that could be bound a moment ago. Raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
