"""Object storage: folders and containers behind one face, and what is brought there and back."""
