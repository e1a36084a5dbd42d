"""Proofs of the socket transport."""
