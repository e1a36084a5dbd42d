"""aj budget, throttle, spend and cost against a real daemon, with prices of the test's own."""

from __future__ import annotations

import os

import pytest

from aj.base.clock import SYSTEM
from aj.cli import complete
from tests.cli.conftest import Ran, Shell
from tests.conftest import RunningDaemon
from tests.jobs import long_window

LIMIT_S = 30.0


@pytest.fixture
def dear(live: Shell) -> Shell:
    """A shell whose machine costs 3600 dollars an hour: a dollar a second."""
    prices(live, "local = 3600\n")
    live.home.layout.user_settings.write_text("[local]\nslots = 8\n")
    return live


def prices(aj: Shell, text: str) -> None:
    file = aj.home.layout.prices
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def job(aj: Shell, *words: str, **variables: str) -> str:
    """Submit a job that stays, and return its id."""
    sent = aj("job", *words, "-o", "name", "local/host", "--", "sleep", "60", **variables)
    assert sent.code == 0, sent.err
    return sent.out.strip()


def until(aj: Shell, job_id: str, holds) -> dict[str, object]:  # type: ignore[no-untyped-def]
    limit = SYSTEM.monotonic() + LIMIT_S
    while True:
        found: dict[str, object] = aj("status", job_id, "--json").json["item"]["workload"]
        if holds(found):
            return found
        assert SYSTEM.monotonic() < limit, found
        SYSTEM.sleep(0.02)


def is_running(found: dict[str, object]) -> bool:
    return found["state"] == "running"


def item(ran: Ran) -> dict[str, object]:
    assert ran.code == 0, ran.err
    (found,) = ran.json["items"]
    return dict(found)


@pytest.mark.rule("C-041", "LC-02", "SC-08", "SC-13")
def test_a_throttle_from_its_setting_to_its_end_over_a_kill(dear: Shell, daemon: RunningDaemon) -> None:
    assert "no throttle" in dear("throttle", "show").err
    assert item(dear("throttle", "set", "3600", "--json"))["status"] == "ok"
    assert item(dear("throttle", "set", "$3600", "--json"))["status"] == "noop"
    daemon.kill()
    shown = item(dear("throttle", "show", "--json"))
    assert (shown["scope"], shown["cap_usd"], shown["used_usd"], shown["per"]) == ("account", 3600, 0.0, None)
    first = job(dear)
    until(dear, first, is_running)
    second = job(dear)
    words = "blocked by throttle: rate $3600.00/h + $3600.00/h is over the cap of $3600/h"
    assert until(dear, second, lambda found: found["waitingFor"])["waitingFor"] == words
    assert words in dear("job", "why", second).out
    spend = dear("spend", "show", "--json").json["item"]
    assert (spend["rate_usd"], spend["hosts"], spend["waiting"]) == (3600.0, 1, [second])
    assert spend["spent_usd"]["day"] > 0 and spend["prices"] == [{"service": "local", "kind": "default", "usd": 3600.0}]
    assert f"held back\t{second}" in dear("spend", "show").out
    assert item(dear("throttle", "clear", "--json"))["id"] == "throttle"
    until(dear, second, is_running)
    assert dear("throttle", "clear", "--json").json["status"] == "noop"
    assert dear("terminate", "--grace", "0s", first, second).code == 0


@pytest.mark.rule("AG-17", "SC-05")
def test_budgets_of_everybody_and_of_a_session(dear: Shell) -> None:
    assert dear("budget", "set", "10").code == 2, "a window is due"
    for words in (("0",), ("-1",), ("1.5",), ("much",), ()):
        assert dear("budget", "set", "--per", "day", "--", *words).code == 2
    per = long_window(SYSTEM.now())
    nobody = dear("budget", "set", "5000", "--per", per, "--agent-session")
    assert nobody.code == 2 and "--agent-session=ID" in nobody.err
    assert dear("budget", "set", "5000", "--per", per, "--agent-session", AJ_SESSION="s1").code == 0
    assert dear("budget", "set", "5000", "--per", per, "--agent-session=s2").code == 0
    assert dear("budget", "set", "90000", "--per", per).code == 0
    names = dear("budget", "show", "-o", "name").out.splitlines()
    name = f"{per.adjective} budget"
    assert names == [name, f"{name} of session s1", f"{name} of session s2"]
    assert item(dear("budget", "show", "--agent-session", "--json", AJ_SESSION="s1"))["session"] == "s1"

    mine = job(dear, AJ_SESSION="s1", AJ_AGENT="codex")
    until(dear, mine, is_running)
    held_back = job(dear, AJ_SESSION="s1")
    others = job(dear, AJ_SESSION="s3")
    until(dear, others, is_running)
    words = str(until(dear, held_back, lambda found: found["waitingFor"])["waitingFor"])
    assert words.startswith(f"blocked by the {name} of session s1: spent $") and words.endswith(" 00:00 UTC")
    short = job(dear, "--max-runtime", "5m", AJ_SESSION="s1")
    until(dear, short, is_running)
    assert dear("budget", "clear", "--agent-session=s1").code == 0
    until(dear, held_back, is_running)
    assert len(dear("budget", "clear", "--per", per, "--json").json["items"]) == 1
    assert dear("terminate", "--grace", "0s", mine, held_back, others, short).code == 0


