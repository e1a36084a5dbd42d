"""aj k8s refresh-sas, and what a killed daemon left on a cluster: through real daemons."""

from __future__ import annotations

import threading

import pytest

from aj.base.clock import SYSTEM
from tests.cli.test_volcano import Typed
from tests.conftest import RunningDaemon
from tests.servers import kube


@pytest.mark.rule("V-117")
def test_a_job_for_which_nothing_was_signed_says_so(typed: Typed) -> None:
    aj_id = typed.run()
    for word in (aj_id, typed.name()):
        ran = typed("k8s", "refresh-sas", word, code=3)
        assert f"job {typed.name()} has no secret: nothing was signed for it" in ran.err
    assert "no job" in typed("k8s", "refresh-sas", "nothing", code=3).err
    for hours in ("0", "169", "x"):
        typed("k8s", "refresh-sas", aj_id, "--hours", hours, code=2)


@pytest.mark.rule("V-068")
def test_a_killed_daemon_leaves_no_pod_for_the_next_one(typed: Typed, daemon: RunningDaemon) -> None:
    turn = kube.Turn(after_stdin=4, cut=False)
    typed.cluster.nodes.turns.append(("AJ_RECEIVE", turn))
    submission = threading.Thread(target=lambda: typed.shell("run", "-t", "gang", "train.py"))
    submission.start()
    try:
        assert turn.reached.wait(60), "the upload has begun"
        daemon.kill()
    finally:
        turn.release.set()
        submission.join(60)
    (name,) = typed.cluster.kube.names("pods")
    assert name.endswith("-upload")
    typed("daemon", "restart")
    limit = SYSTEM.monotonic() + 60
    while typed.cluster.kube.names("pods") or list(typed.shell.home.layout.clusters.glob("*.json")):
        assert SYSTEM.monotonic() < limit, "the next daemon removes it"
        SYSTEM.sleep(0.05)
