"""Programs in pods: what goes in and comes out byte for byte, how they end, and every way in which the line breaks."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from aj.base.clock import SYSTEM, Clock
from aj.base.errors import AuthError, NotFound, Refused, RemoteError, Unavailable
from aj.base.settings import Settings
from aj.kube import config, exec
from aj.kube.client import Cluster
from tests.servers import kube
from tests.servers.kube import NAMESPACE, Turn

pytestmark = pytest.mark.usefixtures("loopback", "programs", "real_clock")
LIMIT_S = 60.0


def reach(cluster: kube.Cluster, folder: Path, clock: Clock = SYSTEM) -> Cluster:
    """A client of ours that speaks to the server by its kubeconfig."""
    settings = Settings({"KUBECONFIG": str(cluster.config), "PATH": os.environ["PATH"]})
    return Cluster(config.read(settings).access(kube.CONTEXT), settings, clock, folder / "kube")


def a_pod(cluster: kube.Cluster, name: str = "one") -> None:
    """A pod that runs."""
    cluster.kube.add("pods", name, spec={"containers": [{"name": "main", "image": "x:1"}]})


@pytest.fixture
def server(tmp_path: Path) -> Iterator[kube.Cluster]:
    with kube.running(tmp_path) as cluster:
        a_pod(cluster)
        yield cluster


@pytest.fixture
def ours(server: kube.Cluster, tmp_path: Path) -> Iterator[Cluster]:
    cluster = reach(server, tmp_path)
    yield cluster
    cluster.close()


def start(ours: Cluster, *argv: str, pod: str = "one") -> contextlib.closing[exec.Stream]:
    return contextlib.closing(exec.start(ours, pod, argv, namespace=NAMESPACE, container="main"))


def until_end(stream: exec.Stream) -> tuple[bytes, bytes]:
    """Listen until the end was told."""
    out, err = b"", b""
    limit = SYSTEM.monotonic() + LIMIT_S
    while stream.ended is None:
        assert SYSTEM.monotonic() < limit
        heard = stream.poll()
        out, err = out + heard.out, err + heard.err
    return out, err


@pytest.mark.rule("V-065")
def test_every_byte_goes_in_and_comes_out_as_it_was(ours: Cluster) -> None:
    sent = bytes(range(256)) * 4096 * 3 + os.urandom(12345)
    with start(ours, "sh", "-c", 'head -c "$1"; echo told >&2; exit 7', "sh", str(len(sent))) as stream:
        stream.write(sent)
        out, err = until_end(stream)
        assert stream.unsent == 0
    assert hashlib.sha256(out).digest() == hashlib.sha256(sent).digest()
    assert err == b"told\n"
    assert (stream.ended.code, "exit status 7" in stream.ended.words) == (7, True)  # type: ignore[union-attr]


def test_the_input_is_ended_where_the_protocol_can(ours: Cluster) -> None:
    with start(ours, "cat") as stream:
        stream.write(b"to the end")
        assert stream.protocol == exec.V5
        assert stream.end_input()
        assert until_end(stream) == (b"to the end", b"")
    assert stream.ended == exec.Ended(0)


def test_the_older_protocol_is_spoken_too(server: kube.Cluster, ours: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.servers.kube_exec.PROTOCOLS", (exec.V4,) * 2)
    with start(ours, "sh", "-c", "head -c 5") as stream:
        assert stream.protocol == exec.V4
        assert not stream.end_input()
        stream.write(b"12345 and more")
        assert until_end(stream) == (b"12345", b"")


def test_a_program_is_run_to_its_end(server: kube.Cluster, ours: Cluster) -> None:
    words = ("sh", "-c", "cat; echo out; echo err >&2; exit 3")
    done = exec.run(ours, "one", words, namespace=NAMESPACE)
    assert done == exec.Finished(3, b"out\n", b"err\n")
    with pytest.raises(RemoteError, match="could not do it: err"):
        exec.succeeded(done, "do it")
    assert exec.succeeded(exec.Finished(0, b"x", b""), "do it") == b"x"
    (got,) = server.requests(words="/exec")
    assert [value for name, value in got.query if name == "command"] == list(words)


class Hurrying:
    """A clock on which ten seconds pass between two looks at it."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return SYSTEM.now()

    def monotonic(self) -> float:
        self.at += 10
        return self.at

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        return SYSTEM.wait(event, timeout_s)

    def sleep(self, seconds: float) -> None:
        self.at += seconds


def test_a_program_that_takes_too_long_is_left(server: kube.Cluster, tmp_path: Path) -> None:
    hurried = reach(server, tmp_path, Hurrying())
    words = ("sh", "-c", "exec sleep 600")
    with pytest.raises(Unavailable, match="sh in pod one did not end within 60 s"):
        exec.run(hurried, "one", words, namespace=NAMESPACE, limit_s=60)