@pytest.mark.rule("C-027", "AG-06", "AG-07", "SC-03", "SC-14")
def test_what_jobs_cost_is_told_before_while_and_after(dear: Shell) -> None:
    assert "no costs" in dear("cost").err
    sent = dear("job", "local/host", "--max-cost", "7200", "--", "sleep", "60", AJ_AGENT="codex", AJ_SESSION="s1")
    assert "forecast: $3600.00 an hour; it is ended at $7200.00, after 2h00m" in sent.err
    codex = dear("job", "list", "-o", "name").out.strip()
    plain = job(dear)
    until(dear, plain, is_running)
    found = until(dear, codex, lambda found: is_running(found) and float(str(found["totalCost"])) > 0.1)
    assert (found["costSource"], found["maxCost"], found["vmCount"]) == ("estimated", 7200.0, 1)
    assert " of at most $7200.00" in dear("status", codex).out
    assert dear("terminate", "--grace", "0s", "--wait", codex, plain).code == 0
    until(dear, codex, lambda found: found["cleanedAt"])
    done = until(dear, plain, lambda found: found["cleanedAt"])
    assert (done["costSource"], done["vms"][0]["pricePerHour"]) == ("actual", 3600.0)  # type: ignore[index]
    whole = dear("cost", "--json").json
    assert whole["total"]["jobs"] == 2 and whole["workloadsWithoutPrice"] == 0
    assert set(whole["byAgent"]) == {"codex", "(none)"} and list(whole["byProvider"]) == ["local"]
    sums = [one["cost"] for one in whole["byAgent"].values()]
    assert round(sum(sums), 6) == whole["total"]["cost"] == whole["byProvider"]["local"]["cost"]
    assert whole["byAgent"]["(none)"]["cost"] == done["totalCost"]
    assert whole["byAgent"]["(none)"]["durationMs"] == done["vmDurationMs"]
    assert dear("cost", plain, "--json").json["total"]["cost"] == done["totalCost"]
    assert dear("job", "delete", plain, "--yes").code == 0
    assert dear("cost", "--json").json["total"] == whole["total"]
    assert dear("cost", plain, "--json").json["total"]["cost"] == done["totalCost"]
    by_agent = dear("cost", "--agent", "codex", "--json").json
    assert by_agent["total"]["cost"] == whole["byAgent"]["codex"]["cost"]
    assert dear("cost", "--session", "s9", "--json").json["items"] == []
    own = dear("cost", "--json", CODEX_THREAD_ID="s1")
    assert own.json["total"] == by_agent["total"] and own.json["scope"]["own"]
    assert "only of this session, s1" in own.err
    none = dear("cost", CODEX_THREAD_ID="s9")
    assert none.rows == [] and "there are others outside it: `--session all`" in none.err
    assert dear("cost", "--session", "all", "--json", CODEX_THREAD_ID="s9").json["total"] == whole["total"]
    assert dear("cost", "--period", "1d", "--all-projects").rows[0][0] == "agent"
    assert dear("cost", "ffffffff").code == 3
    for words in ("12h", "91d", "x"):
        assert dear("cost", "--period", words).code == 2


