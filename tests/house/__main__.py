"""One word for each chore of this repository: `python -m tests.house WORD`.

setup            programs that some tests use: from Debian, when this machine is Debian and we are root, and from npm
check            ruff, mypy, import floors; fails on the first finding
fix              ruff, with its own repairs
docs             write completions/ and man/ anew from the command tree
sizes            the longest rooms and functions, for a reader to look at
record B STORY   tape a conversation of a backend anew: cassettes/B/STORY.yaml
rules [WHAT]     numbered rules that no test names, of one capability or of all
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[2]
PACKAGES = ("zsh", "fish", "mandoc", "man-db", "shellcheck", "busybox", "pigz", "docker-registry", "podman", "runc")
PROGRAMS = ("zsh", "fish", "mandoc", "man", "shellcheck", "busybox", "pigz", "docker-registry", "podman", "runc")


def say(words: str) -> None:
    print(words, flush=True)


def call(*words: str) -> int:
    say("$ " + " ".join(words))
    return subprocess.run(words, cwd=HOUSE, check=False).returncode


def setup() -> int:
    return _setup_debian() or _setup_npm()


def _setup_debian() -> int:
    missing = [package for package, name in zip(PACKAGES, PROGRAMS) if shutil.which(name) is None]
    if not missing:
        return 0
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        say(f"not installed, and their tests will say so: {' '.join(missing)}")
        return 0
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    if call("apt-get", "update", "-qq"):
        say("apt-get update failed; trying the lists that are here")
    return call("apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing)


def _setup_npm() -> int:
    """Install what tests/package-lock.json names, unless it is there."""
    wanted = json.loads((HOUSE / "tests/package.json").read_text())["dependencies"]
    if all(_npm_version(name) == version for name, version in wanted.items()):
        return 0
    if shutil.which("npm") is None:
        say(f"no npm, and the tests of it will say so: {' '.join(wanted)}")
        return 0
    # None of them has to build or fetch anything when it is installed.
    return call("npm", "ci", "--prefix", "tests", "--ignore-scripts", "--no-audit", "--no-fund")


def _npm_version(name: str) -> str | None:
    about = HOUSE / "tests/node_modules" / name / "package.json"
    return json.loads(about.read_text())["version"] if about.exists() else None


def check() -> int:
    bin_ = Path(sys.executable).parent
    steps = (
        (str(bin_ / "ruff"), "check", "."),
        (str(bin_ / "ruff"), "format", "--check", "."),
        (str(bin_ / "mypy"),),
        (str(bin_ / "mypy"), "zipapp.py", "boot/door.py", "boot/unpack.py"),
        (str(bin_ / "lint-imports"), "--no-cache"),
    )
    return next((code for step in steps if (code := call(*step))), 0)


def fix() -> int:
    bin_ = Path(sys.executable).parent
    return call(str(bin_ / "ruff"), "check", "--fix", ".") or call(str(bin_ / "ruff"), "format", ".")


def docs() -> int:
    from tests.house import pages

    for path in pages.write_all(HOUSE):
        say(str(path.relative_to(HOUSE)))
    return 0


def sizes() -> int:
    rooms, functions = [], []
    for path in sorted((HOUSE / "aj").rglob("*.py")):
        text = path.read_text()
        rooms.append((text.count("\n"), str(path.relative_to(HOUSE))))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                functions.append((length, f"{path.relative_to(HOUSE)}:{node.lineno} {node.name}"))
    for title, rows in (("rooms", rooms), ("functions", functions)):
        counts = sorted(length for length, _ in rows)
        say(f"{len(rows)} {title}: median {counts[len(counts) // 2]}, longest {counts[-1]}")
        for length, name in sorted(rows, reverse=True)[:15]:
            say(f"  {length:5d}  {name}")
    return 0


def rules(capability: str | None = None) -> int:
    from tests.house import rules as register

    found = register.missing(capability)
    for rule, says in found:
        say(f"{rule:7s} {says}")
    say(f"{len(found)} rules without a test" + (f" in {capability}" if capability else ""))
    return 0


def record(backend: str, story: str) -> int:
    """Tape one story against real or checking servers; which those are is the story's own affair."""
    words = (
        "-m",
        "pytest",
        "tests/cassettes",
        "-n0",
        "--record-mode=rewrite",
        "-k",
        f"test_a_story[{backend}-{story}]",
    )
    return call(sys.executable, *words)


WORDS: dict[str, Callable[..., int]] = {
    "setup": setup,
    "check": check,
    "fix": fix,
    "docs": docs,
    "sizes": sizes,
    "record": record,
    "rules": rules,
}


def main(argv: list[str]) -> int:
    if not argv or argv[0] not in WORDS:
        say(__doc__ or "")
        return 2
    return WORDS[argv[0]](*argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
