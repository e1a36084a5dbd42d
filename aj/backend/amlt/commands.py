"""The commands of amlt itself, for whatever aj cannot do with a job that amlt has submitted."""

from __future__ import annotations


def command(verb: str, experiment: str, job: str) -> str:
    """Return the command of amlt that does something to a job of an experiment."""
    return f"amlt {verb} {experiment} :{job}"
