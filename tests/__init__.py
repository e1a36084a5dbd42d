"""Proofs, room by room as in `aj/`; `tests/house` guards the house itself."""
