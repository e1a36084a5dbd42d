"""Code through blob storage: up by the user's own token, down by the real program of a pod, from a real emulator."""

from __future__ import annotations

import datetime
import hashlib
import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from azure.storage.blob import BlobSasPermissions, ContainerClient, generate_blob_sas

from aj.azure.blocks import Sizes
from aj.backend.volcano import blob, payload
from aj.base.errors import UserError
from aj.model.code import CodeRef
from aj.model.step import Step
from tests.azure.conftest import azurite as azurite
from tests.azure.conftest import secure_azurite as secure_azurite
from tests.backend.volcano.test_sas import TEMPLATE, session
from tests.conftest import Home
from tests.servers.azurite import ACCOUNT, KEY, Azurite
from tests.servers.loopback import Answer, Got, serving
from tests.template.kit import built

SCRIPTS = Path(blob.__file__).parent / "scripts"
BASH = shutil.which("bash") or "/bin/bash"
CLIENTS = ("curl", "wget", "python3")
# What a pod's image has besides a program to download with.
TOOLS = (
    *("bash", "cat", "chmod", "cp", "env", "grep", "gzip", "head", "ls", "mkdir", "mv", "rm", "sh", "sha256sum"),
    *("sleep", "tail", "tar", "tr", "uname"),
)
# Stands for azcopy: notes its words, and downloads by what is known to work.
AZCOPY = """#!/bin/sh
[ "$1" != --version ] || { echo "azcopy version 10.32.2"; exit 0; }
printf '%s\\n' "$@" >>PLACE/azcopy.words
env | grep -E '^AZCOPY' >>PLACE/azcopy.env
python3 -c 'import sys, urllib.request
try: open(sys.argv[2], "wb").write(urllib.request.urlopen(sys.argv[1]).read())
except OSError as error: sys.exit(f"RESPONSE Status: {error} for {sys.argv[1]}")' "$2" "$3"
"""


@dataclass
class Pod:
    """A pod of its own PATH, private folder and Secret, before an emulator that holds the code."""

    root: Path
    data: bytes
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("bin", "own", "work", "secret"):
            (self.root / name).mkdir(mode=0o700)
        for name in TOOLS:
            self.has(name)

    def has(self, *names: str) -> None:
        """Give the image a program of this machine."""
        for name in names:
            target = sys.executable if name == "python3" else shutil.which(name)
            assert target is not None, name
            words = f'#!/bin/sh\nexec {target} "$@"\n'
            (self.root / "bin" / name).write_text(words)
            (self.root / "bin" / name).chmod(0o755)

    def program(self, name: str, text: str) -> None:
        (self.root / "bin" / name).write_text(text.replace("PLACE", str(self.root)))
        (self.root / "bin" / name).chmod(0o755)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def secret(self) -> Path:
        return self.root / "secret/code.url"

    def words(self, name: str) -> list[str]:
        path = self.root / name
        return path.read_text().splitlines() if path.exists() else []

    def run(self, call: str = "aj_get_code", **env: str) -> subprocess.CompletedProcess[str]:
        """Run a function of the pod's program, as the pod does before setup."""
        parts = "".join((SCRIPTS / name).read_text() for name in ("aj_ranks.sh", "aj_blob.sh", "aj_code.sh"))
        text = f"set -u; aj_own={self.root}/own\n{parts}\n{call}"
        whole = {
            "PATH": str(self.root / "bin"),
            "AJ_ID": "0a1b2c3d",
            "AJ_WORKDIR": str(self.root / "work"),
            "AJ_CODE_ARCHIVE_SHA256": self.sha256,
            "AJ_CODE_URL_FILE": str(self.secret),
            "AJ_CODE_RETRIES": "2",
            "AJ_CODE_PAUSE": "0",
            **self.env,
            **env,
        }
        given = {name: value for name, value in whole.items() if value}
        return subprocess.run([BASH, "-c", text], env=given, capture_output=True, text=True, timeout=60)


