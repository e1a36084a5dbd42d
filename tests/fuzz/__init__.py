"""Fuzzing of what users write by hand: templates, ignore files, command lines. Only errors of ours may come out."""
