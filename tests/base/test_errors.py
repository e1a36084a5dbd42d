"""What an error says of where it is."""

from __future__ import annotations

import pytest

from aj.base.errors import Place, TemplateError


@pytest.mark.rule("C-082b")
def test_what_stands_in_no_file_has_no_place() -> None:
    assert str(TemplateError("too many", place=Place(""))) == "too many"
    assert str(TemplateError("too many", place=Place("a.yaml", 2))) == "a.yaml:2: too many"
