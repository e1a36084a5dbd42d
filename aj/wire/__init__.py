"""The contract of the socket between the command and the daemon. Opens no socket itself."""
