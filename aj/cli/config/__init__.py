"""aj config: settings."""
