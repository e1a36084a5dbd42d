"""The scan for lines agrees with the standard library about which keys there are."""

from __future__ import annotations

import tomllib

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.store import toml_lines

TEXT = """# settings
template = "gpu"   # the usual
long = \"\"\"
fake = 1
[not.a.table]
\\\"\"\" still inside
\"\"\"
raw = '''
also_fake = "x" '''
list = [
  "a", # ] not the end
  { inner = 1 },
]
after = "]"

[workspace]
name = "w"
"quoted.key" = 1
sub.dotted . deep = 2

[ 'a b' . c ]
x = 1
[[many]]
one = 1
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("template", 2),
        ("long", 3),
        ("raw", 8),
        ("list", 10),
        ("after", 14),
        ("workspace", 16),
        ("workspace.name", 17),
        ("workspace.quoted.key", 18),
        ("workspace.sub.dotted.deep", 19),
        ("a b.c", 21),
        ("a b.c.x", 22),
        ("many.one", 24),
    ],
)
@pytest.mark.rule("C-085")
def test_a_key_is_found_at_its_line(key: str, line: int) -> None:
    tomllib.loads(TEXT)
    assert toml_lines.line_of(toml_lines.lines(TEXT), key) == line


def test_what_only_looks_like_a_key_is_none() -> None:
    assert not {"fake", "also_fake", "inner", "not.a.table", "not"} & toml_lines.lines(TEXT).keys()


def test_a_key_of_an_inline_table_is_at_the_line_of_the_table() -> None:
    found = toml_lines.lines("a = 1\nworkspace = { name = 5 }\n")
    assert toml_lines.line_of(found, "workspace.name") == 2
    assert toml_lines.line_of(found, "nothing") == 0


NAME = st.text("ab.'\"= #[]", min_size=1, max_size=4)
VALUE = st.recursive(
    st.integers() | st.booleans() | st.text("ab\"'\n\\#[]{}=", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAME, inner, max_size=2),
    max_leaves=5,
)


@given(st.dictionaries(NAME, VALUE, max_size=4))
@settings(max_examples=100, deadline=None)
def test_every_key_of_a_file_is_found_at_a_line_that_holds_it(tree: dict[str, object]) -> None:
    source = tomlkit.dumps(tree)
    values = tomllib.loads(source)
    found = toml_lines.lines(source)
    for name in values:
        line = toml_lines.line_of(found, name)
        assert line > 0
        assert name.split(".")[0].split("\\")[0][:1] in source.split("\n")[line - 1]
