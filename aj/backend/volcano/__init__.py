"""Volcano: gangs of pods on a Kubernetes cluster."""
