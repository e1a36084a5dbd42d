"""What the product does; runs only inside the daemon or a test."""
