"""One file: kinds of values, places, tags, keys, limits, and whatever else may be thrown at it."""

from __future__ import annotations

import json
import time

import pytest
import yaml as pyyaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aj.base.errors import TemplateError
from aj.template import tree, yaml
from aj.template.tree import Scalar, Section
from tests.template.kit import section, spot


def faults(text: str) -> list[str]:
    return [found.message for found in yaml.read(text.encode(), "t.yaml").faults]


def refused(text: str | bytes) -> TemplateError:
    with pytest.raises(TemplateError) as caught:
        yaml.read(text.encode() if isinstance(text, str) else text, "t.yaml")
    return caught.value


CORE = [
    ("true", True),
    ("False", False),
    ("null", None),
    ("~", None),
    ("", None),
    ("12", 12),
    ("-3", -3),
    ("0123", 123),
    ("0o17", 15),
    ("0x1F", 31),
    ("1.10", 1.1),
    ("1e3", 1000.0),
    (".5", 0.5),
    ("yes", "yes"),
    ("on", "on"),
    ("NO", "NO"),
    ("1:30", "1:30"),
    ("2024-01-01", "2024-01-01"),
    ("1_000", "1_000"),
    ("0b1", "0b1"),
    ("=", "="),
    ("'12'", "12"),
    ('"true"', "true"),
    ("!!str 12", "12"),
    ("! 12", "12"),
    ("!!int 12", 12),
    ("!!float 12", 12),
    ("!!null ~", None),
]


@pytest.mark.rule("C-102")
@pytest.mark.parametrize(("text", "due"), CORE)
def test_scalars_follow_the_core_schema_of_1_2(text: str, due: object) -> None:
    found = tree.mapping(section(f"k: {text}"))["k"]
    assert found == due
    assert type(found) is type(due)


def test_the_text_as_written_is_kept() -> None:
    found = section("{a: 1.10, b: 0123, c: yes, d: 'it''s', e: 2024-01-01, f: .5}")
    raws = [node.raw for node in found.entries.values() if isinstance(node, Scalar)]
    assert raws == ["1.10", "0123", "yes", "it's", "2024-01-01", ".5"]


def test_every_value_and_key_knows_its_place() -> None:
    found = section("a: x\nb:\n  - {c: 1}\n  -   y\n")
    items = found.entries["b"]
    assert isinstance(items, tree.Items)
    inner = items.items[0]
    assert isinstance(inner, Section)
    assert (inner.entries["c"].place.line, inner.entries["c"].place.column) == (3, 9)
    assert (items.items[1].place.line, items.items[1].place.column) == (4, 7)
    assert (found.key_place("b").line, found.key_place("b").column) == (2, 1)
    assert inner.entries["c"].place.file == "t.yaml"


@pytest.mark.rule("C-102")
def test_anchors_aliases_and_merge_keys_work_within_the_file() -> None:
    found = section(
        "base: &b {x: 1, y: 2}\nmore: &m {y: 3, z: 4}\none: {<<: *b, y: 9}\ntwo: {<<: [*m, *b]}\nthree: *b\n"
    )
    plain = tree.mapping(found)
    assert plain["one"] == {"x": 1, "y": 9}
    assert list(plain["one"]) == ["x", "y"]  # type: ignore[arg-type]
    assert plain["two"] == {"y": 3, "z": 4, "x": 1}
    assert plain["three"] == {"x": 1, "y": 2}


def test_a_quoted_merge_key_is_a_key() -> None:
    assert tree.mapping(section("{'<<': {x: 1}}")) == {"<<": {"x": 1}}
    assert faults("{<<: 5}") == ["`<<` takes a mapping or a list of mappings"]


@pytest.mark.rule("C-103", "C-308")
def test_a_doubled_key_names_both_lines() -> None:
    document = yaml.read(b"a: 1\nb: 2\na: 3\n", "t.yaml")
    assert [found.message for found in document.faults] == ["`a` stands twice in one mapping, first on line 1"]
    assert spot(document.faults[0]) == (3, 1)


@pytest.mark.rule("C-103")
def test_keys_are_text_and_only_a_sku_may_have_numbers() -> None:
    assert faults("1: x") == ["the key `1` is no text"]
    assert faults("true: x") == ["the key `true` is no text"]
    assert faults("{[a]: x}") == ["a key is text"]
    assert faults("{1.5: G1}") == ["the key `1.5` is no text"]
    assert tree.mapping(section("sku: {1: G1, 2-4: G2, '8+': G8}")) == {"sku": {"1": "G1", "2-4": "G2", "8+": "G8"}}
    assert faults("sku: {1: G1, '1': G2}") == ["`1` stands twice in one mapping, first on line 1"]
    assert tree.mapping(section("{yes: 1, on: 2}")) == {"yes": 1, "on": 2}


@pytest.mark.rule("C-126", "C-102")
@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("a: !replace x", "`!replace` stands before a list or a mapping; a single value replaces by itself"),
        ("a: !unset x", "`!unset` takes no value"),
        ("a: !unset [x]", "`!unset` takes no value"),
        ("a: !unset ''", "`!unset` takes no value"),
        ("a: [!unset ]", "`!unset` removes a key of a mapping, not an item of a list"),
        ("!unset ", "`!unset` removes a key of a mapping"),
        ("a: !!python/object:os.system x", "unknown tag `!!python/object:os.system`"),
        ("a: !!set {x}", "unknown tag `!!set`"),
        ("a: !!timestamp 2024-01-01", "unknown tag `!!timestamp`"),
        ("a: !env X", "unknown tag `!env`"),
        ("a: !!int x", "`x` is no !!int"),
        ("a: !!bool 1", "`1` is no !!bool"),
        ("a: .inf", "`.inf` is no value of a template"),
        ("a: 1e999", "`1e999` is too large a number"),
    ],
)
def test_tags_and_numbers_that_mean_nothing_are_faults(text: str, due: str) -> None:
    assert due in faults(text)


