"""Uploads into a real emulator of blob storage, over lines that break, beside rivals, and after kills."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from azure.storage.blob import ContainerClient, ContainerSasPermissions, generate_container_sas

from aj.azure import blobs, blocks
from aj.azure.blobs import Container
from aj.azure.blocks import MIB, Sizes, Uploaded
from aj.azure.datastores import Secret
from aj.azure.line import ByToken, Limits, Place
from aj.base.clock import SYSTEM
from aj.base.errors import AjError, AuthError, ConfigError, NotFound, Refused, Unavailable, UserError
from aj.base.settings import Settings
from tests.conftest import MovedClock
from tests.servers.azure import Issuer
from tests.servers.azurite import ACCOUNT, KEY, Accepted, Azurite
from tests.servers.faults import End, Relay, Way, relaying
from tests.servers.loopback import Answer, Got, serving

pytestmark = [pytest.mark.usefixtures("loopback"), pytest.mark.rule("A-211")]

KIB = 1024
# The same shape as the real sizes, a thousandth of them: 64 KiB in one request, above it blocks of 32 KiB.
SMALL = Sizes(single=64 * KIB, block=32 * KIB, at_once=4, limit=5 * MIB)
MEDIUM = Sizes(single=1 * MIB, block=512 * KIB)
GZIP = "application/gzip"


@dataclass(frozen=True)
class Yard:
    """A container of one test's own, as we reach it and as the library shows it."""

    azurite: Azurite
    name: str
    seen: ContainerClient
    clock: MovedClock

    def upload(
        self,
        data: bytes,
        *,
        relay: Relay | None = None,
        name: str | None = None,
        progress: blocks.Progress | None = None,
        limits: Limits | None = None,
        sizes: Sizes = SMALL,
    ) -> Uploaded:
        source = blocks.of_bytes(data, GZIP, "the test's bytes")
        place = self.azurite.place(self.name, relay.url if relay else None)
        with blobs.opened(place, self.azurite.key, self.azurite.settings, limits) as container:
            return blocks.upload(
                container, name or name_of(data), source, clock=self.clock, progress=progress, sizes=sizes
            )

    def bytes_of(self, data: bytes) -> bytes:
        """What stands under the name of these bytes."""
        return self.seen.download_blob(name_of(data)).readall()

    def waiting(self, data: bytes) -> list[int]:
        """Sizes of the blocks that are staged under the name of these bytes."""
        _, blocks = self.seen.get_blob_client(name_of(data)).get_block_list("uncommitted")
        return [block.size for block in blocks]


def name_of(data: bytes) -> str:
    return f"LocalUpload/{hashlib.sha256(data).hexdigest()}/code.tar.gz"


def some(count: int) -> bytes:
    """Bytes that no other test has."""
    return os.urandom(count)


@pytest.fixture
def yard(azurite: Azurite, clock: MovedClock) -> Iterator[Yard]:
    name = f"c-{uuid.uuid4().hex}"
    with ContainerClient(azurite.place(name).url, name, credential=KEY) as seen:
        seen.create_container()
        yield Yard(azurite, name, seen, clock)


@pytest.fixture
def relay(azurite: Azurite) -> Iterator[Relay]:
    with relaying(azurite.url) as relay:
        yield relay


# Once, and then never again


@pytest.mark.rule("A-118", "A-119", "C-195", "T102")
@pytest.mark.parametrize("size", [1, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, 96 * KIB, 400_001])
def test_what_is_uploaded_is_there_whole_and_is_sent_once(yard: Yard, relay: Relay, size: int) -> None:
    data = some(size)
    first = yard.upload(data, relay=relay)
    assert (first.sent_bytes, first.skipped_bytes, first.is_reused) == (size, 0, False)
    assert yard.bytes_of(data) == data
    heads = len(relay.heads)
    again = yard.upload(data, relay=relay)
    assert (again.sent_bytes, again.skipped_bytes, again.is_reused) == (0, size, True)
    assert str(again) == "reused (0 B sent)"
    asked = relay.heads[heads:]
    assert [head.split()[0] for head in asked] == [b"HEAD"]


