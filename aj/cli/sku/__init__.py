"""aj sku: machines that a job can ask for."""
