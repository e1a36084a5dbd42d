"""Several ids in one call: all are tried, each has its own outcome, and the gravest exit code speaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from aj.base.errors import AjError, gravest
from aj.base.noun import dataclass
from aj.view.document import Item
from aj.wire import codec, errors

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Outcome:
    """What came of all of them: one item each, and the code of the whole."""

    items: list[Item]
    code: int

    @property
    def status(self) -> str:
        """One word for the whole action: ok, noop, failed or unknown."""
        words = {item["status"] for item in self.items}
        for word in ("unknown", "failed", "ok", "noop"):
            if word in words:
                return word
        return "noop"


def each(ctx: Context, words: Sequence[str], act: Callable[[str], Item]) -> Outcome:
    """Do it to each. With one word its error is raised; with several it is told and stands in its item."""
    if len(words) == 1:
        return Outcome([act(words[0])], 0)
    items: list[Item] = []
    codes = [0]
    for word in words:
        try:
            items.append(act(word))
        except AjError as error:
            items.append(failed(ctx, word, error))
            codes.append(error.exit_code)
    return Outcome(items, gravest(codes))


def failed(ctx: Context, word: str, error: AjError) -> Item:
    """Say the error of one of several, and return its item."""
    ctx.screen.trouble(f"{word}: {error}", error.hint)
    status = "unknown" if error.exit_code == 6 else "failed"
    return {
        "id": word,
        "status": status,
        "state": None,
        "detail": error.message,
        "error": codec.dump(errors.fault(error)),
    }