@pytest.mark.rule("A-117", "A-119", "A-11C")
@pytest.mark.parametrize("size", [1000, 100_000])
def test_a_blob_has_its_type_and_our_mark_and_is_written_on_condition(yard: Yard, relay: Relay, size: int) -> None:
    data = some(size)
    yard.upload(data, relay=relay)
    found = yard.seen.get_blob_client(name_of(data)).get_blob_properties()
    assert found.content_settings.content_type == GZIP
    assert found.metadata == {"aj": "1"}
    final = [head for head in relay.heads if head.startswith(b"PUT") and b"comp=block&" not in head]
    assert len(final) == 1 and b"if-none-match: *" in final[0].lower()
    bodies = [head.lower() for head in relay.heads if head.startswith(b"PUT") and b"comp=blocklist" not in head]
    assert all(b"content-md5: " in head for head in bodies)
    assert all(b"x-ms-version: 2024-11-04" in head.lower() for head in relay.heads)


@pytest.mark.rule("A-119")
def test_the_real_sizes_are_32_mib_in_one_and_blocks_of_16_mib(yard: Yard, relay: Relay) -> None:
    data = some(32 * MIB) + b"!"
    yard.upload(data, relay=relay, sizes=blocks.SIZES)
    committed, _ = yard.seen.get_blob_client(name_of(data)).get_block_list("committed")
    assert [block.size for block in committed] == [16 * MIB, 16 * MIB, 1]
    ids = [f"{index:06d}{hashlib.sha256(data[index * 16 * MIB :][: 16 * MIB]).hexdigest()[:20]}" for index in range(3)]
    assert [block.id for block in committed] == ids
    yard.upload(data[: 32 * MIB], relay=relay, sizes=blocks.SIZES)
    assert relay.count("comp=block&") == 3


@pytest.mark.rule("A-118", "A-206")
def test_a_blob_of_another_size_is_refused_and_left_alone(yard: Yard) -> None:
    data = some(2000)
    yard.seen.upload_blob(name_of(data), b"0123456789")
    with pytest.raises(Refused) as caught:
        yard.upload(data)
    assert caught.value.message == f"blob {name_of(data)} has 10 bytes where 2000 were expected"
    assert caught.value.hint == "ask who wrote it, or change a file to get a new name"
    assert yard.bytes_of(data) == b"0123456789"


@pytest.mark.rule("A-118")
def test_any_other_answer_to_the_question_is_no_reason_to_upload(clock: MovedClock) -> None:
    with serving(lambda got: Answer(400, headers={"x-ms-error-code": "InvalidUri"})) as server:
        place = Place(ACCOUNT, "code", f"{server.url}/{ACCOUNT}")
        source = blocks.of_bytes(b"code", GZIP, "the test's bytes")
        with (
            blobs.opened(place, Secret("AccountKey", KEY), Settings({})) as container,
            pytest.raises(AjError, match=r"could not look for blob a/b: InvalidUri"),
        ):
            blocks.upload(container, "a/b", source, clock=clock)
        assert [got.method for got in server.got] == ["HEAD"]


def test_a_container_that_is_not_there_is_named(yard: Yard) -> None:
    with (
        blobs.opened(yard.azurite.place("absent"), yard.azurite.key, yard.azurite.settings) as container,
        pytest.raises(NotFound, match=r"could not upload blob a/b: ContainerNotFound"),
    ):
        blocks.upload(container, "a/b", blocks.of_bytes(b"code", GZIP, "x"), clock=yard.clock, sizes=SMALL)


# Lines that break


@pytest.mark.rule("A-11A", "T27")
def test_a_block_is_sent_again_alone(yard: Yard, relay: Relay) -> None:
    data = some(10 * 32 * KIB)
    fault = relay.on("comp=block&", End.CUT, after=20 * KIB, times=2)
    done = yard.upload(data, relay=relay)
    assert fault.hits == 2 and yard.bytes_of(data) == data
    assert relay.count("comp=block&") == 10 + 2
    assert (done.sent_bytes, done.skipped_bytes) == (len(data), 0)
    assert yard.clock.ran - 1000 >= 0.5  # there was a pause before it went again


@pytest.mark.rule("A-11A")
def test_after_four_tries_of_one_block_the_upload_ends(yard: Yard, relay: Relay) -> None:
    data = some(6 * 32 * KIB)
    relay.on("comp=block&blockid=MDAwMDAy", End.CUT, after=10, times=99)  # the block that begins with 000002
    with pytest.raises(Unavailable, match=r"could not upload a part of blob .*: the connection to 127\.0\.0\.1"):
        yard.upload(data, relay=relay)
    assert relay.count("comp=block&blockid=MDAwMDAy") == 4
    assert relay.count("comp=blocklist&", "PUT") == 0


