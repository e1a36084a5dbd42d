"""The command tree: one room a command."""
