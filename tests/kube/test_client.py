"""One cluster: verbs, paging, refusals in the cluster's words, and changes that are sent once."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aj.base import packs
from aj.base.clock import SYSTEM
from aj.base.errors import AjError, AuthError, NotFound, OutcomeUnknown, Refused, RemoteError, Unavailable
from aj.base.settings import Settings
from aj.kube.client import Cluster
from aj.kube.config import Access, Plugin, User
from aj.kube.resources import JOBS, PODS, QUEUES, SECRETS
from aj.net import http
from aj.net.http import Limit
from tests.servers.loopback import Answer, Cut, Got, Loopback, Stall, serving


def status(code: int, reason: str, message: str, **details: object) -> Answer:
    """An error as a cluster answers it."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason}
    return Answer(code, {**body, "code": code, "details": details})


def nothing(got: Got) -> Answer:
    return Answer(200, {"kind": "Thing", "metadata": {"name": "x"}, "items": []})


@pytest.fixture
def server(loopback: None) -> Iterator[Loopback]:
    with serving(nothing) as server:
        yield server


def cluster(server: Loopback, tmp_path: Path, user: User | None = None) -> Cluster:
    access = Access("dev", server.url, "ml", "a test", user or User("ann", token="secret-token-1"))
    return Cluster(access, Settings({"PATH": "/usr/bin:/bin"}), SYSTEM, tmp_path / "kube")


def test_verbs_are_the_ones_of_the_api(server: Loopback, tmp_path: Path) -> None:
    kube = cluster(server, tmp_path)
    kube.get(JOBS, "train-1")
    kube.get(QUEUES, "default")
    kube.create(JOBS, {"kind": "Job"})
    kube.dry_run(JOBS, {"kind": "Job"}, "other")
    kube.patch(JOBS, "train-1", {"metadata": {"annotations": {"a": "b"}}})
    kube.replace(SECRETS, "aj-1", {"kind": "Secret"})
    assert kube.delete(PODS, "p", uid="u-1", grace_s=0)
    assert server.targets() == [
        "GET /apis/batch.volcano.sh/v1alpha1/namespaces/ml/jobs/train-1",
        "GET /apis/scheduling.volcano.sh/v1beta1/queues/default",
        "POST /apis/batch.volcano.sh/v1alpha1/namespaces/ml/jobs",
        "POST /apis/batch.volcano.sh/v1alpha1/namespaces/other/jobs",
        "PATCH /apis/batch.volcano.sh/v1alpha1/namespaces/ml/jobs/train-1",
        "PUT /api/v1/namespaces/ml/secrets/aj-1",
        "DELETE /api/v1/namespaces/ml/pods/p",
    ]
    assert [got.value("dryRun") for got in server.got] == [None, None, None, "All", None, None, None]
    assert server.got[2].value("fieldValidation") == "Strict"
    assert server.got[4].headers["content-type"] == "application/merge-patch+json"
    assert json.loads(server.got[6].body) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": "u-1"},
        "gracePeriodSeconds": 0,
    }
    assert {got.headers["authorization"] for got in server.got} == {"Bearer secret-token-1"}


def test_a_list_is_read_to_its_last_page_and_anew_when_a_page_expires(server: Loopback, tmp_path: Path) -> None:
    def page(names: list[str], token: str | None) -> Answer:
        items = [{"metadata": {"name": name}} for name in names]
        return Answer(200, {"metadata": {"continue": token} if token else {}, "items": items})

    expired = status(410, "Expired", "The provided continue parameter is too old")
    server.on("GET", page(["a"], "t1"), expired, page(["a"], "t2"), page(["b"], "t3"), page(["c"], None))
    found = cluster(server, tmp_path).list(PODS, labels={"aj-id": "0a1b2c3d"})
    assert [item.text("metadata", "name") for item in found] == ["a", "b", "c"]
    assert [got.value("continue") for got in server.got] == [None, "t1", None, "t2", "t3"]
    assert {got.value("labelSelector") for got in server.got} == {"aj-id=0a1b2c3d"}