@pytest.mark.rule("A-119")
def test_an_upload_that_broke_off_goes_on_where_it_was(yard: Yard, relay: Relay) -> None:
    data = some(20 * 32 * KIB + 5)
    relay.on("comp=block&blockid=MDAwMDE1", End.CUT, after=10, times=4)
    with pytest.raises(Unavailable):
        yard.upload(data, relay=relay)
    waiting = yard.waiting(data)
    assert waiting and sum(waiting) < len(data)
    done = yard.upload(data, relay=relay)
    assert done.skipped_bytes == sum(waiting) and done.sent_bytes == len(data) - sum(waiting)
    assert yard.bytes_of(data) == data
    assert str(done) == f"uploaded {done.sent_bytes / 1024:.1f} KiB, {done.skipped_bytes / 1024:.1f} KiB were there"


@pytest.mark.rule("A-11A")
@pytest.mark.parametrize("size", [1000, 100_000])
def test_a_lost_answer_to_the_last_request_is_success(yard: Yard, relay: Relay, size: int) -> None:
    data = some(size)
    last = "?comp=blocklist" if size > SMALL.single else ""
    fault = relay.on(f"PUT /{ACCOUNT}/{yard.name}/{name_of(data)}{last}", End.CUT, way=Way.DOWN)
    yard.upload(data, relay=relay)
    assert fault.hits == 1 and yard.bytes_of(data) == data
    assert [head.split()[0] for head in relay.heads[-2:]] == [b"PUT", b"HEAD"]


@pytest.mark.rule("A-001", "A-11A", "T28")
@pytest.mark.parametrize("way", Way)
def test_a_line_on_which_nothing_moves_is_given_up(yard: Yard, relay: Relay, way: Way) -> None:
    data = some(6 * MIB)
    sizes = Sizes(single=8 * MIB, limit=9 * MIB)
    fault = relay.on("x-ms-blob-type: BlockBlob", End.STALL, way=way, after=0 if way is Way.DOWN else MIB, times=99)
    with pytest.raises(Unavailable, match=r"nothing moved for 0\.3 s on the way to 127\.0\.0\.1"):
        yard.upload(data, relay=relay, limits=Limits(stall_s=0.3), sizes=sizes)
    assert fault.hits == 4


@pytest.mark.rule("A-001", "A-11A", "T27", "T28")
def test_a_slow_line_is_no_stalled_one(yard: Yard, relay: Relay) -> None:
    data = some(6 * MIB)
    fault = relay.on("x-ms-blob-type: BlockBlob", End.SLOW, pause_s=0.003)  # 6 MiB in pieces of 16 KiB: 1.2 s
    yard.upload(data, relay=relay, limits=Limits(stall_s=0.6), sizes=Sizes(single=8 * MIB, limit=9 * MIB))
    assert fault.hits == 1 and yard.bytes_of(data) == data


# Rivals


@pytest.mark.rule("A-11A", "C-195")
@pytest.mark.parametrize("size", [1000, 300_000])
def test_of_uploaders_at_once_all_succeed(yard: Yard, size: int) -> None:
    data, start = some(size), threading.Barrier(4)
    ends: list[Uploaded | BaseException] = []

    def one() -> None:
        start.wait(10)
        try:
            ends.append(yard.upload(data))
        except BaseException as error:
            ends.append(error)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [type(end) for end in ends] == [Uploaded] * 4
    assert yard.bytes_of(data) == data


@dataclass
class Spoiled:
    """A container in which staged blocks vanish before they are made a blob."""

    inner: Container
    yard: Yard
    times: int
    commits: int = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def commit(self, name: str, names: list[str], content_type: str) -> None:
        if self.times:
            self.times -= 1
            # A blob that is made of no block throws away what was staged, and then it goes as well.
            self.yard.seen.get_blob_client(name).commit_block_list([])
            self.yard.seen.delete_blob(name)
        self.commits += 1
        self.inner.commit(name, names, content_type)


