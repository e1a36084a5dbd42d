"""Proofs of what a program in a deployment imports, and of deployments with real processes."""
