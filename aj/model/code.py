"""Code as a noun: which tree to take and by which rules, and the archive that came of it."""

from __future__ import annotations

from aj.base.noun import dataclass


@dataclass(frozen=True)
class IgnoreLine:
    """One ignore pattern of a template, and where it stands (`file:line`)."""

    pattern: str
    place: str


@dataclass(frozen=True)
class CodePlan:
    """How code is chosen.

    `root` is absolute. `ignore` holds the template's patterns in merged order. `scripts` is the absolute path
    of the project's `.azure_jobs/scripts` when the root is another folder. With `strict_links` a link that
    points out of the tree is an error, without it a note. `reserved` refuses a root entry that has the name of
    a generated file. `max_bytes` limits the archive. `ssh` names files of `~/.ssh` that go along where code is
    sent away, a private key among them only with `ssh_private_keys`.
    """

    root: str
    ignore: tuple[IgnoreLine, ...] = ()
    scripts: str | None = None
    strict_links: bool = True
    reserved: bool = False
    max_bytes: int | None = None
    ssh: tuple[str, ...] = ()
    ssh_private_keys: bool = False


@dataclass(frozen=True)
class CodeRef:
    """Packed code. `digest` names the selected files, `archive_sha256` the bytes of the archive.

    `files` counts selected regular files and `bytes` their content; `archive_bytes` is the archive's size.
    """

    digest: str
    archive_sha256: str
    files: int
    bytes: int
    archive_bytes: int


@dataclass(frozen=True)
class CodeWarning:
    """Something about the code that a user should know; `code` is a stable word for machines."""

    code: str
    message: str
    file: str | None = None
    line: int | None = None
