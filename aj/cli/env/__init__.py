"""aj env: environments."""
