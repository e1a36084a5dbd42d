"""Tokens: from which source, for whom, how long, and what happens when one is refused.

The sources are the real ones of `azure-identity`, against a sign-in service of the test's own over https,
and against an `az` of the test's own.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trustme

from aj.base import redact
from aj.base.errors import AuthError, ConfigError, OutcomeUnknown, RemoteError, Unavailable
from aj.base.settings import CREDENTIALS, Settings
from aj.net import clouds, credentials, http, token
from aj.net.clouds import Cloud
from aj.net.http import Request
from aj.net.origin import Origin
from aj.net.retry import Retrying
from aj.net.token import Signing, Token, Tokens
from tests.conftest import MovedClock
from tests.servers.authority import CLIENT, PERSON, SECRET, TENANT, Authority, jwt, signing_in
from tests.servers.azure import table
from tests.servers.loopback import Answer, Cut, Got, Loopback, problem, serving

SCOPE = "https://arm.example/.default"
OTHER = "bbbbbbbb-0000-0000-0000-00000000000b"
CLAIMS = '{"access_token":{"nbf":{"essential":true,"value":"1700000000"}}}'


@dataclass(frozen=True)
class SignIn:
    """A sign-in service and what it takes to use it."""

    authority: Authority
    server: Loopback
    cloud: Cloud
    settings: Settings

    def tokens(self, clock: MovedClock, **changes: str | None) -> Tokens:
        env = {**self.settings.env, **{name: value for name, value in changes.items() if value is not None}}
        kept = {name: value for name, value in env.items() if changes.get(name, "") is not None}
        return Tokens(self.cloud, Settings(kept), clock)


@pytest.fixture
def sign_in(loopback: None, programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SignIn]:
    # `programs`: the first import of the library asks `uname` for its user agent
    for name in ("http_proxy", "https_proxy", "all_proxy", "ALL_PROXY", "IDENTITY_ENDPOINT", "MSI_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    with signing_in(tmp_path) as (authority, server, bundle):
        own = table("http://127.0.0.1:1", "http://127.0.0.1:2", server.url)
        settings = Settings(
            {
                "AZURE_TENANT_ID": TENANT,
                "AZURE_CLIENT_ID": CLIENT,
                "AZURE_CLIENT_SECRET": SECRET,
                "SSL_CERT_FILE": str(bundle),
            }
        )
        yield SignIn(authority, server, clouds.find("own", {"own": own}), settings)  # type: ignore[dict-item]


@pytest.fixture
def az(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: None) -> Path:
    """An `az` of the test's own on PATH: it notes its words and answers what stands in `answer`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "az"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, pathlib, sys\n"
        "here = pathlib.Path(__file__).parent\n"
        "(here / 'words').open('a').write(json.dumps(sys.argv[1:]) + '\\n')\n"
        "answer = json.loads((here / 'answer').read_text())\n"
        "sys.stderr.write(answer.get('err', ''))\n"
        "sys.stdout.write(json.dumps(answer.get('out', {})))\n"
        "sys.exit(answer.get('code', 0))\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return folder


def words_of(az: Path) -> list[list[str]]:
    return [json.loads(line) for line in (az / "words").read_text().splitlines()]


# Who gives a token


@pytest.mark.rule("A-018", "A-019", "A-016")
def test_a_service_principal_signs_in_by_the_environment(sign_in: SignIn, clock: MovedClock) -> None:
    tokens = sign_in.tokens(clock)
    found = tokens.get(SCOPE)
    assert found.source == "environment"
    assert sign_in.authority.tokens[found.value] == SCOPE
    (asked,) = sign_in.authority.asked
    assert (asked["tenant"], asked["client_id"], asked["scope"]) == (TENANT, CLIENT, SCOPE)
    tokens.close()


@pytest.mark.rule("A-019")
def test_the_tenant_that_is_asked_for_is_passed_on(sign_in: SignIn, clock: MovedClock) -> None:
    tokens = sign_in.tokens(clock)
    first, second = tokens.get(SCOPE), tokens.get(SCOPE, tenant=OTHER)
    assert [asked["tenant"] for asked in sign_in.authority.asked] == [TENANT, OTHER]
    assert first.value != second.value
    assert (token.person(first).tenant, token.person(second).tenant) == (TENANT, OTHER)
    tokens.close()


