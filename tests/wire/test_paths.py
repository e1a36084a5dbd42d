"""Routes as names: what is filled in comes out again, and nothing else is found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aj.wire import paths
from aj.wire.paths import NoSuchMethod, NoSuchPath, Route

SEGMENTS = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=20)


def variables(route: Route) -> int:
    return route.pattern.count("{")


def test_every_route_is_one_of_its_kind() -> None:
    assert len({(route.method, route.pattern) for route in paths.ALL}) == len(paths.ALL)
    assert len(paths.ALL) > 20


@pytest.mark.rule("C-208", "C-290")
@given(st.sampled_from(paths.ALL), st.lists(SEGMENTS, min_size=2, max_size=2))
def test_what_is_filled_in_comes_out(route: Route, words: list[str]) -> None:
    segments = words[: variables(route)]
    path = route.path(*segments, query=dict.fromkeys(route.query, "x y&z"))
    assert path.isascii() and " " not in path
    try:
        found = paths.match(route.method, path.partition("?")[0])
    except NoSuchMethod:
        # A ticket that is called as a word of another route is that other route.
        assert segments == ["resume"]
        return
    if segments != ["resume"]:
        assert (found.route, list(found.segments)) == (route, segments)


@pytest.mark.rule("C-208", "C-292")
@pytest.mark.parametrize(
    ("path", "noun"),
    [
        ("/v1/queue/", "ticket"),
        ("/v1/queue/a%2Fb", "ticket"),
        ("/v1/queue/%00", "ticket"),
        ("/v1/queue/..%2Fqueue", "ticket"),
        ("/v1/queue/%FF", "ticket"),
        ("/v1/queue/a/b/c", "ticket"),
        ("/v1/jobs/x%2Fy", "job"),
        ("/v1/jobs//wait", "job"),
        ("/v1/submissions/a/b", "submission"),
        ("/v1/nothing", None),
        ("/", None),
        ("/v2/queue", None),
    ],
)
def test_a_path_that_names_nothing_is_of_its_noun(path: str, noun: str | None) -> None:
    with pytest.raises(NoSuchPath) as error:
        paths.match("GET", path)
    assert error.value.noun == noun


@pytest.mark.rule("C-208")
def test_segments_are_decoded_once() -> None:
    assert paths.match("GET", "/v1/queue/%252F").segments == ("%2F",)
    assert paths.match("GET", "/v1/jobs/p%205%20%C3%BC").segments == ("p 5 ü",)
    assert paths.match("GET", "/v1/queue/..").segments == ("..",)


@pytest.mark.rule("C-220")
def test_another_method_is_told_which_ones_there_are() -> None:
    with pytest.raises(NoSuchMethod) as error:
        paths.match("PUT", "/v1/jobs")
    assert set(error.value.allowed) == {"GET", "POST"}
    assert paths.match("POST", "/v1/queue/resume").route is paths.QUEUE_RESUME


def test_names_of_odd_bytes_make_a_path_too() -> None:
    assert paths.TICKET.path("q-\udcff") == "/v1/queue/q-%FF"