def tgz(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


@pytest.fixture
def pod(tmp_path: Path, programs: None, loopback: None) -> Pod:
    return Pod(tmp_path, tgz({"train.py": os.urandom(300_000), "aj_runner.sh": b"x"}))


@pytest.fixture
def address(pod: Pod, azurite: Azurite) -> Iterator[str]:
    """The signed address of the pod's code in the emulator, written into its Secret."""
    name = f"c{uuid.uuid4().hex}"
    with ContainerClient(azurite.place(name).url, name, credential=KEY) as container:
        container.create_container()
        container.upload_blob("code.tgz", pod.data)
        url = f"{azurite.place(name).url}/{name}/code.tgz?{signed(name)}"
        pod.secret.write_text(url)
        yield url


def signed(container: str, hours: float = 1.0) -> str:
    moment = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=hours)
    start = moment - datetime.timedelta(hours=24)
    may = BlobSasPermissions(read=True)
    return generate_blob_sas(
        ACCOUNT, container, "code.tgz", account_key=KEY, permission=may, start=start, expiry=moment
    )


def secret_of(url: str) -> str:
    return url.partition("sig=")[2].partition("&")[0]


# Up


@pytest.mark.rule("V-071", "A-118", "A-119")
def test_the_archive_goes_up_once_under_its_hash_by_the_users_token(
    home: Home, loopback: None, secure_azurite: Azurite
) -> None:
    name = f"c{uuid.uuid4().hex}"
    spec = built(home.root / "p", TEMPLATE.replace("container: code", f"container: {name}")).spec
    data = os.urandom(200_000)
    path = home.root / "code.tar.gz"
    path.write_bytes(data)
    code = CodeRef("d1" * 32, hashlib.sha256(data).hexdigest(), 1, 1, len(data))
    told: list[Step] = []
    sizes = Sizes(single=1000, block=64_000, limit=300_000)
    upload = blob.Upload(
        session(secure_azurite), secure_azurite.settings, payload.options(spec), path, code, sizes=sizes
    )
    place = secure_azurite.place(name)
    with ContainerClient(place.url, name, credential=KEY, connection_verify=str(secure_azurite.bundle)) as seen:
        seen.create_container()
        waiting = seen.get_blob_client(f"aj-code/{code.archive_sha256}.tgz")
        first = data[:64_000]
        waiting.stage_block(f"{0:06d}{hashlib.sha256(first).hexdigest()[:20]}", first)  # what a broken one left
        done = upload.carry_out(told.append)
        assert (done.name, done.sent_bytes, done.skipped_bytes) == (waiting.blob_name, 136_000, 64_000)
        assert waiting.download_blob().readall() == data
    again = upload.carry_out(told.append)
    assert again.is_reused
    words = [step.detail for step in told]
    assert words[0] == f"to container {name} of {ACCOUNT}"
    assert words[-1] == "code: reused (0 B sent)"
    assert "code: uploaded 132.8 KiB, 62.5 KiB were there" in words
    large = blob.Upload(
        session(secure_azurite), secure_azurite.settings, payload.options(spec), path, code, sizes=Sizes(limit=1000)
    )
    with pytest.raises(UserError, match="limit"):
        large.carry_out(told.append)


# Down


@pytest.mark.rule("V-074", "V-076", "V-072")
@pytest.mark.parametrize("client", CLIENTS)
def test_without_azcopy_the_image_downloads_by_what_it_has(pod: Pod, address: str, client: str) -> None:
    pod.has(client)
    done = pod.run()
    assert done.returncode == 0, done.stderr
    assert (pod.root / "work/train.py").exists()
    assert f"azcopy could not be had: {client} downloads the code" in done.stderr
    assert secret_of(address) not in done.stderr + done.stdout
    assert not (pod.root / "work/.aj-code.tar.gz").exists()


@pytest.mark.rule("V-074")
@pytest.mark.parametrize("client", ["curl", "wget"])
def test_the_address_is_no_word_of_a_command(pod: Pod, address: str, client: str) -> None:
    real = shutil.which(client)
    version = '[ "$1" != --version ] || exec REAL --version\n'
    noting = f'#!/bin/sh\n{version}printf "%s\\n" "$@" >>PLACE/words\nexec REAL "$@"\n'
    pod.program(client, noting.replace("REAL", str(real)))
    assert pod.run().returncode == 0
    assert pod.words("words") and secret_of(address) not in "\n".join(pod.words("words"))


@pytest.mark.rule("V-075")
@pytest.mark.parametrize("client", CLIENTS)
def test_a_download_goes_on_behind_what_is_there(pod: Pod, address: str, client: str) -> None:
    pod.has(client)
    archive = pod.root / "work/.aj-code.tar.gz"
    archive.write_bytes(pod.data[:100_000])
    assert pod.run().returncode == 0
    archive.write_bytes(pod.data)  # all of it is there
    assert pod.run().returncode == 0
    archive.write_bytes(b"x" * 100_000)
    done = pod.run()
    assert (done.returncode, "the code has SHA-256" in done.stderr) == (111, True)