@pytest.mark.rule("A-11A")
@pytest.mark.parametrize("times", [1, 2])
def test_when_staged_blocks_vanish_all_of_it_goes_once_more(yard: Yard, times: int) -> None:
    data = some(100_000)
    source = blocks.of_bytes(data, GZIP, "x")
    with blobs.opened(yard.azurite.place(yard.name), yard.azurite.key, Settings({})) as inner:
        spoiled = Spoiled(inner, yard, times)
        container = cast(Container, spoiled)

        def act() -> Uploaded:
            return blocks.upload(container, name_of(data), source, clock=yard.clock, sizes=SMALL)

        if times == 1:
            assert act().sent_bytes == len(data)
            assert yard.bytes_of(data) == data
        else:
            with pytest.raises(Refused, match=r"could not finish blob .*: InvalidBlockList"):
                act()
        assert spoiled.commits == 2


@pytest.mark.rule("A-119")
def test_blocks_of_somebody_else_are_no_obstacle(yard: Yard) -> None:
    data = some(100_000)
    blob = yard.seen.get_blob_client(name_of(data))
    first = f"000000{hashlib.sha256(data[: 32 * KIB]).hexdigest()[:20]}"
    blob.stage_block(first, b"of another length")
    done = yard.upload(data)
    assert done.skipped_bytes == 0 and yard.bytes_of(data) == data


# Kills


CHILD = textwrap.dedent(
    """
    import json, resource, sys
    from pathlib import Path
    from aj.azure import blobs, blocks
    from aj.azure.datastores import Secret
    from aj.azure.line import Place
    from aj.base.clock import SYSTEM
    from aj.base.settings import Settings

    place, key, path, sha256, sizes = json.load(sys.stdin)
    with blobs.opened(Place(*place), Secret("AccountKey", key), Settings({})) as container:
        container.size("warm")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with blocks.of_file(Path(path), sha256, "application/gzip") as source:
            name, sizes = f"LocalUpload/{sha256}/code.tar.gz", blocks.Sizes(*sizes)
            done = blocks.upload(container, name, source, clock=SYSTEM, sizes=sizes)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([done.sent_bytes, done.skipped_bytes, (after - before) * 1024]))
    """
)


def child(
    yard: Yard, path: Path, sha256: str, relay: Relay | None = None, sizes: Sizes = MEDIUM
) -> subprocess.Popen[bytes]:
    """Start an upload in a process of its own."""
    place = yard.azurite.place(yard.name, relay.url if relay else None)
    process = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    words = [[place.account, place.container, place.url], KEY, str(path), sha256, dataclasses.astuple(sizes)]
    process.stdin.write(json.dumps(words).encode())
    process.stdin.close()
    process.stdin = None
    return process


@pytest.mark.rule("A-119")
def test_an_upload_that_was_killed_goes_on_in_another_process(
    yard: Yard, relay: Relay, tmp_path: Path, programs: None
) -> None:
    data = random.Random(7).randbytes(40 * 512 * KIB)
    path = tmp_path / "code.tar.gz"
    path.write_bytes(data)
    stall = relay.on("comp=block&blockid=MDAwMDMw", End.STALL, after=10)  # that of 000030
    with child(yard, path, hashlib.sha256(data).hexdigest(), relay) as process:
        assert stall.reached.wait(60)
        process.send_signal(signal.SIGKILL)
        assert process.wait(10) == -signal.SIGKILL
    waiting = sum(yard.waiting(data))
    assert waiting >= 512 * KIB
    with child(yard, path, hashlib.sha256(data).hexdigest()) as process:
        out, _ = process.communicate(timeout=60)
    sent, skipped, _ = json.loads(out)
    assert (sent, skipped) == (len(data) - waiting, waiting)
    assert hashlib.sha256(yard.bytes_of(data)).digest() == hashlib.sha256(data).digest()


@pytest.mark.rule("A-119")
def test_memory_does_not_grow_with_the_file(yard: Yard, tmp_path: Path, programs: None) -> None:
    path = tmp_path / "code.tar.gz"
    size = 9 * 16 * MIB
    with path.open("wb") as file:
        file.truncate(size)  # holes: the disk holds nothing of it
    zeros, total = bytes(16 * MIB), hashlib.sha256()
    for _ in range(9):
        total.update(zeros)
    with child(yard, path, total.hexdigest(), sizes=blocks.SIZES) as process:
        out, _ = process.communicate(timeout=100)
    sent, _, grown = json.loads(out)
    assert sent == size
    assert grown < 100 * MIB  # four blocks at once, and what comes with them


