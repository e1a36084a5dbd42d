"""aj schema: the JSON schema of what a command prints with `--json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.errors import UserError
from aj.base.noun import dataclass
from aj.cli import tree, words
from aj.cli.declare import Word
from aj.view import schema
from aj.view.document import Column, Document, Form, listing

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.view.document import Item


@dataclass(frozen=True)
class Options:
    """Of which command."""

    words: Annotated[
        tuple[str, ...],
        Word("COMMAND", "the command, a kind such as `status.list`, or `error`", many=True, values="help"),
    ] = ()


def run(opts: Options, ctx: Context) -> int:
    """Print the schema, or without a command the kinds of all. Raises OptionError, UserError without a schema."""
    if len(opts.words) == 1 and "." in opts.words[0] and opts.words[0] in schema.KINDS:
        ctx.screen.bare(Document("schema", schema.whole(opts.words[0])))
        return 0
    if not opts.words:
        rows: list[Item] = [
            {"command": command.name, "kind": command.kind} for command in tree.COMMANDS.values() if command.kind
        ]
        columns = (Column("command", form=Form.ID), Column("kind"))
        ctx.screen.show(listing("schema.list", rows, columns, noun="schemas"))
        return 0
    found = schema.error() if opts.words == ("error",) else schema.whole(_kind(opts.words))
    ctx.screen.bare(Document("schema", found))
    return 0


def _kind(path: tuple[str, ...]) -> str:
    found = words.find(path)
    if found.command is None or found.rest:
        raise words.unknown_command(found.path, (*found.rest, "")[0])
    if not found.command.kind:
        raise UserError(f"`aj {found.command.name}` prints no document", hint="`aj schema` lists those that do")
    return found.command.kind
