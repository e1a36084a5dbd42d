"""The SKU grammar, its placeholders and ranges, against an expression written independently."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.model import sku
from aj.model.sku import Range, Sku, SkuProblem

NUMBER = r"[1-9][0-9]{0,8}"
WORD = r"[A-Za-z][A-Za-z0-9]*"
SWITCH = r"-(?i:nvlink|ib)"
# Written from the rule alone: at most one accelerator among the parts, none and no memory with C.
OTHER = rf"-(?!(?i:nvlink|ib)(?:-|\Z)){WORD}"
GPU = rf"(?:{NUMBER}x)?(?:{NUMBER})?G(?:{NUMBER})?(?:{SWITCH})*(?:{OTHER})?(?:{SWITCH})*"
CPU = rf"(?:{NUMBER}x)?C(?:{NUMBER})?(?:{SWITCH})*"
GRAMMAR = re.compile(rf"(?:{GPU}|{CPU})\Z")

LIKELY = st.lists(
    st.sampled_from(
        ["1", "8", "80", "0", "x", "G", "C", "-", "A100", "H100", "NvLink", "ib", "IB2", "g", " ", "MI300X"]
    ),
    max_size=8,
).map("".join)


def refused(text: str) -> SkuProblem:
    with pytest.raises(SkuProblem) as caught:
        sku.parse(text)
    return caught.value


@pytest.mark.rule("C-145")
@settings(max_examples=300, deadline=None)
@given(st.one_of(LIKELY, st.text(max_size=12)))
def test_what_is_a_sku_is_what_the_grammar_says(text: str) -> None:
    try:
        found = sku.parse(text)
    except SkuProblem as problem:
        assert not GRAMMAR.match(text)
        assert 0 <= problem.offset <= len(text)
        assert problem.near
    else:
        assert GRAMMAR.match(text)
        assert sku.parse(str(found)) == found


@pytest.mark.rule("C-145")
def test_a_sku_is_read_in_its_parts() -> None:
    assert sku.parse("2x80G8-a100-NVLINK-ib") == Sku("G", 2, 80, 8, "A100", nvlink=True, infiniband=True)
    assert sku.parse("G") == Sku("G")
    assert sku.parse("C3") == Sku("C", count=3)
    assert str(sku.parse("4xC2")) == "4xC2"
    assert str(sku.parse("G8-h100-nvlink")) == "G8-H100-NvLink"
    assert sku.parse("G0", allow_zero=True) == Sku("G", count=0)


@pytest.mark.rule("C-145", "C-316", "A-204")
@pytest.mark.parametrize(
    ("text", "near", "offset"),
    [
        ("8xH100", "`G8-H100` (8 GPUs a node) or `8xG1-H100` (8 nodes)", 2),
        ("1xH100", "`G1-H100` (1 GPU a node) or `1xG1-H100` (1 node)", 2),
        ("g8", "`G8`", 0),
        ("40C2", "`C2`", 0),
        ("G08", "`G8`", 1),
        ("2 x G8", "`2xG8`", 1),
        ("G8-A100-H100", "`G8-A100` or `G8-H100`", 8),
        ("G 8", "`G8`", 1),
        ("1x80C4", "`1xC4`", 2),
        ("C1-A100", "`C1`", 3),
        ("A100", "`G1-A100`", 0),
        ("H100x8", "`G8-H100`", 0),
        ("4xg8-h100", "`4xG8-H100`", 2),
        ("", "`G1` or `C1`", 0),
    ],
)
def test_a_misfit_shows_the_nearest_words_and_where(text: str, near: str, offset: int) -> None:
    problem = refused(text)
    assert problem.near == near
    assert problem.offset == offset
    assert text == "" or f"`{text}` is not a SKU" in problem.message


@pytest.mark.rule("C-316")
def test_what_resembles_nothing_shows_the_grammar() -> None:
    assert refused("heterogeneous").near == sku.FORM
    assert refused("G0").near == sku.FORM
    assert "accelerator" in refused("80G8-80").message


@pytest.mark.rule("C-145")
@settings(max_examples=300, deadline=None)
@given(LIKELY)
def test_every_word_that_is_proposed_is_a_sku(text: str) -> None:
    for shown in sku.nearest(text):
        sku.parse(shown.split("`")[1])


@pytest.mark.rule("C-143")
def test_placeholders_are_filled_and_nothing_else_is_evaluated() -> None:
    assert sku.render("{nodes}x80G{processes}-A100", nodes=2, processes=8).text == "2x80G8-A100"
    assert sku.render("{{nodes}}", nodes=2, processes=8).text == "{nodes}"
    assert sku.render("G{{{processes}}}", nodes=2, processes=8).text == "G{8}"


@pytest.mark.rule("C-143", "C-315")
@pytest.mark.parametrize(
    ("text", "offset"),
    [("{foo}", 0), ("G{}", 1), ("{nodes:>5}", 0), ("{nodes.__class__}", 0), ("G8}", 2), ("G{", 1), ("{nodes!r}", 0)],
)
def test_any_other_brace_is_refused_with_its_column(text: str, offset: int) -> None:
    with pytest.raises(SkuProblem) as caught:
        sku.render(text, nodes=1, processes=1)
    assert caught.value.offset == offset


@pytest.mark.rule("C-143")
@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="G8x-{} anodes", max_size=12), st.integers(1, 10**5), st.integers(0, 4096))
def test_filling_agrees_with_replacing(text: str, nodes: int, processes: int) -> None:
    bare = text.replace("{{", "\0").replace("}}", "\1").replace("{nodes}", "\2").replace("{processes}", "\3")
    try:
        found = sku.render(text, nodes=nodes, processes=processes)
    except SkuProblem:
        return
    due = bare.replace("\0", "{").replace("\1", "}").replace("\2", str(nodes)).replace("\3", str(processes))
    assert len(found.offsets) == len(found.text)
    assert all(found.source(at) < len(text) for at in range(len(found.text)))
    if "}}" not in text and "{{" not in text:
        assert found.text == due


@pytest.mark.rule("C-146")
def test_written_numbers_give_way_to_those_that_hold() -> None:
    for text, due in [("8xG4-A100", "2xG8-A100"), ("G4", "G8"), ("80G", "80G"), ("G-H100", "G-H100"), ("3xC1", "2xC8")]:
        assert sku.fitted(text, sku.parse(text), nodes=2, count=8) == due


@pytest.mark.rule("C-144")
@pytest.mark.parametrize(
    ("text", "due"),
    [("4", (4, 4)), ("2-4", (2, 4)), ("8+", (8, None)), (" 2 - 4 ", (2, 4)), ("1 +", (1, None)), ("3-3", (3, 3))],
)
def test_ranges_have_three_forms(text: str, due: tuple[int, int | None]) -> None:
    found = sku.parse_range(text)
    assert (found.low, found.high) == due


@pytest.mark.rule("C-144", "C-318")
@pytest.mark.parametrize("text", ["", "x", "4-2", "0", "0-3", "-3", "2-", "2..4", "1.5", "2-4-6", "+", "٣", "1e3"])
def test_any_other_range_is_refused(text: str) -> None:
    with pytest.raises(SkuProblem):
        sku.parse_range(text)


@pytest.mark.rule("C-144", "C-317")
def test_the_first_range_that_holds_wins_and_overlaps_are_found() -> None:
    ranges = [sku.parse_range(text) for text in ("1-4", "2-8", "2+")]
    assert sku.choose(ranges, 3) is ranges[0]
    assert sku.choose(ranges, 9) is ranges[2]
    assert sku.choose(ranges, 10**6) is ranges[2]
    assert sku.choose(ranges[:2], 9) is None
    assert [(one.text, other.text) for one, other in sku.overlaps(ranges)] == [("1-4", "2-8"), ("1-4", "2+")]


@pytest.mark.rule("C-144")
@settings(max_examples=200, deadline=None)
@given(*[st.tuples(st.integers(1, 9), st.one_of(st.none(), st.integers(0, 5)))] * 2)
def test_two_ranges_meet_when_some_number_lies_in_both(
    one: tuple[int, int | None], other: tuple[int, int | None]
) -> None:
    ranges = [Range(low, None if more is None else low + more, "") for low, more in (one, other)]
    assert ranges[0].meets(ranges[1]) == any(ranges[0].holds(n) and ranges[1].holds(n) for n in range(1, 30))