# Limits, rights, secrets


@pytest.mark.rule("A-116")
def test_above_5000_mib_nothing_is_asked(tmp_path: Path, clock: MovedClock) -> None:
    path = tmp_path / "code.tar.gz"
    with path.open("wb") as file:
        file.truncate(5000 * MIB + 1)
    nobody = cast(Container, object())
    with (
        blocks.of_file(path, "0" * 64, GZIP) as source,
        pytest.raises(UserError, match=r"archive is 4\.9 GiB, limit 5000 MiB"),
    ):
        blocks.upload(nobody, "a/b", source, clock=clock)
    blocks.check_size(5000 * MIB)
    with pytest.raises(UserError) as caught:
        blocks.check_size(6 * 1024 * MIB, [("data/train.bin", 4 * 1024 * MIB), ("b", 10)])
    assert caught.value.message == "archive is 6.0 GiB, limit 5000 MiB; largest: data/train.bin 4.0 GiB, b 10 B"
    assert "code.ignore" in (caught.value.hint or "")


def test_a_damaged_archive_never_gets_a_good_name(yard: Yard, relay: Relay, tmp_path: Path) -> None:
    path = tmp_path / "code.tar.gz"
    path.write_bytes(b"damaged")
    place = yard.azurite.place(yard.name, relay.url)
    with (
        blobs.opened(place, yard.azurite.key, Settings({})) as container,
        blocks.of_file(path, hashlib.sha256(b"whole").hexdigest(), GZIP) as source,
        pytest.raises(AjError, match="is damaged: its SHA-256 is not the one it was packed with"),
    ):
        blocks.upload(container, "a/b", source, clock=yard.clock)
    assert relay.count("PUT") == 0
    with pytest.raises(AjError, match="cannot be read: No such file"), blocks.of_file(tmp_path / "gone", "0", GZIP):
        raise AssertionError("it was opened")


def signature(yard: Yard, permission: str) -> Secret:
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    found = generate_container_sas(
        ACCOUNT, yard.name, KEY, permission=ContainerSasPermissions.from_string(permission), expiry=end
    )
    return Secret("Sas", found)


@pytest.mark.rule("A-11B", "A-207", "A-011")
def test_a_missing_right_names_the_role_and_the_account(yard: Yard) -> None:
    secret = signature(yard, "r")
    with (
        blobs.opened(yard.azurite.place(yard.name), secret, Settings({})) as container,
        pytest.raises(Refused) as caught,
    ):
        blocks.upload(container, "a/b", blocks.of_bytes(b"code", GZIP, "x"), clock=yard.clock)
    error = caught.value
    assert error.message == f"no right to write blobs in account {ACCOUNT}"
    assert (error.code, error.hint) == ("forbidden", f"role Storage Blob Data Contributor on {ACCOUNT}")
    assert secret.value not in repr(error.details) + str(error)


def test_a_signature_that_may_write_is_enough(yard: Yard) -> None:
    data = some(100_000)
    with blobs.opened(yard.azurite.place(yard.name), signature(yard, "rcw"), Settings({})) as container:
        blocks.upload(container, name_of(data), blocks.of_bytes(data, GZIP, "x"), clock=yard.clock, sizes=SMALL)
    assert yard.bytes_of(data) == data


@pytest.mark.rule("A-011", "A-209")
def test_a_wrong_key_is_told_without_what_was_signed(yard: Yard) -> None:
    wrong = Secret("AccountKey", "d3JvbmcgYnV0IGEga2V5IGFsbCB0aGUgc2FtZQ==")
    with (
        blobs.opened(yard.azurite.place(yard.name), wrong, Settings({})) as container,
        pytest.raises(Refused) as caught,
    ):
        container.size("a/b")
    assert caught.value.message == f"account {ACCOUNT} does not let us in"
    assert wrong.value not in str(caught.value.details) + str(caught.value.hint)


