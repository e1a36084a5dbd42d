"""aj throttle: what may be spent an hour."""
