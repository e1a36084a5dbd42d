"""aj k8s refresh-sas, and what a killed daemon left on a cluster: through real daemons."""

from __future__ import annotations

import threading

import pytest

from aj.base import proc
from aj.base.clock import SYSTEM
from aj.store.traces import SECRET, Trace, Traces
from tests.cli.conftest import Shell
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


@pytest.mark.rule("V-084")
def test_signatures_keep_no_daemon_that_has_nothing_else_to_do(typed: Typed, daemon: RunningDaemon) -> None:
    """Whoever comes next renews what is due."""
    aj_id = typed.run()
    typed("daemon", "stop")
    traces = Traces(typed.shell.home.layout.clusters)
    traces.note(Trace(SECRET, aj_id, kube.CONTEXT, kube.NAMESPACE, SYSTEM.now(), SYSTEM.now() + 60))
    marks = {"labels": {"aj-id": aj_id, "app.kubernetes.io/managed-by": "aj"}}
    typed.cluster.kube.add("secrets", f"aj-{aj_id}", metadata=marks, data={})
    shell = Shell(typed.shell.home.having(AJ_DAEMON_IDLE="0.3"), typed.shell.directory)
    assert shell("daemon", "start").code == 0
    who = daemon.who
    assert who is None or proc.wait_gone(who, 30), "it left"
    assert traces.find(SECRET, aj_id) is not None, "and what is due is not forgotten"
