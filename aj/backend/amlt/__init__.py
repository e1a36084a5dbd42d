"""The external program `amlt`, fed with a YAML file of the shape it knows."""
