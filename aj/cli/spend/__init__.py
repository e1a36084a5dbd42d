"""aj spend: what is spent just now."""
