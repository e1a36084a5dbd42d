"""aj secrets: values that jobs are given by name."""
