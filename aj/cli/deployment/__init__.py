"""aj deployment: long-running programs on this machine that take jobs."""
