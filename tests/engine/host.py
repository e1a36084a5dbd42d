"""A process that hosts an engine and does what its standard input says, until it is killed.

One JSON request a line in (`{"number": 1, "service": "far", "mode": "queued"}`), one answer a line out:
the ticket, told only after the engine told it. `{"wait": 1}` waits for the end of one. Run as
`python -m tests.engine.host ROOT` with the folders of the test in the environment.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aj.base import clock, paths
from aj.base import settings as environment
from aj.base.paths import Folders
from aj.base.settings import Settings
from aj.model.ticket import Mode
from aj.store.layout import Layout
from tests.engine.stand import Stand
from tests.store import nouns


@dataclass(frozen=True)
class Home:
    """The folders that the environment names."""

    root: Path
    settings: Settings
    folders: Folders
    layout: Layout


def variables(root: Path) -> dict[str, str]:
    """Return an environment that puts every folder below one."""
    return {f"AJ_{kind}_DIR": str(root / kind.lower()) for kind in ("STATE", "CACHE", "CONFIG", "RUNTIME")}


def home(root: Path, environ: Mapping[str, str] | None = None) -> Home:
    """Return the folders that an environment names, by default that of this process."""
    settings = environment.read(environ)
    folders = paths.folders(settings)
    return Home(root, settings, folders, Layout(folders))


def main() -> None:
    stand = Stand(home(Path(sys.argv[1])), clock.SYSTEM)
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if "wait" in asked:
            found = stand.engine.submission(None, nouns.aj_id(asked["wait"]), 30).ticket
        else:
            submission = stand.submission(asked["number"], service=asked["service"], mode=Mode(asked["mode"]))
            found = stand.engine.submit(None, submission).ticket
        print(found.ticket, flush=True)


if __name__ == "__main__":
    main()
