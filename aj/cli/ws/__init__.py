"""aj ws: workspaces."""