@pytest.mark.rule("A-207")
@pytest.mark.parametrize(
    "code, words",
    [
        ("AuthorizationPermissionMismatch", "no right to write blobs in account devstoreaccount1"),
        ("AuthorizationFailure", "account devstoreaccount1 does not let us in"),
        ("AuthenticationFailed", "account devstoreaccount1 did not accept what we signed with"),
        ("KeyBasedAuthenticationNotPermitted", "account devstoreaccount1 takes no account keys"),
    ],
)
def test_each_kind_of_no_has_its_own_words(code: str, words: str) -> None:
    with serving(lambda got: Answer(403, headers={"x-ms-error-code": code})) as server:
        place = Place(ACCOUNT, "code", f"{server.url}/{ACCOUNT}")
        with (
            blobs.opened(place, Secret("AccountKey", KEY), Settings({})) as container,
            pytest.raises(Refused) as caught,
        ):
            container.size("a/b")
    assert (caught.value.message, caught.value.details["remote_code"]) == (words, code)


@pytest.mark.rule("A-011")
def test_no_signature_stands_in_an_error_of_the_line(clock: MovedClock) -> None:
    place = Place(ACCOUNT, "code", f"http://127.0.0.1:1/{ACCOUNT}")
    with (
        blobs.opened(place, Secret("Sas", "sv=1&sig=planted-secret"), Settings({})) as container,
        pytest.raises(Unavailable) as caught,
    ):
        blocks.upload(container, "a/b", blocks.of_bytes(b"code", GZIP, "x"), clock=clock)
    assert caught.value.message == "could not look for blob a/b: 127.0.0.1:1 cannot be reached"
    assert clock.ran - 1000 >= 10.5  # asked four times


# Tokens


@pytest.mark.rule("A-016", "A-119")
def test_a_token_opens_the_account_by_https(secure_azurite: Azurite, clock: MovedClock) -> None:
    name, data, issuer = f"c-{uuid.uuid4().hex}", some(100_000), Accepted({})
    place = secure_azurite.place(name)
    with ContainerClient(place.url, name, credential=KEY, connection_verify=str(secure_azurite.bundle)) as seen:
        seen.create_container()
    with blobs.opened(place, ByToken(issuer, "tenant-1"), secure_azurite.settings) as container:
        done = blocks.upload(container, name_of(data), blocks.of_bytes(data, GZIP, "x"), clock=clock, sizes=SMALL)
        assert done.sent_bytes == len(data) and container.size(name_of(data)) == len(data)
    assert issuer.asked == [("https://storage.azure.com/.default", "tenant-1", None)]


def test_a_certificate_that_is_not_trusted_is_told_at_once(secure_azurite: Azurite, clock: MovedClock) -> None:
    with (
        blobs.opened(secure_azurite.place("code"), secure_azurite.key, Settings({})) as container,
        pytest.raises(Unavailable, match=r"the certificate of 127\.0\.0\.1:\d+ is not trusted") as caught,
    ):
        blocks.upload(container, "a/b", blocks.of_bytes(b"code", GZIP, "x"), clock=clock)
    assert "SSL_CERT_FILE" in (caught.value.hint or "") and clock.slept == []


@pytest.mark.rule("A-021")
@pytest.mark.parametrize("refusals", [1, 9])
def test_a_refused_token_is_renewed_once(refusals: int, tmp_path: Path) -> None:
    import ssl

    import trustme

    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    issuer, tokens = Issuer({}), []

    def answer(got: Got) -> Answer:
        tokens.append(got.headers["authorization"])
        if len(set(tokens)) <= refusals:
            # Whatever it asks for here, nothing but a token for blobs is given.
            challenge = "Bearer authorization_uri=https://login.test/t/oauth2/authorize resource_id=https://graph.test"
            return Answer(401, headers={"WWW-Authenticate": challenge})
        return Answer(200, raw=b"12345")

    with serving(answer, context) as server:
        place = Place(ACCOUNT, "code", f"{server.url}/{ACCOUNT}")
        settings = Settings({"SSL_CERT_FILE": str(tmp_path / "ca.pem")})
        with blobs.opened(place, ByToken(issuer), settings) as container:
            if refusals == 1:
                assert container.size("a/b") == 5
            else:
                with pytest.raises(AuthError, match="could not look for blob a/b: status 401"):
                    container.size("a/b")
    assert len(issuer.dropped) == 1 and len(set(tokens)) == 2
    assert {scope for scope, _, _ in issuer.asked} == {"https://storage.azure.com/.default"}


@pytest.mark.rule("A-015b")
def test_a_token_never_goes_by_plain_http() -> None:
    place = Place(ACCOUNT, "code", f"http://127.0.0.1:10000/{ACCOUNT}")
    with (
        pytest.raises(ConfigError, match="is plain http, and a token goes by https alone"),
        blobs.opened(place, ByToken(Issuer({})), Settings({})),
    ):
        raise AssertionError("it was opened")


