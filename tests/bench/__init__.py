"""Benches: they print figures and ratios taken in one run, and judge nothing."""
