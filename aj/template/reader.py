"""Typed values out of one mapping of a template, each fault noted with its place, without stopping at the first.

Nothing is split into characters or converted by guess: a scalar where a list is due is an error that shows
the list to write. Null counts as not given.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from aj.base import text, units
from aj.base.errors import Place
from aj.base.noun import dataclass
from aj.model import money, names
from aj.template import issue, tree
from aj.template.issue import Issue
from aj.template.tree import Items, Scalar, Section, Value

_QUANTITY = r"([0-9]+(?:\.[0-9]+)?)(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?\Z"
_PLACEHOLDER = r"<[A-Z][A-Z0-9_]*>"
_POWERS = {"m": 0.001, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}


@dataclass(frozen=True)
class Reader:
    """Reads one mapping. `path` is where it stands below `config`; faults go to `issues`."""

    node: Section
    issues: list[Issue]
    path: str = ""

    def at(self, key: str) -> str:
        """Return the path of a key."""
        return tree.step(self.path, key)

    def place(self, key: str) -> Place:
        """Return where a key's value stands, else the key, else the mapping."""
        node = self.node.given(key)
        return node.place if node is not None else self.node.key_place(key)

    def has(self, key: str) -> bool:
        """Tell whether a key is given."""
        return self.node.given(key) is not None

    def wrong(self, key: str, message: str, *, hint: str | None = None) -> None:
        """Note an error at a key."""
        self.issues.append(issue.error(message, self.place(key), path=self.at(key), hint=hint))

    def warn(self, key: str, message: str, *, hint: str | None = None, code: str = "template") -> None:
        """Note a warning at a key."""
        self.issues.append(issue.warning(message, self.place(key), path=self.at(key), hint=hint, code=code))

    def missing(self, key: str, example: str) -> None:
        """Note that a needed key is not given."""
        self.issues.append(
            issue.error(f"`{self.at(key)}` is missing", self.node.key_place(key), path=self.at(key), hint=example)
        )

    def _due(self, node: Value, path: str, due: str, hint: str | None = None) -> None:
        message = f"`{path}` is {tree.shown(node)}; {due} is due"
        self.issues.append(issue.error(message, node.place, path=path, hint=hint))

    def text(self, key: str) -> str | None:
        """Read text."""
        node = self.node.given(key)
        return None if node is None else self._text(node, self.at(key))

    def _text(self, node: Value, path: str, *, numbers: bool = False) -> str | None:
        if isinstance(node, Scalar) and isinstance(node.value, str):
            return node.raw
        if numbers and isinstance(node, Scalar) and isinstance(node.value, int) and not isinstance(node.value, bool):
            return node.raw
        hint = f'write "{node.raw}"' if isinstance(node, Scalar) and node.value is not None else None
        self._due(node, path, "text", hint)
        return None

    def need_text(self, key: str, example: str) -> str | None:
        """Read text that must be there and not be empty; `example` is the hint when it is not."""
        if not self.has(key):
            self.missing(key, example)
            return None
        found = self.text(key)
        if found == "":
            self.wrong(key, f"`{self.at(key)}` is empty", hint=example)
            return None
        return found

    def form(self, key: str, pattern: str | re.Pattern[str], due: str, *, hint: str | None = None) -> str | None:
        """Read text of a form; `due` says which, as in `x is no DUE`. A placeholder such as `<NAME>` passes."""
        found = self.text(key)
        if found is None or re.match(pattern, found):
            return found
        if re.search(_PLACEHOLDER, found):
            message = f"`{self.at(key)}` is still the placeholder `{found}`"
            self.warn(key, message, hint="put your own value there", code="placeholder")
            return found
        self.wrong(key, f"`{self.at(key)}` is `{found}`, which is no {due}", hint=hint)
        return None

    def whole(self, key: str, low: int = 0, high: int = 10**9) -> int | None:
        """Read a whole number from `low` to `high`."""
        node = self.node.given(key)
        if node is None:
            return None
        path = self.at(key)
        if not isinstance(node, Scalar) or isinstance(node.value, bool) or not isinstance(node.value, int):
            digits = node.raw if isinstance(node, Scalar) and re.fullmatch(r"[0-9]{1,9}", node.raw) else None
            self._due(node, path, "a whole number", f"write {digits}, without quotes" if digits else None)
            return None
        if not low <= node.value <= high:
            self.wrong(key, f"`{path}` is {node.raw}; {low} to {high} is allowed")
            return None
        return node.value

    def flag(self, key: str) -> bool | None:
        """Read true or false."""
        node = self.node.given(key)
        if node is None:
            return None
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            return node.value
        self._due(node, self.at(key), "true or false")
        return None

    def one_of(self, key: str, words: Sequence[str]) -> str | None:
        """Read one of some words in any case; it is returned in the form it is listed in."""
        found = self.text(key)
        if found is None:
            return None
        known = {word.lower(): word for word in words}
        if found.lower() in known:
            return known[found.lower()]
        near = text.nearest(found, words)
        hint = f"`{near}` is the nearest word" if near else None
        self.wrong(key, f"`{self.at(key)}` is `{found}`; it is one of {', '.join(words)}", hint=hint)
        return None

    def texts(self, key: str, *, numbers: bool = False) -> tuple[str, ...]:
        """Read a list of text; with `numbers` whole numbers count as text."""
        node = self.node.given(key)
        if node is None:
            return ()
        if not isinstance(node, Items):
            hint = f"write [{node.raw}]" if isinstance(node, Scalar) else None
            self._due(node, self.at(key), "a list of text", hint)
            return ()
        found = (self._text(item, tree.step(self.at(key), at), numbers=numbers) for at, item in enumerate(node.items))
        return tuple(word for word in found if word is not None)

    def lines(self, key: str) -> tuple[str, ...]:
        """Read text or a list of text."""
        node = self.node.given(key)
        if isinstance(node, Scalar):
            found = self._text(node, self.at(key))
            return () if found is None else (found,)
        if node is not None and not isinstance(node, Items):
            self._due(node, self.at(key), "text or a list of text")
            return ()
        return self.texts(key)

    def section(self, key: str) -> Reader:
        """Read a mapping; one that is not given reads as empty."""
        node = self.node.given(key)
        if isinstance(node, Section):
            return Reader(node, self.issues, self.at(key))
        if node is not None:
            self._due(node, self.at(key), "a mapping")
        return Reader(Section({}, self.place(key)), self.issues, self.at(key))

    def sections(self, key: str) -> list[Reader]:
        """Read a list of mappings."""
        node = self.node.given(key)
        if node is None:
            return []
        if not isinstance(node, Items):
            self._due(node, self.at(key), "a list of mappings")
            return []
        found = []
        for at, item in enumerate(node.items):
            path = tree.step(self.at(key), at)
            if isinstance(item, Section):
                found.append(Reader(item, self.issues, path))
            else:
                self._due(item, path, "a mapping")
        return found

    def named_sections(self) -> dict[str, Reader]:
        """Read a mapping of mappings."""
        return {key: self.section(key) for key in self.node.entries if self.has(key)}

    def named_texts(self, *, numbers: bool = False) -> dict[str, str]:
        """Read a mapping of text."""
        found = {}
        for key in self.node.entries:
            node = self.node.given(key)
            value = None if node is None else self._text(node, self.at(key), numbers=numbers)
            if value is not None:
                found[key] = value
        return found

    def env(self) -> dict[str, str]:
        """Read a mapping of environment variables: a plain value is its text as written, null is not set."""
        found: dict[str, str] = {}
        for key in self.node.entries:
            node = self.node.given(key)
            if not names.is_env(key):
                hint = "letters, digits and `_`, not beginning with a digit"
                self.wrong(key, f"`{key}` cannot be the name of an environment variable", hint=hint)
            elif isinstance(node, Scalar) and "\0" in node.raw:
                self.wrong(key, f"`{self.at(key)}` has a NUL character, which no environment can hold")
            elif isinstance(node, Scalar):
                found[key] = node.raw
            elif node is not None:
                self._due(node, self.at(key), "one value")
        return found

    def quantity(self, key: str) -> Quantity | None:
        """Read an amount above zero as Kubernetes writes it: `512Gi`, `0.5`, `250m`, a whole number."""
        node = self.node.given(key)
        if node is None:
            return None
        if not isinstance(node, Scalar) or isinstance(node.value, bool):
            self._due(node, self.at(key), _form(key))
            return None
        found = re.match(_QUANTITY, node.raw)
        amount = _amount(found) if found else 0.0
        if amount <= 0:
            self.wrong(key, f"`{self.at(key)}` is `{node.raw}`; {_form(key)} is due", hint=_amount_hint(node.raw, key))
            return None
        return Quantity(node.raw, amount)

    def seconds(self, key: str) -> float | None:
        """Read a duration: `90s`, `30m`, `2h`, `7d`; a whole number is seconds."""
        node = self.node.given(key)
        if node is None:
            return None
        if not isinstance(node, Scalar) or isinstance(node.value, bool | float):
            self._due(node, self.at(key), "a duration such as 30m")
            return None
        try:
            return units.parse_duration(node.raw)
        except ValueError as error:
            self.wrong(key, f"`{self.at(key)}`: {error}")
            return None

    def dollars(self, key: str) -> int | None:
        """Read an amount of US dollars above zero, in millionths."""
        node = self.node.given(key)
        if node is None:
            return None
        if not isinstance(node, Scalar) or isinstance(node.value, bool):
            self._due(node, self.at(key), "an amount of US dollars such as 2.40")
            return None
        try:
            found = money.read(node.raw)
        except ValueError as error:
            self.wrong(key, f"`{self.at(key)}`: {error}")
            return None
        if not found:
            self.wrong(key, f"`{self.at(key)}` is zero, and a job that may cost nothing never starts")
        return found or None

    def unknown(self, known: Sequence[str], *, is_error: bool = False) -> None:
        """Note the keys that are none of the known ones, with the nearest of them."""
        for key in self.node.entries:
            if key in known:
                continue
            near = text.nearest(key, known)
            hint = f"`{near}` is the nearest key" if near else f"known here: {', '.join(sorted(known))}"
            place, path = self.node.key_place(key), self.at(key)
            make = issue.error if is_error else _unknown
            self.issues.append(make(f"unknown key `{path}`", place, path=path, hint=hint))


@dataclass(frozen=True)
class Quantity:
    """An amount: its text as written, and its value (bytes for memory, whole cores for CPUs)."""

    text: str
    value: float


def _unknown(message: str, place: Place | None = None, *, path: str = "", hint: str | None = None) -> Issue:
    return issue.warning(message, place, path=path, hint=hint, code="unknown-key")


def _amount(found: re.Match[str]) -> float:
    unit = found[2] or ""
    return float(found[1]) * (_BINARY.get(unit) or _POWERS.get(unit) or 1)


def _form(key: str) -> str:
    """Say what an amount looks like, by what it counts."""
    if "cpu" in key:
        return "a number of CPUs above zero such as 4, 0.5 or 500m"
    return "a size above zero such as 512Gi, 500M or 1048576"


def _amount_hint(raw: str, key: str) -> str:
    """Show the amount that was most likely meant."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *([kKmMgGtTpP])[iI]?[bB]?", raw)
    if found and float(found[1]) > 0:
        return f"write {found[1]}{found[2].upper()}i"
    return f"write an amount such as {'4' if 'cpu' in key else '512Gi'}"
