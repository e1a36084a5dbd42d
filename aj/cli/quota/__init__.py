"""aj quota: what is left."""
