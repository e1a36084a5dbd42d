"""Settings: of the project (`.azure_jobs/aj.toml`), of the user, and the defaults; key by key, the nearest wins.

Reading uses the standard library; writing uses `tomlkit`, which keeps comments, order and keys of
others. Where there is no `aj.toml`, an `aj_config.json` beside it is read in its place and never
changed. A value is checked when it is asked for, not before.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import field
from pathlib import Path
from typing import TypeAlias, cast

from aj.base import plain
from aj.base.digest import sha256
from aj.base.errors import AjError, ConfigError, OptionError, Place
from aj.base.noun import dataclass
from aj.base.paths import Project
from aj.base.settings import Settings
from aj.model.json import Json
from aj.store import atomic, keys, lock, toml_lines
from aj.store.keys import KEYS, Key, Scope, Value
from aj.store.layout import Layout

FILE = "aj.toml"
OLD_FILE = "aj_config.json"
_SPOT = r" \(at line (\d+), column (\d+)\)\Z"
# Environment variables that stand above both files.
VARIABLES: Mapping[str, str] = {
    "template": "AJ_TEMPLATE_NAME",
    "experiment": "AJ_EXPERIMENT",
    "workspace.name": "AJ_WORKSPACE",
    "output": "AJ_OUTPUT",
    "daemon.idle": "AJ_DAEMON_IDLE",
}
# Where a value of the old file goes.
_OLD_KEYS: Mapping[str, tuple[str, ...]] = {
    "template": ("defaults", "template"),
    "workspace.subscription_id": ("workspace", "subscription_id"),
    "workspace.resource_group": ("workspace", "resource_group"),
    "workspace.name": ("workspace", "workspace_name"),
    "experiment": ("experiment",),
    "template_repo": ("repo_id",),
    "timezone": ("timezone",),
    "dashboard.page_size": ("dashboard", "page_size"),
}
Tree: TypeAlias = Mapping[str, Json]

MOST_BYTES = 4 << 20  # of one file of settings


@dataclass(frozen=True)
class Setting:
    """A setting as it stands: its value as written, and where that comes from.

    `source` is environment, project, user or default.
    """

    key: str
    value: Json
    source: str
    place: Place | None = None


@dataclass(frozen=True)
class Layer:
    """One file of settings. Its file need not exist."""

    source: str
    file: Path
    values: Tree = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)

    def find(self, key: str) -> Setting | None:
        """Return what this file says of a key, or None."""
        value: Json = self.values
        for part in key.split("."):
            if not isinstance(value, Mapping) or part not in value:
                return None
            value = value[part]
        return Setting(key, value, self.source, self.place(key))

    def place(self, key: str) -> Place:
        """Return where a key stands."""
        return Place(str(self.file), toml_lines.line_of(dict(self.lines), key))

    def names(self) -> Iterator[str]:
        """Go through all keys that stand in the file, dotted."""
        yield from _leaves(self.values, "")


def _leaves(tree: Tree, prefix: str) -> Iterator[str]:
    for name, value in tree.items():
        if isinstance(value, Mapping) and f"{prefix}{name}" not in KEYS:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


@dataclass(frozen=True)
class Config:
    """All layers, the nearest first."""

    layers: tuple[Layer, ...]
    settings: Settings = field(default_factory=Settings)

    def setting(self, key: str) -> Setting:
        """Return a setting, unchecked, and where it comes from. Raises ConfigError on an unknown key."""
        known = _known(key)
        variable = VARIABLES.get(key)
        if variable and (word := self.settings.get(variable)):
            return Setting(key, known.kind.typed(word), "environment", Place(variable))
        layers = (layer for layer in self.layers if _counts(known, layer))
        found = (setting for layer in layers if (setting := layer.find(key)) is not None)
        return next(found, Setting(key, known.default, "default"))

    def value(self, key: str) -> Value:
        """Return a setting as the program uses it. Raises ConfigError at file and line when it is wrong."""
        return checked(self.setting(key))

    def all(self) -> list[Setting]:
        """Return every setting that is known, unchecked, in the order of the help page."""
        return [self.setting(key) for key in KEYS]

    def unknown(self) -> list[ConfigError]:
        """Return an error, to be told as a warning, for every key that means nothing to this release."""
        return [
            ConfigError(
                f"unknown setting `{key}`",
                hint=_did_you_mean(key),
                place=layer.place(key),
                details={"meant": keys.nearest(key)},
            )
            for layer in self.layers
            for key in layer.names()
            if not keys.is_known(key)
        ]

    def slip(self, key: str) -> ConfigError | None:
        """Return the unknown key that most likely means this one, which is not set."""
        return next((error for error in self.unknown() if error.details["meant"] == key), None)

    def misplaced(self) -> list[ConfigError]:
        """Return an error, to be told as a warning, for every value of a project that only the user can give."""
        return [
            _for_the_user(setting)
            for layer in self.layers
            for key in layer.names()
            if key in KEYS and not _counts(KEYS[key], layer) and (setting := layer.find(key)) is not None
        ]

    def text(self, key: str) -> str | None:
        """Return a setting that is text, None when it is not set."""
        return cast("str | None", self.value(key))

    def number(self, key: str) -> int:
        """Return a setting that is a whole number or a size in bytes."""
        return cast(int, self.value(key))

    def seconds(self, key: str) -> float:
        """Return a setting that is a duration, in seconds."""
        return cast(float, self.value(key))

    def words(self, key: str) -> tuple[str, ...]:
        """Return a setting that is a list of words."""
        return cast("tuple[str, ...]", self.value(key))

    @property
    def template(self) -> str | None:
        return self.text("template")

    @property
    def output(self) -> str:
        return self.text("output") or "table"

    @property
    def color(self) -> str:
        return self.text("color") or "auto"

    @property
    def timezone(self) -> str:
        """The zone as written, unchecked: whoever shows times goes on with the system's zone."""
        return str(self.setting("timezone").value)


