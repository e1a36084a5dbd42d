"""Debian's `docker-registry` on the loopback interface, run as it is, with images that a test puts there.

`python -m tests.house setup` installs it on Debian; elsewhere its tests are skipped, and say so.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import io
import json
import platform
import re
import shutil
import subprocess
import tarfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from aj.net.registry import ARCHITECTURES

USER, PASSWORD = "reader", "hush-hush"
HASHED = "$2b$04$QNaf9T4bGAGcaGPMzGjm5.ZPhrgTcgPcb7UNh.MU.DFuInNXQrLdK"  # of that password, by bcrypt at its cheapest
STARTS_S = 30
OCI = "application/vnd.oci.image"
MACHINE = ARCHITECTURES.get(platform.machine(), platform.machine())


@dataclass(frozen=True)
class Registry:
    """A running registry. `address` is what stands before the name of an image."""

    address: str
    has_password: bool = False

    def push(self, name: str, tag: str, files: Mapping[str, bytes], **config: object) -> str:
        """Put a small image there; its files may be run. Returns its digest."""
        layer = _layer(files)
        about = {"architecture": MACHINE, "os": "linux", "config": config}
        about["rootfs"] = {"type": "layers", "diff_ids": [_digest(gzip.decompress(layer))]}
        raw = json.dumps(about).encode()
        for blob in (layer, raw):
            self._blob(name, blob)
        manifest = {
            "schemaVersion": 2,
            "mediaType": f"{OCI}.manifest.v1+json",
            "config": _described(f"{OCI}.config.v1+json", raw),
            "layers": [_described(f"{OCI}.layer.v1.tar+gzip", layer)],
        }
        return self._manifest(name, tag, manifest)

    def index(self, name: str, tag: str, platforms: Mapping[str, str]) -> str:
        """Put an index there: each architecture with the digest of an image that is there. Returns its digest."""
        entries = []
        for machine, digest in platforms.items():
            body = self._ask("GET", f"/v2/{name}/manifests/{digest}", accept=f"{OCI}.manifest.v1+json")[1]
            described = _described(f"{OCI}.manifest.v1+json", body)
            entries.append({**described, "platform": {"os": "linux", "architecture": machine}})
        kind = f"{OCI}.index.v1+json"
        return self._manifest(name, tag, {"schemaVersion": 2, "mediaType": kind, "manifests": entries})

    def _manifest(self, name: str, tag: str, manifest: Mapping[str, object]) -> str:
        raw = json.dumps(manifest).encode()
        self._ask("PUT", f"/v2/{name}/manifests/{tag}", raw, kind=str(manifest["mediaType"]))
        return _digest(raw)

    def _blob(self, name: str, data: bytes) -> None:
        place = self._ask("POST", f"/v2/{name}/blobs/uploads/", b"")[0]["Location"]
        path = re.sub(r"^https?://[^/]+", "", place)
        mark = "&" if "?" in path else "?"
        self._ask("PUT", f"{path}{mark}digest={_digest(data)}", data, kind="application/octet-stream")

    def _ask(
        self, method: str, path: str, body: bytes | None = None, *, kind: str = "", accept: str = ""
    ) -> tuple[Mapping[str, str], bytes]:
        headers = {"Content-Type": kind, "Accept": accept}
        if self.has_password:
            headers["Authorization"] = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        request = urllib.request.Request(f"http://{self.address}{path}", body, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.headers, answer.read()


@contextlib.contextmanager
def running(folder: Path, *, has_password: bool = False) -> Iterator[Registry]:
    """Run a registry for the length of a block. Skips the test, loudly, where there is none."""
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("docker-registry is not installed: `python -m tests.house setup` installs it on Debian")
    config = folder / "registry.yml"
    (folder / "users").write_text(f"{USER}:{HASHED}\n")
    auth = f"auth: {{htpasswd: {{realm: test, path: {folder / 'users'}}}}}\n" if has_password else ""
    config.write_text(
        f"version: 0.1\nlog: {{level: info, formatter: json}}\n{auth}"
        f"storage: {{filesystem: {{rootdirectory: {folder / 'store'}}}}}\nhttp: {{addr: '127.0.0.1:0'}}\n"
    )
    log = folder / "registry.log"
    with log.open("wb") as out:
        child = subprocess.Popen([program, "serve", str(config)], stderr=out, stdout=out)
    try:
        yield Registry(_address(log, child), has_password)
    finally:
        child.kill()
        child.wait()


def _address(log: Path, child: subprocess.Popen[bytes]) -> str:
    """Wait until it says where it listens."""
    limit = time.monotonic() + STARTS_S
    while child.poll() is None and time.monotonic() < limit:
        if at := re.search(rb"listening on (127\.0\.0\.1:\d+)", log.read_bytes()):
            return at[1].decode()
        time.sleep(0.01)
    raise AssertionError(log.read_text())


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _described(kind: str, data: bytes) -> dict[str, object]:
    return {"mediaType": kind, "digest": _digest(data), "size": len(data)}


def _layer(files: Mapping[str, bytes]) -> bytes:
    """Pack files with the folders that they lie in; those every image has are there too."""
    raw = io.BytesIO()
    folders = {"etc", "proc", "sys", "dev", "tmp"} | {str(one) for name in files for one in Path(name).parents}
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name in sorted(folders - {"."}):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            archive.addfile(entry)
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.mode, entry.size = 0o755, len(data)
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(raw.getvalue(), 1, mtime=0)


def shell(
    commands: Sequence[str] = ("sh", "cat", "ls", "sleep", "id", "mkdir", "touch", "rm", "test"),
) -> dict[str, bytes]:
    """Return the files of busybox with the libraries that it needs. Skips the test, loudly, without busybox."""
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.skip("busybox is not installed: `python -m tests.house setup` installs it on Debian")
    found = {f"bin/{name}": Path(busybox).read_bytes() for name in ("busybox", "sh")}
    for name in commands:
        found.setdefault(f"bin/{name}", b'#!/bin/sh\nexec /bin/busybox "${0##*/}" "$@"\n')
    told = subprocess.run(["ldd", busybox], capture_output=True, text=True, timeout=10).stdout
    for library in re.findall(r"(/\S+)", told):
        found[library.lstrip("/")] = Path(library).read_bytes()
    return found