@pytest.mark.rule("A-019")
def test_the_order_of_tenants() -> None:
    env = Settings({"AZURE_TENANT_ID": "env"})
    assert credentials.tenant(env, target="target", configured="setting") == "target"
    assert credentials.tenant(env, configured="setting") == "setting"
    assert credentials.tenant(env) == "env"
    assert credentials.tenant(Settings({})) is None


@pytest.mark.rule("A-018")
def test_a_certificate_signs_in_too(sign_in: SignIn, clock: MovedClock, tmp_path: Path) -> None:
    import jwt as jwts
    from cryptography import x509

    made = trustme.CA(key_type=trustme.KeyType.RSA).issue_cert("aj.example", key_type=trustme.KeyType.RSA)
    file = tmp_path / "principal.pem"
    made.private_key_and_cert_chain_pem.write_to_path(str(file))
    key = x509.load_pem_x509_certificate(made.cert_chain_pems[0].bytes()).public_key()

    def knows(assertion: str) -> bool:
        claims = jwts.decode(
            assertion, key, ["RS256", "PS256"], audience=f"{sign_in.server.url}/{TENANT}/oauth2/v2.0/token"
        )  # type: ignore[arg-type]
        return claims["iss"] == CLIENT

    sign_in.authority.knows = knows
    tokens = sign_in.tokens(clock, AZURE_CLIENT_SECRET=None, AZURE_CLIENT_CERTIFICATE_PATH=str(file))
    assert tokens.get(SCOPE).source == "environment"
    tokens.close()


@pytest.mark.rule("A-018")
def test_a_pod_signs_in_by_its_federated_token(sign_in: SignIn, clock: MovedClock, tmp_path: Path) -> None:
    file = tmp_path / "federated"
    env = {"AZURE_CLIENT_SECRET": None, "AZURE_FEDERATED_TOKEN_FILE": str(file)}
    tokens = sign_in.tokens(clock, **env)
    with pytest.raises(AuthError, match=r"environment: neither .*; workload: .*No such file"):
        tokens.get(SCOPE)
    file.write_text("planted-assertion")
    sign_in.authority.knows = lambda assertion: assertion == "planted-assertion"
    assert tokens.get(SCOPE).source == "workload"
    tokens.close()


@pytest.mark.rule("A-018", "A-022")
@pytest.mark.parametrize("changes", [{"AZURE_TENANT_ID": "no/tenant"}, {"AZURE_TENANT_ID": "../x"}])
def test_an_id_that_is_none_is_told(sign_in: SignIn, clock: MovedClock, changes: dict[str, str]) -> None:
    with pytest.raises(AuthError, match="environment: Invalid tenant ID"):
        sign_in.tokens(clock, **changes).get(SCOPE)
    assert sign_in.server.got == []


@pytest.mark.rule("A-018")
def test_a_certificate_is_taken_when_there_is_no_secret(sign_in: SignIn, clock: MovedClock, tmp_path: Path) -> None:
    tokens = sign_in.tokens(
        clock,
        AZURE_CLIENT_SECRET=None,
        AZURE_CLIENT_CERTIFICATE_PATH=str(tmp_path / "no.pem"),
        AJ_CREDENTIAL="environment",
    )
    with pytest.raises(AuthError, match="environment: AZURE_CLIENT_CERTIFICATE_PATH: "):
        tokens.get(SCOPE)


