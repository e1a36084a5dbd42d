"""The checks themselves: a server that agrees with everything would prove nothing."""

from __future__ import annotations

import contextlib
import copy
import json
import urllib.request
import uuid
from collections.abc import Callable

import pytest

from tests.servers.arm import ARM_KINDS, Arm
from tests.servers.loopback import Got, serving
from tests.servers.spec import Definitions

WS = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
SCOPE = "https://arm.test/.default"
JOB: dict = {
    "properties": {
        "jobType": "Command",
        "command": "bash x",
        "environmentId": WS + "/environments/aj/versions/1",
        "environmentVariables": {"A": "1"},
        "inputs": {"code": {"jobInputType": "uri_file", "mode": "Download", "uri": "azureml://x"}},
        "outputs": {"out": {"jobOutputType": "uri_folder", "mode": "ReadWriteMount", "uri": "azureml://x"}},
        "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 4},
        "identity": {"identityType": "Managed"},
        "resources": {"instanceCount": 2, "shmSize": "64g", "properties": {"AISuperComputer": {"a": [1]}}},
        "limits": {"jobLimitsType": "Command", "timeout": "PT1H30M"},
        "tags": {"a": "b"},
    }
}


def changed(change: Callable[[dict], object]) -> dict:
    body = copy.deepcopy(JOB)
    change(body["properties"])
    return body


def test_a_legal_job_has_no_fault() -> None:
    assert ARM_KINDS.faults("JobBase", JOB, sent=True) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p: p.pop("command"), ".command: missing"),
        (lambda p: p.update(command="!"), "does not match"),
        (lambda p: p.update(command=None), ".command: missing"),
        (lambda p: p.update(jobType="Comand"), "'Comand' is none of"),
        (lambda p: p.update(jobType="Sweep"), "nothing is published about SweepJob"),
        (lambda p: p.update(comand="x"), "CommandJob has no such field"),
        (lambda p: p.update(status="Running"), "only the service writes this"),
        (lambda p: p.update(description=None), ".description: null"),
        (lambda p: p["environmentVariables"].update(A=1), "1 is no str"),
        (lambda p: p["inputs"]["code"].update(mode="Mount"), "'Mount' is none of"),
        (lambda p: p["inputs"]["code"].pop("uri"), ".uri: missing"),
        (lambda p: p["inputs"]["code"].update(jobInputType="file"), "'file' is none of"),
        (lambda p: p["outputs"]["out"].update(mode="ReadOnlyMount"), "'ReadOnlyMount' is none of"),
        (lambda p: p["distribution"].update(processCountPerInstance="4"), "'4' is no int"),
        (lambda p: p["distribution"].update(processCountPerInstance=True), "True is no int"),
        (lambda p: p["resources"].update(shmSize="64 GiB"), "does not match"),
        (lambda p: p["limits"].update(timeout="90m"), "is no duration"),
        (lambda p: p.update(tags=["a"]), "is no object"),
        (lambda p: p["identity"].update(identityType="None"), "'None' is none of"),
    ],
)
def test_a_job_that_breaks_a_rule_has_a_fault(change: Callable[[dict], object], words: str) -> None:
    faults = ARM_KINDS.faults("JobBase", changed(change), sent=True)
    assert len(faults) == 1
    assert words in faults[0]


def test_what_the_service_writes_may_be_answered() -> None:
    assert ARM_KINDS.faults("JobBase", changed(lambda p: p.update(status="Running")), sent=False) == []
    faults = ARM_KINDS.faults("JobBase", changed(lambda p: p.update(status="Walking")), sent=False)
    assert faults == [f"JobBase.properties.status: 'Walking' is none of {ARM_KINDS.enums['JobStatus']}"]


def test_bounds_and_flattened_fields() -> None:
    graph = Definitions("resourcegraph-2021-03-01.json")
    body = {"query": "x", "options": {"$top": 1001, "resultFormat": "object"}}
    assert len(graph.faults("QueryRequest", body, sent=True)) == 2
    assert graph.faults("QueryRequest", {"options": {}}, sent=True) == ["QueryRequest.query: missing"]
    space = {"properties": {"discoveryUrl": 5, "unheard": 1}}
    assert len(ARM_KINDS.faults("Workspace", space, sent=False)) == 2


