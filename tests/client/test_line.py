"""One conversation: errors in their class, reads asked again, changes never twice."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from aj.base import proc
from aj.base.errors import DaemonError, NotFound, UserError
from aj.client import api
from aj.client.client import Client
from aj.client.launch import Telling
from aj.model.ticket import Mode
from aj.version import VERSION
from aj.wire import codec, paths
from aj.wire.errors import Unexpected
from aj.wire.messages import Submission
from tests.conftest import Home
from tests.daemon.inside import Inside
from tests.daemon.small import spec


def submission(key: str, *argv: str) -> bytes:
    """The body of a submission that the small engine understands."""
    return json.dumps(codec.dump(Submission(key, Mode.DIRECT, spec(key, *argv)))).encode()


@pytest.fixture
def client(inside: Inside) -> Iterator[Client]:
    with Client(inside.home.settings) as client:
        yield client


@pytest.mark.rule("C-211", "C-292")
@pytest.mark.parametrize("word", ["../queue", "a/b", "unknown", "q-\udcff", "%2F", "."])
def test_a_refusal_comes_back_in_its_class(client: Client, word: str) -> None:
    with pytest.raises(NotFound, match="no such ticket"):
        client.queue.show(word)
    with pytest.raises(NotFound, match=r"no such job|no job"):
        client.jobs.show(word)


@pytest.mark.rule("C-005", "C-292")
def test_an_empty_id_names_nothing(client: Client) -> None:
    for ask in (client.queue.show, client.queue.cancel, client.jobs.show, client.jobs.delete, client.jobs.find):
        with pytest.raises(UserError, match="empty"):
            ask("")


@pytest.mark.rule("C-211")
def test_the_unforeseen_comes_back_as_such(client: Client) -> None:
    with pytest.raises(Unexpected, match="RuntimeError: boom") as error:
        client.submissions.submit(spec("0" * 8, "boom"), Mode.DIRECT)
    assert error.value.exit_code == 70


@pytest.mark.rule("C-204")
def test_a_daemon_that_does_not_know_a_thing_is_told_apart(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "CAPABILITIES", ("admin", "queue"))
    assert client.queue.list().tickets == ()
    with pytest.raises(DaemonError) as error:
        client.jobs.list()
    assert error.value.message == f"the daemon (aj {VERSION}) does not know 'jobs'"
    assert error.value.hint == "`aj daemon restart`"


@pytest.mark.rule("C-207")
def test_a_full_daemon_is_asked_again(inside: Inside, client: Client) -> None:
    client.queue.list()
    client.close()
    lines = [inside.dial() for _ in range(paths.MAX_CONNECTIONS)]
    threading.Timer(0.3, lambda: [line.close() for line in lines]).start()
    assert client.submissions.submit(spec("0" * 8, "ok"), Mode.DIRECT, wait=True).ticket.outcome == "submitted"


@pytest.mark.rule("C-206")
def test_another_environment_is_told_once_and_only_when_work_begins(inside: Inside) -> None:
    told: list[tuple[str, ...]] = []
    home = inside.home.having(KUBECONFIG="/other", AJ_NAME="mine")
    with Client(home.settings, telling=Telling(drift=told.append)) as client:
        client.queue.list()
        assert told == []
        for aj_id in ("00000000", "11111111"):
            client.submissions.submit(spec(aj_id, "ok"), Mode.DIRECT)
    assert told == [("KUBECONFIG",)]


@pytest.mark.rule("WA-10")
def test_a_daemon_of_another_state_folder_is_given_nothing(inside: Inside, tmp_path: Path) -> None:
    runtime = str(inside.home.folders.runtime)
    other = inside.home.having(AJ_STATE_DIR=str(tmp_path / "other"), AJ_RUNTIME_DIR=runtime)
    with Client(other.settings) as client:
        for ask in (client.queue.list, lambda: client.submissions.submit(spec("0" * 8, "ok"), Mode.DIRECT)):
            with pytest.raises(DaemonError) as error:
                ask()
            assert (error.value.code, error.value.exit_code) == ("other-state", 7)
            assert error.value.hint is not None and error.value.hint.startswith("`aj daemon restart`")
            assert str(tmp_path / "other") in error.value.message
    assert inside.engine.submits == 0 and not (tmp_path / "other").exists()
    linked = tmp_path / "link"
    linked.symlink_to(inside.home.folders.state)
    same = inside.home.having(AJ_STATE_DIR=str(linked), AJ_RUNTIME_DIR=runtime)
    with Client(same.settings) as client:
        assert client.queue.list().tickets == (), "the same folder by another name"


@pytest.mark.rule("C-208")
def test_a_client_speaks_of_its_project(inside: Inside) -> None:
    project = inside.home.project("p 5 ü")
    with Client(inside.home.settings, project) as client:
        client.submissions.submit(spec("0" * 8, "ok"), Mode.QUEUED)
        assert [ticket.project for ticket in client.queue.list().tickets] == [project.key]
    with Client(inside.home.settings) as other:
        assert other.queue.list().tickets == ()
        assert len(other.queue.list(all_projects=True).tickets) == 1


@pytest.mark.rule("C-207")
def test_a_submission_too_large_for_the_socket_is_refused(client: Client) -> None:
    with pytest.raises(UserError, match="16777216"):
        client.submissions.submit(spec("0" * 8, "ok", "x" * 17_000_000), Mode.DIRECT)
    assert client.queue.list(all_projects=True).tickets == ()


@pytest.mark.rule("C-224")
def test_a_daemon_that_goes_silent_is_hung(inside: Inside, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.queue.list()
    monkeypatch.setattr(paths, "SILENCE_S", 0.1)
    go = threading.Event()
    monkeypatch.setattr(inside.engine, "queue_list", lambda *_: go.wait(10))
    with pytest.raises(DaemonError) as error:
        client.queue.list()
    assert error.value.code == "hung"
    go.set()


@pytest.mark.rule("C-203")
def test_the_package_gives_the_client_when_asked() -> None:
    import aj

    assert aj.Client is api.Client
    with pytest.raises(AttributeError):
        aj.Nothing  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_client_imports_nothing_heavy(home: Home, programs: None) -> None:
    heavy = ("aj.engine", "aj.daemon", "aj.backend", "yaml", "cyclopts", "rich", "filelock", "http.client", "ssl")
    code = f"import sys, aj.client.client; print([name for name in {heavy!r} if name in sys.modules])"
    found = proc.run([sys.executable, "-I", "-c", code], env=home.env, timeout_s=30)
    assert found.out.decode().strip() == "[]", found.err.decode()
