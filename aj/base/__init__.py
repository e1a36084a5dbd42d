"""The ground floor: errors, settings, paths, clock, programs, units. Imports nothing of ours."""
