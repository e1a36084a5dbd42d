"""aj template show: a template with everything it inherits, and where each value comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from aj.base.errors import OptionError
from aj.base.noun import dataclass
from aj.cli.declare import Option, Word
from aj.template import load, origin, tree
from aj.view import template as view
from aj.view.screen import Format

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.model.json import Json
    from aj.template.load import Resolved
    from aj.view.document import Document


@dataclass(frozen=True)
class Options:
    """Which template, and how much of it."""

    name: Annotated[str, Word("NAME", "the template", values="template")]
    origin: Annotated[bool, Option("--origin", "each value with the file and line that set it")] = False
    why: Annotated[str | None, Option("--why", "one value, such as `target.name` or `jobs[0].sku`", "PATH")] = None
    raw: Annotated[bool, Option("--raw", "the file's own text")] = False


def run(opts: Options, ctx: Context) -> int:
    """Print the template. Raises NotFound with the nearest name or path, TemplateError when it cannot be merged."""
    if sum((opts.origin, opts.why is not None, opts.raw)) > 1:
        raise OptionError("`--origin`, `--why` and `--raw` are three different views", hint="give one of them")
    library = load.Library(ctx.need_project())
    if opts.raw:
        return _raw(library, opts.name, ctx)
    found = library.resolve(opts.name)
    ctx.tell_issues(found.warnings)
    ctx.screen.show(_view(opts, found, ctx))
    return 0


def _view(opts: Options, found: Resolved, ctx: Context) -> Document:
    if not opts.origin and opts.why is None:
        return view.resolved(found, ctx.directory)
    origins = found.origins if opts.why is None else origin.at(found.origins, opts.why)
    return view.origins(found, origins, _values(found), ctx.directory)


def _values(found: Resolved) -> Mapping[str, Json]:
    """Return every value as its file has it."""
    return {path: getattr(leaf, "raw", tree.shown(leaf)) for path, leaf in tree.leaves(found.tree)}


def _raw(library: load.Library, name: str, ctx: Context) -> int:
    """Print a file's own text: its very bytes, or as text in a document."""
    link = library.find(name)
    data = link.path.read_bytes()
    if ctx.screen.format is Format.TABLE:
        ctx.screen.raw(data)
    else:
        ctx.screen.show(view.raw(link.name, link.path, data.decode("utf-8", "surrogateescape")))
    return 0
