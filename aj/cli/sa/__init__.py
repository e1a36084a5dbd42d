"""aj sa: storage accounts."""
