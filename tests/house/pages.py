"""Write the generated files anew: completions/ for three shells, man/ one page a command."""

from __future__ import annotations

from pathlib import Path


def completions() -> dict[str, str]:
    """Return file name -> text for every shell."""
    from aj.cli import completion

    names = {"bash": "aj.bash", "zsh": "_aj", "fish": "aj.fish"}
    return {f"completions/{name}": completion.script(shell) for shell, name in names.items()}


def man() -> dict[str, str]:
    """Return file name -> text for every man page."""
    from tests.house import troff

    return {f"man/{name}": text for name, text in troff.pages().items()}


def all_pages() -> dict[str, str]:
    """Return every generated file, by its path below the repository."""
    return {**completions(), **man()}


def write_all(house: Path) -> list[Path]:
    """Write what changed, remove what is no longer generated, and return the paths that changed."""
    due = all_pages()
    changed = []
    for folder in ("completions", "man"):
        for path in sorted((house / folder).glob("*")):
            if path.relative_to(house).as_posix() not in due:
                path.unlink()
                changed.append(path)
    for name, text in due.items():
        path = house / name
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            changed.append(path)
    return changed
