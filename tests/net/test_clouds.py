"""Clouds: the known ones, and one's own by a table."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import aj.net.clouds as clouds_room
from aj.base.errors import ConfigError, Place
from aj.net import clouds
from aj.net.origin import Origin

OWN: dict[str, object] = {
    "authority": "login.own.example",
    "arm": "https://arm.own.example:8443",
    "ml_scope": "https://ml.own.example/.default",
    "storage_suffix": "core.own.example",
    "data_plane_hosts": ["*.ml.own.example", "https://one.own.example:444"],
}


def own(**changes: object) -> clouds.Cloud:
    table = {name: value for name, value in {**OWN, **changes}.items() if value is not ...}
    return clouds.find("own", {"own": table}, place=Place("aj.toml", 3, 1))  # type: ignore[dict-item]


@pytest.mark.rule("A-015", "A-016")
@pytest.mark.parametrize(
    ("name", "authority", "arm", "ml", "blob"),
    [
        ("public", "login.microsoftonline.com", "management.azure.com", "ml.azure.com", "core.windows.net"),
        (
            "usgovernment",
            "login.microsoftonline.us",
            "management.usgovcloudapi.net",
            "ml.azure.us",
            "core.usgovcloudapi.net",
        ),
        ("china", "login.chinacloudapi.cn", "management.chinacloudapi.cn", "ml.azure.cn", "core.chinacloudapi.cn"),
    ],
)
def test_the_known_clouds(name: str, authority: str, arm: str, ml: str, blob: str) -> None:
    cloud = clouds.find(name, {})
    assert (str(cloud.authority), str(cloud.arm)) == (f"https://{authority}", f"https://{arm}")
    assert (cloud.arm_scope, cloud.ml_scope) == (f"https://{arm}/.default", f"https://{ml}/.default")
    assert clouds.BLOB_SCOPE == "https://storage.azure.com/.default"
    assert cloud.blob_url("acc") == f"https://acc.blob.{blob}"
    host = "westus3.api.azureml.ms" if name == "public" else f"a.{ml}"
    assert any(known.covers(Origin.of_url(f"https://{host}/x")) for known in cloud.data_plane)


@pytest.mark.rule("A-015b")
def test_a_cloud_of_ones_own() -> None:
    cloud = own()
    assert str(cloud.arm) == "https://arm.own.example:8443"
    assert cloud.arm_scope == "https://arm.own.example:8443/.default"
    assert cloud.blob_url("acc") == "https://acc.blob.core.own.example"
    assert cloud.is_private
    pattern = own(blob_endpoint="http://127.0.0.1:10000/{account}/")
    assert pattern.blob_url("acc") == "http://127.0.0.1:10000/acc"


@pytest.mark.rule("A-015b")
@pytest.mark.parametrize(
    "host", ["http://127.0.0.1:80", "http://localhost:5000", "http://[::1]:5000", "http://127.9.9.9"]
)
def test_plain_http_is_for_this_machine(host: str) -> None:
    assert own(arm=host).arm.scheme == "http"


@pytest.mark.rule("A-015b")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"arm": "http://arm.own.example"}, "has arm = "),
        ({"arm": "http://127.0.0.1.evil.example"}, "has arm = "),
        ({"arm": "http://0.0.0.0:80"}, "has arm = "),
        ({"arm": "*.own.example"}, "has arm = "),
        ({"arm": "https://arm.own.example/path"}, "names no host"),
        ({"arm": "https://ada:pw@arm.own.example"}, "names no host"),
        ({"arm": "arm.own.example:99999"}, "99999 is no port"),
        ({"arm": ""}, "has arm = ''"),
        ({"arm": 5}, "has arm = 5"),
        ({"arm": ...}, "lacks arm"),
        ({"ml_scope": "https://ml.own.example"}, "has ml_scope = "),
        ({"storage_suffix": "https://core"}, "has storage_suffix = "),
        ({"data_plane_hosts": "one"}, "has data_plane_hosts = "),
        ({"data_plane_hosts": []}, "has data_plane_hosts = "),
        ({"data_plane_hosts": ["http://a.example"]}, "has data_plane_hosts = "),
        ({"data_plane_hosts": ["*"]}, "names no host"),
        ({"blob_endpoint": "https://blob.own.example"}, "has blob_endpoint = "),
        ({"blob_endpoint": "http://{account}.own.example"}, "has blob_endpoint = "),
        ({"blob_endpoint": "ftp://{account}.own.example"}, "has blob_endpoint = "),
        ({"authorty": "x"}, "unknown key `authorty`"),
    ],
)
def test_a_table_that_is_wrong_says_where_and_what(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError) as error:
        own(**changes)
    assert words in error.value.message
    assert str(error.value).startswith("aj.toml:3:1: [clouds.own] ")
    assert error.value.hint


@pytest.mark.rule("A-015")
def test_an_unknown_cloud_names_the_nearest() -> None:
    with pytest.raises(ConfigError) as error:
        clouds.find("publik", {})
    assert (error.value.message, error.value.hint) == ("no cloud is called `publik`", "`public` is the nearest name")
    with pytest.raises(ConfigError, match="is not a table"):
        clouds.find("own", {"own": 5})
    with pytest.raises(ConfigError, match="has the name of a known cloud"):
        clouds.find("public", {"public": {}})


@pytest.mark.rule("A-015")
def test_no_host_of_a_cloud_stands_in_another_room() -> None:
    room = Path(clouds_room.__file__)
    names = ("azure.com", "microsoftonline", "windows.net", "azureml.ms", "usgovcloudapi", "chinacloudapi", "169.254")
    strays = [
        f"{path.name}:{node.lineno}: {node.value}"
        for path in sorted(room.parents[1].rglob("*.py"))
        if path != room
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and any(name in node.value for name in names)
    ]
    assert strays == []
