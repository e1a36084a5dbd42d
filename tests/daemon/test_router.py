"""Requests to answers: routes, projects, keys, errors, and nothing stored for what is malformed."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from aj.model.log import Chunk
from aj.model.record import Record, RecordState
from aj.model.state import JobState
from aj.store import joblogs, jobs
from aj.wire import codec, paths
from tests.client.test_line import submission
from tests.daemon.inside import Inside
from tests.daemon.small import spec, workload

KEY = {"Aj_Key": "k-1"}


def error(document: dict[str, object]) -> dict[str, object]:
    found = document["error"]
    assert isinstance(found, dict)
    return found


def test_every_route_has_its_function(inside: Inside) -> None:
    assert set(inside.server.router.handlers) == set(paths.ALL)


@pytest.mark.rule("C-204", "C-212")
def test_hello_says_who_and_how_busy(inside: Inside) -> None:
    status, hello = inside.ask("GET", "/v1/hello")
    assert status == 200
    assert hello["name"] == "aj" and hello["pid"] == os.getpid() and hello["retiring"] is False
    assert hello["capabilities"] == list(paths.CAPABILITIES)
    assert hello["busy"]["requests"] == 0  # type: ignore[index,call-overload]
    assert hello["socket"] == str(inside.socket)


@pytest.mark.rule("C-212")
def test_ping_and_health_answer(inside: Inside, tmp_path: Path) -> None:
    assert inside.ask("GET", "/v1/ping")[0] == 200
    inside.ask("POST", "/v1/submissions", submission("0" * 8, "until", str(tmp_path / "go")))
    inside.ask("POST", "/v1/submissions", submission("1" * 8, "queued"))
    status, health = inside.ask("GET", "/v1/health")
    assert status == 200
    assert health["threads"] >= 2 and health["requests"] == 1  # type: ignore[operator]
    assert health["oldest_queued_s"] >= 0 and health["longest_running_s"] >= 0  # type: ignore[operator]
    (tmp_path / "go").touch()


@pytest.mark.rule("C-208")
def test_a_request_bears_its_id(inside: Inside) -> None:
    found = inside.exchange(b"GET /v1/ping HTTP/1.1\r\nHost: x\r\nAj-Request: my-id-1\r\n\r\n")
    assert b"\r\naj-request: my-id-1\r\n" in found
    assert "my-id-1 GET /v1/ping" in inside.home.layout.daemon_log.read_text()
    odd = inside.exchange(b'GET /v1/ping HTTP/1.1\r\nHost: x\r\nAj-Request: "odd" one\r\n\r\n')
    assert b"odd" not in odd and b"\r\naj-request: " in odd


@pytest.mark.rule("C-208", "C-290")
@pytest.mark.parametrize("name", ["plain", "p 5 ü", "line\nbreak", "%2F", "odd\udcff"])
def test_a_project_is_named_by_its_path(inside: Inside, name: str) -> None:
    project = inside.home.project(name)
    where = quote(os.fsencode(project.directory))
    assert inside.ask("POST", "/v1/submissions", submission("0" * 8, "ok"), Aj_Project=where)[0] == 202
    _, found = inside.ask("GET", "/v1/queue", Aj_Project=where)
    assert [ticket["project"] for ticket in found["tickets"]] == [project.key]  # type: ignore[union-attr,index,attr-defined]
    assert inside.ask("GET", "/v1/queue")[1]["tickets"] == []


@pytest.mark.rule("C-208")
@pytest.mark.parametrize("path", ["relative", "/no/such/folder", "/etc/passwd", "/a%00b"])
def test_a_project_that_is_no_folder_is_refused(inside: Inside, path: str) -> None:
    status, document = inside.ask("GET", "/v1/queue", Aj_Project=path)
    assert (status, error(document)["type"]) == (400, "UserError")


@pytest.mark.rule("C-220", "C-292")
@pytest.mark.parametrize(
    ("method", "target", "status", "code"),
    [
        ("GET", "/v1/nothing", 404, "no-route"),
        ("GET", "/v1/queue/..%2Fqueue", 404, "no-such-ticket"),
        ("GET", "/v1/queue/a%2Fb", 404, "no-such-ticket"),
        ("GET", "/v1/queue/", 404, "no-such-ticket"),
        ("GET", "/v1/queue/..", 404, "no-such-ticket"),
        ("GET", "/v1/jobs/x%2Fy", 404, "no-such-job"),
        ("GET", "/v1/jobs/unknown", 404, "no-such-job"),
        ("PUT", "/v1/queue", 405, "bad-request"),
        ("DELETE", "/v1/hello", 405, "bad-request"),
        ("HEAD", "/v1/hello", 405, "bad-request"),
        ("GET", "/v1/queue?nope=1", 422, "bad-field"),
        ("GET", "/v1/queue?all=yes", 422, "bad-field"),
        ("GET", "/v1/queue?all=1&all=1", 422, "bad-field"),
        ("GET", "/v1/queue?limit=-1", 422, "bad-field"),
        ("GET", "/v1/queue?limit=%D9%A3", 422, "bad-field"),
        ("GET", "/v1/queue?state=nope", 422, "bad-field"),
        ("GET", "/v1/queue/x/wait?timeout_s=1e9", 422, "bad-field"),
    ],
)
def test_what_cannot_be_asked_is_told(inside: Inside, method: str, target: str, status: int, code: str) -> None:
    found, document = inside.ask(method, target, b"")
    assert (found, error(document)["code"]) == (status, code)


@pytest.mark.rule("C-209", "C-297")
@pytest.mark.parametrize(
    ("body", "status", "path"),
    [
        (b'{"service":"zzz"}', 422, "body.service"),
        (b'{"payload":"str"}', 422, "body.payload"),
        (b'{"key":"00000000","mode":"direct"}', 422, "body.spec"),
        (b'{"key":7,"mode":"direct","spec":{}}', 422, "body.key"),
        (b'{"key":"0","mode":"later","spec":{}}', 422, "body.mode"),
        (b"[]", 422, "body"),
        (b"{", 400, "body"),
        (b'{"key": NaN}', 400, "body"),
        (b"\xff", 400, "body"),
        (b"[" * 100_000, 400, "body"),
    ],
)
def test_a_malformed_body_is_refused_with_its_path(inside: Inside, body: bytes, status: int, path: str) -> None:
    found, document = inside.ask("POST", "/v1/submissions", body)
    assert found == status
    assert str(error(document)["message"]).startswith(path)
    assert inside.ask("GET", "/v1/queue?all=1")[1]["tickets"] == []


@pytest.mark.rule("C-209")
def test_an_unknown_field_deep_inside_is_named(inside: Inside) -> None:
    document = json.loads(submission("0" * 8, "ok"))
    document["spec"]["shape"]["gpuz"] = 1
    found, answer = inside.ask("POST", "/v1/submissions", json.dumps(document).encode())
    assert (found, error(answer)["message"]) == (422, "body.spec.shape.gpuz: unknown field")
    assert inside.engine.submits == 0


@pytest.mark.rule("C-209", "C-213")
def test_the_same_submission_again_is_answered_again(inside: Inside) -> None:
    body = submission("0" * 8, "ok")
    first = inside.ask("POST", "/v1/submissions", body)
    assert first[0] == 202
    assert inside.ask("POST", "/v1/submissions", body)[1]["ticket"]["id"] == "0" * 8  # type: ignore[index,call-overload]
    status, document = inside.ask("POST", "/v1/submissions", submission("0" * 8, "queued"))
    assert (status, error(document)["code"]) == (409, "key-reused")
    assert inside.ask("GET", "/v1/submissions/" + "0" * 8)[0] == 200


@pytest.mark.rule("C-209", "C-214", "C-295")
def test_a_change_is_made_once_a_key(inside: Inside) -> None:
    inside.ask("POST", "/v1/submissions", submission("0" * 8, "queued"))
    target = "/v1/queue/q-00000000/cancel"
    assert error(inside.ask("POST", target, b"")[1])["code"] == "no-key"
    first = inside.ask("POST", target, b"", **KEY)
    assert first[0] == 200 and first[1]["ticket"]["state"] == "canceled"  # type: ignore[index,call-overload]
    assert inside.ask("POST", target, b"", **KEY) == first
    status, document = inside.ask("POST", target, b"", Aj_Key="k-2")
    assert (status, error(document)["type"]) == (409, "Refused")
    status, document = inside.ask("POST", "/v1/queue/q-1/cancel", b"", **KEY)
    assert (status, error(document)["code"]) == (409, "key-reused")


@pytest.mark.rule("C-211")
def test_the_unforeseen_crosses_as_type_and_message_and_stands_in_the_log(inside: Inside) -> None:
    body = submission("0" * 8, "boom")
    status, document = inside.ask("POST", "/v1/submissions", body, Aj_Request="req-7")
    found = error(document)
    assert (status, found["type"], found["code"]) == (500, "Unexpected", "unexpected")
    assert found["message"] == "RuntimeError: boom, with token=***"
    assert "req-7" in str(found["hint"])
    assert "Traceback" not in json.dumps(document)
    log = inside.home.layout.daemon_log.read_text()
    assert "req-7 POST /v1/submissions: RuntimeError: boom" in log and "geheim" not in log
    assert inside.ask("GET", "/v1/ping")[0] == 200


@pytest.mark.rule("C-222")
def test_a_retiring_daemon_takes_no_new_work_and_answers_reads(inside: Inside) -> None:
    inside.ask("POST", "/v1/submissions", submission("0" * 8, "queued"))
    inside.gate.retiring.set()
    for target in ("/v1/submissions", "/v1/jobs"):
        status, document = inside.ask("POST", target, submission("1" * 8, "ok"))
        assert (status, error(document)["type"], error(document)["code"]) == (503, "DaemonError", "retiring")
    assert inside.ask("POST", "/v1/queue/q-00000000/retry", b"", **KEY)[0] == 503
    assert inside.ask("GET", "/v1/queue")[0] == 200
    assert inside.ask("POST", "/v1/queue/q-00000000/cancel", b"", **KEY)[0] == 200
    assert inside.ask("GET", "/v1/hello")[1]["retiring"] is True


@pytest.mark.rule("C-212")
def test_retire_answers_before_the_daemon_is_gone(inside: Inside) -> None:
    assert inside.ask("POST", "/v1/retire", b'{"force": false}')[0] == 202
    assert inside.ask("POST", "/v1/retire", b"")[0] == 202
    assert inside.ask("POST", "/v1/retire", b'{"force": 1}')[0] == 422
    assert inside.lifecycle.wait() == "stopped"


@pytest.mark.rule("C-215")
def test_jobs_are_listed_shown_ended_and_removed(inside: Inside) -> None:
    jobs = inside.engine.jobs
    jobs.put(workload("job-1", JobState.RUNNING))
    jobs.put(workload("job-2", JobState.COMPLETED, project_key="other-1"))
    assert [job["id"] for job in inside.ask("GET", "/v1/jobs")[1]["jobs"]] == ["job-1"]  # type: ignore[union-attr,index,attr-defined]
    assert len(inside.ask("GET", "/v1/jobs?all=1")[1]["jobs"]) == 2  # type: ignore[arg-type]
    assert len(inside.ask("GET", "/v1/jobs?all=1&state=completed,errored")[1]["jobs"]) == 1  # type: ignore[arg-type]
    assert inside.ask("GET", "/v1/jobs?all=1&limit=1")[1]["truncated"] is True
    assert inside.ask("GET", "/v1/jobs/job-1/events")[1]["events_total"] == 1
    status, plan = inside.ask("POST", "/v1/jobs/job-1/exec", b'{"argv": ["nvidia-smi", "-L"], "rank": 2}', **KEY)
    assert (status, plan["argv"], plan["env"]) == (200, ["nvidia-smi", "-L"], {"RANK": "2"})
    assert inside.ask("POST", "/v1/jobs/job-1/exec", b'{"argv": []}', Aj_Key="k-3")[0] == 422
    assert inside.ask("POST", "/v1/jobs/job-1/resubmit", b"{}", Aj_Key="k-4")[0] == 409
    _, ended = inside.ask("POST", "/v1/jobs/job-1/terminate", b'{"grace_s": 5}', Aj_Key="k-5")
    assert ended["workload"]["state"] == "terminated"  # type: ignore[index,call-overload]
    assert inside.ask("POST", "/v1/jobs/job-1/cancel", b"", Aj_Key="k-6")[0] == 200
    assert inside.ask("GET", "/v1/jobs/job-1/wait?after=2&timeout_s=9")[1]["events_total"] == 2
    assert inside.ask("DELETE", "/v1/jobs/job-1", Aj_Key="k-7")[0] == 200
    assert inside.ask("GET", "/v1/jobs/job-1")[0] == 404


@pytest.mark.rule("C-220", "T35")
def test_T35_reads_answer_while_submissions_are_stuck(inside: Inside, tmp_path: Path) -> None:
    go = tmp_path / "go"
    stuck = []
    for number in range(5):
        body = submission(str(number) * 8, "pack", str(go))
        line = inside.dial()
        line.sendall(
            b"POST /v1/submissions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
            + body
        )
        stuck.append(line)
    inside.ask("POST", "/v1/submissions", submission("9" * 8, "queued"))
    assert inside.ask("GET", "/v1/queue")[0] == 200
    health = inside.ask("GET", "/v1/health")[1]
    assert health["requests"] >= 5 and health["oldest_queued_s"] >= 0  # type: ignore[operator]
    go.touch()
    for line in stuck:
        with line:
            while line.recv(1 << 16):
                pass
    assert len(inside.ask("GET", "/v1/queue")[1]["tickets"]) == 6  # type: ignore[arg-type]


@pytest.mark.rule("C-216")
def test_the_journal_is_read_newest_first_with_what_is_damaged(inside: Inside) -> None:
    path = inside.home.layout.journal("_none")
    path.parent.mkdir(parents=True)
    lines = [
        json.dumps(codec.dump(Record(f"2026-01-0{n}", f"{n}" * 8, f"q-{n}", "direct", state, None, "t", "local", "n")))
        for n, state in ((1, RecordState.SUBMITTED), (2, RecordState.FAILED), (3, RecordState.SUBMITTED))
    ]
    path.write_text("\n".join([lines[0], "{garbage", *lines[1:], ""]))
    found = inside.ask("GET", "/v1/journal?limit=2")[1]
    assert [record["id"][0] for record in found["records"]] == ["3", "2"]  # type: ignore[union-attr,index,attr-defined]
    assert found["truncated"] is True and found["warnings"] == [f"{path}:2: not a record"]
    assert len(inside.ask("GET", "/v1/journal?all=1&limit=0")[1]["records"]) == 3  # type: ignore[arg-type]


@pytest.mark.rule("C-215")
def test_what_a_job_wrote_is_given_byte_for_byte(inside: Inside) -> None:
    layout = inside.home.layout
    jobs.create(layout, replace(workload("01234567", JobState.RUNNING), spec=spec("01234567")))
    for attempt, data in ((1, b"old\n"), (2, b"one\ntwo \xff\n")):
        file = joblogs.log_file(layout.job("01234567"), attempt, 0, "out")
        file.parent.mkdir(parents=True)
        file.write_bytes(data)

    def written(query: str) -> bytes:
        chunks = inside.ask("GET", f"/v1/jobs/01234567/logs{query}")[1]["chunks"]
        return b"".join(codec.load(Chunk, chunk).data for chunk in chunks)  # type: ignore[union-attr,attr-defined]

    assert written("") == b"one\ntwo \xff\n"
    assert written("?tail=1") == b"two \xff\n"
    assert written("?attempt=1") == b"old\n"
    assert written("?rank=3") == b""
    assert inside.ask("GET", "/v1/jobs/89abcdef/logs")[0] == 404
