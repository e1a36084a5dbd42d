"""Log files of runs: which there are, page by page, the last lines, replaced files, and addresses that expire."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aj.azure.logs import Cursor, Page
from aj.base.errors import NotFound, Refused, RemoteError, UserError
from aj.engine import cloudlogs
from aj.engine.cloud import Cloud
from aj.engine.cloudlogs import decoded, encoded
from aj.wire.azure import FilePage
from tests.engine.cloud import ONE, Sky
from tests.servers.loopback import problem

RUN = "pretrain_0a1b2c3d"
AT = f"{ONE}:rg-one:ws-one"
FIRST, SECOND, SYSTEM = "user_logs/std_log_process_0.txt", "user_logs/std_log_process_1.txt", "system_logs/cap/x.log"


@pytest.fixture
def ran(sky: Sky) -> Sky:
    """A running job whose run tells three log files."""
    sky.workspace()
    sky.job(RUN, "Running")
    files = {SYSTEM: b"sys\n", SECOND: b"two\n", FIRST: b"one\nand two\n"}
    sky.azure.plane.files.update(files)
    sign(sky)
    return sky


def sign(sky: Sky, **changes: str) -> None:
    """Tell the files by addresses that are signed now."""
    logs = {path: sky.azure.plane.signed(path, **changes) for path in sky.azure.plane.files}
    sky.azure.plane.details[RUN] = {"runId": RUN, "status": "Running", "logFiles": logs}


def page(sky: Sky, cloud: Cloud, path: str = FIRST, cursor: str | None = None, tail: int | None = None) -> FilePage:
    return cloud.log(sky.project, AT, RUN, path, cursor, tail)


@pytest.mark.rule("A-166", "A-167", "A-041", "A-177")
def test_the_files_of_a_run_stand_in_the_order_of_a_reader(ran: Sky) -> None:
    found = ran.cloud.files(ran.project, AT, RUN, sizes=True)
    assert [(file.path, file.size_bytes) for file in found.files] == [(FIRST, 12), (SECOND, 4), (SYSTEM, 4)]
    assert found.job.status == "Running"
    plain = ran.cloud.files(ran.project, AT, RUN, sizes=False)
    assert {file.size_bytes for file in plain.files} == {None}
    ran.azure.plane.files[SECOND] = b""
    assert [file.size_bytes for file in ran.cloud.files(ran.project, AT, RUN, sizes=True).files] == [12, 0, 4]


@pytest.mark.rule("A-166", "A-042")
def test_without_details_the_artifacts_are_listed_and_opened_one_by_one(sky: Sky) -> None:
    sky.workspace()
    sky.job(RUN, "Failed", experimentName="my exp")
    paths = ["logs/azureml/a.log", FIRST, "outputs/model.bin", SYSTEM]
    sky.azure.plane.artifacts["my exp", RUN] = paths
    sky.azure.plane.files.update(dict.fromkeys(paths, b"hello\n"))
    cloud = sky.cloud
    assert [file.path for file in cloud.files(sky.project, AT, RUN, sizes=False).files] == [FIRST, paths[0], SYSTEM]
    asked = [target for target in sky.azure.plane_server.targets() if "contentinfo" in target]
    assert asked == []
    assert cloud.log(sky.project, AT, RUN, SYSTEM, None, None).data == b"hello\n"
    with pytest.raises(NotFound, match=r"has no log file nope \(has: user_logs"):
        cloud.log(sky.project, AT, RUN, "nope", None, None)


@pytest.mark.rule("A-166", "C-023")
def test_a_run_that_has_not_begun_has_no_files_and_a_failed_question_is_no_empty_log(sky: Sky) -> None:
    sky.workspace()
    sky.job(RUN, "Queued")
    found = sky.cloud.files(sky.project, AT, RUN, sizes=True)
    assert (found.files, found.job.words) == ((), "queued")
    sky.azure.plane_server.on("/details", problem(403, "Forbidden", "no"))
    with pytest.raises(Refused):
        sky.cloud.files(sky.project, AT, RUN, sizes=True)
    sky.azure.plane_server.on("/artifacts/", problem(400, "Broken", "no"))
    with pytest.raises(RemoteError, match="Broken"):
        sky.cloud.files(sky.project, AT, RUN, sizes=True)


@pytest.mark.rule("A-168", "C-023")
def test_a_growing_file_is_read_on_from_where_it_was(ran: Sky) -> None:
    cloud = ran.cloud
    first = page(ran, cloud)
    assert (first.data, first.was_reset) == (b"one\nand two\n", False)
    idle = page(ran, cloud, cursor=first.cursor)
    assert (idle.data, idle.was_reset) == (b"", False)
    ran.azure.plane.files[FIRST] += b"three\n"
    ran.azure.plane.etags[FIRST] = '"0x2"'
    more = page(ran, cloud, cursor=idle.cursor)
    assert more.data == b"three\n"
    last = page(ran, cloud, cursor=more.cursor)
    ran.azure.plane.files[FIRST] = b"new\n"
    ran.azure.plane.etags[FIRST] = '"0x3"'
    reset = page(ran, cloud, cursor=last.cursor)
    assert (reset.was_reset, reset.data) == (True, b"")
    assert page(ran, cloud, cursor=reset.cursor).data == b"new\n"
    assert all("range" in got.headers for got in ran.azure.plane_server.got if got.path.startswith("/files/"))


@pytest.mark.rule("A-169", "A-011")
def test_addresses_are_fetched_anew_before_they_expire_and_when_they_are_refused(ran: Sky) -> None:
    def asked() -> int:
        return len([target for target in ran.azure.plane_server.targets() if target.endswith("/details")])

    cloud = ran.cloud
    page(ran, cloud)
    page(ran, cloud)
    assert asked() == 1
    ran.azure.plane.signature = "bmV3"  # every old address is refused from now on
    sign(ran)
    assert page(ran, cloud).data
    assert asked() == 2
    ran.clock.at = 1_893_455_700.0 - 60  # addresses end at 2030-01-01, and are not used in their last five minutes
    assert page(ran, cloud).data
    assert asked() == 2
    ran.clock.move(120)
    assert page(ran, cloud).data
    assert asked() == 3
    ran.azure.plane.signature = "b3RoZXI="
    with pytest.raises(Refused):
        page(ran, cloud)
    assert asked() == 5
    kept = [path.read_bytes() for path in ran.home.layout.state.rglob("*") if path.is_file()]
    assert not any(b"sig=" in data for data in kept)
    assert "sig=" not in repr(cloud.files(ran.project, AT, RUN, sizes=False))


@pytest.mark.rule("C-023", "A-167", "A-168")
def test_the_last_lines_of_a_file(ran: Sky) -> None:
    cloud = ran.cloud
    ran.azure.plane.files[FIRST] = b"".join(b"line %d\n" % number for number in range(200_000))
    found = page(ran, cloud, tail=2)
    assert found.data == b"line 199998\nline 199999\n"
    ran.azure.plane.files[FIRST] += b"line 200000\n"
    assert page(ran, cloud, cursor=found.cursor).data == b"line 200000\n"
    ran.azure.plane.files[SECOND] = b"a\nb"
    assert [page(ran, cloud, SECOND, tail=count).data for count in (0, 1, 2, 3)] == [b"", b"b", b"a\nb", b"a\nb"]
    ran.azure.plane.files[SYSTEM] = b""
    assert page(ran, cloud, SYSTEM, tail=5).data == b""


@pytest.mark.rule("A-168")
@settings(max_examples=150)
@given(st.lists(st.sampled_from(["", "a", "bc", "déf", "x" * 9]), max_size=12), st.booleans(), st.integers(0, 14))
def test_last_lines_are_those_of_the_whole_file(lines: list[str], ends: bool, count: int) -> None:
    data = "\n".join(lines).encode() + (b"\n" if ends and lines else b"")

    def read(cursor: Cursor, size: int) -> Page:
        return Page(data[cursor.offset : cursor.offset + size], Cursor(cursor.path, 0, None, len(data)))

    whole = data.splitlines(keepends=True)
    due = b"".join(whole[-count:]) if count else b""
    assert data[cloudlogs.last_lines(read, "f", count, page=4).offset :] == due


@given(st.text(), st.integers(0, 10**12), st.none() | st.text(), st.integers(0, 10**12))
def test_a_cursor_is_one_word_and_comes_back(path: str, offset: int, etag: str | None, size: int) -> None:
    cursor = Cursor(path, offset, etag, size)
    word = encoded(cursor)
    assert word.isascii() and not set(word) & set("/+= &?#")
    assert decoded(word) == cursor


@pytest.mark.rule("A-168", "A-006")
@pytest.mark.parametrize("word", ["", "x", "%%", "bnVsbA", "WzEsMiwzLDRd", "é"])
def test_what_is_no_cursor(ran: Sky, word: str) -> None:
    with pytest.raises(UserError, match=r"query\.cursor: it is none"):
        page(ran, ran.cloud, cursor=word)


@pytest.mark.rule("A-168")
def test_a_cursor_of_another_file_is_refused(ran: Sky) -> None:
    with pytest.raises(UserError, match="belongs to another file"):
        page(ran, ran.cloud, SECOND, cursor=encoded(Cursor(FIRST, 3)))


def test_old_runs_are_forgotten(ran: Sky, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloudlogs, "KEPT", 1)
    cloud = ran.cloud
    ran.job("other")
    ran.azure.plane.details["other"] = {"runId": "other", "status": "Running", "logFiles": {}}
    for name in (RUN, "other", RUN):
        cloud.files(ran.project, AT, name, sizes=False)
    assert len(cloud._logs._runs) == 1
