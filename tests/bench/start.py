"""Start-up figures: `python -m tests.bench.start [PROGRAM …]`.

Prints CPU seconds of whole processes as ratios to `python -c pass` and to `import cyclopts`, taken in
one run on one machine. PROGRAM is `dist/aj.pyz` when it is there, else the installed `aj`; with
AJ_BENCH_PEER naming another tool's command, its like commands are printed beside.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from tests.bench.measure import Figure, figure, row

HOUSE = Path(__file__).resolve().parents[2]


def program() -> list[str]:
    if len(sys.argv) > 1:
        return sys.argv[1:]
    built = HOUSE / "dist" / "aj.pyz"
    plain = getattr(sys, "_base_executable", sys.executable)
    return [plain, "-IS", str(built)] if built.exists() else [sys.executable, "-I", "-m", "aj"]


def environment(home: str) -> dict[str, str]:
    keep = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**keep, "HOME": home}


def main() -> int:
    aj = program()
    with tempfile.TemporaryDirectory() as home:
        env = environment(home)
        project = Path(home) / "project"
        project.mkdir()
        subprocess.run([*aj, "init", "local", "--yes"], cwd=project, env=env, check=True, stdout=subprocess.DEVNULL)
        here = str(project)
        plain = getattr(sys, "_base_executable", sys.executable)  # without what this environment adds to every start
        packages = sysconfig.get_path("purelib")
        bare = figure([plain, "-c", "pass"], env)
        base = figure([plain, "-c", f"import sys; sys.path.insert(0, {packages!r}); import cyclopts"], env)
        print(row("python -c pass", bare))
        print(row("python -c 'import cyclopts'", base, bare))
        rows: list[tuple[str, list[str], Figure, float]] = [
            ("aj --version", ["--version"], bare, 2.0),
            ("aj __complete run -t (a value)", ["__complete", "run", "-t", ""], bare, 3.0),
            ("aj list", ["list"], base, 1.5),
            ("aj queue list", ["queue", "list"], base, 1.5),
            ("aj template list", ["template", "list"], base, 1.5),
            ("aj template show local", ["template", "show", "local"], base, 1.5),
            ("aj run -d -t local train.py", ["run", "-d", "-t", "local", "train.py"], base, 1.5),
            ("aj --help", ["--help"], base, 2.0),
        ]
        for name, words, against, budget in rows:
            print(row(name, figure([*aj, *words], env, cwd=here), against, budget))
        peer(env, here, base)
    return 0


def peer(env: dict[str, str], cwd: str, base: Figure) -> None:
    name = os.environ.get("AJ_BENCH_PEER")
    if not name or shutil.which(name) is None:
        print("no peer: set AJ_BENCH_PEER to the command of another tool")
        return
    for words in (["--version"], ["--help"], ["list"], ["template", "list"], ["queue", "list"]):
        print(row(f"peer {' '.join(words)}", figure([name, *words], env, cwd=cwd, runs=5), base))


if __name__ == "__main__":
    sys.exit(main())