@pytest.mark.rule("V-104", "V-127")
def test_a_missing_right_is_told_by_its_name(server: Loopback, tmp_path: Path) -> None:
    words = (
        'jobs.batch.volcano.sh is forbidden: User "ann@corp" cannot create resource "jobs" in API group '
        '"batch.volcano.sh" in the namespace "ml"'
    )
    server.on("POST", status(403, "Forbidden", words))
    with pytest.raises(Refused) as caught:
        cluster(server, tmp_path).create(JOBS, {"kind": "Job"})
    assert caught.value.message == "no right to create jobs.batch.volcano.sh in namespace ml as user ann@corp"
    assert caught.value.hint == ("ask the cluster's owner for jobs.batch.volcano.sh: create, get, list, delete, patch")


def test_a_rule_of_the_cluster_is_no_missing_right(server: Loopback, tmp_path: Path) -> None:
    server.on("POST", status(403, "Forbidden", 'pods "x" is forbidden: exceeded quota: team, requested: pods=1'))
    with pytest.raises(Refused) as caught:
        cluster(server, tmp_path).create(PODS, {"kind": "Pod"})
    assert caught.value.code == "admission"
    assert "exceeded quota: team" in caught.value.message


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        (status(401, "Unauthorized", "Unauthorized"), AuthError, "not-signed-in"),
        (status(404, "NotFound", 'jobs "x" not found'), NotFound, "not-found"),
        (status(409, "AlreadyExists", "exists"), Refused, "exists"),
        (status(409, "Conflict", "changed"), Refused, "conflict"),
        (status(422, "Invalid", "bad", causes=[{"field": "spec.queue", "message": "no"}]), Refused, "invalid"),
        (status(429, "TooManyRequests", "slow down"), RemoteError, "throttled"),
        (status(500, "InternalError", "boom"), OutcomeUnknown, "outcome-unknown"),
        (status(504, "Timeout", "late"), OutcomeUnknown, "outcome-unknown"),
        (Answer(302, raw=b"go"), RemoteError, "redirect"),
        (Answer(200, raw=b"<html>"), OutcomeUnknown, "outcome-unknown"),
        (Cut.AFTER_BODY, OutcomeUnknown, "outcome-unknown"),
        (Cut.MID_ANSWER, OutcomeUnknown, "outcome-unknown"),
    ],
)
@pytest.mark.rule("V-101")
def test_a_change_is_sent_once_and_its_error_says_whether_it_may_have_happened(
    server: Loopback, tmp_path: Path, answer: Answer | Cut, kind: type[AjError], code: str
) -> None:
    server.on("POST", answer)
    with pytest.raises(kind) as caught:
        cluster(server, tmp_path).create(JOBS, {"kind": "Job"})
    assert caught.value.code == code
    assert not isinstance(caught.value, Unavailable)  # which would leave open whether anything happened
    assert len(server.got) == 1
    if code == "invalid":
        assert caught.value.details["causes"] == ("spec.queue: no",)


def test_a_change_that_never_left_is_no_unknown_outcome(server: Loopback, tmp_path: Path) -> None:
    kube = cluster(server, tmp_path)
    server.close()
    with pytest.raises(RemoteError, match="nothing was changed: could not create a Job in namespace ml") as caught:
        kube.create(JOBS, {"kind": "Job"})
    assert not isinstance(caught.value, OutcomeUnknown | Unavailable)


def test_a_question_is_asked_again(server: Loopback, tmp_path: Path, real_clock: None) -> None:
    server.on("GET", status(503, "ServiceUnavailable", "starting"))
    assert cluster(server, tmp_path).get(JOBS, "x").text("kind") == "Thing"
    assert len(server.got) == 2


