"""aj queue: tickets of submissions."""
