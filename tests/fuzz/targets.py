"""The three targets: each takes a source of chance, makes an input, and lets only an `AjError` pass."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Mapping
from pathlib import Path

from aj.backend import registry
from aj.base.errors import AjError
from aj.base.paths import Project
from aj.base.settings import Settings
from aj.cli import app, declare, tree
from aj.cli.commands import COMMANDS
from aj.model.code import CodePlan
from aj.pack import walk
from aj.template import check, load
from aj.view.screen import Streams

SEEDS = (
    "base: [a, storage.default]\nconfig:\n  target: {service: sing, gpus_per_node: 1}\n",
    "base:\nconfig:\n  target: {service: aml, name: c, gpus_per_node: 8}\n  environment: {image: i, setup: [x]}\n"
    '  jobs:\n    - name: t\n      sku: "{nodes}x80G{processes}-A100"\n      instance_count: 2\n',
    "base:\nconfig:\n  target: {service: volcano, namespace: n, memory: 64Gi, rdma: true}\n  environment: {image: i}\n"
    "  jobs: [{sku: heterogeneous}]\n  _extra: {volcano: {tasks: {master: {replicas: 1, gpus_per_node: 0}}}}\n",
    'config:\n  a: &x [1, 2]\n  b: *x\n  c: !replace [3]\n  d: !unset \n  sku: {"1-4": G1, "5+": G8}\n',
)
SCRAPS = (
    ":", "- ", "? ", "&a ", "*a", "!replace ", "!unset ", "!!python/object:x ", "{", "}", "[", "]", "|\n", ">-\n", "'",
    '"', "#", "\t", "\r\n", "---\n", "...\n", "%YAML 1.1\n", "\0", "\ufeff", "\u2028", "<<: *a", "0x", "0o9", ".inf",
    "1e999", "~", "null", "2024-01-01", "{nodes}", "{{", "}}", "{foo!r}", "8xH100", "G08", "١", "é", "🦜", "\udcff",
)  # fmt: skip
IGNORE_SCRAPS = (
    b"*", b"**", b"/", b"!", b"\\", b"[", b"]", b"[!a-", b"[z-a]", b"?", b" ", b"#", b"\r", b"\0", b"\xff", b"**/a",
    b"a/**/b", b"data/", b"!keep", b"[[:alpha:]]", b"[[:bad:]]", b"\xef\xbb\xbf", b"a", b".", b"..",
)  # fmt: skip


class Bench:
    """A folder with a small project for inputs to be put into."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.project = Project(self.root / ".azure_jobs")
        for name in ("template", "storage"):
            (self.project.directory / name).mkdir(parents=True, exist_ok=True)
        (self.project.directory / "storage/default.yaml").write_text("config: {storage: {}}\n")
        for name in ("a/b/keep", "a/x.py", "data/big", "[z", "b c", "top.py"):
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
        self.settings = Settings(
            {
                "HOME": str(folder / "home"),
                "AJ_STATE_DIR": str(folder / "state"),
                "AJ_CACHE_DIR": str(folder / "cache"),
                "AJ_RUNTIME_DIR": str(folder / "run"),
                "AJ_CONFIG_DIR": str(folder / "config"),
            }
        )


def mutated(chance: random.Random, text: str, scraps: tuple[str, ...]) -> str:
    """Cut, double and splice a text at random places."""
    for _ in range(chance.randint(1, 6)):
        at, to = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
        to = min(to, at + 12)
        match chance.randrange(4):
            case 0:
                text = text[:at] + text[to:]
            case 1:
                text = text[:at] + chance.choice(scraps) + text[at:]
            case 2:
                text = text[:at] + text[at:to] * chance.randint(2, 5) + text[to:]
            case _:
                other = chance.choice(SEEDS)
                text = text[:at] + other[chance.randrange(len(other)) :][:40] + text[to:]
    return text


def templates(bench: Bench, chance: random.Random) -> None:
    """A folder of broken templates is listed, resolved and validated."""
    for name in ("a", "b"):
        text = mutated(chance, chance.choice(SEEDS), SCRAPS)
        path = bench.project.directory / "template" / f"{name}.yaml"
        path.write_bytes(text.encode("utf-8", "surrogateescape" if chance.random() < 0.5 else "replace"))
    load.names(bench.project)
    check.validate(bench.project, None, options_of=registry.options)
    for name in ("a", "b"):
        try:
            load.resolve(bench.project, name).config()
        except AjError:
            continue


def ignore_files(bench: Bench, chance: random.Random) -> None:
    """A tree is selected by an ignore file of scraps, and every path of it explained."""
    rows = [b"".join(chance.choices(IGNORE_SCRAPS, k=chance.randint(1, 5))) for _ in range(chance.randint(1, 6))]
    (bench.root / ".codeignore").write_bytes(b"\n".join(rows))
    plan = CodePlan(root=str(bench.root), strict_links=chance.random() < 0.5)
    try:
        walk.select(plan)
        walk.explain(plan, ["a/b/keep", "data/big", "missing/../x", "[z", ""])
    except AjError:
        return


def words_of(chance: random.Random, path: tuple[str, ...]) -> list[str]:
    """Words for a command: its own options, global ones, and what somebody may have slipped in."""
    declaration = declare.read(app.room(tree.COMMANDS[path]).Options)
    known = [*declaration.by_spelling, "--json", "-o", "-q", "-v", "--no-input", "-C", "--", "-"]
    values = [
        "",
        "0",
        "-1",
        "1e3",
        "١",
        "a",
        "../x",
        "q-00000000",
        "é",
        "\udcff",
        "a=b",
        "json",
        "yaml",
        "[/red]",
        "2h",
    ]
    return [chance.choice(known if chance.random() < 0.5 else values) for _ in range(chance.randint(0, 5))]


# Local reads, which neither start a daemon nor change a file: whatever words they get, they end in an orderly way.
READERS = tuple(
    command.path
    for command in COMMANDS
    if command.local
    and command.path[0] not in ("daemon", "init", "completion", "doctor")
    and "set" not in command.path[-1]
)


def command_lines(bench: Bench, chance: random.Random) -> None:
    """A local command runs with words of chance, and ends with a code that is not 70."""
    path = chance.choice(READERS)
    if path in (("config", "experiment"), ("config", "timezone"), ("code", "prune")):
        return
    out, err = io.BytesIO(), io.BytesIO()
    argv = ["-C", str(bench.root), *path, *words_of(chance, path)]
    if "-f" in argv[len(path) + 2 :] or "--follow" in argv:
        return  # following has no end
    code = app.run(argv, bench.settings, Streams(out, err))
    assert code in (0, 1, 2, 3, 4, 5, 6, 7, 124), (argv, code)
    assert b"Traceback" not in err.getvalue(), argv


TARGETS: Mapping[str, Callable[[Bench, random.Random], None]] = {
    "templates": templates,
    "ignore-files": ignore_files,
    "command-lines": command_lines,
}