def _counts(known: Key, layer: Layer) -> bool:
    return known.scope is Scope.ANY or layer.source == Scope.USER


def _for_the_user(setting: Setting) -> ConfigError:
    return ConfigError(
        f"`{setting.key}` is a setting of the user: it has no effect here",
        hint=f"`aj config set --user {setting.key} {setting.value}`",
        place=setting.place,
    )


def checked(setting: Setting) -> Value:
    """Return a setting as the program uses it. Raises ConfigError at file and line when it is wrong."""
    if setting.value is None:
        return None
    kind = KEYS[setting.key].kind
    try:
        return kind.check(setting.value)
    except ValueError:
        raise ConfigError(
            f"`{setting.key}` is {_shown(setting.value)}: it takes {kind.due}", place=setting.place
        ) from None


def read(layout: Layout, project: Project | None, settings: Settings | None = None) -> Config:
    """Read the settings of a project and of the user. With `settings`, its variables stand above both.

    Raises ConfigError at file, line and column when a file is broken.
    """
    found, broken = survey(layout, project, settings)
    if broken:
        raise broken[0]
    return found


def survey(
    layout: Layout, project: Project | None, settings: Settings | None = None
) -> tuple[Config, tuple[ConfigError, ...]]:
    """Read the settings as `read` does, without the files that are broken; return the error of each of those."""
    layers: list[Layer] = []
    broken: list[ConfigError] = []
    for directory in (project.directory, None) if project else (None,):
        try:
            layers.append(_project_layer(directory) if directory else _toml_layer("user", layout.user_settings))
        except ConfigError as error:
            broken.append(error)
    return Config(tuple(layers), settings or Settings()), tuple(broken)


def file_of(layout: Layout, project: Project | None) -> Path:
    """Return the file that a change of the project's settings (None: the user's) goes to."""
    return project.directory / FILE if project else layout.user_settings


def set_value(layout: Layout, project: Project | None, key: str, word: str) -> tuple[Setting, str | None]:
    """Write one setting of the project (None: of the user); return it, and a note when there is one.

    Raises OptionError on an unknown key or a wrong value, before anything is written, ConfigError on a
    broken file, AjError when the disk refuses.
    """
    (setting,), note = set_values(layout, project, {key: word})
    return setting, note


def set_values(
    layout: Layout, project: Project | None, words: Mapping[str, str], head: str = ""
) -> tuple[tuple[Setting, ...], str | None]:
    """Write several settings at once, all or none of them; a new file begins with `head`.

    Returns and raises as `set_value`.
    """
    values = {key: _typed(key, word) for key, word in words.items()}
    file = file_of(layout, project)

    def put(document: MutableMapping[str, Json]) -> None:
        for key, value in values.items():
            _put(document, key, value, file)

    note = _change(layout, project, put, head)
    source = "project" if project else "user"
    return tuple(Setting(key, value, source, Place(str(file))) for key, value in values.items()), note


def _typed(key: str, word: str) -> Json:
    known = _known(key, OptionError)
    value = known.kind.typed(word)
    try:
        known.kind.check(value)
    except ValueError:
        raise OptionError(f"`{key}` takes {known.kind.due}, not {_shown(value)}", code="bad-value") from None
    return value


def unset(layout: Layout, project: Project | None, key: str) -> bool:
    """Remove one setting of the project (None: of the user); False when it was not set there.

    Raises as `set_value`.
    """
    _known(key, OptionError)
    layer = _project_layer(project.directory) if project else _toml_layer("user", layout.user_settings)
    if layer.find(key) is None:
        return False
    _change(layout, project, lambda document: _take_out(document, key))
    return True


def _change(
    layout: Layout, project: Project | None, change: Callable[[MutableMapping[str, Json]], None], head: str = ""
) -> str | None:
    """Read the file anew under its lock, change it, write it whole; return what its user should know."""
    import tomlkit  # 26 ms, only to write

    file = Path(os.path.realpath(file_of(layout, project)))
    digest = sha256(os.fsencode(file)).hexdigest()[:12]
    with lock.held(layout.state / "locks" / f"settings-{digest}.lock"):
        layer = _project_layer(project.directory) if project else _toml_layer("user", file)
        is_old = layer.file.name == OLD_FILE and bool(layer.values)
        document = tomlkit.parse(_source(file) or head)
        if is_old:
            for key in layer.names():
                found = layer.find(key)
                _put(document, key, _kept(found) if found else None, file)
        change(document)
        atomic.make_folder(file.parent)
        atomic.write_bytes(file, tomlkit.dumps(document).encode())
    return f"the settings of {OLD_FILE} now stand in {FILE}; {OLD_FILE} is no longer read" if is_old else None


