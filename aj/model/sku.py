"""The SKU: what a machine must have, in one short word such as `2x80G8-A100-NvLink`.

    [NODES x] [GB per GPU] G|C [COUNT] {-PART}      PART: NvLink, IB, or one accelerator

`G` counts GPUs a node; `C` names a place in the list of CPU sizes, 1 the smallest. A template may write
`{nodes}` and `{processes}` in it, or a mapping from ranges of nodes (`1`, `2-4`, `8+`) to such words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from aj.base.noun import dataclass
from aj.base.text import plural

FORM = "[NODESx][GB]G[COUNT][-ACCELERATOR][-NvLink][-IB], as `2x80G8-A100`, or C[COUNT]"
_SKU = r"(?:([0-9]{1,9})x)?([0-9]{1,9})?([GC])([0-9]{1,9})?((?:-[A-Za-z0-9]+)*)\Z"
_PART = r"[A-Za-z][A-Za-z0-9]*\Z"
_RANGE = r" *([0-9]{1,9}) *(?:(\+)|- *([0-9]{1,9}))? *\Z"


class SkuProblem(ValueError):
    """A text is no SKU. `offset` counts characters from its begin; `near` are words that would be one."""

    def __init__(self, message: str, *, offset: int = 0, near: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.near = near


@dataclass(frozen=True)
class Sku:
    """A SKU read. `nodes` and `count` are None where the text leaves them to the command line."""

    family: str
    nodes: int | None = None
    memory_gb: int | None = None
    count: int | None = None
    accelerator: str | None = None
    nvlink: bool = False
    infiniband: bool = False

    @property
    def is_gpu(self) -> bool:
        return self.family == "G"

    def __str__(self) -> str:
        parts = [self.accelerator or "", "NvLink" if self.nvlink else "", "IB" if self.infiniband else ""]
        head = f"{f'{self.nodes}x' if self.nodes is not None else ''}{self.memory_gb or ''}{self.family}"
        count = "" if self.count is None else str(self.count)
        return "-".join([head + count, *(part for part in parts if part)])


def parse(text: str, *, allow_zero: bool = False) -> Sku:
    """Read a finished SKU. `allow_zero` lets `G0` pass. Raises SkuProblem with the nearest valid words."""
    found = re.match(_SKU, text)
    if not found:
        raise _unreadable(text)
    nodes, memory, family, count, parts = found.groups()
    for at, what in ((1, "nodes"), (2, "GB per GPU"), (4, "count")):
        zero_is_fine = allow_zero and what == "count" and family == "G" and found[at] == "0"
        if found[at] and found[at].startswith("0") and not zero_is_fine:
            raise _problem(text, f"the {what} `{found[at]}` is no number from 1", found.start(at))
    if family == "C" and memory:
        raise _problem(text, "a C SKU has no GB per GPU", found.start(2))
    sku = Sku(family, _number(nodes), _number(memory), _number(count))
    return _with_parts(sku, text, parts, found.start(5))


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _with_parts(sku: Sku, text: str, parts: str, start: int) -> Sku:
    """Read what follows the first `-`."""
    accelerator, nvlink, infiniband = None, False, False
    offset = start + 1
    for part in parts.split("-")[1:]:
        word = part.upper()
        if word == "NVLINK":
            nvlink = True
        elif word == "IB":
            infiniband = True
        elif not re.match(_PART, part):
            raise _problem(text, f"`{part}` is no accelerator", offset)
        elif not sku.is_gpu:
            raise _problem(text, "a C SKU has no accelerator", offset)
        elif accelerator is not None:
            raise _problem(text, f"two accelerators, `{accelerator}` and `{part}`", offset)
        else:
            accelerator = word
        offset += len(part) + 1
    return Sku(sku.family, sku.nodes, sku.memory_gb, sku.count, accelerator, nvlink, infiniband)


def _unreadable(text: str) -> SkuProblem:
    """Say where a text stops being a SKU."""
    if not text:
        return SkuProblem("the sku is empty", near="`G1` or `C1`")
    begin = re.match(r"(?:[0-9]+x)?[0-9]*", text)
    offset = begin.end() if begin else 0
    if offset < len(text) and text[offset] in "GC":
        rest = re.match(r"[0-9]*(?:-[A-Za-z0-9]+)*", text[offset + 1 :])
        return _problem(text, "nothing of a SKU fits here", offset + 1 + (rest.end() if rest else 0))
    return _problem(text, "`G` or `C` is due here", offset)


def _problem(text: str, message: str, offset: int) -> SkuProblem:
    found = nearest(text)
    at = f" at `{text[offset:][:20]}`" if offset < len(text) else ""
    return SkuProblem(f"`{text}` is not a SKU: {message}{at}", offset=offset, near=" or ".join(found) or FORM)


def nearest(text: str) -> list[str]:
    """Return the SKUs that a writer of this text most likely meant, each with its meaning where two differ."""
    many = re.fullmatch(r"([1-9][0-9]{0,5})[xX]?-?([A-Za-z]+[0-9]+[A-Za-z]*)", text)
    each = re.fullmatch(r"([A-Za-z]+[0-9]+[A-Za-z]*)[xX:]([1-9][0-9]{0,5})", text)
    found = {str(sku): None for repaired in _repairs(text) if (sku := _read(repaired))}
    if many and not found:
        count, gpu = many[1], many[2].upper()
        a_node = plural(int(count), "GPU") + " a node"
        return [f"`G{count}-{gpu}` ({a_node})", f"`{count}xG1-{gpu}` ({plural(int(count), 'node')})"]
    if each:
        return [f"`G{each[2]}-{each[1].upper()}`"]
    return [f"`{word}`" for word in list(found)[:2]]


def _read(text: str) -> Sku | None:
    """Read a SKU or return None. Not `parse`, which asks here for the nearest words."""
    found = re.match(_SKU, text)
    if not found or any(found[at] and found[at].startswith("0") for at in (1, 2, 4)):
        return None
    if found[3] == "C" and found[2]:
        return None
    try:
        sku = Sku(found[3], _number(found[1]), _number(found[2]), _number(found[4]))
        return _with_parts(sku, "", found[5], 0)
    except SkuProblem:
        return None


def _repairs(text: str) -> Iterator[str]:
    """Give texts with one kind of slip after another mended."""
    tidy = re.sub(r"[\s_]+", "", text)
    tidy = re.sub(r"(?<![0-9])0+(?=[1-9])", "", tidy)
    tidy = re.sub(r"(?<![A-Za-z0-9-])((?:[0-9]+[xX])?[0-9]*)([gc])(?=[0-9-]|$)", _capital, tidy)
    tidy = re.sub(r"^([0-9]+)X", r"\1x", tidy)
    yield tidy
    if cpu := re.fullmatch(r"((?:[0-9]+x)?)[0-9]*(C[0-9]*)(-.*)?", tidy):
        yield cpu[1] + cpu[2]
    head, *parts = tidy.split("-")
    for kept in parts:
        yield "-".join([head, *(part for part in parts if part == kept or part.upper() in ("NVLINK", "IB"))])
    if re.fullmatch(r"[A-Za-z]+[0-9]+[A-Za-z]*", tidy) and tidy[0] not in "GC":
        yield f"G1-{tidy.upper()}"
    if tidy.isdecimal():
        yield f"G{tidy}"
        yield f"C{tidy}"


def _capital(found: re.Match[str]) -> str:
    return found[1] + found[2].upper()


@dataclass(frozen=True)
class Rendered:
    """A SKU with its placeholders filled; `offsets` tells for each character where in the source it comes from."""

    text: str
    offsets: tuple[int, ...]

    def source(self, offset: int) -> int:
        """Return the offset in the source of a character of the text."""
        return self.offsets[offset] if offset < len(self.offsets) else (self.offsets[-1] + 1 if self.offsets else 0)


def render(template: str, *, nodes: int, processes: int) -> Rendered:
    """Fill `{nodes}` and `{processes}`; `{{` and `}}` give one brace. Raises SkuProblem on any other brace."""
    values = {"{nodes}": str(nodes), "{processes}": str(processes), "{{": "{", "}}": "}"}
    out: list[str] = []
    offsets: list[int] = []
    at = 0
    while at < len(template):
        word = next((word for word in values if template.startswith(word, at)), template[at])
        if word in "{}":
            end = template.find("}", at)
            shown = template[at : end + 1] if end > at else template[at:]
            hint = "`{nodes}` or `{processes}`; `{{` and `}}` for a brace"
            raise SkuProblem(f"`{shown[:40]}` is no placeholder of a SKU", offset=at, near=hint)
        filled = values.get(word, word)
        out.append(filled)
        offsets += [at] * len(filled)
        at += len(word)
    return Rendered("".join(out), tuple(offsets))


def fitted(text: str, sku: Sku, *, nodes: int, count: int) -> str:
    """Return the SKU's text with the numbers it writes out replaced by those that hold."""
    found = re.match(_SKU, text)
    if not found:
        return text
    head = f"{nodes}x" if found[1] else ""
    number = str(count) if sku.count is not None else ""
    return f"{head}{found[2] or ''}{found[3]}{number}{found[5]}"


