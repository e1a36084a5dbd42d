"""A small program in the place of aj, built into a single file like the real one.

It tells what it sees when it runs, so that a test of the file's door needs neither the network nor the
real command line.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import pwd
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HOUSE = Path(__file__).resolve().parents[1]

MAIN = """
import sys

at_start = sorted(sys.modules)


def console():
    sys.exit(main(sys.argv[1:]))


def main(argv):
    import json
    import os

    if argv[:1] == ["wait"]:
        print("ready", flush=True)
        sys.stdin.read()
    if argv[:1] == ["cloud"]:
        from aj.base import packs
        packs.need("cloud")
        packs.need("cloud")
        import skyward
        print(skyward.__file__)
        return 0
    facts = {
        "argv": argv, "path": sys.path, "pyz": sys._aj_pyz, "at_start": at_start, "main": __file__,
        "python": list(sys.version_info[:2]), "libraries": sorted({"corelib"} & set(sys.modules)),
    }
    import corelib, corelib.by_python
    facts["corelib"] = corelib.__file__
    facts["by_python"] = corelib.by_python.PYTHON
    print(json.dumps(facts))
    return 7 if argv[:1] == ["fail"] else 0
"""


def load(path: Path, name: str) -> ModuleType:
    """Import a file that is on no module path, under a name of ours."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


builder: Any = load(HOUSE / "zipapp.py", "tests_zipapp_builder")
door: Any = load(HOUSE / "boot" / "door.py", "tests_boot_door")
unpack: Any = load(HOUSE / "boot" / "unpack.py", "tests_boot_unpack")


@dataclass
class StandIn:
    """A checkout of the small program, the wheels it uses, and where they are."""

    root: Path

    @property
    def wheels(self) -> Path:
        return self.root / "build" / "wheels"

    def write(self, path: str, text: str) -> None:
        """Put a file into the checkout."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def wheel(
        self, name: str, files: Mapping[str, str], tags: Sequence[str] = (), python: str = "py3", needs: str = ""
    ) -> Any:
        """Make a wheel and return its line in the lock."""
        self.wheels.mkdir(parents=True, exist_ok=True)
        path = self.wheels / f"{name}-1.0-{python}-none-any.whl"
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n" + (f"Requires-Dist: {needs}\n" if needs else "")
        rest = {
            "METADATA": about,
            "WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {python}-none-any\n",
            "RECORD": "",
        }
        with zipfile.ZipFile(path, "w") as members:
            for inner, text in files.items():
                members.writestr(inner, text)
            for inner, text in rest.items():
                members.writestr(f"{name}-1.0.dist-info/{inner}", text)
        return builder.Wheel(path.name, builder.hashlib.sha256(path.read_bytes()).hexdigest(), tuple(tags))

    def lock(self, core: Sequence[Any], cloud: Sequence[Any] = ()) -> None:
        """Write the lock file."""
        builder.write_lock(self.root / "zipapp.lock", {"core": list(core), "cloud": list(cloud)})

    def tags(self, *pythons: str) -> list[str]:
        """Name Pythons on this platform."""
        return [f"{python}-{door.platform()}" for python in pythons or builder.PYTHONS]

    def build(self, path: Path, tags: Sequence[str] | None = None) -> Path:
        """Build the file and return its path."""
        checkout = builder.Checkout(self.root)
        lock = builder.read_lock(self.root / "zipapp.lock")
        parts = builder.gather(checkout, lock, tags or self.tags(), self.wheels)
        builder.save(path, builder.assemble(checkout, parts))
        return path


def make(root: Path) -> StandIn:
    """Write a checkout of the small program: two libraries in the core, one in the cloud part."""
    standin = StandIn(root)
    standin.write("aj/__init__.py", "")
    standin.write("aj/version.py", 'VERSION = "9.8.7"\n')
    standin.write("aj/main.py", MAIN)
    for room in ("__init__", "packs", "errors", "noun"):
        standin.write(f"aj/base/{room}.py", (HOUSE / f"aj/base/{room}.py").read_text())
    for number in range(40):
        standin.write(f"aj/data/part{number}.txt", f"{number}\n" * 5000)
    standin.write("pyproject.toml", '[tool.setuptools.package-data]\naj = ["**/*.txt"]\n')
    shutil.copy(HOUSE / "LICENSE", root)
    shutil.copytree(HOUSE / "boot", root / "boot", ignore=shutil.ignore_patterns("__pycache__"))
    core = [standin.wheel("corelib", {"corelib/__init__.py": "", "corelib/same.py": "SAME = 1\n"})]
    for python in builder.PYTHONS:
        files = {"corelib/by_python.py": f"PYTHON = {python}\n"}
        core.append(standin.wheel("bypython", files, standin.tags(python), python=f"cp{python}"))
    standin.lock(core, [standin.wheel("skyward", {"skyward.py": "WHERE = 'sky'\n", "corelib_copy.py": "SAME = 1\n"})])
    return standin


def run(
    pyz: Path, *words: str, cache: Path | None = None, python: str = sys.executable, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run a single file as its first line would, with nothing but this environment."""
    return subprocess.run(
        [python, "-IS", str(pyz), *words], env=environment(cache, **env), capture_output=True, text=True, timeout=60
    )


def environment(cache: Path | None = None, **env: str) -> dict[str, str]:
    """Return an environment with a cache folder and little else."""
    chosen = {"AJ_CACHE_DIR": str(cache)} if cache else {}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", **chosen, **env}


def facts(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return what the small program saw. Fails with its stderr."""
    assert done.stdout, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@functools.cache
def find_python(version: str) -> str:
    """Return a Python of this version on this machine, or skip the test and say which one is missing."""
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    managed = sorted(Path(os.environ.get("PYENV_ROOT") or home / ".pyenv").glob(f"versions/{version}.*/bin/python"))
    for python in (sys.executable, shutil.which(f"python{version}"), *map(str, managed)):
        if python is None:
            continue
        asked = subprocess.run([python, "-c", "import sys; print(sys.version)"], capture_output=True, text=True)
        if asked.returncode == 0 and asked.stdout.startswith(f"{version}."):
            return python
    pytest.skip(f"there is no Python {version} on this machine")
