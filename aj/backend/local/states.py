"""What the end of a process means in words, and which state it is."""

from __future__ import annotations

import signal

from aj.model.state import JobState

NOT_EXECUTABLE = 126  # as a shell says it
NOT_FOUND = 127
BY_SIGNAL = 128  # 128 + N: ended by signal N


def exit_code(status: int) -> int:
    """Turn how Python names an end (-N for signal N) into an exit code as a shell gives it."""
    return status if status >= 0 else BY_SIGNAL - status


def words(code: int) -> str:
    """Say what an exit code tells."""
    if code == NOT_EXECUTABLE:
        return "exit code 126: the command cannot be executed"
    if code == NOT_FOUND:
        return "exit code 127: the command was not found"
    try:
        return f"ended by {signal.Signals(code - BY_SIGNAL).name}"
    except ValueError:
        return f"exit code {code}"


def state(code: int) -> JobState:
    """Return the final state of a job whose processes ended by themselves."""
    return JobState.COMPLETED if code == 0 else JobState.ERRORED
