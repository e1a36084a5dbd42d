"""aj template validate: check one template or all, offline; one broken file never hides another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.backend import registry
from aj.base.noun import dataclass
from aj.cli.declare import Option, Word
from aj.template import check
from aj.view import template as view

if TYPE_CHECKING:
    from aj.cli.context import Context

FOUND_ERRORS = 2


@dataclass(frozen=True)
class Options:
    """Which templates, and how strictly."""

    names: Annotated[
        tuple[str, ...], Word("NAME", "the templates; without one all files", many=True, values="template")
    ] = ()
    strict: Annotated[bool, Option("--strict", "a warning is an error")] = False


def run(opts: Options, ctx: Context) -> int:
    """Print what was found; 2 when any of it is an error. Raises NotFound on a name only."""
    reports = check.validate(ctx.need_project(), opts.names or None, options_of=registry.options)
    ctx.screen.show(view.validation(reports, ctx.directory, strict=opts.strict))
    fine = all(report.is_clean if opts.strict else report.ok for report in reports)
    return 0 if fine else FOUND_ERRORS
