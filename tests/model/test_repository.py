"""Addresses of repositories: what git gets, and what nobody sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from aj.base.errors import OptionError
from aj.model import repository


@pytest.mark.rule("C-136")
@pytest.mark.parametrize(
    ("word", "url"),
    [
        ("acme/templates", "git@github.com:acme/templates.git"),
        ("acme/templates.git", "git@github.com:acme/templates.git"),
        ("https://x.example/a/b.git", "https://x.example/a/b.git"),
        ("https://me@x.example:8443/a", "https://x.example:8443/a"),
        ("HTTPS://me:pw@x.example/a?sig=1#f", "https://x.example/a"),
        ("https://:pw@[::1]:80/a", "https://[::1]:80/a"),
        ("ssh://git@x.example:22/a", "ssh://git@x.example:22/a"),
        ("ssh://git:pw@x.example/a", "ssh://git@x.example/a"),
        ("git@x.example:a/b.git", "git@x.example:a/b.git"),
        ("x.example:a/b.git", "x.example:a/b.git"),
        ("file:///srv/a.git", "file:///srv/a.git"),
        ("/srv/a.git", "/srv/a.git"),
        ("../a.git", "/home/a.git"),
        ("./a b", "/home/here/a b"),
        ("a/b/c", "/home/here/a/b/c"),
    ],
)
def test_what_git_gets(word: str, url: str) -> None:
    found = repository.read(word, Path("/home/here"))
    assert found.url == url
    assert "pw" not in found.url and "pw" not in repr(found)


@pytest.mark.rule("C-136")
def test_credentials_are_for_this_call_alone() -> None:
    found = repository.read("https://me:p%40ss@x.example/a", Path("/"))
    assert (found.user, found.password) == ("me", "p@ss")
    assert repository.read("ssh://git:pw@x/a", Path("/")).user is None
    assert repository.without_credentials("https://me:pw@x.example/a") == "https://x.example/a"
    assert repository.without_credentials("acme/x") == "acme/x"


@pytest.mark.rule("C-136", "C-338")
@pytest.mark.parametrize(
    "word", ["", "-x", "--upload-pack=x", "ext::sh", "ext://x", "javascript://x", "a\nb", "https://x:y/a"]
)
def test_what_is_no_repository(word: str) -> None:
    with pytest.raises(OptionError):
        repository.read(word, Path("/"))
