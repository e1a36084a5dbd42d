"""aj ds: datastores."""
