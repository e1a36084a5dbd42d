"""Figures of transfers: `python -m tests.bench.bucket [OBJECTS] [MIB]`, by default 10,000 small objects and 2 GiB.

Each is carried up and down twice: by us, and by the plain loop over the library that one would write by hand. Both
speak to the same emulator on this machine, which is a single process: a ratio says what our side costs or saves, not
how fast a real account is. `again` is what a transfer costs that finds all there.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from azure.storage.blob import ContainerClient

from aj.bucket import mirror
from aj.bucket.azure import Container
from aj.bucket.mirror import Upload
from aj.bucket.transfer import Pace
from tests.servers import azurite
from tests.servers.azurite import KEY, Azurite

OBJECTS, SMALL_BYTES = 10_000, 4096
LARGE_MIB = 2048
PIECE = 8 << 20


def taken_s(act: Callable[[], object]) -> float:
    """Return how many seconds something takes."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def line(what: str, size_bytes: int, plain_s: float, ours_s: float) -> str:
    """One line: both times, our rate, and how many times as fast we are."""
    rate = size_bytes / ours_s / 1e6
    times = f"plain loop {plain_s:8.2f} s   aj {ours_s:8.2f} s ({rate:7.1f} MB/s)"
    return f"{what:28s} {times}   ratio {plain_s / ours_s:5.2f}"


def small(folder: Path, count: int) -> None:
    """Write many small files, a hundred in a folder."""
    for number in range(count):
        path = folder / f"{number // 100:04d}" / f"{number:06d}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(SMALL_BYTES))


def large(folder: Path, mib: int) -> None:
    """Write one large file."""
    folder.mkdir()
    with (folder / "large.bin").open("wb") as out:
        for _ in range(mib):
            out.write(os.urandom(1 << 20))


def plain(server: Azurite, name: str) -> ContainerClient:
    """Make a container as the library's own client."""
    client = ContainerClient(server.place(name).url, name, credential=KEY)
    client.create_container()
    return client


def plain_up(client: ContainerClient, folder: Path) -> None:
    """Upload a folder as one would by hand."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as data:
                client.upload_blob(path.relative_to(folder).as_posix(), data, overwrite=True)


def plain_down(client: ContainerClient, folder: Path) -> None:
    """Download a container as one would by hand."""
    for blob in client.list_blobs():
        path = folder / blob.name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as out:
            client.download_blob(blob.name).readinto(out)


def carry(server: Azurite, root: Path, what: str, folder: Path) -> None:
    """Carry one folder up and down both ways, and print the lines."""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    by_hand = plain(server, f"plain-{what}")
    plain_up_s = taken_s(lambda: plain_up(by_hand, folder))
    ours = Container(server.place(f"ours-{what}"), server.key, server.settings)
    ours.create()
    up_s = taken_s(lambda: Upload(ours, folder).round(Pace()))
    print(line(f"{what}: up", size, plain_up_s, up_s), flush=True)
    again = Upload(ours, folder)
    again_s = taken_s(lambda: (again.look(Pace()), again.round(Pace())))
    print(line(f"{what}: up again", size, plain_up_s, again_s), flush=True)
    plain_down_s = taken_s(lambda: plain_down(by_hand, root / f"{what}-plain"))
    down_s = taken_s(lambda: mirror.download(ours, root / f"{what}-ours", Pace()))
    print(line(f"{what}: down", size, plain_down_s, down_s), flush=True)
    check(folder, root / f"{what}-ours")


def check(sent: Path, got: Path) -> None:
    """Compare what came back byte by byte. Raises AssertionError."""
    for path in sent.rglob("*"):
        if path.is_file():
            with path.open("rb") as one, (got / path.relative_to(sent)).open("rb") as other:
                while piece := one.read(PIECE):
                    assert piece == other.read(PIECE), path
                assert not other.read(1), path


def main(count: int = OBJECTS, mib: int = LARGE_MIB) -> int:
    with tempfile.TemporaryDirectory() as name, azurite.running(Path(name)) as server:
        root = Path(name)
        small(root / "small", count)
        carry(server, root, "small", root / "small")
        large(root / "large", mib)
        carry(server, root, "large", root / "large")
    return 0


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in sys.argv[1:])))
