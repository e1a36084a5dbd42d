"""aj bucket: buckets of this machine and of saved credentials."""
