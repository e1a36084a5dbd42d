"""Real git, asked about ignore patterns: many pattern files in one call."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from tests.pack.trees import plant

# Names and patterns are made of the same pieces, so that they meet.
NAMES = [
    b"a", b"b", b"ab", b"a.b", b"foo", b"foobar", b"a b", b"a ", b"[", b"\\", b"*", b"!a", b"#", b"z", b"-", b"]",
    b"^", b"A", b"\xe9", b"\xc3\xa9", b"a\tb", b"5", b"\x0b", b"\x01",
]  # fmt: skip
FOLDERS = [b"d", b"foo2", b"x", b"aa"]
ATOMS = [
    b"a", b"b", b"foo", b"d", b"x", b"z", b"*", b"**", b"?", b"/", b"/", b"/", b"[ab]", b"[!a]", b"[^z]", b"[z-a]",
    b"[a-z]", b"[", b"]", b"\\", b"\\*", b"!", b"#", b" ", b"-", b".", b"[[:alpha:]]", b"[[:space:]]", b"[[:foo:]]",
    b"[]-a]", b"[a\\-z]", b"[[:punct:]]", b"[[:cntrl:]]", b"[[:", b"[:a]", b"aa", b"b2", b"*.b", b"**/", b"/**",
    b"\\/", b"\t", b"\r", b"\xe9", b"[/]", b"[a/]", b"[a-", b"[\\",
]  # fmt: skip
ENVIRONMENT = {"PATH": os.environ.get("PATH", ""), "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}

line = st.builds(
    lambda negation, body, ending: negation + body + ending,
    st.sampled_from([b"", b"", b"", b"!"]),
    st.lists(st.sampled_from(ATOMS), min_size=1, max_size=5).map(b"".join),
    st.sampled_from([b"", b"", b"", b"/", b" ", b"\\ ", b"\r", b"\\"]),
)
pattern_file = st.lists(line, min_size=1, max_size=4).map(b"\n".join)


def entries() -> list[tuple[bytes, bool]]:
    """The tree that every case has: paths, and whether each is a folder. A folder comes before what is in it."""
    found = [(name, False) for name in NAMES]
    for folder in FOLDERS:
        found.append((folder, True))
        found += [(folder + b"/" + name, False) for name in (b"a", b"b", b"foo", b"a.b", b"z")]
        for deeper in (b"d", b"x", b"b2"):
            found.append((folder + b"/" + deeper, True))
            found += [(folder + b"/" + deeper + b"/" + name, False) for name in (b"a", b"b", b"foo")]
    return found


@dataclass(frozen=True)
class Verdict:
    """What git says of a path: the pattern that decides, or None, and whether the path stays out."""

    pattern: bytes | None
    is_out: bool


class Git:
    """A repository of equal trees, each in a folder of its own with its own ignore file."""

    def __init__(self, base: Path, cases: int) -> None:
        self.base = base
        self.cases = cases
        self.entries = entries()
        self._run("init", "-q", str(base))
        for case in range(cases):
            plant(base / f"c{case}", {path + b"/" * is_folder: b"" for path, is_folder in self.entries})

    def _run(self, *words: str, given: bytes = b"") -> bytes:
        done = subprocess.run(["git", *words], input=given, capture_output=True, cwd=self.base, env=ENVIRONMENT)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    def verdicts(self, files: Sequence[bytes]) -> Iterator[dict[bytes, Verdict]]:
        """Ask about every entry under each of these ignore files."""
        for case, data in enumerate(files):
            (self.base / f"c{case}" / ".gitignore").write_bytes(data)
        asked = [b"c%d/" % case + path for case in range(len(files)) for path, _ in self.entries]
        answer = self._run("check-ignore", "--no-index", "-v", "-n", "-z", "--stdin", given=b"\0".join(asked) + b"\0")
        fields = iter(answer.split(b"\0"))
        for _ in files:
            found = {}
            for path, _ in self.entries:
                source, _, pattern, told = (next(fields) for _ in range(4))
                assert told.endswith(b"/" + path)
                found[path] = Verdict(pattern if source else None, bool(source) and not pattern.startswith(b"!"))
            yield found

    def untracked(self, folder: Path, patterns: bytes) -> list[bytes]:
        """List the files of a folder that git would take under these patterns."""
        given = self.base / "patterns"
        given.write_bytes(patterns)
        where = [f"--git-dir={self.base}/.git", f"--work-tree={folder}", "-C", str(folder)]
        words = [*where, "ls-files", "-o", "-z", f"--exclude-from={given}"]
        return sorted(name for name in self._run(*words).split(b"\0") if name)
