"""aj code: the code that travels with a job."""
