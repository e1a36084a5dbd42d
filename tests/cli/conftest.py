"""Running commands inside the test's own process, with streams that can be read."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from aj.base.errors import OptionError
from aj.base.paths import Project
from aj.cli import app
from aj.cli.words import find, guess_format
from aj.view.screen import Streams
from tests.conftest import Home, RunningDaemon
from tests.view.shapes import check_document


@dataclass(frozen=True)
class Ran:
    """What one command left."""

    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode()

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.raw)

    @property
    def rows(self) -> list[list[str]]:
        """The table on stdout, without its head."""
        return [line.split("\t") for line in self.out.splitlines()[1:]]


def check_code(words: tuple[str, ...], code: int) -> None:
    """Whatever a test looks at: a command ends with a code that its help page tells."""
    try:
        command = find(words).command
    except OptionError:
        command = None
    passes_on = "--exit-status" in words or (command is not None and command.path == ("exec",))
    known = {0, 2} if command is None else {0, 1, *command.exits}
    assert passes_on or code in known, f"`aj {' '.join(words)}` ended with {code}, which its help does not tell"


@dataclass
class Shell:
    """A person (or a script) in a folder of a test's own home."""

    home: Home
    directory: Path
    terminal: bool = False

    def __call__(self, *words: str, **variables: str) -> Ran:
        out, err = io.BytesIO(), io.BytesIO()
        streams = Streams(
            out,
            err,
            asks=self.terminal,
            in_is_terminal=self.terminal,
            out_is_terminal=self.terminal,
            err_is_terminal=self.terminal,
        )
        settings = self.home.having(**variables).settings
        code = app.run(["-C", str(self.directory), *words], settings, streams)
        ran = Ran(code, out.getvalue(), err.getvalue().decode())
        if guess_format(words, variables.get("AJ_OUTPUT")) == "json" and "schema" not in words:
            check_document(ran.raw)  # whatever a test looks at: one document, and as its schema says
        check_code(words, code)
        return ran

    def write(self, name: str, text: str = "") -> Path:
        """Write a file below the folder."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def template(self, name: str, text: str) -> Path:
        """Write a template."""
        return self.write(f".azure_jobs/template/{name}.yaml", text)


@pytest.fixture
def project(home: Home) -> Project:
    return home.project()


@pytest.fixture
def aj(home: Home, project: Project) -> Shell:
    """A shell in the root of a project without templates."""
    return Shell(home, project.root)


@pytest.fixture
def outside(home: Home) -> Shell:
    """A shell in a folder without a project."""
    folder = home.root / "elsewhere"
    folder.mkdir()
    return Shell(home, folder)


LOCAL = "base:\nconfig: {target: {service: local}, jobs: [{instance_count: 1}]}\n"


@pytest.fixture
def live(aj: Shell, daemon: RunningDaemon) -> Shell:
    """A shell in a project with the default template `local`, and a daemon that runs its jobs."""
    aj.template("local", LOCAL)
    aj.write(".azure_jobs/aj.toml", 'template = "local"\n')
    return Shell(aj.home.having(PATH=f"{sys.prefix}/bin:/usr/bin:/bin"), aj.directory)


Typed = Callable[..., Ran]
