"""Servers of the tests' own on loopback: they check what they are asked, and fail on order."""
