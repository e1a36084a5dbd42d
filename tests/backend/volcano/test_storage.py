"""Storage in a pod: by a blobfuse2 that checks its words, with renewed signatures, and told why when it fails."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from aj.backend.volcano import pins
from tests.conftest import Home
from tests.servers.loopback import Answer, serving

SCRIPTS = Path(pins.__file__).parent / "scripts"
BASH = shutil.which("bash") or "/bin/bash"
SAS = "sv=2024-11-04&sr=c&sp=racwdl&sig=planted-signature-one"
RENEWED = "sv=2024-11-04&sr=c&sp=racwdl&sig=planted-signature-two"
# Stands for blobfuse2 2.3.2: it takes the words that the real one takes, and no others.
BLOBFUSE = """#!/bin/bash
printf '%s\\n' "$*" >>PLACE/words
case "$1 $#" in
  '--version 1') echo 'blobfuse2 version VERSION'; exit 0 ;;
  'mount 4') ;;
  'unmount 2') exec umount "$2" ;;
  *) echo "unknown words: $*" >&2; exit 64 ;;
esac
[[ $3 == --config-file=/*.yaml && $4 == --foreground=true ]] || { echo "unknown flags: $*" >&2; exit 64; }
file=${3#--config-file=}
[[ $(stat -c %a "$file") == 600 && $(stat -c %a "${file%/*}") == 700 ]] || { echo "open to others" >&2; exit 65; }
[[ -d $2 && -z $(ls -A "$2") ]] || { echo 'mount directory is not empty' >&2; exit 66; }
cp "$file" "PLACE/settings.${2##*/}"
stat -f -c %T "$file" >"PLACE/where"
FAULT
mount -t tmpfs storage "$2" || exit 67
while grep -q " $2 " /proc/self/mounts; do
  cmp -s "$file" "PLACE/settings.${2##*/}" || cp "$file" "PLACE/renewed.${2##*/}"
  sleep 0.02
done
"""
needs_mounts = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="needs a namespace of mounts: root"
)
pytestmark = pytest.mark.usefixtures("programs")


@dataclass
class Pod:
    """A pod with two storages, in a namespace of mounts of its own."""

    root: Path
    version: str = "2.3.2"
    fault: str = ""
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("bin", "own", "secret"):
            (self.root / name).mkdir(mode=0o700)
        for key in ("data", "refs"):
            (self.root / "secret" / key).write_text(SAS)

    def program(self, name: str, text: str) -> None:
        path = self.root / "bin" / name
        path.write_text(text.replace("PLACE", str(self.root)))
        path.chmod(0o755)

    @property
    def blobfuse(self) -> str:
        return BLOBFUSE.replace("VERSION", self.version).replace("FAULT", self.fault)

    def of(self, key: str, mode: str) -> dict[str, str]:
        values = {
            "ACCOUNT": "account1",
            "ENDPOINT": "https://account1.blob.core.windows.net",
            "CONTAINER": f"c-{key}",
            "FOLDER": str(self.root / f"mnt {key}" if key == "refs" else self.root / "mnt"),
            "MODE": mode,
            "SAS_FILE": str(self.root / "secret" / key),
        }
        return {f"AJ_STORAGE_{word}_{key}": value for word, value in values.items()}

    def run(self, then: str = "true", **env: str) -> subprocess.CompletedProcess[str]:
        """Mount all, do something, unmount all, as the first process of a pod does."""
        parts = "".join((SCRIPTS / name).read_text() for name in ("aj_ranks.sh", "aj_storage.sh", "aj_blob.sh"))
        own = self.root / "own" / f"aj-{os.getpid()}-{self.root.name}"
        text = f"""set -u; aj_own={own}; mkdir -m 700 "$aj_own"
{parts}
(aj_storage_mount) || {{ code=$?; (aj_storage_flush); exit $code; }}
aj_storage_watch & aj_watcher=$!
{then}
kill -KILL "$aj_watcher"
(aj_storage_flush) && echo flushed || echo not flushed
"""
        whole = {
            "PATH": f"{self.root}/bin:{os.environ['PATH']}",
            "AJ_STORAGE": "data refs",
            **self.of("data", "rw"),
            **self.of("refs", "ro"),
            "AJ_BLOBFUSE2_MINIMUM": "2.3.2",
            "AJ_STORAGE_LOOK": "0.05",
            **self.env,
            **env,
        }
        argv = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", BASH, "-c", text]
        return subprocess.run(argv, env=whole, capture_output=True, text=True, timeout=60)

    def words(self) -> list[str]:
        path = self.root / "words"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    made = Pod(tmp_path)
    made.program("blobfuse2", made.blobfuse)
    return made


@needs_mounts
@pytest.mark.rule("V-081", "V-080", "V-082")
def test_each_storage_is_mounted_by_a_private_file_of_settings(pod: Pod) -> None:
    done = pod.run(f"touch '{pod.root}/mnt/there'; ls '{pod.root}/mnt'")
    assert (done.returncode, done.stdout) == (0, "there\nflushed\n"), done.stderr
    data = yaml.safe_load((pod.root / "settings.mnt").read_text())
    assert data["azstorage"] == {
        "type": "block",
        "account-name": "account1",
        "container": "c-data",
        "endpoint": "https://account1.blob.core.windows.net",
        "mode": "sas",
        "sas": SAS,
    }
    assert (data["read-only"], data["components"]) == (False, ["libfuse", "file_cache", "attr_cache", "azstorage"])
    assert yaml.safe_load((pod.root / "settings.mnt refs").read_text())["read-only"] is True
    assert "planted" not in "\n".join(pod.words()) + done.stdout + done.stderr
    assert (pod.root / "where").read_text() == "tmpfs\n", "signatures lie in memory alone"
    assert not list(Path("/dev/shm").glob(f"aj-{os.getpid()}-{pod.root.name}*"))


@needs_mounts
@pytest.mark.rule("V-083", "V-084")
def test_a_renewed_signature_is_handed_on_and_another_one_is_not_touched(pod: Pod) -> None:
    renewed = pod.root / "renewed.mnt"
    wait = f"printf %s '{RENEWED}' >{pod.root}/secret/data; until [[ -s {renewed} ]]; do sleep 0.02; done"
    done = pod.run(wait)
    assert (done.returncode, done.stdout) == (0, "flushed\n"), done.stderr
    assert yaml.safe_load(renewed.read_text())["azstorage"]["sas"] == RENEWED
    before = yaml.safe_load((pod.root / "settings.mnt").read_text())
    after = yaml.safe_load(renewed.read_text())
    assert {**after, "azstorage": {**after["azstorage"], "sas": SAS}} == before
    assert not (pod.root / "renewed.mnt refs").exists()


@needs_mounts
@pytest.mark.rule("V-082", "A-011")
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (f'echo "auth failed for ?{SAS}" >&2; exit 1', "cannot be mounted at"),
        ("exec sleep 600", "was not mounted at"),
    ],
)
def test_a_storage_that_is_not_there_in_time_ends_the_pod_with_its_words(pod: Pod, fault: str, words: str) -> None:
    pod.fault = fault
    pod.program("blobfuse2", pod.blobfuse)
    done = pod.run(AJ_MOUNT_WAIT="1")
    assert done.returncode == 118
    assert f"aj: storage data {words} {pod.root}/mnt" in done.stderr
    assert ("auth failed for" in done.stderr) == ("auth" in fault)
    assert "planted-signature" not in done.stderr


@needs_mounts
@pytest.mark.rule("V-082")
def test_a_blobfuse_that_dies_early_is_a_failed_flush(pod: Pod) -> None:
    done = pod.run(f"umount {pod.root}/mnt; sleep 0.1")
    assert done.stdout == "not flushed\n"
    assert "aj: blobfuse2 of storage data ended before the job did" in done.stderr


@needs_mounts
@pytest.mark.rule("V-082")
def test_what_is_in_use_is_waited_for_and_then_told(pod: Pod) -> None:
    busy = f"cd {pod.root}/mnt"  # this very shell holds it
    done = pod.run(busy, AJ_FLUSH_WAIT="1")
    assert done.stdout == "not flushed\n"
    assert "aj: storage data could not be unmounted" in done.stderr


@needs_mounts
def test_a_folder_with_files_is_not_hidden(pod: Pod) -> None:
    (pod.root / "mnt").mkdir()
    (pod.root / "mnt/file").touch()
    done = pod.run()
    assert (done.returncode, "mount directory is not empty" in done.stderr) == (118, True)


@needs_mounts
def test_a_missing_value_is_named(pod: Pod) -> None:
    done = pod.run(AJ_STORAGE_ACCOUNT_refs="")
    assert (done.returncode, done.stderr.splitlines()[0]) == (110, "aj: AJ_STORAGE_ACCOUNT_refs is not set")


# Where blobfuse2 comes from


@needs_mounts
@pytest.mark.rule("V-081", "V-073")
@pytest.mark.parametrize("version", ["", "2.3.1", "1.99.0"])
def test_an_image_without_a_new_one_gets_the_package_that_is_named(pod: Pod, loopback: None, version: str) -> None:
    if version:
        pod.program("blobfuse2", f"#!/bin/sh\necho blobfuse2 version {version}\n")
    else:
        (pod.root / "bin/blobfuse2").unlink()
    new = pod.root / "new"
    new.write_text(pod.blobfuse.replace("PLACE", str(pod.root)))
    pod.program(
        "apt-get",
        f'#!/bin/sh\necho "$*" >>PLACE/apt\n[ "$1" != install ] || install -m 755 {new} PLACE/bin/blobfuse2\n',
    )
    package = b"a package"
    with serving(lambda got: Answer(200, raw=package)) as server:
        line = f"{platform.machine()} {hashlib.sha256(package).hexdigest()} {server.url}/blobfuse2.deb"
        done = pod.run(AJ_BLOBFUSE2=line)
    assert (done.returncode, done.stdout) == (0, "flushed\n"), done.stderr
    assert (pod.root / "apt").read_text().splitlines()[1].endswith("/blobfuse2.deb")


@needs_mounts
@pytest.mark.rule("V-081", "V-073")
def test_a_package_with_another_hash_is_not_installed(pod: Pod, loopback: None) -> None:
    pod.program("blobfuse2", "#!/bin/sh\necho blobfuse2 version 2.0.0\n")
    pod.program("apt-get", "#!/bin/sh\necho ran >>PLACE/apt\n")
    with serving(lambda got: Answer(200, raw=b"something else")) as server:
        done = pod.run(AJ_BLOBFUSE2=f"{platform.machine()} {'0' * 64} {server.url}/blobfuse2.deb")
    assert (done.returncode, "does not have the SHA-256" in done.stderr) == (116, True)
    assert not (pod.root / "apt").exists()


@needs_mounts
@pytest.mark.rule("V-081")
def test_an_image_without_one_and_no_package_is_told_what_to_set(pod: Pod) -> None:
    pod.program("blobfuse2", "#!/bin/sh\necho blobfuse2 version 2.0.0\n")
    done = pod.run()
    words = "aj: the image has no blobfuse2 of version 2.3.2 or later, and no package is named by blobfuse2.url\n"
    assert (done.returncode, done.stderr) == (118, words)


def test_settings_put_other_tools_in_the_place_of_the_pinned_ones(home: Home) -> None:
    from aj.base.errors import ConfigError
    from aj.store import config

    def chosen(text: str) -> pins.Chosen:
        path = home.layout.user_settings
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return pins.read(config.read(home.layout, None, home.settings))

    plain = chosen("")
    image, _, digest = plain.helper_image.partition("@sha256:")
    assert (bool(image), len(digest)) == (True, 64), "pinned by its digest"
    machine, sha256, url = plain.tools["AJ_AZCOPY"].split()
    assert (machine, len(sha256)) == ("x86_64", 64) and url.startswith("https://")
    assert plain.tools["AJ_BLOBFUSE2_MINIMUM"] == "2.3.2" and "AJ_BLOBFUSE2" not in plain.tools
    assert (plain.storage_sas_s, plain.auto_refresh) == (86400.0, True)
    other = chosen(
        f'[volcano]\nhelper_image = "r.example/b:1"\nstorage_sas_hours = 72\nauto_refresh = false\n'
        f'[azcopy]\nurl = "https://m.example/a.tgz"\nsha256 = "{"a" * 64}"\n'
        f'[blobfuse2]\nurl = "https://m.example/b.deb"\nsha256 = "{"b" * 64}"\n'
    )
    assert (other.helper_image, other.storage_sas_s, other.auto_refresh) == ("r.example/b:1", 72 * 3600.0, False)
    assert other.tools["AJ_AZCOPY"].splitlines()[0] == f"x86_64 {'a' * 64} https://m.example/a.tgz"
    assert other.tools["AJ_BLOBFUSE2"].splitlines()[1] == f"aarch64 {'b' * 64} https://m.example/b.deb"
    assert chosen('[azcopy]\nsource = "image"').tools["AJ_AZCOPY_PROGRAM"].startswith("x86_64 ")
    for wrong in (
        '[azcopy]\nurl = "ftp://x"',
        '[azcopy]\nurl = "https://m.example/a.tgz"',
        f'[blobfuse2]\nurl = "https://m.example/a b"\nsha256 = "{"a" * 64}"',
        "[volcano]\nstorage_sas_hours = 169",
        "[volcano]\nauto_refresh = 1",
        '[volcano]\nhelper_image = "two words"',
    ):
        with pytest.raises(ConfigError, match=r"is|takes"):
            chosen(wrong)
