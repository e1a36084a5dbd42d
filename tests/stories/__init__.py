"""Whole commands as a person sees them: what was typed, what was printed, how it ended."""
