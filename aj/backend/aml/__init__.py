"""Azure Machine Learning: command jobs on the computes of a workspace."""
