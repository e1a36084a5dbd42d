"""Classes made here behave as the standard library's frozen dataclasses, whatever their fields are."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import string
from collections.abc import Callable, Iterator
from dataclasses import MISSING, FrozenInstanceError, dataclass, field
from functools import partial
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.base import noun


@pytest.fixture(scope="module", params=[0, noun.SLOW_INSTANCES], ids=["compiled", "step by step"], autouse=True)
def first_instances(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both ways in which an instance is made."""
    before, noun.SLOW_INSTANCES = noun.SLOW_INSTANCES, request.param
    yield
    noun.SLOW_INSTANCES = before


Make = Callable[[type], type]
BOTH = (dataclass(frozen=True), noun.dataclass(frozen=True))
NAMES = [f"{letter}_{word}" for letter, word in zip(string.ascii_lowercase, ("one", "two", "six", "ten"))]

options = st.fixed_dictionaries(
    {
        "repr": st.booleans(),
        "compare": st.booleans(),
        "kw_only": st.booleans(),
    }
)
defaults = st.sampled_from([{}, {"default": 7}, {"default_factory": list}, {"default": 3, "init": False}])


@st.composite
def shapes(draw: st.DrawFn) -> list[tuple[str, dict[str, Any]]]:
    """Fields in an order that Python allows: places without a default come first."""
    found = [(name, {**draw(options), **draw(defaults)}) for name in NAMES[: draw(st.integers(0, 4))]]
    return sorted(found, key=lambda item: "default" in item[1] or "default_factory" in item[1])


def made(make: Make, shape: list[tuple[str, dict[str, Any]]], bases: tuple[type, ...] = ()) -> Any:
    words = {name: field(**about) for name, about in shape}
    return make(type("Thing", bases, {**words, "__annotations__": dict.fromkeys(words, int), "__module__": __name__}))


def outcome(act: Callable[[], object]) -> object:
    try:
        return act()
    except (TypeError, ValueError, FrozenInstanceError, AttributeError) as error:
        return type(error), str(error)


Shape = list[tuple[str, dict[str, Any]]]
values = st.lists(st.integers(0, 2), max_size=4)
named = st.dictionaries(st.sampled_from([*NAMES, "other"]), st.integers(0, 2), max_size=4)


@settings(max_examples=150, deadline=None)
@given(shapes(), values, named, values, named)
def test_instances_are_made_shown_compared_and_hashed_alike(
    shape: list[tuple[str, dict[str, Any]]],
    some: list[int],
    more: dict[str, int],
    others: list[int],
    rest: dict[str, int],
) -> None:
    standard, ours = (made(make, shape) for make in BOTH)
    pairs = [[outcome(partial(cls, *some, **more)), outcome(partial(cls, *others, **rest))] for cls in (standard, ours)]
    told = [[repr(item) for item in pair] for pair in pairs]
    assert told[0] == told[1]
    if any(isinstance(item, tuple) for item in pairs[0]):
        return
    assert (pairs[0][0] == pairs[0][1]) is (pairs[1][0] == pairs[1][1])
    assert outcome(lambda: hash(pairs[0][0])) == outcome(lambda: hash(pairs[1][0]))
    assert dataclasses.asdict(pairs[0][0]) == dataclasses.asdict(pairs[1][0])


@settings(max_examples=60, deadline=None)
@given(shapes(), st.sampled_from([*NAMES, "other"]))
def test_fields_are_told_and_guarded_alike(shape: list[tuple[str, dict[str, Any]]], name: str) -> None:
    standard, ours = (made(make, shape) for make in BOTH)
    assert standard.__match_args__ == ours.__match_args__
    about = ("name", "default", "default_factory", "init", "repr", "compare", "kw_only", "type")
    left, right = (
        [[getattr(item, word) for word in about] for item in dataclasses.fields(c)] for c in (standard, ours)
    )
    assert left == right
    full = {item.name: 1 for item in dataclasses.fields(standard) if item.init and item.default_factory is MISSING}
    for act in (
        lambda one: setattr(one, name, 5),
        lambda one: delattr(one, name),
        lambda one: dataclasses.replace(one, **{name: 5}),
        lambda one: copy.deepcopy(one) == one,
    ):
        assert repr(outcome(lambda: act(standard(**full)))) == repr(outcome(lambda: act(ours(**full))))  # noqa: B023


@noun.dataclass(frozen=True)
class Point:
    """A place."""

    x: int
    y: int = 0
    KIND: ClassVar[str] = "place"

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("too far left")


@noun.dataclass(frozen=True)
class Named(Point):
    """A place with a name."""

    name: str = field(default="", kw_only=True)


class Loose(Point):
    """A subclass that is not frozen itself."""


def test_the_check_after_the_making_runs() -> None:
    with pytest.raises(ValueError, match="left"):
        Point(-1)


def test_a_child_has_the_fields_of_its_parent_and_is_not_its_equal() -> None:
    assert Named(1, 2, name="a") == Named(1, y=2, name="a")
    assert Named(1) != Point(1)
    assert repr(Named(1, name="a")) == "Named(x=1, y=0, name='a')"
    assert [item.name for item in dataclasses.fields(Named)] == ["x", "y", "name"]


def test_instances_survive_pickle_and_copy() -> None:
    one = Named(1, 2, name="a")
    assert pickle.loads(pickle.dumps(one)) == copy.copy(one) == one


def test_instances_are_matched_by_place() -> None:
    match Point(3, 4):
        case Point(x, y):
            assert (x, y) == (3, 4)


def test_a_child_that_is_not_frozen_takes_new_names_only() -> None:
    one = Loose(1)
    one.colour = "red"  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError):
        one.x = 2  # type: ignore[misc]


def test_functions_of_the_author_stay() -> None:
    @noun.dataclass(frozen=True)
    class Own:
        x: int

        def __init__(self) -> None:
            object.__setattr__(self, "x", 9)

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

    assert repr(Own()) == "own"
    assert Own() == 5
    assert hash(Own()) == hash((9,))

    @noun.dataclass(frozen=True)
    class Counted:
        x: int

        def __hash__(self) -> int:
            return 42

    assert hash(Counted(1)) == 42


def test_a_ring_is_shown_once() -> None:
    @noun.dataclass(frozen=True)
    class Ring:
        next: list[object]

    ring = Ring([])
    ring.next.append(ring)
    assert repr(ring).endswith("Ring(next=[...])")


@settings(max_examples=40, deadline=None)
@given(shapes(), values, named)
def test_classes_that_change_are_alike_too(shape: Shape, some: list[int], more: dict[str, int]) -> None:
    standard, ours = (made(make, shape) for make in (dataclass, noun.dataclass))
    one, other = (outcome(partial(cls, *some, **more)) for cls in (standard, ours))
    assert repr(one) == repr(other)
    assert ours.__hash__ is standard.__hash__ is None
    if isinstance(one, tuple):
        return
    again = outcome(partial(ours, *some, **more))
    assert other == again
    for item in (one, other):
        item.a_one = 99  # type: ignore[attr-defined]
    assert vars(one) == vars(other)


def test_a_frozen_class_with_its_own_setting_is_refused() -> None:
    with pytest.raises(TypeError, match="__setattr__"):

        @noun.dataclass(frozen=True)
        class Loud:
            def __setattr__(self, name: str, value: object) -> None: ...
