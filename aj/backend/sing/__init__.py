"""Singularity: command jobs on virtual clusters, by SKU, tier and quota."""
