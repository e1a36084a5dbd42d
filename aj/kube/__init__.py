"""Kubernetes, one verb a function: over the official client, and in the daemon alone."""
