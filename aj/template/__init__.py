"""Templates: YAML files that inherit from each other, to one typed JobSpec.

The way through the floor: `yaml` reads one file to a `tree`; `load` finds files, names and bases and `merge`s
them; `origin` tells where each value came from; `check` finds what is wrong; `shape` counts nodes and
processes; `build` makes the JobSpec. No service is known here: what a service asks of a template is its own
options room, which comes as an argument and promises what `service` says.
"""
