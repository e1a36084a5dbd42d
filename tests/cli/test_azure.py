"""`aj run` to Azure ML and Singularity through a real daemon: servers that check each request, real blob storage."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from aj.base import proc
from aj.base.paths import Project
from aj.cli import dryrun, spec
from aj.model import commandjob
from aj.store import journal
from tests.cli.conftest import Shell, check_code, check_document
from tests.conftest import Home, RunningDaemon
from tests.servers import azurite as emulator
from tests.servers import whole
from tests.servers.azure import ONE, WORKSPACE
from tests.servers.azurite import Azurite
from tests.servers.loopback import Cut
from tests.servers.whole import Whole

AML = """base:
config:
  target: {service: aml, name: gpu-cluster, gpus_per_node: 1}
  environment: {registry: registry.example, image: "train:1", setup: [pip list]}
  jobs: [{sku: G1, instance_count: 1, submit_args: {env: {NCCL_DEBUG: WARN, HF_TOKEN: s3cret}}}]
"""
SING = """base:
config:
  target: {service: sing, gpus_per_node: 4}
  environment: {image: "train:1"}
  storage: {shared: {storage_account_name: sadata, container_name: data, mount_dir: /mnt/shared}}
  jobs: [{sku: "{nodes}x80G{processes}-H100", instance_count: 2, process_count_per_node: 4}]
"""
UNKNOWN = commandjob.UNSETTLED
STAGES = ["resolve", "auth", "package", "upload", "environment", "storage", "submit", "done"]


@pytest.fixture(scope="session")
def secure_azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    with emulator.running(tmp_path_factory.mktemp("azurite"), tls=True) as running:
        yield running


@dataclass
class Typed:
    """A user's shell in a project, with a daemon of its own that reaches the servers of the test."""

    home: Home
    project: Project
    whole: Whole

    def __call__(self, *words: str, code: int = 0) -> proc.Result:
        ran = self.home.aj(*words, cwd=self.project.root, **self.whole.env)
        assert ran.code == code, ran.err.decode()
        check_code(words, ran.code)
        return ran

    def item(self, *words: str, code: int = 0) -> dict:
        """The one item of the document that a command prints."""
        ran = self("--json", *words, code=code)
        check_document(ran.out)
        return json.loads(ran.out)["item"]

    def stages(self, ran: proc.Result) -> list[str]:
        """The kinds of steps that a command told, in order, each once."""
        told = [line.partition(":")[0].removeprefix("aj: ") for line in ran.err.decode().splitlines()]
        return list(dict.fromkeys(word for word in told if word in STAGES))


@pytest.fixture
def aj(daemon: RunningDaemon, loopback: None, secure_azurite: Azurite, tmp_path: Path) -> Iterator[Typed]:
    home, project = daemon.home, daemon.home.project()
    for name, text in (("aml", AML), ("sing", SING)):
        (project.directory / "template" / f"{name}.yaml").write_text(text)
    (project.root / "train.py").write_text("print('hello')\n")
    (project.root / "data.bin").write_bytes(os.urandom(100_000))
    servers = tmp_path / "servers"
    servers.mkdir()
    with whole.running(secure_azurite, servers) as azure:
        home.layout.user_settings.parent.mkdir(parents=True, exist_ok=True)
        home.layout.user_settings.write_text(azure.settings())
        yield Typed(home, project, azure)


@pytest.mark.rule("C-009", "C-017", "C-195", "T100", "A-117", "A-121", "A-128", "A-179", "A-183")
def test_a_job_for_a_compute_and_the_same_tree_once_more(aj: Typed) -> None:
    ran = aj("--json", "run", "-t", "aml", "python", "train.py", "--lr", "1e-3")
    first = json.loads(ran.out)["item"]
    assert (first["status"], first["azure_name"]) == ("submitted", first["name"])
    assert first["portal_url"] == f"{aj.whole.azure.arm.url}/runs/{first['name']}"
    assert (first["code"]["files"], first["code"]["reused"]) == (2, False)
    assert first["code"]["uploaded_bytes"] > 100_000
    assert aj.stages(ran) == ["resolve", "auth", "package", "upload", "environment", "submit", "done"]
    assert aj.whole.puts() == [first["name"]]
    sent = json.loads(aj.whole.body(first["name"]))["properties"]
    assert sent["command"] == commandjob.COMMAND
    assert sent["environmentVariables"]["AJ_COMMAND"] == "python train.py --lr 1e-3"
    blobs = aj.whole.blobs()
    archive = f"LocalUpload/{first['code']['archive_sha256']}/code.tar.gz"
    assert archive in blobs and len(blobs) == 2

    ran = aj("--json", "run", "-t", "aml", "python", "train.py", "--lr", "2e-3")
    second = json.loads(ran.out)["item"]
    assert second["code"]["archive_sha256"] == first["code"]["archive_sha256"]
    assert (second["code"]["reused"], second["code"]["uploaded_bytes"]) == (True, 0)
    assert "code: reused (0 B sent)" in ran.err.decode()
    assert aj.whole.blobs() == blobs, "nothing was written again"
    record = next(iter(journal.read(aj.home.layout, aj.project.key, lambda _: None)))
    assert record.portal_url is not None


