"""Submit and run ML jobs from one file. `from aj import Client` asks the daemon of this user."""

from __future__ import annotations

TYPE_CHECKING = False  # importing `typing` for it would cost a part of every start
if TYPE_CHECKING:
    from aj.client.client import Client

__all__ = ["Client"]


def __getattr__(name: str) -> object:
    """Import the client when it is asked for: a command that needs none does not pay for it."""
    if name == "Client":
        from aj.client.client import Client

        return Client
    raise AttributeError(f"module 'aj' has no attribute {name!r}")
