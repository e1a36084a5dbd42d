"""The daemon's log: lines, levels, no secret, turned over before it grows large."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from aj.base.errors import ConfigError
from aj.base.settings import Settings
from aj.daemon import log as logs
from aj.daemon.log import Log
from tests.conftest import MovedClock


def test_an_entry_is_one_line_without_secrets(tmp_path: Path, clock: MovedClock) -> None:
    log = Log(tmp_path / "state" / "daemon.log", clock)
    log.debug("not this")
    log.info("two\nlines \x1b[31m token=geheim")
    log.warning("ü \udcff")
    text = (tmp_path / "state" / "daemon.log").read_text()
    assert text.count("\n") == 3 and "not this" not in text and "geheim" not in text and "\x1b" not in text
    assert text.startswith("2027-01-15T08:00:00.000000Z info two\n")
    assert (tmp_path / "state" / "daemon.log").stat().st_mode & 0o777 == 0o600


@pytest.mark.rule("C-200")
def test_it_is_turned_over_and_three_are_kept(
    tmp_path: Path, clock: MovedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MAX_BYTES", 200)
    log = Log(tmp_path / "daemon.log", clock)
    for number in range(60):
        log.info(f"entry {number}")
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["daemon.log", "daemon.log.1", "daemon.log.2", "daemon.log.3"]
    assert "entry 59" in (tmp_path / "daemon.log").read_text()
    numbers = [
        int(line.rpartition(" ")[2])
        for name in (*reversed(kept[1:]), kept[0])
        for line in (tmp_path / name).read_text().splitlines()
    ]
    assert numbers == list(range(numbers[0], 60))
    assert all(path.stat().st_size < 200 + 100 for path in tmp_path.iterdir())


def test_the_real_limit_is_ten_mebibytes() -> None:
    assert (logs.MAX_BYTES, logs.KEPT) == (10 * 1024 * 1024, 3)


def broken() -> Exception:
    try:
        raise KeyError("x")
    except KeyError as error:
        return error


@pytest.mark.rule("WA-04")
@pytest.mark.parametrize("debug", [False, True])
def test_what_a_thread_dies_of_stands_there_without_credentials(
    tmp_path: Path, clock: MovedClock, monkeypatch: pytest.MonkeyPatch, debug: bool
) -> None:
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    Log(tmp_path / "daemon.log", clock, debug=debug).hear_others()

    def die() -> None:
        raise KeyError("http://ada:pass-word@host:99999")

    thread = threading.Thread(target=die, name="watches")
    thread.start()
    thread.join()
    text = (tmp_path / "daemon.log").read_text()
    assert "error watches ended: KeyError: 'http://***@host:99999'" in text and "pass-word" not in text
    assert ("Traceback" in text) is debug


@pytest.mark.rule("C-091")
def test_a_traceback_stands_there_only_when_asked_for(tmp_path: Path, clock: MovedClock) -> None:
    Log(tmp_path / "plain", clock).error("it broke", broken())
    Log(tmp_path / "debug", clock, debug=True).error("it broke", broken())
    assert "Traceback" not in (tmp_path / "plain").read_text()
    assert "test_log.py:" in (tmp_path / "plain").read_text()
    assert "Traceback" in (tmp_path / "debug").read_text()


@pytest.mark.rule("C-091")
def test_a_level_is_one_of_four(tmp_path: Path, clock: MovedClock) -> None:
    with pytest.raises(ConfigError, match="AJ_LOG_LEVEL='loud'"):
        Settings({"AJ_LOG_LEVEL": "loud"}).log_level  # noqa: B018 (it raises)
    Log(tmp_path / "x", clock, level="error").warning("quiet")
    assert (tmp_path / "x").read_text() == ""