@pytest.mark.rule("C-048", "A-11C")
def test_code_in_the_workspace_goes_when_no_live_job_names_it(aj: Typed) -> None:
    made = aj.item("run", "-t", "aml", "python", "train.py")
    everything = aj.whole.blobs()
    assert aj("code", "prune", "--remote", "--keep", "0s").out == b"nothing to remove\n"
    job = aj.whole.azure.arm.resources[f"{WORKSPACE.id}/jobs/{made['azure_name']}".lower()]
    job["properties"]["status"] = "Completed"
    assert aj("code", "prune", "--remote").out == b"nothing to remove\n"
    for words in (("--dry-run",), ()):
        assert aj.whole.blobs() == everything
        found = json.loads(aj("--json", "code", "prune", "--remote", "--keep", "0s", *words).out)
        assert [row["digest"] for row in found["items"]] == [made["code"]["archive_sha256"]]
    assert len(aj.whole.blobs()) == len(everything) - 1, "the bootstrap stays"
    assert "goes with `--remote`" in aj("code", "prune", "--ws", "x", code=2).err.decode()


@pytest.mark.rule("C-017", "C-239", "C-241", "A-080", "A-101", "A-124")
def test_a_queued_job_for_a_virtual_cluster(aj: Typed) -> None:
    queued = aj.item("run", "-t", "sing", "--queue", "python", "train.py")
    assert (queued["status"], queued["azure_name"]) == ("queued", None)
    aj("queue", "wait", queued["ticket"])
    shown = aj.item("queue", "show", queued["ticket"])
    assert (shown["state"], shown["outcome"]) == ("completed", "submitted")
    assert shown["submission"]["handle"] == f"sing://{ONE}/rg-one/ws-one/{queued['name']}"
    assert shown["submission"]["matched_instances"] == ["Singularity.H4_a"]
    assert shown["submission"]["uploaded_bytes"] > 0
    direct = aj.item("run", "-t", "sing", "python", "train.py")
    assert direct["matched_instances"] == ["Singularity.H4_a"]
    assert direct["code"]["reused"] is True
    assert aj.whole.puts() == [queued["name"], direct["name"]]


@pytest.mark.rule("A-180", "A-181", "A-205", "C-009", "C-249", "C-339")
def test_a_lost_answer_is_exit_6_and_a_look_settles_it(aj: Typed) -> None:
    aj.whole.azure.arm_server.on(f"PUT {WORKSPACE.id}/jobs/", Cut.AFTER_BODY)
    ran = aj("run", "-t", "aml", "python", "train.py", code=6)
    (name,) = aj.whole.puts()
    aj_id = name.rpartition("_")[2]
    said = ran.err.decode().splitlines()
    assert said[-2] == f"aj: the answer to the submission of {name} was lost; it may be running"
    assert said[-1].startswith(f"hint: `aj queue reconcile q-{aj_id}`")
    aj("queue", "reconcile", f"q-{aj_id}")
    assert aj.item("queue", "show", f"q-{aj_id}")["submission"]["azure_name"] == name
    assert aj.whole.puts() == [name], "looking sends nothing"


@pytest.mark.rule("A-128", "A-183")
def test_what_azure_refuses_is_told_with_its_words(aj: Typed) -> None:
    (aj.project.directory / "template" / "aml.yaml").write_text(AML.replace("gpu-cluster", "cpu-cluster"))
    ran = aj("run", "-t", "aml", "python", "train.py", code=3)
    assert "aj: no compute called cpu-cluster" in ran.err.decode()
    assert aj.whole.puts() == []


UNSETTLED = {
    "aml": ("computeId", "environmentId"),
    "sing": ("computeId", "environmentId", "instanceType", "instanceTypes", "slaTier", "VirtualClusterArmId"),
}