@pytest.mark.rule("V-074")
def test_with_nothing_to_download_with_it_ends(pod: Pod, address: str) -> None:
    done = pod.run()
    assert (done.returncode, done.stderr) == (
        117,
        "aj: the code cannot be downloaded: the image has none of curl, wget, python3\n",
    )


@pytest.mark.rule("V-075", "V-084")
@pytest.mark.parametrize("client", CLIENTS)
def test_a_renewed_address_is_taken_and_an_old_one_named(pod: Pod, address: str, client: str) -> None:
    pod.has(client)
    container = address.partition("?")[0].split("/")[-2]
    old = address.partition("?")[0] + "?" + signed(container, hours=-1)
    pod.secret.write_text(old)
    done = pod.run()
    assert done.returncode == 112
    assert done.stderr.count("SAS expired or no right: aj k8s refresh-sas 0a1b2c3d") == 3, "one try and two more"
    assert secret_of(old) not in done.stderr
    # Somebody renews it while the pod waits between two tries.
    pod.program("sleep", f"#!/bin/sh\nprintf %s '{address}' >{pod.secret}\n")
    assert pod.run().returncode == 0


@pytest.mark.rule("V-076")
def test_another_archive_is_not_unpacked(pod: Pod, address: str) -> None:
    pod.has("curl")
    done = pod.run(AJ_CODE_ARCHIVE_SHA256="0" * 64)
    assert (done.returncode, f"aj: the code has SHA-256 {pod.sha256}" in done.stderr) == (111, True)
    assert list((pod.root / "work").iterdir()) == []


@pytest.mark.rule("V-075")
def test_pauses_grow_to_a_minute(pod: Pod) -> None:
    pod.has("curl")
    pod.secret.write_text("http://127.0.0.1:1/x?sig=planted-signature")
    pod.program("sleep", '#!/bin/sh\necho "$1" >>PLACE/pauses\n')
    done = pod.run(AJ_CODE_RETRIES="7", AJ_CODE_PAUSE="")
    assert (done.returncode, pod.words("pauses")) == (112, ["2", "4", "8", "16", "32", "60", "60"])
    assert "the code could not be downloaded in 8 tries" in done.stderr
    assert "curl: (7)" in done.stderr and "planted-signature" not in done.stderr


# Azcopy


@dataclass
class Mirror:
    """Where azcopy comes from in a cluster without a way out."""

    url: str
    got: list[Got]

    def lines(self, data: bytes, machine: str = platform.machine()) -> str:
        return f"other 00 http://x/y\n{machine} {hashlib.sha256(data).hexdigest()} {self.url}/azcopy.tgz"


@pytest.fixture
def mirror(pod: Pod) -> Iterator[tuple[Mirror, list[Answer]]]:
    answers: list[Answer] = []
    with serving(lambda got: answers.pop(0) if len(answers) > 1 else answers[0]) as server:
        yield Mirror(server.url, server.got), answers


def azcopy(pod: Pod) -> bytes:
    return AZCOPY.replace("PLACE", str(pod.root)).encode()


@pytest.mark.rule("V-073", "V-074")
@pytest.mark.parametrize("is_archive", [True, False])
def test_azcopy_is_fetched_by_its_hash_and_used(
    pod: Pod, address: str, mirror: tuple[Mirror, list[Answer]], is_archive: bool
) -> None:
    pod.has("curl", "python3")
    pod.program("azcopy", "#!/bin/sh\necho an older one of the image >>PLACE/old\nexit 1\n")
    where, answers = mirror
    inside = {"azcopy_linux/NOTICE.txt": b"x", "azcopy_linux/azcopy": azcopy(pod)}
    data = tgz(inside) if is_archive else azcopy(pod)
    answers += [Answer(503), Answer(200, raw=data)]
    done = pod.run(AJ_AZCOPY=where.lines(data))
    assert done.returncode == 0, done.stderr
    assert pod.words("old") == [], "what the image has is not used"
    words = pod.words("azcopy.words")
    assert words[:2] == ["copy", address]
    assert "--from-to=BlobLocal" in words
    assert any(line == f"AZCOPY_LOG_LOCATION={pod.root}/own/azcopy-logs" for line in pod.words("azcopy.env"))
    assert not any(line.startswith("AZCOPY_AUTO_LOGIN_TYPE") for line in pod.words("azcopy.env"))
    assert (pod.root / "work/train.py").exists()
    assert len(where.got) == 2, "an answer that may pass is asked for again"


