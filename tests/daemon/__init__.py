"""Proofs of the daemon."""