@dataclass(frozen=True)
class Range:
    """Numbers of nodes for which one SKU holds, both ends included; no `high` means no end."""

    low: int
    high: int | None
    text: str

    def holds(self, nodes: int) -> bool:
        return self.low <= nodes and (self.high is None or nodes <= self.high)

    def meets(self, other: Range) -> bool:
        """Tell whether some number of nodes lies in both."""
        return (self.high is None or other.low <= self.high) and (other.high is None or self.low <= other.high)


def parse_range(text: str) -> Range:
    """Read `4`, `2-4` or `8+`. Raises SkuProblem."""
    found = re.match(_RANGE, text)
    form = "`4`, `2-4` or `8+`"
    if not found:
        raise SkuProblem(f"`{text}` is no range of nodes", near=form)
    low = int(found[1])
    high = None if found[2] else int(found[3]) if found[3] else low
    if low < 1:
        raise SkuProblem(f"`{text}`: nodes are counted from 1", near=form)
    if high is not None and high < low:
        raise SkuProblem(f"`{text}`: the range ends before it begins", near=f"`{high}-{low}`")
    return Range(low, high, text)


def choose(ranges: Sequence[Range], nodes: int) -> Range | None:
    """Return the first range that holds the number of nodes."""
    return next((one for one in ranges if one.holds(nodes)), None)


def overlaps(ranges: Sequence[Range]) -> Iterator[tuple[Range, Range]]:
    """Give each pair of ranges that share a number of nodes, the one that wins first."""
    for at, later in enumerate(ranges):
        earlier = next((one for one in ranges[:at] if one.meets(later)), None)
        if earlier is not None:
            yield earlier, later