@pytest.mark.rule("SC-11")
def test_a_job_that_has_cost_what_it_may_is_ended(dear: Shell) -> None:
    dear.template("cheap", "base:\nconfig: {target: {service: local}, jobs: [{instance_count: 1, max_cost: 0.5}]}\n")
    dear.write("train.py", "pass\n")
    by_option = job(dear, "--max-cost", "0.50")
    sent = dear("run", "-t", "cheap", "-o", "name", "sleep", "60")
    assert sent.code == 0, sent.err
    by_template = sent.out.strip()
    for job_id in (by_option, by_template):
        assert dear("wait", job_id).code == 1
        found = until(dear, job_id, lambda found: found["cleanedAt"])
        assert (found["state"], found["reason"], found["maxCost"]) == ("terminated", "max-cost", 0.5)
        assert float(str(found["totalCost"])) >= 0.5
    kept = dear("run", "--max-cost", "1000", "-t", "cheap", "-o", "name", "true")
    assert until(dear, kept.out.strip(), lambda found: found["cleanedAt"])["maxCost"] == 1000.0


@pytest.mark.rule("SC-02", "SC-14")
def test_a_wrong_price_is_told_where_it_stands_and_a_free_machine_says_nothing(live: Shell) -> None:
    free = live("job", "local/host", "--wait", "--", "true")
    assert free.code == 0 and "forecast" not in free.err
    assert "cost" not in live("status", live("job", "list", "-o", "name").out.strip()).out
    prices(live, '# mine\nlocal = "dear"\n')
    refused = live("job", "local/host", "--", "true")
    assert refused.code == 2 and f'{live.home.layout.prices}:2: `local` is "dear", and no number' in refused.err
    shown = live("spend", "show", "--json")
    assert "prices.toml:2" in shown.json["item"]["problem"] and shown.json["warnings"][0]["code"] == "bad-prices"


@pytest.mark.parametrize("word", ["0", "-1", "x", "0.0000001"])
def test_a_limit_on_costs_is_an_amount_above_zero(aj: Shell, word: str) -> None:
    for command in (("job", f"--max-cost={word}", "local/host", "--", "true"), ("run", f"--max-cost={word}", "true")):
        assert aj(*command).code == 2


def test_windows_are_completed(live: Shell) -> None:
    settings = live.home.settings
    assert complete.answer(["budget", "set", "5", "--per", ""], settings).split()[1:] == ["day", "week", "month"]
    assert "--agent-session" in complete.answer(["throttle", "set", "--ag"], settings)


@pytest.mark.rule("SC-02")
@pytest.mark.parametrize("what", ["pipe", "loop", "nowhere", "huge"])
def test_a_price_table_that_is_no_file_lets_nothing_start_until_it_is_one(dear: Shell, what: str) -> None:
    prices = dear.home.layout.prices
    prices.unlink()
    if what == "pipe":
        os.mkfifo(prices)
    elif what == "huge":
        prices.write_text("# more\n" * 20_000)
    else:
        prices.symlink_to("prices.toml" if what == "loop" else "gone")
    assert "nothing starts before the price table can be read" in dear("spend", "show").err
    refused = dear("job", "local/host", "--", "true")
    assert refused.code == 2 and "prices.toml" in refused.err
    prices.unlink()
    assert dear("job", "local/host", "--wait", "--", "true").code == 0


@pytest.mark.rule("AG-17")
@pytest.mark.parametrize("session", ["line\nbreak", " padded ", "tab\tx", "x" * 240])
def test_a_cap_of_a_session_holds_however_its_id_is_written(dear: Shell, session: str) -> None:
    assert dear("throttle", "set", "1", f"--agent-session={session}").code == 0
    sent = job(dear, AJ_SESSION=session, AJ_AGENT="codex")
    until(dear, sent, lambda found: "blocked by throttle of session" in str(found["waitingFor"]))
    assert sent in dear("job", "list", "--session", session, "-o", "name").out
    assert all("\n" not in line for line in dear("throttle", "show", "--json").json["items"][0]["name"])
    assert dear("throttle", "clear", f"--agent-session={session}").code == 0
    assert "there is none of these" in dear("throttle", "clear", f"--agent-session={session}").err
    assert dear("terminate", "--grace", "0s", sent).code == 0


def test_limits_beyond_what_there_is_are_told(aj: Shell) -> None:
    for word in ("1000001", "2.5", "0"):
        assert "whole number of US dollars from 1 to 1000000" in aj("throttle", "set", word).err
    assert aj("throttle", "set", "2", "--agent-session=\n").code == 2
