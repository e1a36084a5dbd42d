"""aj skill: teach coding agents to use `aj`."""
