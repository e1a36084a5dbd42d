"""A program named `amlt` for tests: it takes nothing but what the real one is documented to take, and notes it all.

It refuses any other words, a terminal or anything else on stdin, a file that others may read, and a variable that
belongs to `aj`. What it prints then, how long it takes and how it ends stands in `acts.json` beside it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = """#!{python} -I
import json, os, signal, stat, subprocess, sys, time
from pathlib import Path

here = Path(__file__).parent
acts = json.loads((here / "acts.json").read_text())
argv = sys.argv[1:]


def refuse(why):
    print("usage: " + why, flush=True)
    sys.exit(97)


if sys.stdin.read() != "":
    refuse("stdin is not empty")
if left := sorted(name for name in os.environ if name.startswith("AJ_")):
    refuse(f"variables of aj: {{left}}")
noted = {{"argv": argv, "cwd": os.getcwd(), "env": dict(os.environ), "group": os.getpgrp() == os.getpid()}}
if argv[:1] == ["run"]:
    if len(argv) != 4 or argv[3] != "-y" or argv[2].startswith("-"):
        refuse(f"amlt run FILE EXPERIMENT -y, not {{argv}}")
    file = Path(argv[1])
    if not file.is_absolute() or stat.S_IMODE(file.stat().st_mode) != 0o600:
        refuse("the file is not absolute, or not private")
    if stat.S_IMODE(file.parent.stat().st_mode) != 0o700:
        refuse("the folder is not private")
    noted["yaml"] = file.read_text()
elif argv[:2] == ["project", "create"]:
    if len(argv) != 4:
        refuse(f"amlt project create NAME STORAGE, not {{argv}}")
    if acts.get("makes_config", True):
        Path(".amltconfig").write_text(json.dumps({{"project_name": argv[2], "storage_account_name": argv[3]}}))
else:
    refuse(f"unknown command {{argv}}")
with open(here / "calls.jsonl", "a") as calls:
    calls.write(json.dumps(noted) + "\\n")
for line in acts.get("prints", ()):
    print(line, flush=True)
if acts.get("hangs"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN if acts["hangs"] == "deaf" else signal.SIG_DFL)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (here / "pids").write_text(f"{{os.getpid()}} {{child.pid}}")
    print("uploading", flush=True)
    time.sleep(600)
sys.exit(acts.get("code", 0))
"""


@dataclass(frozen=True)
class Amlt:
    """The program in a folder of its own."""

    folder: Path

    @property
    def path(self) -> str:
        """A PATH on which it comes first."""
        return f"{self.folder}:/usr/bin:/bin"

    def acts(self, **how: Any) -> None:
        """Settle what the next calls do: `prints` lines, `code`, `hangs`."""
        (self.folder / "acts.json").write_text(json.dumps(how))

    @property
    def calls(self) -> list[dict[str, Any]]:
        """All calls that it took, oldest first."""
        file = self.folder / "calls.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def pids(self) -> list[int]:
        """The hanging program and its child, once it hangs."""
        file = self.folder / "pids"
        return [int(word) for word in file.read_text().split()] if file.exists() else []


def make(folder: Path) -> Amlt:
    """Put the program into a folder."""
    folder.mkdir()
    program = folder / "amlt"
    program.write_text(SOURCE.format(python=sys.executable))
    program.chmod(0o755)
    found = Amlt(folder)
    found.acts(prints=["submitted"])
    return found
