"""The client's proofs use the daemons of the daemon's."""

from tests.daemon.conftest import inside, small

__all__ = ["inside", "small"]
