"""The price table on disk: read exactly, and wrong at a file, a line and a value."""

from __future__ import annotations

from pathlib import Path

import pytest

from aj.base.errors import ConfigError
from aj.store import prices


def test_without_a_file_there_are_no_prices(tmp_path: Path) -> None:
    assert prices.read(tmp_path / "prices.toml").of == {}
    assert prices.mark(tmp_path / "prices.toml") is None


@pytest.mark.rule("SC-02")
def test_prices_are_read_as_they_are_written(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('local = 0.1\n[vm]\ndefault = 3\n"NC24@westeurope" = 4.100001\n')
    table = prices.read(file)
    assert table.price("local") == 100_000
    assert (table.price("vm", "NC24", "westeurope"), table.price("vm", "NC6")) == (4_100_001, 3_000_000)


@pytest.mark.rule("SC-02")
@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        ('local = "2.40"\n', 1, '`local` is "2.40", and no number'),
        ("local = true\n", 1, "`local` is true, and no number"),
        ("# prices\n\nlocal = -1\n", 3, "`-1` is not an amount from 0"),
        ("local = nan\n", 1, "not an amount from 0"),
        ("local = 0.0000001\n", 1, "finer than a millionth"),
        ("locl = 1\n", 1, "`locl` is no service"),
        ("[vm]\ndefault = 1\nNC24 = [2]\n", 3, "`vm.NC24` is"),
        ("local = 1\nlocal = 2\n", 2, "not TOML"),
        ("local = \n", 1, "not TOML"),
        ("local = [\n", 2, "not TOML"),
    ],
)
def test_a_wrong_table_is_told_at_its_line(tmp_path: Path, source: str, line: int, words: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(source)
    with pytest.raises(ConfigError) as found:
        prices.read(file)
    assert words in found.value.message
    assert found.value.place is not None
    assert (found.value.place.file, found.value.place.line) == (str(file), line)


def test_what_is_no_text_is_told(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_bytes(b"local = \xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        prices.read(file)
    file.unlink()
    file.mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        prices.read(file)
