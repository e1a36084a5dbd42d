"""One template file as it stands on the disk: its name, its bases, its `config`, and what is wrong with it."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from aj.base import text
from aj.base.errors import Place, TemplateError
from aj.base.noun import dataclass
from aj.template import issue, tree, yaml
from aj.template.issue import Issue
from aj.template.tree import Items, Scalar, Section, Unset, Value

TEMPLATES = "template"
SUBMISSION = "submission"  # what was submitted stands there, no layers
SUFFIX = ".yaml"
KEYS = ("base", "config")
NAME_FORM = "letters, digits, `_`, `-` and `.`, beginning with a letter, digit or `_`"
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z"
_FOLDER = r"[A-Za-z0-9_-]+\Z"


@dataclass(frozen=True)
class Link:
    """One use of one file: its name as a base would be named, and its path."""

    name: str
    path: Path


@dataclass(frozen=True)
class Base:
    """A name under `base`, and where it stands."""

    name: str
    place: Place


@dataclass(frozen=True)
class Source:
    """One file, before anything is merged. A file with the key `base` is a leaf; `nodes` is what it costs.

    `slip` says which of its keys most likely means another.
    """

    link: Link
    place: Place
    nodes: int
    is_leaf: bool = False
    bases: tuple[Base, ...] = ()
    config: Section | None = None
    issues: tuple[Issue, ...] = ()
    slip: str | None = None


def read(link: Link) -> Source:
    """Read one file. Raises TemplateError when it cannot be read at all; other faults are its `issues`."""
    document = yaml.read(_content(link.path), str(link.path))
    issues = list(document.faults)
    nodes = max(document.nodes, 1)  # an empty file costs something too, or files of mere bases would be free
    root = document.root
    if root is None or isinstance(root, Unset) or tree.is_null(root):
        return Source(link, Place(str(link.path), 1, 1), nodes, issues=tuple(issues))
    if not isinstance(root, Section):
        message = f"the file is {tree.kind(root)}; a mapping with `base` and `config` is due"
        return Source(link, root.place, nodes, issues=(*issues, issue.error(message, root.place)))
    issues += _unknown(root)
    bases, config = _bases(root, issues), _config(root, issues)
    return Source(link, root.place, nodes, "base" in root.entries, bases, config, tuple(issues), _slip(root))


def is_name(name: str) -> bool:
    """Tell whether a template may have this name."""
    return bool(re.match(_NAME, name)) and ".." not in name


def is_folder(name: str) -> bool:
    """Tell whether a folder of this name may hold layers."""
    return bool(re.match(_FOLDER, name)) and name != SUBMISSION


def found_in(folder: Path) -> list[Path]:
    """List the template files of a folder by name; hidden files are none, a missing folder has none."""
    found = (path for path in folder.glob(f"*{SUFFIX}") if not path.name.startswith("."))
    return sorted(path for path in found if not path.is_dir())


def name_of(path: Path) -> str:
    """Name a file as a base would: templates by their stem, others with their folder."""
    stem = path.name.removesuffix(SUFFIX)
    return stem if path.parent.name == TEMPLATES else f"{path.parent.name}.{stem}"


def _content(path: Path) -> bytes:
    """Read a regular file, but not much more than may stand in it. Raises TemplateError."""
    place = Place(str(path))
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise TemplateError("not a regular file", place=place)
        with path.open("rb") as file:
            return file.read(yaml.MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise TemplateError("the link leads nowhere", place=place) from error
    except OSError as error:
        raise TemplateError(f"cannot be read: {error.strerror}", place=place) from error


def _slip(root: Section) -> str | None:
    unknown = (key for key in root.entries if key not in KEYS)
    nearest = ((key, text.nearest(key, KEYS)) for key in unknown)
    return next((f"write `{near}` instead of `{key}`" for key, near in nearest if near), None)


def _unknown(root: Section) -> list[Issue]:
    found = []
    for key in root.entries:
        if key in KEYS:
            continue
        near = text.nearest(key, KEYS)
        hint = f"`{near}` is the nearest key" if near else "a file has the keys `base` and `config`"
        found.append(issue.warning(f"unknown key `{key}`", root.key_place(key), hint=hint, code="unknown-key"))
    return found


def _config(root: Section, issues: list[Issue]) -> Section | None:
    node = root.entries.get("config")
    if isinstance(node, Unset):
        hint = "write `config: !replace {…}` to keep nothing of the bases"
        issues.append(issue.error("`config` itself cannot be removed", node.place, hint=hint))
        return None
    if node is None or tree.is_null(node):
        return None
    if not isinstance(node, Section):
        issues.append(issue.error(f"`config` is {tree.shown(node)}; a mapping is due", node.place))
        return None
    return node


def _bases(root: Section, issues: list[Issue]) -> tuple[Base, ...]:
    node = root.given("base")
    if node is None:
        return ()
    found = [_base(item, issues) for item in (node.items if isinstance(node, Items) else (node,))]
    return tuple(base for base in found if base is not None)


def _base(node: Value, issues: list[Issue]) -> Base | None:
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        hint = "write `base: name`, `base: [name, folder.name]` or leave it empty"
        issues.append(issue.error(f"a base is a name, not {tree.shown(node)}", node.place, hint=hint))
        return None
    if complaint := _misnamed(node.value):
        issues.append(issue.error(f"`{node.value}` cannot name a base: {complaint}", node.place))
        return None
    return Base(node.value, node.place)


def _misnamed(name: str) -> str | None:
    """Say what is wrong with the name of a base, or None."""
    folder, dot, rest = name.partition(".")
    if not name:
        return "it is empty"
    if dot and not is_folder(folder):
        return f"`{folder}` is no folder of layers"
    return None if is_name(rest if dot else name) else f"a name is {NAME_FORM}"
