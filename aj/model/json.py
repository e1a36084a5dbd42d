"""The one name for a JSON value, for the few places where a value is carried and not looked into."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    Json: TypeAlias = "bool | int | float | str | list[Json] | tuple[Json, ...] | Mapping[str, Json] | None"
else:
    Json = object  # the codec carries it as it is