def test_a_cluster_without_volcano_is_told_apart_from_a_missing_job(server: Loopback, tmp_path: Path) -> None:
    kube = cluster(server, tmp_path)
    server.on("GET", status(404, "NotFound", 'jobs.batch.volcano.sh "x" not found'))
    assert kube.find(JOBS, "x") is None
    server.on("GET", Answer(404, raw=b"404 page not found\n"))
    with pytest.raises(NotFound) as caught:
        kube.find(JOBS, "x")
    assert caught.value.hint == "does the cluster have Volcano? it knows no jobs.batch.volcano.sh"


def test_rights_are_asked_for(server: Loopback, tmp_path: Path) -> None:
    server.on("POST", Answer(201, {"status": {"allowed": True}}), Answer(201, {"status": {"allowed": False}}))
    kube = cluster(server, tmp_path)
    assert kube.may("create", "jobs.batch.volcano.sh")
    assert not kube.may("get", "pods/log")
    spec = json.loads(server.got[1].body)["spec"]["resourceAttributes"]
    assert spec == {"verb": "get", "resource": "pods", "group": "", "namespace": "ml", "subresource": "log"}


def plugin(tmp_path: Path, script: str) -> User:
    program = tmp_path / "login"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return User("eve", plugin=Plugin(("./login",), API, tmp_path))


API = "client.authentication.k8s.io/v1"
GIVES = f"""n=$(cat count 2>/dev/null || echo 0); n=$((n+1)); echo $n > count
echo '{{"apiVersion":"{API}","kind":"ExecCredential","status":{{"token":"token-number-'$n'"}}}}'
"""


@pytest.mark.rule("V-001")
def test_a_program_gives_the_token_and_is_asked_anew_when_it_is_refused(
    server: Loopback, tmp_path: Path, programs: None
) -> None:
    kube = cluster(server, tmp_path, plugin(tmp_path, f"cd {tmp_path}\n{GIVES}"))
    kube.get(JOBS, "a")
    server.on("GET", status(401, "Unauthorized", "Unauthorized"))
    kube.get(JOBS, "b")
    said = [got.headers["authorization"] for got in server.got]
    assert said == ["Bearer token-number-1", "Bearer token-number-1", "Bearer token-number-2"]
    server.on("POST", status(401, "Unauthorized", "Unauthorized"))
    with pytest.raises(AuthError):
        kube.create(JOBS, {"kind": "Job"})  # a change is not sent again, whatever the reason
    assert len([got for got in server.got if got.method == "POST"]) == 1


@pytest.mark.rule("V-001")
def test_a_program_that_fails_is_quoted_without_its_secrets(server: Loopback, tmp_path: Path, programs: None) -> None:
    kube = cluster(server, tmp_path, plugin(tmp_path, "echo 'expired; token=abcdefghijk' >&2; exit 3"))
    with pytest.raises(AuthError) as caught:
        kube.get(JOBS, "a")
    assert "ended with 3: expired; token=***" in caught.value.message
    assert server.got == []


@pytest.mark.rule("V-001")
def test_a_program_that_waits_for_somebody_is_ended(
    server: Loopback, tmp_path: Path, programs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aj.kube.credentials.LIMIT_S", 0.2)
    kube = cluster(server, tmp_path, plugin(tmp_path, "exec sleep 30"))
    with pytest.raises(AuthError, match=r"did not end within 0\.2 s"):
        kube.get(JOBS, "a")


@pytest.mark.rule("V-101")
def test_an_answer_that_does_not_come_leaves_a_change_unknown(
    server: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "LONG", Limit(0.3))
    server.on("POST", Stall.BEFORE_ANSWER)
    with pytest.raises(OutcomeUnknown):
        cluster(server, tmp_path).create(JOBS, {"kind": "Job"})
    assert len(server.got) == 1


def test_the_cloud_part_is_unpacked_before_anything_of_it_is_imported(
    server: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def need(group: str) -> None:
        raise AjError(f"no room for {group}")

    monkeypatch.delitem(sys.modules, "aj.net.pool", raising=False)
    monkeypatch.setattr(packs, "need", need)
    with pytest.raises(AjError, match="no room for cloud"):
        cluster(server, tmp_path).get(JOBS, "x")
    assert "aj.net.pool" not in sys.modules