def _kept(setting: Setting) -> Json:
    """Return a value of the old file as it may stand in the new one: an address without credentials."""
    kind = KEYS[setting.key].kind
    return kind.typed(setting.value) if kind is keys.REPOSITORY and isinstance(setting.value, str) else setting.value


def _put(document: MutableMapping[str, Json], key: str, value: Json, file: Path) -> None:
    *tables, name = key.split(".")
    table = document
    for part in tables:
        if part not in table:
            import tomlkit

            table[part] = cast(Json, tomlkit.table())
        inner = table[part]
        if not isinstance(inner, MutableMapping):
            raise ConfigError(f"`{part}` is {_shown(inner)}, and not a table for `{key}`", place=Place(str(file)))
        table = inner
    table[name] = value


def _take_out(document: MutableMapping[str, Json], key: str) -> None:
    *tables, name = key.split(".")
    table = document
    for part in tables:
        inner = table.get(part)
        if not isinstance(inner, MutableMapping):
            return
        table = inner
    table.pop(name, None)


def _known(key: str, kind: type[AjError] = ConfigError) -> Key:
    known = KEYS.get(key)
    if known is None:
        raise kind(f"no setting is called `{key}`", hint=_did_you_mean(key), code="unknown-setting")
    return known


def _did_you_mean(key: str) -> str:
    near = keys.nearest(key)
    return f"did you mean `{near}`?" if near else "`aj config show` lists them"


def _project_layer(directory: Path) -> Layer:
    file, old = directory / FILE, directory / OLD_FILE
    if os.path.exists(file) or not os.path.exists(old):  # of a folder that is shut, reading tells more than looking
        return _toml_layer("project", file)
    return _old_layer(old)


def _toml_layer(source: str, file: Path) -> Layer:
    import tomllib  # 5 ms, only when there is something to read

    text = _source(file)
    if text is None:
        return Layer(source, file)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _broken(file, str(error), text) from None
    except RecursionError:
        raise _unread("nested too deeply", Place(str(file))) from None
    return Layer(source, file, values, toml_lines.lines(text))


def _broken(file: Path, words: str, text: str) -> ConfigError:
    spot = re.search(_SPOT, words)
    if spot:
        place = Place(str(file), int(spot[1]), int(spot[2]))
    else:  # `(at end of document)`
        place = Place(str(file), text.count("\n") + 1)
    message = words[: spot.start()] if spot else words.partition(" (at ")[0]
    return _unread(f"not TOML: {message[:1].lower()}{message[1:]}", place)


def _unread(message: str, place: Place) -> ConfigError:
    """Say that a file of settings cannot be understood, and which one is to be mended."""
    hint = f"mend {place}, or move the file away; `aj doctor` tells all that is wrong"
    return ConfigError(message, hint=hint, place=place, code="broken-settings")


def _old_layer(file: Path) -> Layer:
    text = _source(file) or ""
    try:
        old = json.loads(text)
    except json.JSONDecodeError as error:
        place = Place(str(file), error.lineno, error.colno)
        raise _unread(f"not JSON: {error.msg.lower()}", place) from None
    except RecursionError:
        raise _unread("nested too deeply", Place(str(file))) from None
    values: dict[str, Json] = {}
    lines: dict[str, int] = {}
    for key, path in _OLD_KEYS.items():
        value = _walk(old, path)
        if value is not None:
            _nest(values, key, value)
            lines[key] = _line_with(text, path[-1])
    return Layer("project", file, values, lines)


def _nest(values: dict[str, Json], key: str, value: Json) -> None:
    table, dot, name = key.partition(".")
    if not dot:
        values[key] = value
        return
    inner = values.setdefault(table, {})
    cast("dict[str, Json]", inner)[name] = value


def _walk(tree: object, path: tuple[str, ...]) -> Json:
    for part in path:
        tree = tree.get(part) if isinstance(tree, dict) else None
    return cast(Json, tree)


def _line_with(text: str, name: str) -> int:
    found = text.find(json.dumps(name))
    return text.count("\n", 0, found) + 1 if found >= 0 else 0


def _source(file: Path) -> str | None:
    """Return the text of a file, None when there is none. Raises ConfigError."""
    try:
        raw = plain.read(file, MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        reason = error.strerror or os.strerror(error.errno or 0)
        hint = f"make {file} a file that you can read; `aj doctor` tells all that is wrong"
        raise ConfigError(f"cannot be read: {reason}", hint=hint, place=Place(str(file))) from error
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        raise _unread("not UTF-8", Place(str(file), line, column)) from None


def _shown(value: Json) -> str:
    return "empty" if value == "" else json.dumps(value, ensure_ascii=False, default=str)
