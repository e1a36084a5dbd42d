"""The caller's side of the socket: what a command or a Python program asks of the daemon."""
