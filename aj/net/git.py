"""Git repositories elsewhere, through the program `git`: what is in one, and a commit on top of it.

Nothing is ever checked out: trees and files are read from a bare copy, so that no hook, filter, link or submodule of
a repository can do anything here. Git may not ask questions, and has a time limit. Credentials of an address go to it
by its environment, never among its words.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from aj.base import proc, redact, units
from aj.base.errors import AjError, AuthError, ConfigError, NotFound, OutcomeUnknown, Refused, RemoteError, Unavailable
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.model.repository import SCHEMES, Address

FAR_S = 120.0  # templates are small; who needs longer has no line
NEAR_S = 60.0  # the same work on this disk
REF = "refs/heads/aj-outgoing"
# No program of a repository or of a template of repositories runs; no question, no signature by a locked key.
SAFE = tuple(
    word
    for setting in (
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "init.templateDir=",
        "protocol.ext.allow=never",
        "submodule.recurse=false",
        "commit.gpgSign=false",
        "push.gpgSign=false",
        "gc.auto=0",
        "maintenance.auto=false",
        "credential.interactive=false",
    )
    for word in ("-c", setting)
)
# What git may hear of the caller's own variables; others, as GIT_DIR inside a hook, mean another repository.
_HEARD = re.compile(
    r"GIT_(?:SSH|SSH_COMMAND|SSH_VARIANT|SSL_.*|HTTP_.*|PROXY_.*|PROXY_SSL_.*|AUTHOR_.*|COMMITTER_.*|EXEC_PATH"
    r"|CONFIG_GLOBAL|CONFIG_SYSTEM|CONFIG_NOSYSTEM|CONFIG_COUNT|CONFIG_KEY_\d+|CONFIG_VALUE_\d+)\Z"
)
_QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_ALLOW_PROTOCOL": ":".join(SCHEMES),
    "LC_ALL": "C",
}
_TROUBLES: tuple[tuple[str, type[AjError], str], ...] = (
    (
        r"could not resolve|couldn't connect|could not connect|connection (?:refused|timed out|reset|closed)"
        r"|network is unreachable|no route to host|operation timed out|failed to connect",
        Unavailable,
        "is there a network, and is the address right?",
    ),
    (
        r"permission denied|authentication failed|could not read (?:username|password)|host key verification failed"
        r"|terminal prompts disabled|access denied|invalid credentials|error: 40[13]",
        AuthError,
        "`git ls-remote REPO` by hand shows what git wants: a key, or a credential helper",
    ),
    (
        r"not found|does not exist|does not appear to be a git repository|no such file or directory",
        NotFound,
        "check the address",
    ),
)


@dataclass(frozen=True)
class Entry:
    """One entry of a tree: its mode as git writes it, its object, its size in bytes, its path."""

    mode: str
    object: str
    size: int
    path: bytes


@dataclass(frozen=True)
class Content:
    """A file to be committed."""

    data: bytes
    is_executable: bool


@dataclass(frozen=True)
class Copy:
    """A bare copy of a repository: where it is, its branch, its newest commit (None when it is empty)."""

    folder: Path
    address: Address
    branch: str
    commit: str | None


@dataclass(frozen=True)
class Git:
    """The program, with this caller's environment."""

    settings: Settings

    def fetch(self, address: Address, folder: Path) -> Copy:
        """Copy the newest commit of a repository into a folder that does not exist yet.

        Raises ConfigError without git; NotFound, AuthError, Unavailable, RemoteError by what git says.
        """
        words = ("clone", "--bare", "--quiet", "--depth=1", "--single-branch", "--no-tags", "--template=", "--")
        done = self._run([*words, address.url, str(folder)], folder.parent, address, FAR_S)
        if done.code:
            raise trouble(f"cannot read {address.url}", done)
        head = self._near(folder, ["symbolic-ref", "HEAD"]).out.decode().strip()
        found = self._run(["rev-parse", "--quiet", "--verify", "HEAD^{commit}"], folder, None, NEAR_S)
        commit = found.out.decode().strip() if found.code == 0 else None
        return Copy(folder, address, head.removeprefix("refs/heads/"), commit)

    def entries(self, copy: Copy) -> list[Entry]:
        """Return all that is in the newest commit. Raises AjError."""
        if copy.commit is None:
            return []
        out = self._near(copy.folder, ["ls-tree", "-r", "-z", "-l", "--full-tree", copy.commit]).out
        found = []
        for line in out.split(b"\0")[:-1]:
            about, _, path = line.partition(b"\t")
            mode, _, name, size = about.decode().split()
            found.append(Entry(mode, name, int(size) if size.isdigit() else 0, path))
        return found

    def files(self, copy: Copy, objects: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of objects by their names. Raises AjError."""
        asked = "".join(f"{name}\n" for name in dict.fromkeys(objects)).encode()
        out = self._near(copy.folder, ["cat-file", "--batch"], asked).out
        found, at = {}, 0
        for _ in dict.fromkeys(objects):
            end = out.index(b"\n", at)
            name, _, size = out[at:end].decode().split()
            found[name] = out[end + 1 : end + 1 + int(size)]
            at = end + 1 + int(size) + 1
        return found

    def commit(self, copy: Copy, changes: Mapping[str, Content | None], message: str) -> str:
        """Make a commit on top of the newest one: files by path, None for one that goes. Return its name.

        Raises ConfigError when git does not know who commits, AjError.
        """
        stream = bytearray(f"commit {REF}\nauthor {self._who('AUTHOR')}\ncommitter {self._who('COMMITTER')}\n".encode())
        stream += _data(message.rstrip("\n").encode("utf-8", "surrogateescape") + b"\n")
        stream += f"from {copy.commit}\n".encode() if copy.commit else b""
        for path, content in changes.items():
            name = _quoted(path)
            if content is None:
                stream += b"D " + name + b"\n"
                continue
            mode = b"100755" if content.is_executable else b"100644"
            stream += b"M " + mode + b" inline " + name + b"\n" + _data(content.data)
        self._near(copy.folder, ["fast-import", "--quiet", "--done"], bytes(stream) + b"done\n")
        return self._near(copy.folder, ["rev-parse", REF]).out.decode().strip()

    def push(self, copy: Copy, commit: str) -> None:
        """Make a commit the newest one of the repository's branch.

        Raises Refused when the repository did not take it, OutcomeUnknown when nobody knows, and as `fetch`.
        """
        target = f"{commit}:refs/heads/{copy.branch}"
        words = ["push", "--quiet", "--porcelain", "--no-verify", "--recurse-submodules=no", "--"]
        try:
            done = self._run([*words, copy.address.url, target], copy.folder, copy.address, FAR_S)
        except Unavailable as error:
            self._look(copy, commit, error)
            return
        said = _said(done)
        if done.code and "rejected]" in said:
            raise Refused(
                f"{copy.address.url} did not take the commit: {_last(said)}",
                hint="`aj template diff` shows what is different",
                code="rejected",
            )
        if done.code:
            self._look(copy, commit, trouble(f"cannot push to {copy.address.url}", done))

    def _look(self, copy: Copy, commit: str, why: AjError) -> None:
        """Look whether a commit has arrived after all. Raises `why` when it has not, OutcomeUnknown."""
        words = ["ls-remote", "--refs", "--", copy.address.url, f"refs/heads/{copy.branch}"]
        try:
            done = self._run(words, copy.folder, copy.address, FAR_S)
        except AjError:
            done = None
        if done is None or done.code:
            if isinstance(why, AuthError | NotFound):
                raise why  # nothing can have been sent
            raise OutcomeUnknown(
                f"nobody knows whether the commit arrived: {why.message}", hint="`aj template diff` tells, later"
            ) from why
        if done.out.decode("ascii", "replace").split()[:1] != [commit]:
            raise why

    def _who(self, role: str) -> str:
        done = self._run(["var", f"GIT_{role}_IDENT"], Path("/"), None, NEAR_S)
        if done.code:
            hint = "`git config --global user.name NAME` and `user.email ADDRESS`"
            raise ConfigError(f"git does not know who you are: {_last(_said(done))}", hint=hint, code="no-identity")
        return done.out.decode("utf-8", "surrogateescape").strip()

    def _near(self, folder: Path, words: Sequence[str], stdin: bytes | None = None) -> proc.Result:
        done = self._run(words, folder, None, NEAR_S, stdin)
        if done.code:
            raise AjError(f"git {words[0]} failed: {_last(_said(done))}", code="git-failed")
        return done

    def _run(
        self, words: Sequence[str], folder: Path, address: Address | None, limit_s: float, stdin: bytes | None = None
    ) -> proc.Result:
        try:
            return proc.run(["git", *SAFE, *words], cwd=folder, env=self._env(address), stdin=stdin, timeout_s=limit_s)
        except FileNotFoundError as error:
            raise ConfigError("no program `git` on PATH", hint="install git", code="no-git") from error
        except TimeoutError as error:
            where = address.url if address else "git"
            raise Unavailable(f"{where} did not answer within {units.duration(limit_s)}") from error

    def _env(self, address: Address | None) -> dict[str, str]:
        env = {name: value for name, value in self.settings.env.items() if not name.startswith("GIT_")}
        env |= {name: value for name, value in self.settings.env.items() if _HEARD.match(name)}
        env |= _QUIET
        if address is not None and (address.password is not None or address.user is not None):
            env |= _credentials(address, env.get("GIT_CONFIG_COUNT", "0"))
        return env


def _credentials(address: Address, count: str) -> dict[str, str]:
    """Say the credentials of an address as settings for this one call, for its own host alone."""
    pair = f"{address.user or ''}:{address.password or ''}"
    header = f"Authorization: Basic {base64.b64encode(pair.encode()).decode()}"
    redact.hide(address.password or "")
    redact.hide(header.rpartition(" ")[2])
    parts = urlsplit(address.url)
    number = int(count) if count.isdigit() else 0
    return {
        "GIT_CONFIG_COUNT": str(number + 1),
        f"GIT_CONFIG_KEY_{number}": f"http.{parts.scheme}://{parts.netloc}/.extraHeader",
        f"GIT_CONFIG_VALUE_{number}": header,
    }


def trouble(doing: str, done: proc.Result) -> AjError:
    """Return what git says as one of our errors."""
    said = _said(done)
    for pattern, kind, hint in _TROUBLES:
        if re.search(pattern, said, re.IGNORECASE):
            return kind(f"{doing}: {_last(said)}", hint=hint)
    return RemoteError(f"{doing}: {_last(said)}", code="git-failed")


def _said(done: proc.Result) -> str:
    return redact.text((done.out + b"\n" + done.err).decode("utf-8", "replace"))


def _last(said: str) -> str:
    """Return the line that tells most: the first fatal one, else the last one."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "ssh:", "!")) or "ERROR" in line]
    found = (fatal or lines or ["git said nothing"])[0 if fatal else -1]
    return found.removeprefix("fatal: ").rstrip(".")


def _data(data: bytes) -> bytes:
    return f"data {len(data)}\n".encode() + data + b"\n"


def _quoted(path: str) -> bytes:
    raw = path.encode("utf-8", "surrogateescape")
    return b'"' + raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
