"""Kubeconfig files: which context is meant, what it says, and what is told when it is not there."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml

from aj.base.errors import ConfigError
from aj.base.settings import Settings
from aj.kube import config


def kubeconfig(*contexts: str, current: str | None = None, **extra: object) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name, **({"namespace": "team"} if name == "a" else {})}}
            for name in contexts
        ],
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example:6443/"}} for name in contexts],
        "users": [{"name": name, "user": {"token": f"token-of-{name}"}} for name in contexts],
        **({"current-context": current} if current else {}),
        **extra,
    }


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return path


def settings(*files: Path, **env: str) -> Settings:
    return Settings({**({"KUBECONFIG": ":".join(map(str, files))} if files else {}), **env})


@pytest.mark.rule("V-001", "V-002")
def test_the_first_file_to_name_something_wins(tmp_path: Path) -> None:
    one = write(tmp_path / "one", kubeconfig("a"))
    two = write(tmp_path / "two", kubeconfig("a", "b", current="b"))
    found = config.read(settings(one, tmp_path / "absent", two))
    assert found.names == ("a", "b")
    current, first = found.access(), found.access("a")
    assert (current.context, current.server, current.namespace) == ("b", "https://b.example:6443", "default")
    assert current.namespace_from == "the context b names none"
    assert (first.namespace, first.namespace_from) == ("team", "the context a names it")
    assert found.access("a", "mine").namespace_from == "as asked"
    assert first.user.token == "token-of-a"
    assert "token-of-a" not in repr(found) + repr(first)


@pytest.mark.rule("V-001")
def test_without_the_variable_the_usual_file_is_read(tmp_path: Path) -> None:
    write(tmp_path / ".kube/config", kubeconfig("a", current="a"))
    assert config.read(settings(HOME=str(tmp_path))).access().context == "a"


@pytest.mark.rule("V-001", "V-120")
@pytest.mark.parametrize(
    ("asked", "current", "contexts", "words"),
    [
        ("x", "a", ("a", "b"), "no context called x in {file} (has: a, b)"),
        (None, "gone", ("a", "b"), "no context called gone in {file} (has: a, b)"),
        (None, None, ("a", "b"), "{file} has no current context (has: a, b)"),
        (None, None, (), "no context in {file}"),
        ("a", None, (), "no context in {file}"),
    ],
)
def test_a_context_that_is_not_there_is_never_replaced_by_another(
    tmp_path: Path, asked: str | None, current: str | None, contexts: tuple[str, ...], words: str
) -> None:
    file = write(tmp_path / "config", kubeconfig(*contexts, current=current))
    with pytest.raises(ConfigError) as caught:
        config.read(settings(file)).access(asked)
    assert str(caught.value) == words.format(file=file)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", ":2:1: this is not YAML"),
        ("- a", "is not a kubeconfig: a mapping is due"),
        ("contexts: {a: b}", "`contexts` is not a list"),
        ("contexts: [{context: {}}]", "`contexts` has an entry without a name"),
    ],
)
@pytest.mark.rule("V-001")
def test_a_file_that_is_none_is_told_with_its_place(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "config"
    file.write_text(content)
    with pytest.raises(ConfigError) as caught:
        config.read(settings(file))
    assert words in str(caught.value)


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no file"):
        config.read(settings(), tmp_path / "absent")


@pytest.mark.parametrize(
    ("server", "words"), [("", "not a plain"), ("ftp://x", "not a plain"), ("https://a\\b", "not a plain")]
)
def test_a_server_must_be_an_address(tmp_path: Path, server: str, words: str) -> None:
    content = kubeconfig("a", current="a", clusters=[{"name": "a", "cluster": {"server": server}}])
    with pytest.raises(ConfigError, match=words):
        config.read(settings(write(tmp_path / "config", content))).access()


def test_certificates_may_stand_in_the_file_or_beside_it(tmp_path: Path) -> None:
    def data(words: bytes) -> str:
        return base64.b64encode(words).decode()

    user = {"client-certificate-data": data(b"CERT"), "client-certificate": "c.pem", "client-key": "k.pem"}
    cluster = {
        "server": "https://x",
        "certificate-authority": "ca.pem",
        "tls-server-name": "y",
        "proxy-url": "http://p",
    }
    content = kubeconfig(
        "a",
        current="a",
        users=[{"name": "a", "user": user}],
        clusters=[{"name": "a", "cluster": cluster}],
    )
    found = config.read(settings(write(tmp_path / "config", content))).access()
    assert found.user.certificate == config.Pem(content=b"CERT")
    assert found.user.key == config.Pem(tmp_path / "k.pem")
    assert found.authority == config.Pem(tmp_path / "ca.pem")
    assert (found.tls_server_name, found.proxy, found.is_insecure) == ("y", "http://p", False)


def test_a_plugin_is_read_whole(tmp_path: Path) -> None:
    spec = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "kubelogin",
        "args": ["get-token"],
        "env": [{"name": "A", "value": "b"}],
        "installHint": "get it",
        "interactiveMode": "Always",
        "provideClusterInfo": True,
    }
    content = kubeconfig("a", current="a", users=[{"name": "a", "user": {"exec": spec}}])
    plugin = config.read(settings(write(tmp_path / "config", content))).access().user.plugin
    assert plugin is not None
    assert plugin.argv == ("kubelogin", "get-token")
    assert (plugin.env, plugin.hint, plugin.needs_terminal) == ({"A": "b"}, "get it", True)
    assert plugin.cluster is not None


def test_a_way_of_signing_in_that_is_gone_is_refused(tmp_path: Path) -> None:
    content = kubeconfig("a", current="a", users=[{"name": "a", "user": {"auth-provider": {"name": "azure"}}}])
    with pytest.raises(ConfigError, match="auth-provider"):
        config.read(settings(write(tmp_path / "config", content))).access()


@pytest.mark.rule("V-001", "V-002")
def test_a_pod_has_its_own_cluster(tmp_path: Path) -> None:
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text("t")
    (account / "namespace").write_text("here\n")
    env = settings(HOME=str(tmp_path), KUBERNETES_SERVICE_HOST="fd00::1", KUBERNETES_SERVICE_PORT="6443")
    found = config.read(env, account=account)
    access = found.access()
    assert (access.server, access.namespace, access.namespace_from) == (
        "https://[fd00::1]:6443",
        "here",
        "the context in-cluster names it",
    )
    assert access.user.token_file == account / "token"
    with pytest.raises(ConfigError, match="no context called x"):
        found.access("x")


@pytest.mark.rule("WA-04")
@pytest.mark.parametrize("proxy", ["http://ada:pass-word@h:99999", "socks5://ada:pass-word@h", "http://a b"])
def test_a_proxy_of_the_kubeconfig_that_is_none_is_told_without_its_password(tmp_path: Path, proxy: str) -> None:
    from aj.kube.line import Line

    cluster = {"server": "https://x", "proxy-url": proxy}
    content = kubeconfig("a", current="a", clusters=[{"name": "a", "cluster": cluster}])
    known = settings(write(tmp_path / "config", content))
    line = Line(config.read(known).access(), known, tmp_path)
    with pytest.raises(ConfigError, match="`proxy-url` of the cluster in the kubeconfig names no proxy") as error:
        line._proxy()
    assert "word" not in str(error.value)