def test_an_endless_number_is_a_fault() -> None:
    assert faults("a: " + "9" * 5000) == ["a number of 5000 digits is too long"]


@pytest.mark.rule("C-307", "C-102")
@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        ("a: [1,\nb: 2\n", (3, 1), "not YAML"),
        ("a:\n\tb: 1", (2, 1), "a tab cannot indent"),
        ("a: 1\n---\nb: 2", (2, 1), "a second document begins"),
        ("a: *nobody", (1, 4), "nothing is called `&nobody` above"),
        ("a: &x [*x]", (1, 8), "`*x` stands inside what it names"),
        ("a: 'x\x01'", (1, 6), "the character U+0001 may not stand in YAML"),
        ("a: {b: !unset}", (1, 14), "not YAML"),
    ],
)
def test_what_is_no_yaml_is_told_with_its_place(text: str, where: tuple[int, int], says: str) -> None:
    error = refused(text)
    assert spot(error) == where
    assert error.message.startswith(says)


def test_an_unset_without_a_space_is_explained() -> None:
    assert refused("a: {b: !unset}").hint == "write `!unset ` with a space after it"


@pytest.mark.rule("C-102")
def test_other_encodings_are_told_and_a_byte_order_mark_is_skipped() -> None:
    error = refused(b"a: 1\nb: \xe9t\xe9\n")
    assert error.message == "not UTF-8"
    assert spot(error) == (2, 4)
    assert tree.mapping(section("\ufeffa: 1")) == {"a": 1}


@pytest.mark.rule("C-102")
@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "~"])
def test_a_file_without_anything_is_empty(text: str) -> None:
    root = yaml.read(text.encode(), "t.yaml").root
    assert root is None or tree.is_null(root)


BOMBS = [
    ("a" * (1024 * 1024 + 1), "1048576 bytes"),
    ("[" * 200_000, "100 levels"),
    ("{a: " * 5000, "100 levels"),
    ("- " * 5000, "100 levels"),
    ("- a\n" * 200_000, "10000 values"),
    ("\n".join(f"k{n}: v" for n in range(6000)), "10000 values"),
    (
        "a: &a [x, x]\n"
        + "".join(f"a{n}: &a{n} [*a{n - 1 if n > 1 else ''}, *a{n - 1 if n > 1 else ''}]\n" for n in range(1, 13)),
        "10000 values",
    ),
    ("a0: &a0 x\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 130)), "100 levels"),
]


@pytest.mark.rule("C-101", "C-311")
@pytest.mark.parametrize(("text", "limit"), BOMBS, ids=range(len(BOMBS)))
def test_a_bomb_is_refused_at_once(text: str, limit: str) -> None:
    began = time.process_time()
    error = refused(text)
    assert time.process_time() - began < 1
    assert limit in error.message
    assert error.place is not None
    assert error.place.file == "t.yaml"


def test_the_parser_without_libyaml_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: &x [1, {b: '2'}]\nc: !replace {<<: {d: 1}, e: *x}\nf: |\n  text\n"
    with_c = yaml.read(text.encode(), "t.yaml")
    monkeypatch.setattr(yaml, "_LOADER", pyyaml.SafeLoader)
    assert yaml.read(text.encode(), "t.yaml") == with_c
    assert "100 levels" in refused("[" * 200_000).message
    assert spot(refused("a:\n\tb: 1")) == (2, 1)
    assert refused('a: "\\UFFFFFFFF"').message.startswith("not YAML")
    assert faults('a: "\\ud800"') == ["half of a surrogate pair is no character"]


_FLOW = ("[", "]", "{", "}", ", ", ": ", "&x ", "*x", "!replace ", "!unset ", "<<: ", "'", '"', "!!int ", "#")
_BLOCK = ("a", "b: ", "- ", "\n", "  ", "|\n", ">", "1", "null", "%YAML 1.2\n", "---\n", "\t", "? ", "é", "\x85", "\\x")
PIECES = st.sampled_from(_FLOW + _BLOCK + ("base:", "config:"))


@pytest.mark.rule("C-307")
@pytest.mark.parametrize("loader", [pyyaml.CSafeLoader, pyyaml.SafeLoader])
@settings(max_examples=150, deadline=None)
@given(text=st.one_of(st.lists(PIECES, max_size=30).map("".join), st.text(max_size=60)))
@example(text="%YAML 9.9\n--- a")
@example(text="a: !<> b")
@example(text='"\\ud800"')
def test_any_text_is_read_or_refused_with_a_place(loader: type, text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    before, yaml._LOADER = yaml._LOADER, loader
    try:
        document = yaml.read(data, "t.yaml")
    except TemplateError as error:
        assert error.place is not None
    else:
        assert all(fault.place for fault in document.faults)
        json.dumps(None if document.root is None else tree.plain(document.root), allow_nan=False)
    finally:
        yaml._LOADER = before


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        yaml.read(data, "t.yaml")
    except TemplateError as error:
        assert error.place is not None
