"""aj k8s login: one more cluster in the user's kubeconfig, whole or not at all, with the old one beside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from aj.store import atomic, kubeconfig
from tests.cli.conftest import Shell

pytestmark = pytest.mark.rule("C-039", "V-119")

PROFILE = """[clusters.lab]
server = "https://lab.example:6443"
issuer = "https://login.example"
client_id = "aj"
namespace = "training"
"""
GIVEN = """apiVersion: v1
kind: Config
current-context: prod
contexts: [{name: prod, context: {cluster: c1, user: u1}}]
clusters: [{name: c1, cluster: {server: "https://prod.example"}}]
users: [{name: u1, user: {token: hunter2}}]
preferences: {colors: true}
"""


@pytest.fixture
def file(aj: Shell) -> Path:
    aj.write(".azure_jobs/aj.toml", PROFILE)
    return aj.home.root / ".kube" / "config"


def read(file: Path) -> dict:
    return yaml.safe_load(file.read_text())


def test_a_profile_makes_a_kubeconfig_where_there_is_none(aj: Shell, file: Path) -> None:
    dry = aj("k8s", "login", "--profile", "lab", "-d", "--json")
    assert dry.json["status"] == "noop" and not file.exists()
    assert aj("k8s", "login", "--profile", "lab").code == 0
    found = read(file)
    assert found["current-context"] == "lab"
    assert found["contexts"] == [{"name": "lab", "context": {"cluster": "lab", "user": "lab", "namespace": "training"}}]
    assert found["users"][0]["user"]["exec"]["args"][1] == "--oidc-issuer-url=https://login.example"
    assert file.stat().st_mode & 0o777 == 0o600
    again = aj("k8s", "login", "--profile", "lab", "--json").json
    assert (again["status"], again["items"][0]["changed"]) == ("noop", [])


def test_what_stands_there_stays_and_the_old_file_is_kept(aj: Shell, file: Path) -> None:
    file.parent.mkdir()
    file.write_text(GIVEN)
    ran = aj("k8s", "login", "--profile", "lab", "--keep-current", "--cluster", "l1", "--context", "mine")
    assert ran.code == 0 and "config.aj-backup" in ran.err and "hunter2" not in ran.out + ran.err
    found = read(file)
    assert [one["name"] for one in found["contexts"]] == ["prod", "mine"]
    assert (found["current-context"], found["preferences"]) == ("prod", {"colors": True})
    assert found["users"][0] == {"name": "u1", "user": {"token": "hunter2"}}
    assert file.with_name("config.aj-backup").read_text() == GIVEN


def test_a_file_that_was_given_comes_in_and_a_taken_name_needs_force(aj: Shell, file: Path) -> None:
    aj("k8s", "login", "--profile", "lab")
    aj.write("given.yaml", GIVEN)
    assert aj("k8s", "login", "--from", "given.yaml", "-n", "team").code == 0
    assert read(file)["current-context"] == "prod"
    assert read(file)["contexts"][1]["context"] == {"cluster": "c1", "user": "prod", "namespace": "team"}
    before = file.read_bytes()
    aj.write("given.yaml", GIVEN.replace("prod.example", "other.example"))
    refused = aj("k8s", "login", "--from", "given.yaml", "-n", "team")
    assert refused.code == 5 and "another entry c1 among its clusters" in refused.err
    assert file.read_bytes() == before
    assert aj("k8s", "login", "--from", "given.yaml", "-n", "team", "--force").code == 0
    assert read(file)["clusters"][1]["cluster"]["server"] == "https://other.example"


@pytest.mark.parametrize("fails", ["write", "verify"])
def test_a_login_that_fails_leaves_the_file_as_it_was(
    aj: Shell, file: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    file.parent.mkdir()
    file.write_text(GIVEN)
    real = atomic.write_bytes

    def torn(path: Path, data: bytes, mode: int = 0o600) -> None:
        if path != file or data == GIVEN.encode():
            real(path, data, mode)
        elif fails == "write":
            raise atomic.cannot_write(path, OSError(28, os.strerror(28)))
        else:
            real(path, data[:-20], mode)

    monkeypatch.setattr(kubeconfig.atomic, "write_bytes", torn)
    ran = aj("k8s", "login", "--profile", "lab")
    assert ran.code == 1
    assert file.read_text() == GIVEN


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "one of `--profile` and `--from`"),
        (("--profile", "lab", "--from", "x"), "one of `--profile` and `--from`"),
        (("--profile", "other"), "no profile [clusters.other]"),
        (("--from", "nowhere.yaml"), "is not there"),
        (("--from", "broken.yaml"), "broken.yaml:2"),
        (("--from", "empty.yaml"), "has no context"),
    ],
)
def test_words_that_lead_nowhere_change_nothing(aj: Shell, file: Path, words: tuple[str, ...], said: str) -> None:
    aj.write("broken.yaml", "a: [\n")
    aj.write("empty.yaml", "{}\n")
    ran = aj("k8s", "login", *words)
    assert (ran.code, said in ran.err) == (2, True), ran.err
    assert not file.exists()


def test_a_profile_is_checked_at_file_and_line(aj: Shell) -> None:
    aj.write(".azure_jobs/aj.toml", '[clusters.lab]\nserver = "https://x"\nissuer = "https://y"\n')
    ran = aj("k8s", "login", "--profile", "lab")
    assert ran.code == 2 and "client_id is missing" in ran.err and "aj.toml:1" in ran.err
