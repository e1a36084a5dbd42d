"""Sessions: the cloud that the settings name, its tenant, and one pool with one set of tokens for all."""

from __future__ import annotations

from pathlib import Path

import pytest

from aj.azure.sessions import Sessions, cloud_of
from aj.base.errors import ConfigError
from aj.base.settings import Settings
from aj.store import config
from aj.store.config import Config
from tests.conftest import Home, MovedClock

TABLE = """
[clouds.own]
authority = "https://127.0.0.1:1"
arm = "http://127.0.0.1:2"
ml_scope = "https://ml.own.test/.default"
storage_suffix = "core.own.test"
data_plane_hosts = ["http://127.0.0.1:3"]
"""


def read(home: Home, project: str = "", user: str = "") -> Config:
    own = home.project()
    (own.directory / "aj.toml").write_text(project)
    home.layout.user_settings.parent.mkdir(parents=True, exist_ok=True)
    home.layout.user_settings.write_text(user)
    return config.read(home.layout, own)


@pytest.mark.rule("A-015", "A-015b")
def test_the_settings_name_the_cloud(home: Home) -> None:
    assert cloud_of(read(home)).name == "public"
    assert cloud_of(read(home, 'cloud = "china"\n')).arm.host == "management.chinacloudapi.cn"
    mine = read(home, 'cloud = "own"\n', TABLE)
    assert (cloud_of(mine).name, cloud_of(mine).is_private, cloud_of(mine).arm.netloc) == ("own", True, "127.0.0.1:2")
    nearer = TABLE.replace("127.0.0.1:2", "127.0.0.1:22")
    assert cloud_of(read(home, f'cloud = "own"\n{nearer}', TABLE)).arm.netloc == "127.0.0.1:22"


@pytest.mark.rule("A-015b", "C-085")
@pytest.mark.parametrize(
    ("project", "line", "words"),
    [
        ('\ncloud = "publik"\n', 2, "no cloud is called `publik`"),
        ('cloud = "own"\n[clouds.own]\narm = "x"\n', 2, "[clouds.own] lacks authority"),
        ('cloud = "own"\nclouds = 3\n', 2, "`clouds` is no table"),
        ("cloud = 7\n", 1, "`cloud` is 7: it takes text"),
    ],
)
def test_a_wrong_cloud_is_told_with_its_place(home: Home, project: str, line: int, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        cloud_of(read(home, project))
    assert words in caught.value.message
    assert caught.value.place is not None
    assert (Path(caught.value.place.file).name, caught.value.place.line) == ("aj.toml", line)


@pytest.mark.rule("A-019", "A-020", "A-001")
def test_sessions_of_one_cloud_share_pool_and_tokens(home: Home, clock: MovedClock) -> None:
    sessions = Sessions(Settings({"AZURE_TENANT_ID": "t-env"}), clock)
    first = sessions.open(read(home))
    second = sessions.open(read(home, 'tenant = "t-set"\n'), "t-target")
    other = sessions.open(read(home, 'cloud = "own"\ntenant = "t-set"\n', TABLE))
    assert (first.pool, first.tokens) == (second.pool, second.tokens)
    assert other.pool is first.pool
    assert other.tokens is not first.tokens
    assert (first.tenant, second.tenant, other.tenant) == ("t-env", "t-target", "t-set")
    sessions.close()
