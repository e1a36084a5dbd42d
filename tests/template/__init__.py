"""Templates: reading, merging, checking, building."""
