"""Proofs about the house itself, and the chores of this repository (`python -m tests.house`)."""
