"""The door to the network, the daemon's Unix socket included."""
