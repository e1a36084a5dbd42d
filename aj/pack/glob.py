"""One ignore pattern, read byte for byte as git reads it: from its text to tokens, from tokens to a regular expression.

Two habits of git are kept because people's files rely on them: the part before the first special byte is
compared literally, so `**` right after it counts as standing at the start (`foo**/bar` takes `foobar` and
`foo/x/bar`); and a pattern that cannot be read (`[` without its end, `\\` as the last byte) matches nothing.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cached_property, lru_cache

from aj.base import text
from aj.base.noun import dataclass


class Wild(Enum):
    """A token that takes any number of bytes."""

    STAR = "*"  # not over a slash
    DEEP = "**"  # over slashes too
    FOLDERS = "**/"  # nothing, or whole folders with their last slash


Token = frozenset[int] | Wild
SLASH = frozenset(b"/")
_SPECIAL = rb"[*?\[\\]"
_ANY = frozenset(range(256))
_NOT_SLASH = _ANY - SLASH
_GRAPH = frozenset(range(33, 127))
_UPPER = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_LOWER = frozenset(b"abcdefghijklmnopqrstuvwxyz")
_DIGIT = frozenset(b"0123456789")
_CLASSES = {
    b"alnum": _UPPER | _LOWER | _DIGIT,
    b"alpha": _UPPER | _LOWER,
    b"blank": frozenset(b" \t"),
    b"cntrl": frozenset(range(32)) | {127},
    b"digit": _DIGIT,
    b"graph": _GRAPH,
    b"lower": _LOWER,
    b"print": _GRAPH | {32},
    b"punct": _GRAPH - _UPPER - _LOWER - _DIGIT,
    b"space": frozenset(b" \t\r\n"),  # git's own table: no form feed, no vertical tab
    b"upper": _UPPER,
    b"xdigit": frozenset(b"0123456789abcdefABCDEF"),
}


class Unreadable(ValueError):
    """The pattern has no meaning, so it matches nothing."""


@dataclass(frozen=True)
class Glob:
    """A pattern without its `!` and its final slash.

    `by_name` says that it holds for the last component at any depth, else for the whole path below the root.
    `tokens` is None when the pattern can match nothing, and `flaw` says why; a flaw with tokens is only odd.
    """

    by_name: bool
    tokens: tuple[Token, ...] | None
    flaw: str | None = None

    @cached_property
    def literal(self) -> bytes:
        """The bytes with which every match begins."""
        found = bytearray()
        for token in self.tokens or ():
            if isinstance(token, Wild) or len(token) != 1:
                break
            found += bytes(token)
        return bytes(found)

    @cached_property
    def is_literal(self) -> bool:
        return self.tokens is not None and len(self.literal) == len(self.tokens)

    @cached_property
    def edges(self) -> tuple[frozenset[int], frozenset[int]]:
        """Which first or last bytes a name must have to be worth a closer look; one of the two is empty."""
        first, last = (
            token if token is not None and not isinstance(token, Wild) else _ANY
            for token in ((self.tokens or (None,))[0], (self.tokens or (None,))[-1])
        )
        return (first, frozenset()) if len(first) <= len(last) else (frozenset(), last)

    @cached_property
    def suffix(self) -> bytes | None:
        """The end of the name that decides alone, for patterns like `*.pyc`."""
        if not self.by_name or not self.tokens or self.tokens[0] is not Wild.STAR:
            return None
        rest = Glob(True, self.tokens[1:])
        return rest.literal if rest.is_literal else None

    @cached_property
    def split(self) -> tuple[re.Pattern[bytes], Glob] | None:
        """The same as a pattern for the folder (with its final slash) and one for the name in it, when that can be."""
        tokens = self.tokens or ()
        cut = max((at + 1 for at, token in enumerate(tokens) if token in (SLASH, Wild.FOLDERS)), default=0)
        head, tail = tokens[:cut], tokens[cut:]
        may_join = head[-1:] == (Wild.FOLDERS,) and len(head) > 1 and head[-2] != SLASH
        if may_join or Wild.DEEP in tail:
            return None
        return compile_once(_source(head)), Glob(True, tail)

    @cached_property
    def slashes(self) -> int:
        """How many slashes a match has at least."""
        return sum(token == SLASH for token in self.tokens or ())

    @cached_property
    def is_deep(self) -> bool:
        """Whether a match may have more slashes than that."""
        return any(token in (Wild.DEEP, Wild.FOLDERS) for token in self.tokens or ())

    @cached_property
    def source(self) -> bytes:
        """The regular expression, to be matched whole with DOTALL; only for readable patterns."""
        return _source(self.tokens or ())

    @cached_property
    def compiled(self) -> re.Pattern[bytes]:
        return compile_once(self.source)


@lru_cache(maxsize=512)
def compile_once(source: bytes) -> re.Pattern[bytes]:
    """Compile an expression for whole-path questions; the same one is compiled once."""
    return re.compile(source, re.DOTALL)


def ending(suffix: bytes) -> Glob:
    """Make the pattern of all names with this end."""
    return Glob(True, (Wild.STAR, *(frozenset((code,)) for code in suffix)))


def beginning(prefix: bytes) -> Glob:
    """Make the pattern of all names with this begin."""
    return Glob(True, (*(frozenset((code,)) for code in prefix), Wild.STAR))


def read(pattern: bytes) -> Glob:
    """Read a pattern that has lost its `!` and its final slash."""
    by_name = b"/" not in pattern
    body = pattern.removeprefix(b"/")
    found = re.search(_SPECIAL, body)
    start = found.start() if found else len(body)
    # A name is matched whole; only for paths does the literal part come off first.
    head, tail = (b"", body) if by_name else (body[:start], body[start:])
    try:
        rest, flaw = _tokens(tail)
    except Unreadable as error:
        return Glob(by_name, None, str(error))
    tokens = (*(frozenset((code,)) for code in head), *rest)
    flaw = flaw or _oddity(tokens)
    if tokens[:1] == (Wild.FOLDERS,) and SLASH not in tokens and Wild.FOLDERS not in tokens[1:]:
        by_name, tokens = True, tokens[1:]  # `**/name` is `name` at any depth, which is quicker to ask
    if by_name:
        tokens = tuple(Wild.STAR if token is Wild.DEEP else token for token in tokens)
    return Glob(by_name, tokens, flaw)


def components(tokens: tuple[Token, ...]) -> list[tuple[Token, ...]]:
    """Cut tokens at their slashes. What takes whole folders stands as a component of its own."""
    found: list[list[Token]] = [[]]
    for token in tokens:
        if token == SLASH:
            found.append([])
        else:
            found[-1].append(token)
            if token is Wild.FOLDERS:
                found.append([])
    return [tuple(part) for part in found]


def _oddity(tokens: tuple[Token, ...]) -> str | None:
    if not tokens:
        return "is empty and matches nothing"
    if frozenset() in tokens:
        return "has a set that no byte is in and matches nothing"
    dot = frozenset(b".")
    parts = components(tokens)
    if any(part in ((dot,), (dot, dot)) for part in parts):
        return "matches nothing: paths are written without `.` and `..`"
    if _has_empty_part(tokens):
        return "matches nothing: it has two slashes in a row"
    return None


def _has_empty_part(tokens: tuple[Token, ...]) -> bool:
    """Whether a match would need two slashes in a row, or one at its beginning or end."""
    around = (None, *tokens, None)
    for before, token, after in zip(around, around[1:], around[2:]):
        starts = token == SLASH or (token is Wild.FOLDERS and before in (None, SLASH))
        if (token == SLASH and before is None) or (starts and after in (None, SLASH)):
            return True
    return False


def _tokens(pattern: bytes) -> tuple[tuple[Token, ...], str | None]:
    """Read what follows the literal part. Raises Unreadable."""
    found: list[Token] = []
    flaw = None
    at = 0
    while at < len(pattern):
        code = pattern[at]
        if code == ord("*"):
            token, at = _star(pattern, at)
            found.append(token)
        elif code == ord("["):
            members, odd, at = _set(pattern, at)
            found.append(members)
            flaw = flaw or odd
        else:
            if code == ord("\\"):
                at += 1
                if at == len(pattern):
                    raise Unreadable("ends in a lone `\\` and matches nothing")
            found.append(_NOT_SLASH if code == ord("?") else frozenset((pattern[at],)))
            at += 1
    return tuple(found), flaw


def _star(pattern: bytes, at: int) -> tuple[Wild, int]:
    end = at
    while pattern[end : end + 1] == b"*":
        end += 1
    before_ok = at == 0 or pattern[at - 1] == ord("/")
    after = pattern[end : end + 2]
    if end - at < 2 or not before_ok or not (after == b"" or after[:1] == b"/" or after == b"\\/"):
        return Wild.STAR, end
    if after[:1] == b"/":
        return Wild.FOLDERS, end + 1
    return Wild.DEEP, end


def _set(pattern: bytes, at: int) -> tuple[frozenset[int], str | None, int]:
    """Read `[...]`. Returns its bytes, an oddity, and where it ends. Raises Unreadable."""
    at += 1
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    members: set[int] = set()
    previous: int | None = None
    flaw = None
    first = True
    while first or _byte(pattern, at) != ord("]"):
        first = False
        code = _byte(pattern, at)
        if code == ord("-") and previous is not None and pattern[at + 1 : at + 2] not in (b"", b"]"):
            last, at = _escaped(pattern, at + 1)
            members.update(range(previous, last + 1))
            if last < previous:
                flaw = f"has the empty range `{chr(previous)}-{chr(last)}`"
            previous = None
        elif pattern[at : at + 2] == b"[:" and (end := pattern.find(b"]", at + 2)) != -1 and _named(pattern, at, end):
            members |= _class(pattern[at + 2 : end - 1])
            at, previous = end, None
        elif pattern[at : at + 2] == b"[:" and pattern.find(b"]", at + 2) == -1:
            raise Unreadable("has a `[` without its `]` and matches nothing")
        else:
            previous, at = _escaped(pattern, at)
            members.add(previous)
        at += 1
    kept = _NOT_SLASH - members if negated else frozenset(members) - SLASH
    return kept, flaw, at + 1


def _named(pattern: bytes, at: int, end: int) -> bool:
    """Whether `[:` at a place and the next `]` enclose the name of a class."""
    return end - (at + 2) - 1 >= 0 and pattern[end - 1] == ord(":")


def _class(name: bytes) -> frozenset[int]:
    if name not in _CLASSES:
        raise Unreadable(f"names the unknown class `[:{text.decoded(name)}:]` and matches nothing")
    return _CLASSES[name]


def _byte(pattern: bytes, at: int) -> int:
    if at >= len(pattern):
        raise Unreadable("has a `[` without its `]` and matches nothing")
    return pattern[at]


def _escaped(pattern: bytes, at: int) -> tuple[int, int]:
    """The byte at a place, after its backslash if there is one; and where it stood."""
    code = _byte(pattern, at)
    if code != ord("\\"):
        return code, at
    return _byte(pattern, at + 1), at + 1


def _source(tokens: tuple[Token, ...]) -> bytes:
    """Write tokens as a regular expression.

    Within one component a star before another star need only find the nearest match of what follows it. It is
    written as an atomic group, so that `*a*a*a*a*b` takes no exponential time.
    """
    found: list[bytes] = []
    part: list[Token] = []
    for token in tokens:
        if token == SLASH or token in (Wild.DEEP, Wild.FOLDERS):
            found += [_component(part), _boundary(token)]
            part = []
        else:
            part.append(token)
    return b"".join([*found, _component(part)])


def _boundary(token: Token) -> bytes:
    if token is Wild.DEEP:
        return b".*"
    return b"(?:.*/)?" if token is Wild.FOLDERS else b"/"


def _component(tokens: list[Token]) -> bytes:
    pieces: list[bytes] = [b""]
    for token in tokens:
        if isinstance(token, Wild):
            pieces.append(b"")
        else:
            pieces[-1] += _one(token)
    if len(pieces) == 1:
        return pieces[0]
    middle = b"".join(b"(?>[^/]*?%b)" % piece for piece in pieces[1:-1] if piece)
    return b"%b%b[^/]*%b" % (pieces[0], middle, pieces[-1])


def _one(members: frozenset[int]) -> bytes:
    if members == _NOT_SLASH:
        return b"[^/]"
    if not members:
        return b"(?!)"
    if len(members) == 1:
        return re.escape(bytes(members))
    return b"[%b]" % b"".join(b"\\x%02x" % code for code in sorted(members))
