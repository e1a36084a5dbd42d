"""aj job: jobs of this machine."""
