"""YAML templates to a typed JobSpec, pure once the files are read."""