@pytest.mark.rule("V-073")
def test_an_azcopy_with_another_hash_stops_the_pod(pod: Pod, address: str, mirror: tuple[Mirror, list[Answer]]) -> None:
    pod.has("curl")
    where, answers = mirror
    answers.append(Answer(200, raw=b"something else"))
    done = pod.run(AJ_AZCOPY=where.lines(b"what was pinned"))
    assert done.returncode == 116
    assert f"aj: azcopy from {where.url}/azcopy.tgz does not have the SHA-256" in done.stderr
    assert list((pod.root / "work").iterdir()) == []


@pytest.mark.rule("V-073", "V-074")
@pytest.mark.parametrize("why", ["no answer", "no program in it", "does not run here"])
def test_where_azcopy_cannot_be_had_another_program_does_it(
    pod: Pod, address: str, mirror: tuple[Mirror, list[Answer]], why: str
) -> None:
    pod.has("curl")
    where, answers = mirror
    data = {"no answer": b"", "no program in it": tgz({"README": b"x"}), "does not run here": b"#!/bin/false\n"}[why]
    answers.append(Answer(404) if why == "no answer" else Answer(200, raw=data))
    done = pod.run(AJ_AZCOPY=where.lines(data))
    assert done.returncode == 0, done.stderr
    assert "azcopy could not be had: curl downloads the code" in done.stderr
    assert (pod.root / "work/train.py").exists()


@pytest.mark.rule("V-073")
def test_azcopy_of_the_image_is_used_if_it_is_the_pinned_one(pod: Pod, address: str) -> None:
    pod.has("python3")
    pod.program("azcopy", AZCOPY)
    sums = hashlib.sha256((pod.root / "bin/azcopy").read_bytes()).hexdigest()
    machine = platform.machine()
    assert pod.run(AJ_AZCOPY_PROGRAM=f"{machine} {sums}").returncode == 0
    assert pod.words("azcopy.words")[:2] == ["copy", address]
    done = pod.run(AJ_AZCOPY_PROGRAM=f"{machine} {'0' * 64}")
    assert (done.returncode, "azcopy of the image does not have the SHA-256" in done.stderr) == (116, True)


@pytest.mark.rule("V-074", "V-070")
@pytest.mark.parametrize(("token", "login"), [("", "MSI"), ("/var/run/token", "WORKLOAD")])
def test_an_identity_needs_no_signature(
    pod: Pod, address: str, mirror: tuple[Mirror, list[Answer]], token: str, login: str
) -> None:
    pod.has("curl", "python3")
    where, answers = mirror
    answers.append(Answer(200, raw=azcopy(pod)))
    url = f"{where.url}/azcopy.tgz"
    done = pod.run(
        "aj_blob_download PLACE/work/got".replace("PLACE", str(pod.root)),
        AJ_CODE_URL=url,
        AJ_CODE_URL_FILE="",
        AZURE_FEDERATED_TOKEN_FILE=token,
        AJ_AZCOPY=where.lines(azcopy(pod)),
    )
    assert done.returncode == 0, done.stderr
    assert pod.words("azcopy.words")[:2] == ["copy", url]
    assert f"AZCOPY_AUTO_LOGIN_TYPE={login}" in pod.words("azcopy.env")


@pytest.mark.rule("V-074")
def test_an_identity_without_azcopy_cannot_download(pod: Pod) -> None:
    pod.has("curl")
    done = pod.run(AJ_CODE_URL="https://x/y", AJ_CODE_URL_FILE="")
    assert (done.returncode, done.stderr) == (117, "aj: an identity needs azcopy, and it could not be had\n")


@pytest.mark.rule("A-011", "V-075")
def test_what_azcopy_says_is_told_without_the_signature(
    pod: Pod, address: str, mirror: tuple[Mirror, list[Answer]]
) -> None:
    pod.has("curl", "python3")
    where, answers = mirror
    answers.append(Answer(200, raw=azcopy(pod)))
    gone = "http://127.0.0.1:1/code.tgz?sp=r&sig=planted-signature"
    pod.secret.write_text(gone)
    done = pod.run(AJ_AZCOPY=where.lines(azcopy(pod)), AJ_CODE_RETRIES="0")
    assert done.returncode == 112
    assert secret_of(gone) not in done.stderr
    assert "aj: the code could not be downloaded: RESPONSE Status: " in done.stderr
    assert done.stderr.splitlines()[0].endswith("for ***")
