"""Where each value of a merged template was written, by what rule it won, and what it hides."""

from __future__ import annotations

from collections.abc import Mapping

from aj.base import text
from aj.base.errors import NotFound, Place
from aj.base.noun import dataclass
from aj.model.json import Json
from aj.template import tree
from aj.template.tree import Rule, Section


@dataclass(frozen=True)
class Origin:
    """The place of one value, its rule, and the places of the values it took over, newest first."""

    place: Place
    rule: Rule
    hidden: tuple[Place, ...] = ()

    def json(self) -> dict[str, Json]:
        """Return the origin as machines read it."""
        hidden: list[Json] = [str(place) for place in self.hidden]
        place = self.place
        return {
            "file": place.file,
            "line": place.line,
            "column": place.column,
            "rule": self.rule.value,
            "hidden": hidden,
        }


def table(config: Section) -> dict[str, Origin]:
    """Return the origin of every value that holds no other, by its path, in the order of the tree."""
    return {path: Origin(leaf.place, leaf.rule, leaf.hidden) for path, leaf in tree.leaves(config) if path}


def at(origins: Mapping[str, Origin], path: str) -> dict[str, Origin]:
    """Return the origins at a path: one for a value, several for a mapping or a list. Raises NotFound."""
    found = {
        name: origin for name, origin in origins.items() if name == path or name.startswith((f"{path}.", f"{path}["))
    }
    if not path or not found:
        near = text.nearest(path, _paths(origins))
        raise NotFound(f"nothing stands at `{path}`", hint=f"`{near}` is the nearest path" if near else None)
    return found


def _paths(origins: Mapping[str, Origin]) -> set[str]:
    """All paths, also those of mappings and lists on the way."""
    known = set(origins)
    for path in origins:
        for at_, letter in enumerate(path):
            if letter in ".[" and at_:
                known.add(path[:at_])
    return known
