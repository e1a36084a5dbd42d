"""The clerk: one process per user that owns the queue, answers the socket and drives jobs."""
