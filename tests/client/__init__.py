"""Proofs of the client side."""
