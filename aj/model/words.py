"""The words of the command line that a job runs: files that run themselves, and quoting for a POSIX shell."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

from aj.base.errors import UserError
from aj.base.noun import dataclass

_SAFE = r"[A-Za-z0-9_@%+=:,./-]+\Z"
# Unquoted in the first place these would be read by the shell itself, not as the name of a program.
_RESERVED = {
    *("if", "then", "elif", "else", "fi", "do", "done", "case", "esac", "while", "until", "for", "in"),
    *("function", "select", "time", "coproc"),
}


@dataclass(frozen=True)
class Command:
    """The final words. `file` is the script that was named directly, relative to the invocation directory."""

    argv: tuple[str, ...]
    file: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def stem(self) -> str | None:
        """The name of the direct file without folder and extension."""
        return None if self.file is None else os.path.splitext(os.path.basename(self.file))[0]


def command(
    argv: Sequence[str],
    directory: str,
    *,
    is_file: Callable[[str], bool],
    resolve: Callable[[str], str],
    has_uv: bool = True,
) -> Command:
    """Turn what the user typed into the words that run.

    An existing `.py` or `.sh` file inside `directory` runs by `uv run` or `bash`; without `has_uv` the first
    runs by `python3`. Only the first word is looked at. `is_file` tells of a path whether it is a regular file,
    `resolve` follows its links. Raises UserError on another extension, on no words, and on words that are not
    UTF-8.
    """
    if not argv:
        raise UserError("COMMAND is missing", hint="aj run -t TEMPLATE train.py")
    _check_text(argv)
    file = _direct(argv[0], directory, is_file, resolve)
    extension = os.path.splitext(file)[1].lower() if file else ""
    if file is None or not extension:
        return Command(tuple(argv))
    path = f"./{file}" if file.startswith("-") else file
    if extension == ".sh":
        return Command(("bash", path, *argv[1:]), file)
    if extension != ".py":
        hint = f"`bash {file}` or `python {file}`"
        raise UserError(f"`{file}` is a file, and only .py and .sh files run by themselves", hint=hint)
    if has_uv:
        return Command(("uv", "run", path, *argv[1:]), file)
    return Command(("python3", path, *argv[1:]), file, ("no `uv` on the job's PATH: `python3` runs the file",))


def _check_text(argv: Sequence[str]) -> None:
    for at, word in enumerate(argv):
        try:
            word.encode()
        except UnicodeEncodeError as error:
            raise UserError(f"word {at + 1} of the command, {word!a}, is not UTF-8") from error


def _direct(word: str, directory: str, is_file: Callable[[str], bool], resolve: Callable[[str], str]) -> str | None:
    """Return the path, relative to the directory, of a regular file inside it that the word names; else None."""
    path = word if os.path.isabs(word) else f"{directory}/{word}"
    if not word or not is_file(path):
        return None
    root = resolve(directory)
    if not resolve(path).startswith(root.rstrip("/") + "/"):
        return None
    if not os.path.isabs(word) and not os.path.normpath(word).startswith(".."):
        return word
    lexical = os.path.relpath(path, directory)
    return os.path.relpath(resolve(path), root) if lexical.startswith("..") else lexical


def quote(word: str) -> str:
    """Write one word so that a POSIX shell reads exactly that word."""
    return word if re.match(_SAFE, word) else "'" + word.replace("'", "'\"'\"'") + "'"


def line(argv: Sequence[str]) -> str:
    """Write words so that a POSIX shell runs the first of them with exactly the others."""
    first = argv[0]
    if "=" in first or first in _RESERVED:  # else an assignment, or the shell's own word
        return " ".join([f"'{first}'" if re.match(_SAFE, first) else quote(first), *map(quote, argv[1:])])
    return " ".join(map(quote, argv))