@pytest.mark.rule("A-018", "A-022", "A-203")
def test_sources_are_tried_in_order_and_each_reason_is_told(
    sign_in: SignIn, clock: MovedClock, az: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (az / "answer").write_text(json.dumps({"code": 1, "err": "ERROR: Please run 'az login' to setup account."}))
    tokens = Tokens(sign_in.cloud, Settings({}), clock)
    with pytest.raises(AuthError) as error:
        tokens.get(SCOPE, tenant=TENANT)
    said = error.value.message
    assert said.startswith(
        f"not signed in for tenant {TENANT}: environment: AZURE_CLIENT_ID not set; workload: AZURE_FED"
    )
    assert "; managed: ManagedIdentityCredential authentication unavailable" in said
    assert said.endswith("; cli: Please run 'az login' to set up an account")
    assert "\n" not in said
    assert error.value.hint == f"`az login --tenant {TENANT}`"
    assert list(error.value.details["sources"]) == list(CREDENTIALS)  # type: ignore[call-overload]
    tokens.close()


@pytest.mark.rule("A-018")
def test_az_is_asked_when_nothing_else_is_set_up(sign_in: SignIn, clock: MovedClock, az: Path) -> None:
    value = jwt(1, SCOPE, TENANT)
    (az / "answer").write_text(json.dumps({"out": {"accessToken": value, "expires_on": int(clock.at) + 3600}}))
    tokens = Tokens(sign_in.cloud, Settings({}), clock)
    assert tokens.get(SCOPE, tenant=TENANT) == Token(value, clock.at + 3600, "cli")
    assert tokens.get(SCOPE, tenant=TENANT).value == value
    asked = words_of(az)
    assert len(asked) == 1
    assert asked[0][:2] == ["account", "get-access-token"]
    assert asked[0][asked[0].index("--tenant") + 1] == TENANT
    assert asked[0][asked[0].index("--resource") + 1] == "https://arm.example"
    tokens.close()


@pytest.mark.rule("A-018")
def test_a_managed_identity_of_the_machine(sign_in: SignIn, clock: MovedClock, monkeypatch: pytest.MonkeyPatch) -> None:
    value = jwt(7, SCOPE, TENANT)

    def give(got: Got) -> Answer:
        assert got.headers["x-identity-header"] == "planted-header"
        assert got.value("resource") == "https://arm.example"
        return Answer(200, {"access_token": value, "expires_on": str(int(clock.at) + 3600), "resource": "r"})

    with serving(give) as endpoint:
        monkeypatch.setenv("IDENTITY_ENDPOINT", endpoint.url + "/msi/token")
        monkeypatch.setenv("IDENTITY_HEADER", "planted-header")
        tokens = Tokens(sign_in.cloud, Settings({"AJ_CREDENTIAL": "managed"}), clock)
        assert tokens.get(SCOPE).value == value
        tokens.close()
        chain = Tokens(sign_in.cloud, Settings({}), clock)
        assert chain.get(SCOPE).source == "managed"
        chain.close()


@pytest.mark.rule("A-018", "A-022")
@pytest.mark.parametrize(
    ("name", "words", "hint"),
    [
        ("environment", "environment: AZURE_CLIENT_ID not set", "set AZURE_CLIENT_ID, "),
        ("workload", "workload: AZURE_FEDERATED_TOKEN_FILE, AZURE_CLIENT_ID, AZURE_TENANT_ID not set", "set AZURE_FED"),
        ("cli", "cli: Azure CLI not found on path", "install the Azure CLI, then `az login`; or set"),
    ],
)
def test_one_source_can_be_picked(
    sign_in: SignIn, clock: MovedClock, monkeypatch: pytest.MonkeyPatch, name: str, words: str, hint: str
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    tokens = Tokens(sign_in.cloud, Settings({"AJ_CREDENTIAL": name}), clock)
    with pytest.raises(AuthError) as error:
        tokens.get(SCOPE)
    assert error.value.message == f"not signed in: {words}"
    assert (error.value.hint or "").startswith(hint)


@pytest.mark.rule("A-018")
def test_another_word_for_a_source_lists_the_four(sign_in: SignIn, clock: MovedClock) -> None:
    with pytest.raises(ConfigError, match="AJ_CREDENTIAL='azcli' is none of environment, workload, managed, cli"):
        sign_in.tokens(clock, AJ_CREDENTIAL="azcli")


@pytest.mark.rule("A-018", "A-022", "A-011")
def test_a_source_that_is_set_up_and_refused_ends_the_search(sign_in: SignIn, clock: MovedClock, az: Path) -> None:
    (az / "answer").write_text(
        json.dumps({"out": {"accessToken": "somebody-else", "expires_on": int(clock.at) + 3600}})
    )
    sign_in.authority.refuses = True
    tokens = sign_in.tokens(clock)
    with pytest.raises(AuthError) as error:
        tokens.get(SCOPE)
    assert "environment: Authentication failed: AADSTS7000215" in error.value.message
    assert "cli:" not in error.value.message
    assert SECRET not in str(error.value) + repr(error.value.details)
    assert not (az / "words").exists()
    tokens.close()


@pytest.mark.rule("A-022")
def test_a_sign_in_service_that_nobody_reaches_is_unavailable(
    loopback: None, clock: MovedClock, tmp_path: Path
) -> None:
    with signing_in(tmp_path) as (_, server, bundle):
        gone = server.url
    own = clouds.find("own", {"own": table("http://127.0.0.1:1", "http://127.0.0.1:2", gone)})  # type: ignore[dict-item]
    env = {
        "AZURE_TENANT_ID": TENANT,
        "AZURE_CLIENT_ID": CLIENT,
        "AZURE_CLIENT_SECRET": SECRET,
        "SSL_CERT_FILE": str(bundle),
    }
    tokens = Tokens(own, Settings(env), clock)
    with pytest.raises(Unavailable, match="the sign-in service cannot be reached"):
        tokens.get(SCOPE)
    tokens.close()


@pytest.mark.rule("A-010")
def test_a_sign_in_service_must_be_trusted(sign_in: SignIn, clock: MovedClock) -> None:
    tokens = sign_in.tokens(clock, SSL_CERT_FILE=None)
    with pytest.raises(Unavailable, match="the sign-in service cannot be reached"):
        tokens.get(SCOPE)
    tokens.close()
    assert sign_in.authority.asked == []


# How long one is kept


@pytest.mark.rule("A-020")
def test_a_token_is_kept_until_five_minutes_before_its_end(sign_in: SignIn, clock: MovedClock) -> None:
    import time

    clock.at = time.time()  # the library counts from the machine's own clock
    tokens = sign_in.tokens(clock)
    first = tokens.get(SCOPE)
    clock.move(3600 - 300 - 30)
    assert tokens.get(SCOPE) is first
    assert tokens.get("https://other.example/.default") is not first
    clock.move(60)
    tokens.drop(first)
    assert tokens.get(SCOPE).value != first.value
    assert len(sign_in.authority.asked) == 3
    tokens.close()


@dataclass
class Counting:
    """A credential that counts, with tokens that last as long as it says."""

    clock: MovedClock
    lifetime_s: float = 3600
    asked: list[dict[str, object]] = field(default_factory=list)
    closed: int = 0
    value: str = "token-{}"

    def get_token_info(self, *scopes: str, options: object = None) -> object:
        from azure.core.credentials import AccessTokenInfo

        self.asked.append({"scopes": scopes, "options": options})
        return AccessTokenInfo(self.value.format(len(self.asked)), int(self.clock.at + self.lifetime_s))

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch, clock: MovedClock) -> Counting:
    made = Counting(clock)
    source = credentials.Source("environment", made)  # type: ignore[arg-type]
    monkeypatch.setattr(credentials, "source", lambda *words, **more: source)
    return made


def counted(clock: MovedClock) -> Tokens:
    return Tokens(clouds.PUBLIC, Settings({}), clock)


@pytest.mark.rule("A-020")
def test_the_edge_of_five_minutes(counting: Counting, clock: MovedClock) -> None:
    tokens = counted(clock)
    assert tokens.get(SCOPE).value == "token-1"
    clock.move(3299)
    assert tokens.get(SCOPE).value == "token-1"
    clock.move(1)
    assert tokens.get(SCOPE).value == "token-2"


@pytest.mark.rule("A-020")
def test_tokens_are_kept_by_tenant_and_scope(counting: Counting, clock: MovedClock) -> None:
    tokens = counted(clock)
    for _ in range(2):
        for tenant in (None, "a", "b"):
            for scope in (SCOPE, "https://b.example/.default"):
                tokens.get(scope, tenant=tenant)
    assert len(counting.asked) == 6


@pytest.mark.rule("A-020")
def test_many_threads_make_one_request(counting: Counting, clock: MovedClock) -> None:
    tokens = counted(clock)
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(tokens.get(SCOPE).value)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert found == ["token-1"] * 16


@pytest.mark.rule("A-020", "A-011")
def test_no_file_holds_a_token(sign_in: SignIn, clock: MovedClock, home: object, tmp_path: Path) -> None:
    tokens = sign_in.tokens(clock)
    value = tokens.get(SCOPE).value
    for folder, _, names in os.walk(tmp_path):
        for name in names:
            assert value.encode() not in (Path(folder) / name).read_bytes()
    assert value not in repr(tokens.get(SCOPE))
    assert redact.text(f"it said {value}") == "it said ***"
    tokens.close()


def test_what_is_no_token_is_refused(counting: Counting, clock: MovedClock) -> None:
    for value in ("two\r\nX-Evil: lines", "", "blank here"):
        counting.value = value
        with pytest.raises(AuthError, match="what it gave is no token"):
            counted(clock).get(SCOPE)


@pytest.mark.rule("A-011")
def test_the_libraries_write_nothing_by_themselves(
    sign_in: SignIn, clock: MovedClock, capfd: pytest.CaptureFixture[str]
) -> None:
    sign_in.authority.refuses = True
    logging.getLogger().setLevel(logging.DEBUG)
    tokens = sign_in.tokens(clock)
    try:
        with pytest.raises(AuthError):
            tokens.get(SCOPE)
    finally:
        logging.getLogger().setLevel(logging.WARNING)
        tokens.close()
    assert capfd.readouterr() == ("", "")


# When one is refused


@dataclass
class Guarded:
    """A service that knows which tokens are good."""

    authority: Authority
    refused: set[str] = field(default_factory=set)
    challenge: str = "Bearer"

    def answer(self, got: Got) -> Answer:
        value = got.headers.get("authorization", "").removeprefix("Bearer ")
        if value in self.authority.tokens and value not in self.refused:
            return Answer(200, {"ok": True})
        return problem(401, "InvalidToken", "not good", headers={"WWW-Authenticate": self.challenge})


@dataclass(frozen=True)
class Service:
    """A guarded service, and the transport that signs for it."""

    guard: Guarded
    server: Loopback
    transport: Signing
    url: str

    def spoil(self) -> None:
        """Refuse every token that is out there."""
        self.guard.refused |= set(self.guard.authority.tokens)


@pytest.fixture
def service(sign_in: SignIn, clock: MovedClock) -> Iterator[Service]:
    guard = Guarded(sign_in.authority)
    tokens = sign_in.tokens(clock)
    with serving(guard.answer) as server, http.connect(Settings({}), clock) as pool:
        signing = Signing(pool, tokens, SCOPE, (Origin.parse(server.url),), TENANT)
        yield Service(guard, server, signing, server.url + "/x")
    tokens.close()


@pytest.mark.rule("A-021")
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_a_refused_token_is_renewed_once_and_the_request_goes_again(
    sign_in: SignIn, service: Service, method: str
) -> None:
    carry = service.transport.ask if method == "GET" else service.transport.send
    request = Request(method, service.url, "use it", body=b"{}" if method == "PUT" else None)
    assert carry(request).status == 200
    service.spoil()
    assert carry(request).status == 200
    assert service.server.targets() == [f"{method} /x"] * 3
    assert [got.body for got in service.server.got] == [request.body or b""] * 3
    assert len(sign_in.authority.asked) == 2
    assert all("claims" not in asked for asked in sign_in.authority.asked)


@pytest.mark.rule("A-021")
def test_the_claims_of_a_challenge_are_passed_on(sign_in: SignIn, service: Service) -> None:
    request = Request("GET", service.url, "use it")
    service.transport.ask(request)
    encoded = base64.b64encode(CLAIMS.encode()).decode()
    service.guard.challenge = f'Bearer realm="", error="insufficient_claims", claims="{encoded}"'
    service.spoil()
    assert service.transport.ask(request).status == 200
    claims = json.loads(sign_in.authority.asked[-1]["claims"])
    assert claims["access_token"]["nbf"] == {"essential": True, "value": "1700000000"}


@pytest.mark.rule("A-021")
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_second_refusal_is_a_sign_in_error(sign_in: SignIn, service: Service, method: str) -> None:
    service.server.answer = lambda got: problem(401, "InvalidToken", "never good")
    carry = service.transport.ask if method == "GET" else service.transport.send
    with pytest.raises(AuthError, match="could not use it: InvalidToken: never good") as error:
        carry(Request(method, service.url, "use it"))
    assert len(service.server.got) == 2
    assert (error.value.hint or "").startswith("set AZURE_CLIENT_ID")


@pytest.mark.rule("A-021", "A-003")
def test_a_change_that_is_lost_after_the_renewal_is_unknown(service: Service) -> None:
    request = Request("PUT", service.url, "use it", body=b"{}")
    service.transport.send(request)
    service.spoil()
    service.server.on("PUT /x", problem(401, "InvalidToken", "no"), Cut.AFTER_BODY)
    with pytest.raises(OutcomeUnknown):
        service.transport.send(request)
    assert len(service.server.got) == 3


@pytest.mark.rule("A-021")
@pytest.mark.parametrize(
    ("challenge", "claims"),
    [
        (None, None),
        ("", None),
        ("Bearer", None),
        ('Bearer claims=""', None),
        ('Bearer claims="!!!"', None),
        ('Bearer claims="eyJhIjoxfQ=="', '{"a":1}'),
        ('Bearer realm="", claims="eyJhIjoxfQ", error="x"', '{"a":1}'),
        ('PoP x="y", Bearer claims="eyJhIjoxfQ=="', '{"a":1}'),
        ('Bearer claims="_w=="', None),
    ],
)
def test_claims_of_a_challenge(challenge: str | None, claims: str | None) -> None:
    assert token.wanted_claims(challenge) == claims


@pytest.mark.rule("A-002", "A-020")
def test_a_token_that_cannot_be_had_just_now_is_asked_for_again(sign_in: SignIn, clock: MovedClock) -> None:
    class Lazy(Tokens):
        tries = 0

        def get(self, scope: str, *, tenant: str | None = None, claims: str | None = None) -> Token:
            self.tries += 1
            if self.tries < 3:
                raise Unavailable("the sign-in service cannot be reached")
            return super().get(scope, tenant=tenant, claims=claims)

    tokens = Lazy(sign_in.cloud, sign_in.settings, clock)
    with serving(Guarded(sign_in.authority).answer) as server, http.connect(Settings({}), clock) as pool:
        signing = Signing(pool, tokens, SCOPE, (Origin.parse(server.url),))
        request = Request("GET", server.url + "/x", "use it")
        assert Retrying(signing, clock).ask(request).status == 200
        tokens.tries = 0
        with pytest.raises(Unavailable):
            Retrying(signing, clock).send(request)
    assert len(server.got) == 1
    assert len(clock.slept) == 2
    tokens.close()


# Who somebody is


def test_a_token_tells_whose_it_is() -> None:
    found = token.person(Token(jwt(1, SCOPE, TENANT), 0, "cli"))
    assert found == token.Person(TENANT, PERSON, "ada@example.com")
    assert token.person(Token(jwt(1, SCOPE, TENANT, "somebody-else"), 0, "cli")) != found


@pytest.mark.parametrize("value", ["opaque", "a.b.c", "a.!!.c", "a." + base64.b64encode(b"[]").decode() + ".c"])
def test_a_token_that_does_not_tell_is_an_error(value: str) -> None:
    with pytest.raises(RemoteError, match="does not tell who it belongs to"):
        token.person(Token(value, 0, "cli"))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("", "no reason given"),
        ("one line.\nanother", "one line"),
        ("ChainedTokenCredential failed\nAttempted credentials:\n\tManagedIdentityCredential: no", "no"),
        ("x" * 1000, "x" * 300),
        ("bad \x1b[31mred", "bad \\x1b[31mred"),
    ],
)
def test_reasons_are_one_line(words: str, reason: str) -> None:
    assert credentials.reason(words) == reason
