"""Kills in the middle of uploads, at named points and anywhere: what is restored is always one whole epoch.

`python -m tests.bucket.torn 200` does it so often, against folders and against Azurite.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from aj.bucket import manifest
from aj.bucket.checkpoint import Checkpoint
from aj.bucket.scope import Scope
from aj.bucket.storage import objects
from aj.bucket.transfer import Pace
from tests.bucket.keeper import epoch_of, storage

POINTS = ("checkpoint.after-blob", "checkpoint.before-manifest", "checkpoint.before-head", "checkpoint.after-head")
ANYWHERE = "anywhere"
LIMIT_S = 60


def kill_once(where: tuple[str, ...], folder: Path, first: int, point: str, chance: random.Random) -> int:
    """Let a process save from epoch `first` on, end it, restore, and return the epoch that was found."""
    root = folder / f"writes-{first}"
    root.mkdir()
    env = {**os.environ, **({} if point == ANYWHERE else {"AJ_TEST_CRASH_LATER": point})}
    argv = [sys.executable, "-m", "tests.bucket.keeper", str(root), str(first), *where]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=env, cwd=Path(__file__).parents[2]) as child:
        assert child.stdout is not None
        saved = [int(line) for line in _lines(child, chance.randint(1, 4) if point == ANYWHERE else None)]
        if point == ANYWHERE:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(chance.random() * 0.05)
            child.send_signal(signal.SIGKILL)
            saved += [int(line) for line in child.stdout]
        assert child.wait(LIMIT_S) == -signal.SIGKILL
    assert saved, "at least the first epoch was saved"
    return _restored(where, folder / f"found-{first}", saved[-1])


def _lines(child: subprocess.Popen[bytes], count: int | None) -> Iterator[bytes]:
    assert child.stdout is not None
    for number, line in enumerate(child.stdout, start=1):
        yield line
        if number == count:
            return


def _restored(where: tuple[str, ...], found: Path, saved: int) -> int:
    view = Scope(storage(*where), "job-1/")
    kept = Checkpoint(view, found)
    assert kept.restore(Pace()) is not None
    epoch = epoch_of(found)
    assert saved <= epoch <= saved + 1, f"epoch {epoch} where {saved} was told"
    return epoch


def check_nothing_spare(where: tuple[str, ...], folder: Path, first: int) -> None:
    """Save once more: what killed writers left goes with it."""
    root = folder / "last"
    root.mkdir()
    (root / "state").write_text("the last")
    view = Scope(storage(*where), "job-1/")
    saving = Checkpoint(view, root, keep=1, attempt=first)
    made = saving.save(Pace()).checkpoint
    assert {one.name for one in objects(view, "blobs/")} == manifest.named((made,))


def prove(kind: str, where: tuple[str, ...], points: Sequence[str], seed: int) -> None:
    """Kill at each of these points, each time another process that goes on from what the last one left."""
    chance = random.Random(seed)
    storage(kind, *where).create()
    with tempfile.TemporaryDirectory() as name:
        folder, first = Path(name), 1
        for point in points:
            first = kill_once((kind, *where), folder, first, point, chance) + 1
            print(f"{kind}: killed {point}, epoch {first - 1} is whole", flush=True)
        check_nothing_spare((kind, *where), folder, first)


def main(count: int) -> None:
    from tests.servers import azurite

    points = [(*POINTS, ANYWHERE)[number % 5] for number in range(count)]
    with tempfile.TemporaryDirectory() as name:
        prove("dir", (name,), points, seed=count)
    with tempfile.TemporaryDirectory() as name, azurite.running(Path(name)) as running:
        prove("azure", (running.url, "torn"), points, seed=count)


if __name__ == "__main__":
    main(int(sys.argv[1]))
