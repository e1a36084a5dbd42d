"""One folder for each place that can run jobs, each with options, payload, states and backend."""
