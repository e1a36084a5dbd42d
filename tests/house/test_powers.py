"""Powers live in one room each; broad nets are three; the floors hold."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[2] / "aj"

# A module that gives a power, and the only rooms that may import it.
ROOMS: dict[str, set[str]] = {
    "subprocess": {"base/proc.py"},
    "filelock": {"store/lock.py"},
    "tomlkit": {"store/config.py"},
    "fcntl": {"_boot/__main__.py"},
    "socket": {"net/uds.py", "net/pool.py", "net/ports.py", "daemon/server.py"},
    "socketserver": {"daemon/server.py"},
    "http": {"net/uds.py", "net/pool.py"},
    "yaml": {
        *("template/yaml.py", "template/dump.py", "view/screen.py", "view/yaml.py"),
        *("kube/config.py", "store/kubeconfig.py"),
    },
    "platformdirs": {"base/paths.py"},
    "urllib3": {"net/pool.py", "kube/line.py"},
    "ssl": {"net/pool.py", "kube/line.py", "kube/exec.py"},
    "azure": {"net/credentials.py", "azure/line.py", "azure/blobs.py", "azure/signatures.py", "bucket/azure.py"},
    "kubernetes": {"kube/line.py", "kube/client.py", "kube/exec.py"},
    "websocket": {"kube/exec.py"},
    "msal": set(),
    "requests": set(),
}
# Rooms in which a broad `except Exception` is a net with a reason, not a carelessness.
NETS = {"main.py", "daemon/router.py", "engine/worker.py", "engine/watches.py", "client/checkup.py"}


def room(path: Path) -> str:
    return path.relative_to(HOUSE).as_posix()


def rooms() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(HOUSE.rglob("*.py")):
        yield room(path), ast.parse(path.read_text())


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def test_powers_stay_in_their_rooms() -> None:
    strays = [
        (name, power)
        for name, tree in rooms()
        for power in imported(tree)
        if power in ROOMS and name not in ROOMS[power]
    ]
    assert strays == []


def test_the_environment_is_read_in_one_room() -> None:
    allowed = {"base/settings.py", "base/crash.py", "_boot/__main__.py"}
    strays = [
        f"{name}:{node.lineno}"
        for name, tree in rooms()
        if name not in allowed
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv") and ast.unparse(node.value) == "os"
    ]
    assert strays == []


def test_nothing_prints_but_the_screen() -> None:
    allowed = {"view/screen.py", "_boot/__main__.py"}
    strays = [
        f"{name}:{node.lineno}"
        for name, tree in rooms()
        if name not in allowed
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert strays == []


def test_broad_nets_are_few() -> None:
    def is_broad(handler: ast.ExceptHandler) -> bool:
        kinds = ast.unparse(handler.type) if handler.type else "BaseException"
        return any(kind in ("Exception", "BaseException") for kind in kinds.strip("()").split(", "))

    nets = {
        name
        for name, tree in rooms()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and is_broad(node)
        # a clean-up that lets the error go on is no net
        if not any(isinstance(step, ast.Raise) and step.exc is None for step in ast.walk(node))
    }
    assert nets <= NETS


def test_every_room_opens_with_a_sentence() -> None:
    silent = [name for name, tree in rooms() if name != "__main__.py" and not ast.get_docstring(tree)]
    assert silent == []


def test_no_room_is_named_after_nothing() -> None:
    vague = {"utils", "helpers", "common", "misc", "manager", "util", "helper"}
    assert [name for name, _ in rooms() if vague & set(name.removesuffix(".py").split("/"))] == []


def test_floors_hold() -> None:
    program = Path(sys.executable).parent / "lint-imports"
    found = subprocess.run([program, "--no-cache"], cwd=HOUSE.parent, capture_output=True, text=True, timeout=100)
    assert found.returncode == 0, found.stdout + found.stderr
