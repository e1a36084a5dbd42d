"""aj daemon: the process that submits and runs."""
