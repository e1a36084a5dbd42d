"""Named points at which a test may kill this very process, to prove what survives.

`AJ_TEST_CRASH=accept.ticket` ends the process with SIGKILL the moment it passes that point, exactly
as a power cut would. Without the variable a point is one dictionary look-up.
"""

from __future__ import annotations

import os
import signal

POINTS = (
    "accept.before-archive",
    "accept.after-archive",
    "accept.before-ticket",
    "accept.after-ticket",
    "worker.before-running",
    "worker.after-running",
    "worker.after-intended",
    "worker.after-submit",
    "worker.after-submitted",
    "worker.after-completed",
    "drive.after-provisioning",
    "drive.after-unpack",
    "image.after-pull",
    "image.after-make",
    "drive.before-spawn",
    "drive.after-spawn",
    "drive.after-running",
    "preempt.after-note",
    "recover.before-restart",
    "recover.after-restart",
    "recover.after-release",
    "save.after-last",
    "finish.before-outcome",
    "finish.after-outcome",
    "finish.after-cleanup",
    "replica.after-start-noted",
    "replica.after-spawn",
    "claim.before-write",
    "claim.after-write",
    "outcome.before-write",
    "outcome.after-write",
    "checkpoint.after-blob",
    "checkpoint.before-manifest",
    "checkpoint.before-head",
    "checkpoint.after-head",
    "upload.after-object",
    "sync.after-restore",
    "sync.after-last",
    "spend.after-reservation",
    "spend.after-settling",
    "changes.after-note",
    "changes.after-step",
    "changes.after-all",
)


def point(name: str) -> None:
    """Die here if a test asked for it."""
    if os.environ.get("AJ_TEST_CRASH") == name:
        os.kill(os.getpid(), signal.SIGKILL)
