"""aj completion: the script that makes a shell complete `aj`, on stdout or put into its place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from aj.base import paths
from aj.base.errors import UserError
from aj.base.noun import dataclass
from aj.cli.declare import Option, Word, choice
from aj.store import atomic
from aj.view.screen import Format

if TYPE_CHECKING:
    from aj.cli.context import Context

SHELLS = {"bash": "bash.sh", "zsh": "zsh.sh", "fish": "fish.txt"}


@dataclass(frozen=True)
class Options:
    """For which shell."""

    shell: Annotated[str, Word("SHELL", "bash, zsh or fish", choice(*SHELLS), values="shell")]
    install: Annotated[bool, Option("--install", "put it where the shell looks, and say what is left to do")] = False


def script(shell: str) -> str:
    """Return the completion script of a shell: `bash`, `zsh` or `fish`."""
    return (Path(__file__).parent / "shells" / SHELLS[shell]).read_text(encoding="utf-8")


def run(opts: Options, ctx: Context) -> int:
    """Print the script, or install it. No file of the user's own is edited."""
    if not opts.install:
        ctx.screen.format = Format.TABLE
        ctx.screen.raw(script(opts.shell).encode())
        return 0
    target = _place(opts.shell, ctx)
    text = script(opts.shell).encode()
    if target.is_file() and target.read_bytes() == text:
        ctx.screen.note(f"{target} is up to date")
        return 0
    atomic.make_folder(target.parent)
    atomic.write_bytes(target, text, mode=0o644)
    ctx.screen.note(f"wrote {target}")
    if opts.shell == "zsh":
        ctx.screen.note(f"hint: `fpath+=({target.parent})` before `compinit` in ~/.zshrc, unless it stands there")
    return 0


def _place(shell: str, ctx: Context) -> Path:
    """Return the file that the shell reads by itself. Raises UserError without a home directory."""
    home = paths.home(ctx.settings)
    if home is None:
        raise UserError("HOME is not set, so there is no place for a completion script", hint="`export HOME=...`")
    return {
        "bash": Path(ctx.settings.get("XDG_DATA_HOME") or home / ".local/share") / "bash-completion/completions/aj",
        "zsh": home / ".zsh/completions/_aj",
        "fish": Path(ctx.settings.get("XDG_CONFIG_HOME") or home / ".config") / "fish/completions/aj.fish",
    }[shell]