def settled(printed: bytes, sent: bytes, names: tuple[str, ...]) -> bytes:
    """Put into a printed body what only the service could tell, as it was in the one that was sent."""
    for name in names:
        (found,) = set(re.findall(rb'"%s":(\[[^]]*\]|"[^"]*")' % name.encode(), sent))
        marked = json.dumps([UNKNOWN] if found.startswith(b"[") else UNKNOWN).encode()
        place = b'"%s":' % name.encode()
        assert printed.count(place + marked) == 1, name
        printed = printed.replace(place + marked, place + found)
    return printed


@pytest.mark.rule("C-178", "C-179", "A-12B")
@pytest.mark.parametrize("service", ["aml", "sing"])
def test_the_printed_body_is_the_one_that_is_sent(aj: Typed, service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    item = aj.item("run", "-t", service, "python", "train.py", "a b", "$HOME")
    sent = aj.whole.body(item["name"])
    variables = json.loads(sent)["properties"]["environmentVariables"]
    monkeypatch.setattr(spec, "draw_id", lambda: item["id"])
    monkeypatch.setattr(dryrun, "_now", lambda ctx: variables["AJ_SUBMIT_TIMESTAMP_UTC"])
    shell = Shell(aj.home, aj.project.root)
    words = ("run", "-t", service, "-d", "--show", "body")
    seen = shell(*words, "--show-env", "python", "train.py", "a b", "$HOME")
    assert seen.code == 0, seen.err
    assert settled(seen.raw.removesuffix(b"\n"), sent, UNSETTLED[service]) == sent
    masked = shell(*words, "--json", "python", "train.py").json["item"]["body"]["properties"]["environmentVariables"]
    assert masked.get("HF_TOKEN") == ("***" if service == "aml" else None)
    assert masked["AJ_COMMAND"] == "python train.py"


@pytest.mark.rule("C-176", "C-189", "A-12B")
def test_a_printed_body_names_the_archive_that_would_be_made(aj: Typed) -> None:
    shell = Shell(aj.home, aj.project.root)
    seen = shell("run", "-t", "aml", "-d", "--show", "body", "python", "train.py")
    assert not aj.home.layout.code.exists(), "nothing is kept"
    sha256 = seen.json["properties"]["environmentVariables"]["AJ_CODE_ARCHIVE_SHA256"]
    assert aj.item("run", "-t", "aml", "python", "train.py")["code"]["archive_sha256"] == sha256
    (path,) = aj.home.layout.code.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        assert archive.getnames() == ["aj_runner.sh", "data.bin", "train.py"]
        assert archive.getmember("aj_runner.sh").mode == 0o755


@pytest.mark.rule("C-175", "C-178", "A-114")
def test_listed_files_of_ssh_go_along_and_are_named(aj: Typed) -> None:
    known = aj.home.root / ".ssh" / "known_hosts"
    known.parent.mkdir()
    known.write_text("example ssh-ed25519 AAAA\n")
    template = AML + "  code: {ssh: [known_hosts]}\n"
    (aj.project.directory / "template" / "aml.yaml").write_text(template)
    files = aj("run", "-t", "aml", "-d", "--show", "files", "python", "train.py").out.decode()
    assert ".ssh/known_hosts\t25\tfile" in files
    ran = aj("--json", "run", "-t", "aml", "python", "train.py")
    document = json.loads(ran.out)
    assert "~/.ssh/known_hosts travels with the code (`code.ssh`)" in [one["message"] for one in document["warnings"]]
    body = json.loads(aj.whole.body(document["item"]["name"]))
    assert body["properties"]["environmentVariables"]["AJ_SSH"] == "1"
    data = aj.whole.seen.download_blob(
        f"LocalUpload/{document['item']['code']['archive_sha256']}/code.tar.gz"
    ).readall()
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        assert archive.getmember(".ssh/known_hosts").mode == 0o600


@pytest.mark.rule("C-293")
def test_the_command_itself_imports_nothing_of_azure(aj: Typed) -> None:
    heavy = ("azure", "aj.azure", "aj.engine", "urllib3", "msal", "requests")
    code = (
        "import sys\nfrom aj.main import main\n"
        "code = main(['run', '-t', 'aml', 'python', 'train.py'])\n"
        f"print([name for name in sys.modules if name.startswith({heavy!r})])\nsys.exit(code)"
    )
    env = {**aj.home.env, **aj.whole.env}
    ran = proc.run([sys.executable, "-I", "-c", code], cwd=aj.project.root, env=env, timeout_s=60)
    assert ran.code == 0, ran.err.decode()
    assert ran.out.decode().splitlines()[-1] == "[]"
    assert len(aj.whole.puts()) == 1
