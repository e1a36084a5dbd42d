"""What a tag means, asked of a real registry on the loopback interface, and of places that give tokens."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aj.base.errors import AuthError, NotFound, Refused, RemoteError, Unavailable, UserError
from aj.base.settings import Settings
from aj.model import image
from aj.model.image import Image
from aj.net import http, keyring
from aj.net.registry import Registry
from tests.conftest import MovedClock
from tests.servers import registry as servers
from tests.servers.loopback import Answer, Got, Loopback, serving

SECRET = "planted-password-of-a-test"
OTHER = "arm64" if servers.MACHINE != "arm64" else "amd64"
Ask = Callable[..., str]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Registry]:
    with servers.running(tmp_path_factory.mktemp("registry")) as found:
        yield found


@pytest.fixture
def ask(loopback: None, programs: None, clock: MovedClock, tmp_path: Path) -> Iterator[Ask]:
    """Ask what a reference means, with the logins of a file."""
    logins = tmp_path / "auth.json"
    settings = Settings({"REGISTRY_AUTH_FILE": str(logins), "HOME": str(tmp_path)})
    with http.connect(settings, clock) as pool:

        def digest(reference: str, auths: object = None) -> str:
            logins.write_text(json.dumps({"auths": auths or {}}))
            return Registry(pool, settings).digest(image.parse(reference))

        yield digest


def basic(user: str, password: str) -> dict[str, str]:
    return {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.mark.rule("SB-05")
def test_a_tag_means_what_was_pushed_last_and_a_digest_itself(
    loopback: None, programs: None, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kept, ask = request.getfixturevalue("kept"), request.getfixturevalue("ask")
    first = kept.push("team/train", "1", {"etc/version": b"1"})
    assert ask(f"{kept.address}/team/train:1") == first
    second = kept.push("team/train", "1", {"etc/version": b"2"})
    assert ask(f"{kept.address}/team/train:1") == second != first
    assert ask(f"{kept.address}/team/train:1@{first}") == first


@pytest.mark.rule("SB-05", "QT-05")
def test_an_image_that_is_not_there_is_not_found(ask: Ask, kept: servers.Registry) -> None:
    kept.push("team/there", "1", {"etc/version": b"1"})
    for name in ("team/nothing:1", "team/there:2", f"team/there@sha256:{'0' * 64}"):
        with pytest.raises(NotFound, match="there is no image") as error:
            ask(f"{kept.address}/{name}")
        assert error.value.code == "no-image"


@pytest.mark.rule("SB-05")
def test_an_index_of_several_platforms_is_pinned_as_a_whole_if_this_machine_is_among_them(
    ask: Ask, kept: servers.Registry
) -> None:
    one = kept.push("team/many", "one", {"etc/version": b"1"})
    whole = kept.index("team/many", "all", {servers.MACHINE: one, OTHER: one})
    assert ask(f"{kept.address}/team/many:all") == whole
    kept.index("team/many", "foreign", {OTHER: one})
    with pytest.raises(Refused, match=f"is for linux/{OTHER}, and this machine is linux/{servers.MACHINE}"):
        ask(f"{kept.address}/team/many:foreign")


@pytest.mark.rule("QT-05")
def test_a_registry_with_passwords_gives_an_image_to_who_has_one(
    loopback: None, programs: None, tmp_path: Path, ask: Ask
) -> None:
    with servers.running(tmp_path, has_password=True) as closed:
        digest = closed.push("team/secret", "1", {"etc/version": b"1"})
        name = f"{closed.address}/team/secret:1"
        for auths in ({}, {closed.address: basic(servers.USER, "wrong")}):
            with pytest.raises(AuthError, match="does not give team/secret to this user") as error:
                ask(name, auths)
            assert error.value.hint == f"`podman login {closed.address}`"
        assert ask(name, {closed.address: basic(servers.USER, servers.PASSWORD)}) == digest


# Places that give tokens, which the real one above does not have

DIGEST = f"sha256:{'a' * 64}"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@pytest.fixture
def guarded(loopback: None) -> Iterator[Loopback]:
    """A registry that wants a token of its own address."""

    def answer(got: Got) -> Answer:
        if got.path == "/token":
            return _token(got)
        if got.headers.get("authorization") != "Bearer a-token":
            challenge = f'Bearer realm="{server.url}/token",service="kept",scope="repository:team/x:pull"'
            return Answer(401, {"errors": []}, {"WWW-Authenticate": challenge})
        return Answer(200, None, {"Docker-Content-Digest": DIGEST, "Content-Type": MANIFEST})

    with serving(answer) as server:
        yield server


def _token(got: Got) -> Answer:
    if got.method == "POST":
        fields = dict(part.split("=") for part in got.body.decode().split("&"))
        known = fields["grant_type"] == "refresh_token" and fields["refresh_token"] == SECRET
        return Answer(200, {"access_token": "a-token"}) if known else Answer(401, {})
    asked = (got.value("service"), got.value("scope")) == ("kept", "repository:team/x:pull")
    given = got.headers.get("authorization")
    return Answer(200, {"token": "a-token" if asked and given != "Basic bm86bm8=" else "none"})


def test_a_token_is_fetched_where_the_registry_says_by_whoever_is_signed_in(ask: Ask, guarded: Loopback) -> None:
    host = guarded.url.removeprefix("http://")
    assert ask(f"{host}/team/x:1") == DIGEST, "without a name, as for public images"
    assert ask(f"{host}/team/x:1", {host: basic("me", SECRET)}) == DIGEST
    sent = [
        got.headers["authorization"] for got in guarded.got if got.path == "/token" and "authorization" in got.headers
    ]
    assert sent == ["Basic " + basic("me", SECRET)["auth"]]
    assert ask(f"{host}/team/x:1", {host: {"identitytoken": SECRET}}) == DIGEST
    with pytest.raises(AuthError, match="does not give"):
        ask(f"{host}/team/x:1", {host: {"identitytoken": "wrong"}})
    with pytest.raises(AuthError, match="does not give"):
        ask(f"{host}/team/x:1", {host: basic("no", "no")})


@pytest.mark.parametrize(
    "challenge",
    [
        'Bearer realm="http://tokens.example/token",service="x"',
        'Bearer service="x"',
        "Negotiate",
        "",
    ],
)
def test_a_password_goes_nowhere_without_tls_and_to_no_scheme_that_nobody_knows(
    ask: Ask, loopback: None, challenge: str
) -> None:
    with serving(lambda got: Answer(401, {}, {"WWW-Authenticate": challenge})) as server:
        host = server.url.removeprefix("http://")
        with pytest.raises((AuthError, RemoteError)) as error:
            ask(f"{host}/team/x:1", {host: basic("me", SECRET)})
        assert SECRET not in str(error.value)
        assert all("authorization" not in got.headers for got in server.got)


def test_a_registry_whose_word_and_content_differ_is_not_believed(ask: Ask, loopback: None) -> None:
    index = "application/vnd.oci.image.index.v1+json"

    def answer(got: Got) -> Answer:
        return Answer(200, {"manifests": []}, {"Docker-Content-Digest": DIGEST, "Content-Type": index})

    with serving(answer) as server, pytest.raises(RemoteError, match="what it sends is sha256:"):
        ask(f"{server.url.removeprefix('http://')}/team/x:1")


def test_a_registry_that_breaks_down_can_be_asked_again(ask: Ask, loopback: None) -> None:
    with serving(lambda got: Answer(503, {})) as server, pytest.raises(Unavailable):
        ask(f"{server.url.removeprefix('http://')}/team/x:1")


# References and logins


@pytest.mark.parametrize(
    ("reference", "due"),
    [
        ("ubuntu", Image("docker.io", "library/ubuntu", "latest")),
        ("team/train:1.2", Image("docker.io", "team/train", "1.2")),
        ("index.docker.io/ubuntu", Image("docker.io", "library/ubuntu", "latest")),
        ("ghcr.io/acme/train", Image("ghcr.io", "acme/train", "latest")),
        ("localhost/train", Image("localhost", "train", "latest")),
        ("localhost:5000/train:x", Image("localhost:5000", "train", "x")),
        ("r.example:5000/a/b/c:1", Image("r.example:5000", "a/b/c", "1")),
        (f"ghcr.io/acme/train:1@{DIGEST}", Image("ghcr.io", "acme/train", "1", DIGEST)),
    ],
)
@pytest.mark.rule("SB-05")
def test_a_reference_is_read_as_every_program_of_containers_does(reference: str, due: Image) -> None:
    found = image.parse(reference)
    assert found == due
    assert image.parse(str(found)) == found and image.parse(found.at(DIGEST)).digest == DIGEST


@pytest.mark.parametrize(
    "word", ["", "UPPER", "UPPER/x", "https://x/y", "a b", "x:", "x@sha256:1", "x/", "/x", "-x", "x:1:2", "x\n"]
)
def test_what_is_no_reference_is_refused(word: str) -> None:
    with pytest.raises(UserError, match="is no image"):
        image.parse(word)


def test_logins_are_found_in_the_order_of_podman_and_a_broken_file_hides_no_other(home_folder: Path) -> None:
    settings = Settings({"HOME": str(home_folder), "XDG_RUNTIME_DIR": str(home_folder / "run")})
    first, second = home_folder / "run/containers/auth.json", home_folder / ".docker/config.json"
    for path in (first, second):
        path.parent.mkdir(parents=True)
    first.write_text("{")
    second.write_text(json.dumps({"auths": {"https://index.docker.io/v1/": basic("me", "pw"), "x.example": {}}}))
    found = keyring.find(settings, "docker.io")
    assert found is not None and (found.user, found.password) == ("me", "pw")
    assert "pw" not in repr(found)
    assert keyring.find(settings, "x.example") is None, "a helper program keeps it"
    first.write_text(json.dumps({"auths": {"docker.io": basic("other", "pw")}}))
    newer = keyring.find(settings, "docker.io")
    assert newer is not None and newer.user == "other"


@pytest.fixture
def home_folder(tmp_path: Path) -> Path:
    return tmp_path
