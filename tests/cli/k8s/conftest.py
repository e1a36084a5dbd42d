"""A user's shell with a cluster in reach."""

from __future__ import annotations

from tests.cli.test_volcano import typed as typed
from tests.hasty import hasty as hasty