@pytest.mark.rule("A-010")
def test_the_proxy_of_the_settings_is_used_and_we_say_who_we_are() -> None:
    with serving(lambda got: Answer(200, raw=b"12345")) as proxy:
        settings = Settings({"HTTP_PROXY": proxy.url})
        place = Place("acct", "code", "http://acct.blob.test")
        with blobs.opened(place, Secret("AccountKey", KEY), settings) as container:
            assert container.size("a/b") == 5
    (got,) = proxy.got
    assert got.headers["host"] == "acct.blob.test" and "aj/" in got.headers["user-agent"]


@pytest.mark.rule("A-006")
def test_a_redirect_is_not_followed() -> None:
    with serving(lambda got: Answer(307, headers={"Location": "http://127.0.0.1:1/elsewhere"})) as server:
        place = Place(ACCOUNT, "code", f"{server.url}/{ACCOUNT}")
        with (
            blobs.opened(place, Secret("AccountKey", KEY), Settings({})) as container,
            pytest.raises(AjError, match="could not look for blob a/b: status 307"),
        ):
            container.size("a/b")


# Telling, and cleaning up


@pytest.mark.rule("A-11A")
def test_progress_ends_at_the_whole_and_goes_back_for_what_goes_again(yard: Yard, relay: Relay) -> None:
    data = some(8 * 32 * KIB)
    relay.on("comp=block&", End.CUT, after=20 * KIB)
    told: list[tuple[int, int, int]] = []
    yard.upload(data, relay=relay, progress=lambda *step: told.append(step))
    assert told[-1] == (len(data), len(data), 0)
    assert all(0 <= done <= total and skipped == 0 for done, total, skipped in told)
    assert any(later[0] < earlier[0] for earlier, later in itertools.pairwise(told))
    again: list[tuple[int, int, int]] = []
    yard.upload(data, relay=relay, progress=lambda *step: again.append(step))
    assert again == [(len(data), len(data), len(data))]


class Enough(Exception):
    """Whoever listened wants no more."""


@pytest.mark.parametrize("size", [60 * KIB, 20 * 32 * KIB])
def test_who_listens_can_end_the_upload(yard: Yard, size: int) -> None:
    data = some(size)

    def progress(done: int, total: int, skipped: int) -> None:
        if done > total // 4:
            raise Enough

    with pytest.raises(Enough):
        yard.upload(data, progress=progress)
    with pytest.raises(Exception, match="BlobNotFound"):
        yard.bytes_of(data)


@pytest.mark.rule("A-11C")
def test_only_our_own_blobs_are_listed_and_removed_as_they_were(yard: Yard) -> None:
    mine, other = some(100), some(100)
    yard.upload(mine)
    yard.seen.upload_blob(name_of(other), other)
    with blobs.opened(yard.azurite.place(yard.name), yard.azurite.key, Settings({})) as container:
        (found,) = container.ours("LocalUpload/")
        assert (found.name, found.size_bytes) == (name_of(mine), 100)
        assert abs(found.modified_at - SYSTEM.now()) < 100
        yard.seen.get_blob_client(name_of(mine)).set_blob_metadata({"aj": "1", "used": "again"})
        assert not container.remove(found)
        (changed,) = container.ours("LocalUpload/")
        assert container.remove(changed) and not container.remove(changed)
    assert [blob.name for blob in yard.seen.list_blobs()] == [name_of(other)]


# The library


def test_the_library_comes_with_the_first_container_and_without_aiohttp(tmp_path: Path, programs: None) -> None:
    (tmp_path / "aiohttp.py").write_text("raise AssertionError('imported')\n")
    script = textwrap.dedent(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        from aj.azure import blobs, blocks, datastores
        from aj.azure.line import Place
        from aj.base.settings import Settings
        assert not [name for name in sys.modules if name.partition(".")[0] in ("azure", "requests", "urllib3")]
        place = Place("acct", "code", "http://127.0.0.1:1/acct")
        with blobs.opened(place, datastores.Secret("AccountKey", "a2V5"), Settings({})):
            assert "azure.storage.blob" in sys.modules
        assert sys.modules["aiohttp"] is None
        """
    )
    found = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stderr) == (0, "")
