"""What is kept of an error holds no secret and says where it was."""

from __future__ import annotations

from pathlib import Path

from aj.base.errors import Place, Refused
from aj.engine import records


def test_errors_are_kept_without_secrets_and_with_their_place() -> None:
    error = Refused(
        "no: https://x/?sig=abcdefgh",
        place=Place("f", 3, 4),
        details={"path": Path("/x"), "n": 1, "bad": float("nan"), "said": "Bearer abcdefghijkl"},
    )
    fault = records.fault_of(error)
    assert fault.message == "no: https://x/?sig=***"
    assert fault.details == {
        "path": "/x",
        "n": 1,
        "bad": "nan",
        "said": "Bearer ***",
        "file": "f",
        "line": 3,
        "column": 4,
    }
