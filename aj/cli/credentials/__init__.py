"""aj credentials: what opens storage elsewhere."""
