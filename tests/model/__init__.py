"""Nouns."""
