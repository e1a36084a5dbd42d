"""Run details, artifacts and log files: which there are, in which order, and a page of one at a time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.azure import logs, workspaces
from aj.azure.history import Fault, History
from aj.azure.logs import Cursor, Page
from aj.base.errors import NotFound, Refused, RemoteError, Unavailable
from tests.conftest import MovedClock
from tests.servers.azure import WORKSPACE, SmallAzure
from tests.servers.loopback import Answer, Cut, problem

RUN = "pretrain_0a1b2c3d"
PATH = "user_logs/std_log_process_0.txt"


@pytest.fixture
def history(azure: SmallAzure) -> History:
    azure.add_workspace()
    return History.of(azure.session, workspaces.get(azure.session, WORKSPACE))


@pytest.mark.rule("A-041")
def test_details_tell_files_status_and_the_deepest_reason(azure: SmallAzure, history: History) -> None:
    azure.plane.details[RUN] = {
        "runId": RUN,
        "status": "Failed",
        "logFiles": {PATH: azure.plane.signed(PATH)},
        "warnings": [{"source": "x", "message": "slow node"}, {"source": "y"}],
        "error": {
            "error": {
                "code": "UserError",
                "message": "the job failed",
                "innerError": {"code": "BadArgument", "innerError": {"code": "ImageNotFound"}},
            }
        },
    }
    found = history.details(RUN)
    assert found.status == "Failed"
    assert dict(found.logs) == {PATH: azure.plane.signed(PATH)}
    assert found.warnings == ("slow node",)
    assert found.fault == Fault("UserError", "the job failed", "ImageNotFound")
    assert azure.plane.signature not in repr(found)
    assert azure.plane_server.targets() == [f"GET /history/v1.0{WORKSPACE.path}/runs/{RUN}/details"]
    azure.plane.details["new"] = {"runId": "new", "status": "Queued"}
    assert history.details("new").fault is None
    assert history.details("new").logs == {}
    with pytest.raises(NotFound):
        history.details("nobody")


@pytest.mark.rule("A-042", "A-008")
@pytest.mark.parametrize("page_rows", [1, 2, 50])
def test_artifacts_are_listed_by_prefix_to_the_end(azure: SmallAzure, history: History, page_rows: int) -> None:
    azure.plane.page_rows = page_rows
    azure.plane.artifacts["my exp", RUN] = [f"user_logs/log {n}.txt" for n in range(5)] + ["logs/a&b=c.txt"]
    assert len(history.artifacts("my exp", RUN, "user_logs/")) == 5
    assert history.artifacts("my exp", RUN, "logs/") == ("logs/a&b=c.txt",)
    assert history.artifacts("my exp", RUN, "nothing/") == ()
    with pytest.raises(NotFound):
        history.artifacts("other", RUN, "logs/")


@pytest.mark.rule("A-042", "A-017")
def test_an_artifact_is_read_by_its_signed_address_without_a_token(azure: SmallAzure, history: History) -> None:
    path = "logs/a&b=c d.txt"
    azure.plane.artifacts["exp", RUN] = [path]
    azure.plane.files[path] = b"hello"
    url = history.content_url("exp", RUN, path)
    page = logs.read(azure.session.plain, url, Cursor(path))
    assert page.data == b"hello"
    assert "authorization" not in azure.plane_server.got[-1].headers
    with pytest.raises(NotFound):
        history.content_url("exp", RUN, "nobody")


# Which first


@pytest.mark.rule("A-167", "T56")
def test_what_a_user_wants_stands_first() -> None:
    wanted = [
        "user_logs/std_log_process_0.txt",
        "user_logs/std_log.txt",
        "user_logs/std_log_process_1.txt",
        "user_logs/std_log_process_2.txt",
        "user_logs/std_log_process_10.txt",
        "user_logs/other.txt",
        "logs/azureml/a.log",
        "azureml-logs/70_driver_log.txt",
        "azureml-logs/20_image_build_log.txt",
        "somewhere/else.txt",
        "system_logs/lifecycler/x.log",
    ]
    assert logs.ordered(sorted(wanted, reverse=True)) == wanted
    assert logs.ordered([]) == []


@pytest.mark.rule("A-167")
def test_the_first_process_may_be_written_with_zeros() -> None:
    assert logs.ordered(["user_logs/std_log_process_01.txt", "user_logs/std_log_process_00.txt"]) == [
        "user_logs/std_log_process_00.txt",
        "user_logs/std_log_process_01.txt",
    ]


# A page at a time


def read_all(azure: SmallAzure, url: str, *, size: int) -> bytes:
    cursor, found = Cursor(PATH), b""
    for _ in range(1000):
        page = logs.read(azure.session.plain, url, cursor, size=size)
        assert not page.was_reset
        if not page.data:
            return found
        found, cursor = found + page.data, page.cursor
    raise AssertionError("no end")


@pytest.mark.rule("A-168")
@pytest.mark.parametrize("ignores_ranges", [False, True])
@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_pages_are_the_file(azure: SmallAzure, ignores_ranges: bool, size: int) -> None:
    content = "first line\nzweite Zeile: äöü €\n第三行\n".encode()
    azure.plane.files[PATH] = content
    azure.plane.ignores_ranges = ignores_ranges
    assert read_all(azure, azure.plane.signed(PATH), size=size) == content


@pytest.mark.rule("A-168", "A-169", "T58")
def test_a_file_that_grows_is_read_on(azure: SmallAzure) -> None:
    url = azure.plane.signed(PATH)
    azure.plane.files[PATH] = b"one\n"
    first = logs.read(azure.session.plain, url, Cursor(PATH))
    nothing = logs.read(azure.session.plain, url, first.cursor)
    assert (first.data, nothing.data, nothing.was_reset, nothing.cursor.offset) == (b"one\n", b"", False, 4)
    azure.plane.files[PATH] = b"one\ntwo\n"
    azure.plane.etags[PATH] = '"0x2"'
    assert logs.read(azure.session.plain, url, nothing.cursor).data == b"two\n"


@pytest.mark.rule("A-168")
@pytest.mark.parametrize("ignores_ranges", [False, True])
@pytest.mark.parametrize("left", [0, 3, 6])
def test_a_file_that_was_replaced_is_read_anew(azure: SmallAzure, left: int, ignores_ranges: bool) -> None:
    url = azure.plane.signed(PATH)
    azure.plane.ignores_ranges = ignores_ranges
    azure.plane.files[PATH] = b"0123456789"
    first = logs.read(azure.session.plain, url, Cursor(PATH), size=5)
    azure.plane.files[PATH] = b"abcdefghij"[:left]
    azure.plane.etags[PATH] = '"0x2"'
    again = logs.read(azure.session.plain, url, first.cursor)
    assert again == Page(b"", Cursor(PATH), was_reset=True)
    assert logs.read(azure.session.plain, url, again.cursor).data == b"abcdefghij"[:left]


@pytest.mark.rule("A-168")
def test_a_page_is_at_most_a_mebibyte(azure: SmallAzure) -> None:
    azure.plane.files[PATH] = b"x" * 3_000_000
    page = logs.read(azure.session.plain, azure.plane.signed(PATH), Cursor(PATH), size=10**9)
    assert len(page.data) == 1024 * 1024
    assert azure.plane_server.got[-1].headers["range"] == "bytes=0-1048575"
    assert azure.plane_server.got[-1].headers["accept-encoding"] == "identity"


@pytest.mark.rule("A-168")
@pytest.mark.parametrize("ignores_ranges", [False, True])
def test_the_last_bytes(azure: SmallAzure, ignores_ranges: bool) -> None:
    azure.plane.ignores_ranges = ignores_ranges
    url = azure.plane.signed(PATH)
    azure.plane.files[PATH] = b"0123456789"
    page = logs.tail(azure.session.plain, url, PATH, size=4)
    assert (page.data, page.cursor.offset) == (b"6789", 10)
    assert logs.tail(azure.session.plain, url, PATH, size=400).data == b"0123456789"
    azure.plane.files[PATH] = b""
    empty = logs.tail(azure.session.plain, url, PATH, size=4)
    assert (empty.data, empty.cursor.offset) == (b"", 0)


@pytest.mark.rule("A-168")
@pytest.mark.parametrize(
    "answer",
    [
        Answer(206, raw=b"abc", headers={"Content-Range": "bytes 1-3/9"}),
        Answer(206, raw=b"abc", headers={"Content-Range": "bytes 0-9/10"}),
        Answer(206, raw=b"abc", headers={"Content-Range": "items 0-2/3"}),
        Answer(206, raw=b"abc"),
        Answer(416, raw=b"", headers={"Content-Range": "bytes */9"}),
    ],
)
def test_a_range_that_is_not_the_one_asked_for_is_an_error(azure: SmallAzure, answer: Answer) -> None:
    cursor = Cursor(PATH, 5) if answer.status == 416 else Cursor(PATH)
    azure.plane_server.on("/files/", answer)
    with pytest.raises(RemoteError, match=f"could not read {PATH}: "):
        logs.read(azure.session.plain, azure.plane.signed(PATH), cursor)


@pytest.mark.rule("A-169")
@settings(max_examples=200)
@given(st.text(max_size=12), st.integers(0, 60))
def test_no_page_ends_within_a_character(words: str, size: int) -> None:
    whole = words.encode("utf-8", "replace")
    data = whole[:size]
    kept = logs._whole_characters(data)
    assert data.startswith(kept)
    assert bool(kept) is bool(data)
    if kept != data or size >= len(whole):
        assert kept.decode() == whole[: len(kept)].decode()
    assert len(data) - len(kept) < 4


@pytest.mark.rule("A-169")
@given(st.binary(max_size=12))
def test_bytes_of_no_text_are_not_held_back_for_ever(data: bytes) -> None:
    kept = logs._whole_characters(data)
    assert bool(kept) is bool(data)
    assert len(data) - len(kept) < 4


@pytest.mark.rule("A-169", "A-011")
def test_a_signed_address_that_expired_is_told_without_itself(azure: SmallAzure, clock: MovedClock) -> None:
    azure.plane.files[PATH] = b"x"
    url = azure.plane.signed(PATH)
    azure.plane.signature = "bmV3c2lnbmF0dXJl"
    with pytest.raises(Refused) as error:
        logs.read(azure.session.plain, url, Cursor(PATH))
    assert "c2lnbmF0dXJl" not in str(error.value) + repr(error.value.details)
    azure.plane_server.on("/files/", *[Cut.AFTER_BODY] * 4)
    with pytest.raises(Unavailable) as lost:
        logs.read(azure.session.plain, url, Cursor(PATH))
    assert "c2lnbmF0dXJl" not in str(lost.value)
    assert len(clock.slept) == 3


@pytest.mark.rule("A-169")
@pytest.mark.parametrize(
    ("url", "expires"),
    [
        ("https://a.example/x?se=2024-01-31T12%3A05%3A00Z&sig=s", 1706702400),
        ("https://a.example/x?sig=s", None),
        ("https://a.example/x?se=never&sig=s", None),
    ],
)
def test_an_address_is_dropped_five_minutes_before_its_end(url: str, expires: float | None) -> None:
    assert logs.expires_at(url) == expires


@pytest.mark.rule("A-166")
def test_a_failed_request_is_an_error_and_never_no_logs(azure: SmallAzure, history: History) -> None:
    azure.plane_server.on("/details", problem(403, "Forbidden", "no"))
    with pytest.raises(Refused):
        history.details(RUN)
    azure.plane.artifacts["exp", RUN] = ["logs/a", "logs/b"]
    azure.plane_server.on("/artifacts/path", Answer(200, {"value": [], "continuationToken": "1"}))
    azure.plane_server.on("/artifacts/path", *[problem(500, "C", "m")] * 4)
    with pytest.raises(Unavailable):
        history.artifacts("exp", RUN, "logs/")
