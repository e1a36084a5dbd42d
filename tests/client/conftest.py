"""The client's proofs use the daemons of the daemon's."""

from tests.daemon.conftest import hasty, inside, small

__all__ = ["hasty", "inside", "small"]