def got(method: str, path: str, body: object = None, headers: dict[str, str] | None = None, **query: str) -> Got:
    usual = {
        "authorization": "Bearer good",
        "user-agent": "aj/1",
        "x-ms-client-request-id": str(uuid.uuid4()),
        "content-type": "application/json",
    }
    asked = {"api-version": "2024-04-01", **query}
    raw = b"" if body is None else json.dumps(body).encode()
    return Got(method, path, tuple((n, v) for n, v in asked.items() if v), {**usual, **(headers or {})}, raw)


@pytest.mark.rule("A-210")
@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (got("GET", WS + "/job"), "no such route"),
        (got("PATCH", "/subscriptions"), "no such route"),
        (got("GET", WS + "/jobs//cancel"), "no such route"),
        (got("GET", WS + "/jobs", **{"api-version": "2023-10-01"}), "api-version 2023-10-01 instead of 2024-04-01"),
        (got("GET", WS + "/jobs", **{"api-version": ""}), "api-version None instead of 2024-04-01"),
        (got("GET", WS + "/jobs", status="Running"), "query status is not documented"),
        (got("GET", WS + "/jobs", listViewType="Active"), "listViewType Active is none of"),
        (got("PUT", WS + "/jobs/a", {}), "JobBase.properties: missing"),
        (got("PUT", WS + "/jobs/-a", JOB), "'-a' is no name"),
        (got("PUT", WS + "/jobs/a"), "the body is not JSON"),
        (got("POST", WS + "/jobs/a/cancel", {}), "this takes no body"),
        (got("GET", WS + "/jobs", headers={"user-agent": "python"}), "User-Agent does not name aj"),
        (got("GET", WS + "/jobs", headers={"x-ms-client-request-id": "1"}), "is not a new uuid"),
        (got("PUT", WS + "/jobs/a", JOB, headers={"content-type": ""}), "a body without its content type"),
    ],
)
def test_a_request_that_breaks_a_rule_is_noted_and_refused(request_: Got, words: str) -> None:
    arm = Arm(tokens={"good": SCOPE}, scope=SCOPE)
    assert arm.answer(request_).status == 400
    assert len(arm.broken) == 1
    assert words in arm.broken[0]


def test_a_request_id_is_new_each_time() -> None:
    arm = Arm(tokens={"good": SCOPE}, scope=SCOPE)
    request = got("GET", WS + "/jobs")
    assert arm.answer(request).status == 200
    assert arm.answer(request).status == 400


@pytest.mark.rule("A-017")
def test_a_token_of_another_scope_is_noted_and_refused() -> None:
    arm = Arm(tokens={"good": SCOPE, "other": "https://ml.test/.default"}, scope=SCOPE)
    assert arm.answer(got("GET", WS + "/jobs", headers={"authorization": "Bearer bad"})).status == 401
    assert arm.broken == []
    assert arm.answer(got("GET", WS + "/jobs", headers={"authorization": "Bearer other"})).status == 401
    assert len(arm.broken) == 1


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("resources | project id, name", "does not end ordered by id"),
        ("things | order by id asc", "does not end ordered by id"),
        ("resources | limit 5 | order by id asc", "a step that is none: limit 5"),
        ("resources | where name =~ 'it's' | order by id asc", "a step that is none"),
        ("resources | project name | order by id asc", "a step that is none"),
    ],
)
def test_a_query_that_is_none_is_refused(query: str, words: str) -> None:
    arm = Arm(tokens={"good": SCOPE}, scope=SCOPE)
    body = {"subscriptions": ["s"], "query": query}
    path = "/providers/Microsoft.ResourceGraph/resources"
    assert arm.answer(got("POST", path, body, **{"api-version": "2021-03-01"})).status == 400
    assert words in arm.broken[0]


def test_a_fault_inside_a_server_fails_the_test(loopback: None) -> None:
    def fail(got: Got) -> None:
        raise ValueError("a planted fault")

    with (
        pytest.raises(AssertionError, match="a planted fault"),
        serving(fail) as server,  # type: ignore[arg-type]
        contextlib.suppress(OSError),
    ):
        urllib.request.urlopen(server.url, timeout=5)