@pytest.mark.parametrize("is_cut_in", ["stdin", "stdout"])
@pytest.mark.rule("V-066")
def test_a_line_that_breaks_says_so_after_all_that_came(server: kube.Cluster, ours: Cluster, is_cut_in: str) -> None:
    turn = Turn(after_stdin=70_000) if is_cut_in == "stdin" else Turn(after_stdout=70_000)
    server.nodes.turns.append(("cat", turn))
    with start(ours, "cat") as stream:
        stream.write(b"x" * 200_000)
        out = b""
        with pytest.raises(Unavailable, match="the line to the pod broke") as caught:
            for _ in range(10_000):
                out += stream.poll().out
        assert caught.value.code == "line-broke"
        assert set(out) <= {ord("x")}
        assert len(out) == 70_000 or is_cut_in == "stdin"
        with pytest.raises(Unavailable):
            stream.poll()


def test_a_container_that_goes_while_a_program_runs(server: kube.Cluster, ours: Cluster) -> None:
    server.nodes.turns.append(("cat", Turn(after_stdin=10, kills=True, cut=True)))
    with start(ours, "cat") as stream:
        stream.write(b"more than ten bytes")
        with pytest.raises(Unavailable, match="broke"):
            until_end(stream)


def test_a_program_that_cannot_be_run(ours: Cluster) -> None:
    with pytest.raises(RemoteError, match=r"pod one could not run the program: .*no-such-program"):
        exec.run(ours, "one", ("no-such-program",), namespace=NAMESPACE)


@pytest.mark.rule("V-104", "V-127")
def test_what_the_server_refuses_is_one_of_our_errors(server: kube.Cluster, ours: Cluster) -> None:
    with pytest.raises(NotFound, match="pod none"):
        exec.start(ours, "none", ["true"], namespace=NAMESPACE)
    server.nodes.fate("over", kube.exits(1, after=0))
    a_pod(server, "over")
    with pytest.raises(Refused, match="completed pod"):
        exec.start(ours, "over", ["true"], namespace=NAMESPACE)
    server.server.on("exec", kube.status(401, "who are you"))
    with pytest.raises(AuthError):
        exec.start(ours, "one", ["true"], namespace=NAMESPACE)
    server.kube.users[kube.TOKEN] = kube.User("ann", frozenset({("get", "pods")}))
    with pytest.raises(Refused, match=r"no right to get pods/exec in namespace training as user ann") as caught:
        exec.start(ours, "one", ["true"], namespace=NAMESPACE)
    assert caught.value.code == "forbidden"
    server.kube.users[kube.TOKEN] = kube.User("ann", frozenset({("get", "pods"), ("get", "pods/exec")}))
    with pytest.raises(Refused, match=r"no right to create pods/exec in namespace training as user me") as caught:
        exec.start(ours, "one", ["true"], namespace=NAMESPACE)  # of this one the server says no word
    assert caught.value.code == "forbidden"
    assert caught.value.hint == "ask the cluster's owner for pods/exec: create, get"


def test_a_rule_against_programs_in_a_pod_is_told_in_its_own_words(server: kube.Cluster, ours: Cluster) -> None:
    words = 'pods "one" is forbidden: cannot exec into or attach to a privileged container'
    server.server.on("exec", kube.status(403, words))
    with pytest.raises(Refused, match="cannot exec into or attach to a privileged container") as caught:
        exec.start(ours, "one", ["true"], namespace=NAMESPACE)
    assert caught.value.code == "admission"


def test_a_server_that_is_not_there_or_not_trusted(server: kube.Cluster, ours: Cluster, tmp_path: Path) -> None:
    kept = server.authority
    server.authority = b""
    server.write(server.config)
    stranger = reach(server, tmp_path)
    with pytest.raises(Unavailable, match=r"certificate of 127\.0\.0\.1:\d+ is not trusted"):
        exec.start(stranger, "one", ["true"], namespace=NAMESPACE)
    server.authority = kept
    server.server.close()
    with pytest.raises(Unavailable, match="does not take the call"):
        exec.start(ours, "one", ["true"], namespace=NAMESPACE)


def test_how_an_end_is_read() -> None:
    assert exec._ended(b'{"status": "Success"}') == exec.Ended(0)
    assert exec._ended(b"no json").words == "no json"
    assert exec._ended(b"[1]") == exec.Ended(None, "[1]")
    assert exec._ended(b'{"status": "Failure"}') == exec.Ended(None, "it does not say why")
    assert exec._ended(b'{"status":"Failure","message":"gone","reason":"InternalError"}') == exec.Ended(None, "gone")
