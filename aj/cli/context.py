"""What a command may ask for, made when it is first asked: folders, project, settings, the daemon's client."""

from __future__ import annotations

import functools
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from aj.base import clock, paths, text
from aj.base.clock import Clock
from aj.base.errors import AjError, ConfigError, OptionError, Place, UserError
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.cli.leaf import Command
from aj.cli.words import FORMATS, Globals
from aj.store.layout import Layout
from aj.view import times
from aj.view.screen import Format, Screen, Streams, Taste

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from aj.base.agents import Caller, Tag
    from aj.base.paths import Project
    from aj.client.client import Client
    from aj.store.config import Config
    from aj.template.issue import Issue

# These work while `aj.toml` is broken: they are how one finds out, or have nothing to do with it.
WITHOUT_SETTINGS = frozenset({"help", "version", "config path", "daemon stop", "completion", "schema", "doctor"})
TELLS_ITSELF = "doctor"  # it finds wrong variables and says so; it must not end on one


@dataclass
class Context:
    """One run of one command."""

    settings: Settings
    streams: Streams = field(default_factory=Streams.of_process)
    clock: Clock = clock.SYSTEM
    found: Globals = field(default_factory=Globals)
    command: Command | None = None

    @functools.cached_property
    def screen(self) -> Screen:
        """The terminal."""
        return Screen(self.streams, self.settings, taste=self._taste, clock=self.clock)

    @functools.cached_property
    def directory(self) -> Path:
        """The invocation directory. Raises UserError when `-C` names none."""
        return paths.invocation_directory(self.settings, self.found.directory)

    @functools.cached_property
    def layout(self) -> Layout:
        """The names of all files of this user."""
        return Layout(paths.folders(self.settings))

    @functools.cached_property
    def project(self) -> Project | None:
        """The project of the invocation directory, or None."""
        return paths.find_project(self.settings, self.directory)

    def need_project(self) -> Project:
        """Return the project. Raises UserError with the way to make one."""
        return paths.need_project(self.settings, self.directory)

    def take_back_pull(self, project: Project) -> None:
        """Take back a pull that was killed on its way, so that nobody uses half of it. Raises AjError."""
        from aj.store import pulled

        if pulled.take_back(self.layout, project):
            self.screen.note("a pull that was cut off was taken back: `aj template pull` brings all of it")

    @property
    def key(self) -> str:
        """The name of the project in the state directory."""
        return self.project.key if self.project else paths.NO_PROJECT

    @functools.cached_property
    def config(self) -> Config:
        """The settings of project and user. Raises ConfigError with the place."""
        from aj.store import config  # reads TOML: only for who asks

        return config.read(self.layout, self.project, self.settings)

    @functools.cached_property
    def client(self) -> Client:
        """The daemon's client; the daemon is started when nobody answers."""
        from aj.client.client import Client
        from aj.client.launch import Telling

        screen = self.screen
        telling = Telling(
            starting=lambda: screen.note("starting the daemon"),
            blocked=lambda: screen.note("another command is just starting the daemon"),
            replaced=lambda old, new: screen.note(f"the idle daemon of aj {old} was replaced by aj {new}"),
            drift=self.tell_drift,
            waiting=screen.note,
        )
        return Client(self.settings, self.project, telling=telling)

    def close(self) -> None:
        """Hang up, when anything was asked of the daemon."""
        if "client" in self.__dict__:
            self.client.close()

    def tell_drift(self, names: Sequence[str]) -> None:
        self.screen.warn(
            f"the daemon was started with other values of {', '.join(names)}; `aj daemon restart` takes yours",
            code="daemon-environment",
        )

    @functools.cached_property
    def caller(self) -> Caller | None:
        """The coding agent that calls, or None."""
        from aj.base import agents  # for lists and submissions

        return agents.caller(self.settings, self.streams.in_is_terminal + self.streams.out_is_terminal)

    def tag(self) -> Tag:
        """Return what a submission keeps of its caller; reads the title of the agent's session."""
        from aj.base import agents

        return agents.tag(self.caller, self.settings, self.directory)

    def default_template(self) -> str | None:
        """Return the template that is taken without `-t`."""
        return self.config.template

    def missed(self, key: str, hint: str) -> str:
        """Return the hint of a setting that is missed, with the key that was most likely meant to be it."""
        slip = self.config.slip(key)
        if slip is None or slip.place is None:
            return hint
        place = Place(paths.shown(slip.place.file, self.directory), slip.place.line)
        return f"{place}: {slip.message}; {slip.hint}"

    def tell_issues(self, issues: Iterable[Issue]) -> None:
        """Say findings about a template as warnings; remarks about its text only to a verbose caller."""
        from aj.template import issue

        for found in issues:
            place = found.place
            if found.level.value != "note":
                file, line = (place.file, place.line) if place else (None, None)
                self.warn(issue.said(found.message, found.hint), code=found.code, file=file, line=line)
            elif place is None:
                self.screen.note(found.message)
            else:
                self.screen.detail(str(found))

    def refuse_warnings(self) -> None:
        """Raise UserError when anything was warned of: `--strict`."""
        count = len(self.screen.warnings)
        if count:
            raise UserError(f"{text.plural(count, 'warning')}, and `--strict` allows none", code="strict")

    def tell_warnings(self, warnings: Iterable[str], code: str = "daemon") -> None:
        """Say what the daemon wants its caller to know."""
        for words in warnings:
            self.screen.warn(words, code=code)

    def warn(self, message: str, *, code: str, file: str | None = None, line: int | None = None) -> None:
        """Warn, with the file written relative to the invocation directory when it lies below it."""
        shown = paths.shown(file, self.directory) if file else None
        self.screen.warn(message, code=code, file=shown, line=line or None)

    # the line

    def said(self, found: Globals, command: Command | None = None) -> None:
        """Take what the global options said, as soon as they are known."""
        self.found, self.command = found, command or self.command
        screen = self.screen
        screen.quiet, screen.verbose = found.quiet, found.verbose
        screen.no_color, screen.no_input = found.no_color, found.no_input
        word = found.format or self.settings.get("AJ_OUTPUT")
        if word in FORMATS:
            screen.format = self._streaming(Format(word))

    def choose_format(self) -> None:
        """Settle the format: option, AJ_OUTPUT, setting, table. Raises OptionError on one that cannot be given."""
        known = self.command.formats if self.command else FORMATS
        word = self.found.format
        if word and word not in known:
            raise OptionError(f"no `-o {word}` here", hint=f"one of {', '.join(known)}", code="bad-format")
        if not word:
            word = self.settings.get("AJ_OUTPUT") or self._format_setting()
            if word not in FORMATS and not self._tells_itself:
                raise ConfigError(f"AJ_OUTPUT={word!r} is no format", hint=f"one of {', '.join(FORMATS)}")
            word = word if word in known else "table"
        self.screen.format = self._streaming(Format(word))

    @property
    def _tells_itself(self) -> bool:
        return self.command is not None and self.command.name == TELLS_ITSELF

    def _format_setting(self) -> str:
        if self.command is None or self.command.name in WITHOUT_SETTINGS:
            return "table"
        return self.config.output

    def tell_unknown_names(self) -> None:
        """Tell a verbose caller which variables and settings mean nothing to this release."""
        if not self.found.verbose or (self.command and self.command.name in WITHOUT_SETTINGS):
            return
        for name in self.settings.unknown():
            self.screen.warn(f"{name} means nothing to this release", code="unknown-variable")
        self.tell_unknown_settings()

    def tell_unknown_settings(self) -> None:
        """Warn of keys in the files of settings that mean nothing to this release, or nothing where they stand."""
        for code, errors in (("unknown-setting", self.config.unknown()), ("users-setting", self.config.misplaced())):
            for error in errors:
                hint = f"; {error.hint}" if error.hint else ""
                file, line = (error.place.file, error.place.line) if error.place else (None, None)
                self.warn(f"{error.message}{hint}", code=code, file=file, line=line)

    def _streaming(self, chosen: Format) -> Format:
        """A stream of records has no single document: there `json` is `jsonl`."""
        streams = self.command is not None and self.command.streams
        return Format.JSONL if streams and chosen is Format.JSON else chosen

    def tell(self, error: AjError) -> None:
        """Say an error in the form that was asked for."""
        try:
            self.screen.error(error, here=self._here())
        except BrokenPipeError:
            pass  # nobody reads stdout any more; stderr has the error, and the exit code tells it too

    def _here(self) -> Path | None:
        try:
            return self.directory
        except AjError:
            return None  # the error may be about that very folder

    def _taste(self) -> Taste:
        try:
            config = self.config
        except (ConfigError, UserError, OSError):
            return Taste()  # a broken file of settings must not hide the error about itself
        try:
            zone = times.zone(config.timezone)
        except ValueError as error:
            self.screen.warn(f"timezone: {error}; the system's is used", code="bad-timezone")
            zone = None
        return Taste(zone, config.color)
