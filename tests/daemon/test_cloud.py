"""Routes of Azure: what the words of a query mean, signs of life while Azure is slow, errors as they are."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from aj.base.errors import AuthError, NotFound
from aj.base.paths import Project
from aj.client.client import Client
from aj.model.cloudjob import CloudJob
from aj.model.state import JobState
from aj.wire.azure import (
    CloudJobAnswer,
    CloudJobList,
    FilePage,
    InventoryQuery,
    JobQuery,
    LogFiles,
    QuotaList,
    SignIn,
    Told,
)
from aj.wire.messages import Done
from tests.daemon.inside import Inside

JOB = CloudJob("a b", "s/g/w", "aml", "Running", JobState.RUNNING, tags={"x": "1"})
TOLD = Told("2026-01-01T00:00:00.000000Z", 3.5, is_stale=True, problem="no network")


@dataclass
class Sky:
    """Remembers what it was asked."""

    asked: list[tuple[Any, ...]] = field(default_factory=list)
    gate: threading.Event | None = None

    def sign_in(self, project: Project | None) -> SignIn:
        raise AuthError("not signed in: cli: no az", hint="`az login`", details={"sources": {"cli": "no az"}})

    def quota(self, project: Project | None, query: InventoryQuery) -> QuotaList:
        self.asked.append((project, query))
        if self.gate:
            assert self.gate.wait(10)
        return QuotaList((), TOLD, 3)

    def jobs(self, project: Project | None, workspace: str, query: JobQuery) -> CloudJobList:
        self.asked.append((workspace, query))
        return CloudJobList((JOB,), None, 1)

    def job(self, project: Project | None, workspace: str, name: str, *, why: bool = False) -> CloudJobAnswer:
        raise NotFound(f"no {name}")

    def cancel(self, project: Project | None, workspace: str, name: str) -> CloudJobAnswer:
        self.asked.append((workspace, name))
        return CloudJobAnswer(JOB, was_final=True)

    def delete(self, project: Project | None, workspace: str, name: str) -> Done:
        self.asked.append((workspace, name))
        return Done("noop")

    def files(self, project: Project | None, workspace: str, name: str, *, sizes: bool) -> LogFiles:
        self.asked.append((workspace, name, sizes))
        return LogFiles((), JOB)

    def log(self, *words: Any) -> FilePage:
        self.asked.append(words[1:])
        return FilePage(b"\xff\n", "c2", was_reset=True)


@pytest.fixture
def sky(inside: Inside) -> Sky:
    inside.engine.cloud = Sky()  # type: ignore[attr-defined]
    return inside.engine.cloud  # type: ignore[attr-defined,no-any-return]


@pytest.fixture
def client(inside: Inside, sky: Sky) -> Iterator[Client]:
    with Client(inside.home.settings, inside.home.project()) as client:
        yield client


@pytest.mark.rule("C-218")
def test_an_inventory_crosses_with_its_age(client: Client, sky: Sky, inside: Inside) -> None:
    query = InventoryQuery("sub", refresh=True, every=True, full=True, services=("aml",))
    assert client.inventory.quota(query) == QuotaList((), TOLD, 3)
    assert sky.asked == [(inside.home.project(), query)]
    client.inventory.quota(InventoryQuery())
    assert sky.asked[1][1] == InventoryQuery()
    assert inside.ask("GET", "/v1/quota?service=amlt")[0] == 422
    assert inside.ask("GET", "/v1/quota?refresh=yes")[0] == 422
    assert inside.ask("GET", "/v1/skus?service=aml")[0] == 422


@pytest.mark.rule("C-218", "C-210")
def test_a_slow_answer_shows_signs_of_life(hasty: Inside) -> None:
    sky = Sky(gate=threading.Event())
    hasty.engine.cloud = sky  # type: ignore[attr-defined]
    with hasty.dial() as line:
        line.sendall(b"GET /v1/quota HTTP/1.1\r\nHost: x\r\n\r\n")
        assert line.recv(1 << 16).startswith(b"HTTP/1.1 100 ")
        assert sky.gate is not None
        sky.gate.set()
        found = b""
        while b"left_out" not in found:
            found += line.recv(1 << 16)
    assert b"HTTP/1.1 200 " in found


@pytest.mark.rule("A-022", "C-035", "C-211")
def test_an_error_keeps_its_kind_its_hint_and_its_details(client: Client) -> None:
    with pytest.raises(AuthError, match="not signed in: cli: no az") as caught:
        client.inventory.auth()
    assert (caught.value.hint, caught.value.details) == ("`az login`", {"sources": {"cli": "no az"}})
    with pytest.raises(NotFound, match="no a%2Fb ü"):
        client.cloud_jobs.show("-", "a%2Fb ü")


@pytest.mark.rule("C-218", "A-162")
def test_every_word_of_a_list_arrives(client: Client, sky: Sky) -> None:
    query = JobQuery(("running", "x,y"), "e", "Command", ("a:b=c", "d, e"), 90.5, archived=True, limit=7)
    assert client.cloud_jobs.list("*", query).jobs == (JOB,)
    client.cloud_jobs.list("t:s:g:w", JobQuery())
    assert sky.asked == [("*", query), ("t:s:g:w", JobQuery())]


@pytest.mark.rule("C-218")
def test_changes_and_files_cross(client: Client, sky: Sky) -> None:
    assert client.cloud_jobs.cancel("-", "a b") == CloudJobAnswer(JOB, was_final=True)
    assert client.cloud_jobs.delete("-", "a b") == Done("noop")
    assert client.cloud_jobs.files("-", "a b", sizes=True).job == JOB
    page = client.cloud_jobs.page("-", "a b", "logs/x y", tail=3)
    assert (page.data, page.was_reset) == (b"\xff\n", True)
    client.cloud_jobs.page("-", "a b", "logs/x y", cursor="c2", tail=3)
    assert sky.asked == [
        ("-", "a b"),
        ("-", "a b"),
        ("-", "a b", True),
        ("-", "a b", "logs/x y", None, 3),
        ("-", "a b", "logs/x y", "c2", None),
    ]
