"""aj watch: jobs of which one wants to hear."""
