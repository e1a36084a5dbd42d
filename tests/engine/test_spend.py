"""Caps on spending over the life of jobs: told by the clock of the test, days pass at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aj.backend.protocol import Fate, Observation, SetupFailed
from aj.base import proc
from aj.base.clock import SYSTEM, from_rfc3339, rfc3339
from aj.base.errors import ConfigError, NotFound, UserError
from aj.engine import scheduler
from aj.engine.account import Account
from aj.engine.gate import Gate, Meter
from aj.engine.scheduler import Place
from aj.model import money, spend
from aj.model.record import Record, RecordState
from aj.model.spend import Cap, Per, Prices, window
from aj.model.state import JobState
from aj.model.workload import Host, Needs, Workload
from aj.store import jobs, journal
from aj.store import spend as store
from aj.wire.spend import ClearCap, CostQuery, SetCap
from tests.conftest import Home, MovedClock
from tests.engine.play import Play
from tests.jobs import long_window, workload
from tests.yard import PROJECT, Yard

S = JobState
DOLLAR = money.DOLLAR
NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z, a Friday
A, B, C = "aaaaaaaa", "bbbbbbbb", "cccccccc"
EXIT_0 = Observation(Fate.EXITED, exit_code=0)
ROOM = Place(Needs(100.0), slots=100)
ALL = CostQuery()


@pytest.fixture
def play(home: Home) -> Iterator[Play]:
    found = Play(home)
    found.driver.places = 4
    try:
        yield found
    finally:
        found.engine.stop()


@pytest.fixture
def yard(home: Home, programs: None, real_clock: None) -> Iterator[Yard]:
    root = home.root / "tree"
    root.mkdir()
    found = Yard(home, root)
    try:
        yield found
    finally:
        found.close()


def priced(home: Home, dollars: str) -> None:
    """Write the price table, as a user would."""
    home.layout.prices.parent.mkdir(parents=True, exist_ok=True)
    home.layout.prices.write_text(f"local = {dollars}\n")


def gate(*meters: Meter, price: int = DOLLAR, now: float = NOW) -> Gate:
    return Gate(meters, Prices({"local": {"default": price}}), None, now, {})


def budget(usd: int, used: int = 0, held: int = 0, session: str | None = None) -> Meter:
    return Meter(Cap(usd, Per.DAY, session), used, held, window(Per.DAY, NOW))


def queued(*ids: str, **changes: object) -> list[Workload]:
    return [workload(job_id, submitted_at=f"2026-01-31T12:00:{at:02d}Z", **changes) for at, job_id in enumerate(ids)]


def plan(found: list[Workload], by: Gate, place: Place = ROOM) -> scheduler.Plan:
    return scheduler.plan(found, {"local": place}, NOW, by)


# One plan


@pytest.mark.rule("SC-07", "LC-02")
@pytest.mark.parametrize("meter", [Meter(Cap(3), 2 * DOLLAR), budget(3, DOLLAR, DOLLAR)])
def test_of_two_jobs_of_one_plan_only_one_takes_what_is_left_for_one(meter: Meter) -> None:
    found = plan(queued(A, B), gate(meter))
    assert list(found.starts) == [A]
    assert found.waits[B].startswith("blocked by ")


@given(st.integers(1, 50), st.lists(st.integers(0, 9 * DOLLAR), max_size=20), st.booleans())
@pytest.mark.rule("SC-07")
def test_what_a_plan_lets_through_never_passes_the_cap(usd: int, limits: list[int], by_the_hour: bool) -> None:
    meter = Meter(Cap(usd), 0) if by_the_hour else budget(usd)
    found = [workload(f"{at:08x}", max_cost=limit or None) for at, limit in enumerate(limits)]
    starts = plan(found, gate(meter, price=2 * DOLLAR)).starts
    assert meter.used + meter.held <= usd * DOLLAR
    needed = [2 * DOLLAR if by_the_hour else spend.reserve(job, 2 * DOLLAR, NOW) for job in found if job.id in starts]
    assert sum(needed) == meter.held


@pytest.mark.rule("SC-08", "QT-03")
def test_who_is_held_back_holds_nobody_up(home: Home) -> None:
    first, second = queued(A, B)
    found = plan([replace(first, session="s1"), second], gate(budget(1, DOLLAR, session="s1")))
    assert list(found.starts) == [B]
    assert found.waits == {
        A: "blocked by the daily budget of session s1: spent $1.00 of $1, $1.00 more is due;"
        " resumes 2027-01-16 00:00 UTC"
    }
    assert found.next_at == NOW + 10


def test_a_job_that_does_not_fit_is_still_the_head_of_the_line() -> None:
    large, small = queued(A, B)
    found = plan([replace(large, needs=Needs(8.0)), small], gate(Meter(Cap(9), 0)), Place(Needs(4.0), slots=4))
    assert found.starts == {} and "before it in the line" in found.waits[B]


def test_words_of_a_throttle_have_both_rates_and_the_cap() -> None:
    found = plan(queued(A), gate(Meter(Cap(2), 1_500_000)))
    assert found.waits == {A: "blocked by throttle: rate $1.50/h + $1.00/h is over the cap of $2/h"}


def test_a_job_that_no_budget_of_this_size_lets_start_is_told_so() -> None:
    found = plan(queued(A), gate(budget(1), price=5 * DOLLAR))
    assert found.waits == {A: "blocked by the daily budget: $5.00 is due for it alone, and the cap is $1"}


@pytest.mark.rule("SC-09")
def test_what_is_free_or_has_a_host_already_is_held_back_by_no_cap() -> None:
    spent = (Meter(Cap(1), 9 * DOLLAR), budget(1, 9 * DOLLAR))
    assert list(plan(queued(A), gate(*spent, price=0)).starts) == [A]
    (housed,) = queued(A, hosts=(Host("2026-01-31T12:00:00Z", price=DOLLAR),))
    meters = [replace_used(meter) for meter in spent]
    assert list(plan([housed], gate(*meters)).starts) == [A]
    assert [meter.held for meter in meters] == [0, 0]
    lost = replace(housed, hosts=(Host("2026-01-31T12:00:00Z", "2026-01-31T12:30:00Z", "2026-01-31T12:30:00Z"),))
    assert plan([lost], gate(*spent)).starts == {}


def replace_used(meter: Meter) -> Meter:
    return Meter(meter.cap, meter.used, 0, meter.window)


def test_with_prices_that_cannot_be_read_nothing_starts() -> None:
    broken = Gate((), Prices(), "prices.toml:1: `local` is true, and no number", NOW, {})
    found = plan(queued(A), broken)
    assert found.waits == {A: "blocked by the price table: prices.toml:1: `local` is true, and no number"}
    assert found.next_at == NOW + 10


def test_who_has_no_price_is_held_back_by_a_cap_and_by_nothing_else() -> None:
    (job,) = queued(A, service="vm")
    assert gate().refusal(job) is None
    assert gate(Meter(Cap(1), 0)).refusal(job) == "blocked by throttle: a host of `vm` has no price"


def test_growing_sums_do_not_change_what_a_waiting_job_was_told_before_some_time() -> None:
    (job,) = queued(A)
    told = gate(budget(1, DOLLAR))
    first = told.refusal(job)
    for later, used, is_new in ((600, 2, False), (901, 3, True)):
        again = Gate(
            [budget(1, used * DOLLAR)], Prices({"local": {"default": DOLLAR}}), None, NOW + later, told.held_back
        )
        assert (again.refusal(job) != first) is is_new


# The life of jobs


@pytest.mark.rule("LC-02", "QT-03", "SC-08")
def test_a_throttle_holds_back_what_would_pass_it_until_something_ends(play: Play) -> None:
    priced(play.home, "2.40")
    assert play.engine.spend.set_cap(SetCap(3)).status == "ok"
    play.admit(A)
    play.until(A, S.RUNNING)
    play.admit(B)
    play.waits(B, "blocked by throttle: rate $2.40/h + $2.40/h is over the cap of $3/h")
    assert play.engine.show(B).workload.state is S.QUEUED
    shown = play.engine.spend.show()
    assert (shown.rate, shown.hosts, shown.waiting) == (2_400_000, 1, (B,))
    play.driver.ends[A] = EXIT_0
    assert play.until(B, S.RUNNING).host is not None
    assert play.until(A, S.COMPLETED).exit_code == 0, "what runs is never stopped"


def test_a_cap_that_is_raised_or_taken_away_lets_the_line_go_on(play: Play) -> None:
    priced(play.home, "2")
    play.engine.spend.set_cap(SetCap(1))
    play.admit(A)
    play.waits(A, "over the cap of $1/h")
    play.engine.spend.set_cap(SetCap(2))
    play.until(A, S.RUNNING)
    play.admit(B)
    play.waits(B, "over the cap of $2/h")
    assert [row.cap.usd for row in play.engine.spend.clear_caps(ClearCap(is_throttle=True)).rows] == [2]
    play.until(B, S.RUNNING)
    assert play.engine.spend.clear_caps(ClearCap(is_throttle=True)).status == "noop"


def test_a_price_that_is_lowered_by_hand_is_found_by_itself(play: Play) -> None:
    priced(play.home, "2")
    play.engine.spend.set_cap(SetCap(1))
    play.admit(A)
    play.waits(A, "over the cap of $1/h")
    priced(play.home, "0.5")
    play.clock.at += 10
    assert play.until(A, S.RUNNING).hosts[0].price == DOLLAR // 2


@pytest.mark.rule("SC-04", "SC-05", "LC-02")
def test_a_budget_holds_back_until_its_window_ends(play: Play) -> None:
    priced(play.home, "1")
    play.engine.spend.set_cap(SetCap(3, Per.DAY))
    play.admit(A)
    play.until(A, S.RUNNING)
    play.clock.at += 2.5 * 3600
    play.admit(B)
    play.waits(B, "blocked by the daily budget: spent $2.50 of $3, $1.00 more is due; resumes 2027-01-16 00:00 UTC")
    play.driver.ends[A] = EXIT_0
    play.until(A, S.COMPLETED, cleaned=True)
    assert play.engine.show(B).workload.state is S.QUEUED
    play.clock.at = window(Per.DAY, play.clock.at).ends_at
    job = play.until(B, S.RUNNING)
    assert from_rfc3339(job.hosts[0].created_at) == play.clock.at
    (row,) = play.engine.spend.show().caps
    assert (row.used, row.held) == (0, DOLLAR)


@pytest.mark.rule("SC-05")
def test_what_a_job_did_not_use_of_what_was_held_back_is_free_with_its_end(play: Play) -> None:
    priced(play.home, "1")
    play.engine.spend.set_cap(SetCap(1, Per.WEEK))
    play.admit(A, max_runtime_s=1800.0)
    play.until(A, S.RUNNING)
    play.admit(B, max_runtime_s=1900.0)
    play.waits(B, "blocked by the weekly budget: spent <$0.01 and $0.50 held for running jobs of $1")
    play.driver.ends[A] = EXIT_0
    play.until(A, S.COMPLETED)
    play.until(B, S.RUNNING)


@pytest.mark.rule("AG-17")
def test_a_session_has_a_cap_of_its_own(play: Play) -> None:
    priced(play.home, "1")
    play.engine.spend.set_cap(SetCap(1, session="s1"))
    for job_id, session in ((A, "s1"), (B, "s1"), (C, "s2")):
        play.admit(job_id, session=session)
    play.until(A, S.RUNNING)
    play.until(C, S.RUNNING)
    play.waits(B, "blocked by throttle of session s1: ")
    assert play.engine.spend.clear_caps(ClearCap(is_throttle=True)).status == "noop", "that is another scope"
    assert play.engine.spend.clear_caps(ClearCap(is_throttle=True, session="s1")).status == "ok"
    play.until(B, S.RUNNING)


@pytest.mark.rule("QT-03")
def test_a_deadline_tells_that_a_cap_held_the_job_back(play: Play) -> None:
    priced(play.home, "2")
    play.engine.spend.set_cap(SetCap(1))
    play.admit(A, start_timeout_s=60.0)
    play.waits(A, "over the cap")
    play.clock.at += 61
    assert (play.until(A, S.FAILED).message or "").startswith(
        "it could not start within 1m00s; it was blocked by throttle: rate $0.00/h + $2.00/h"
    )


@pytest.mark.rule("SC-10")
def test_a_changed_price_does_not_change_the_past(play: Play) -> None:
    priced(play.home, "1")
    play.admit(A, spot=True)
    play.until(A, S.RUNNING)
    play.clock.at += 3600
    priced(play.home, "5")
    play.engine.preempt(A, False)
    play.that(lambda: len(play.engine.show(A).workload.hosts) == 2)
    job = play.until(A, S.RUNNING)
    assert [host.price for host in job.hosts] == [DOLLAR, 5 * DOLLAR]
    play.clock.at += 3600
    answer = play.engine.spend.cost(CostQuery(A))
    assert answer.total.cost == 6 * DOLLAR and answer.total.hosts == 2 and answer.total.has_spot


@pytest.mark.rule("SC-11")
def test_a_job_ends_when_it_has_cost_what_it_may(play: Play) -> None:
    priced(play.home, "2")
    play.admit(A, max_cost=3 * DOLLAR)
    play.admit(B)
    play.until(A, S.RUNNING)
    play.clock.at = began(play, A) + 1.5 * 3600
    job = play.until(A, S.TERMINATED)
    assert (job.reason, job.max_cost) == ("max-cost", 3 * DOLLAR)
    assert play.engine.spend.cost(CostQuery(A)).total.cost == 3 * DOLLAR
    assert play.until(B, S.RUNNING).reason is None


def began(play: Play, job_id: str) -> float:
    host = play.engine.show(job_id).workload.host
    assert host is not None
    return from_rfc3339(host.created_at)


@pytest.mark.rule("SC-11")
def test_a_setup_that_costs_too_much_ends_the_job_as_well(play: Play) -> None:
    priced(play.home, "3600")  # a dollar a second
    play.driver.fails[S.STARTING] = [SetupFailed("no room") for _ in range(50)]
    play.admit(A, max_cost=5 * DOLLAR)
    play.that(lambda: play.engine.show(A).workload.retry is not None)
    play.clock.at += 5
    job = play.until(A, S.TERMINATED)
    assert job.reason == "max-cost"


def test_a_broken_price_table_is_told_at_the_submission_and_to_those_that_wait(play: Play) -> None:
    play.driver.places = 1
    play.admit(A)
    play.until(A, S.RUNNING)
    play.admit(B)
    priced(play.home, '"much"')
    with pytest.raises(ConfigError, match="no number") as error:
        play.admit(C)
    assert error.value.place is not None and error.value.place.line == 1
    play.driver.ends[A] = EXIT_0
    play.waits(B, f"blocked by the price table: {play.home.layout.prices}:1: ")
    assert "no number" in (play.engine.spend.show().problem or "")
    priced(play.home, "1")
    play.clock.at += 10
    play.until(B, S.RUNNING)


def test_caps_that_cannot_be_read_let_nothing_start(play: Play) -> None:
    play.engine.spend.set_cap(SetCap(1))
    play.home.layout.caps.write_text("{")
    play.admit(A)
    play.waits(A, "caps.json is damaged")
    play.home.layout.caps.unlink()
    play.clock.at += 10
    play.until(A, S.RUNNING)


@pytest.mark.parametrize("asked", [SetCap(0), SetCap(-1), SetCap(10**10), SetCap(1, session="")])
def test_a_cap_is_a_whole_number_above_zero_of_a_session_with_a_name(play: Play, asked: SetCap) -> None:
    with pytest.raises(UserError):
        play.engine.spend.set_cap(asked)
    assert play.engine.spend.caps() == ()


def test_the_same_cap_again_changes_nothing(play: Play) -> None:
    assert [play.engine.spend.set_cap(SetCap(5, Per.DAY)).status for _ in range(2)] == ["ok", "noop"]
    assert play.engine.spend.set_cap(SetCap(6, Per.DAY)).status == "ok"
    play.engine.spend.set_cap(SetCap(7, Per.MONTH))
    assert [cap.usd for cap in play.engine.spend.caps()] == [6, 7]
    assert play.engine.spend.clear_caps(ClearCap(is_throttle=False, per=Per.DAY)).status == "ok"
    assert [cap.usd for cap in play.engine.spend.caps()] == [7]
    play.engine.stop()
    assert [cap.usd for cap in play.again().spend.caps()] == [7], "durable"


# The account


@pytest.mark.rule("SC-03", "LC-17")
def test_a_removed_job_still_counts_and_so_after_a_restart(play: Play) -> None:
    priced(play.home, "2")
    play.admit(A, agent="codex", session="s1")
    play.until(A, S.RUNNING)
    play.clock.at += 1800
    play.driver.ends[A] = EXIT_0
    play.until(A, S.COMPLETED, cleaned=True)
    play.engine.spend.set_cap(SetCap(4, Per.DAY))
    before = play.engine.spend.cost(ALL)
    assert before.total.cost is not None and before.total.cost >= DOLLAR
    play.engine.delete(A)
    assert play.engine.spend.cost(ALL).total == before.total
    (row,) = play.engine.spend.show().caps
    assert row.used == before.total.cost
    play.engine.stop()
    play.again()
    assert play.engine.spend.cost(ALL).total == before.total
    assert play.engine.spend.cost(CostQuery(A)).agents == before.agents
    (row,) = play.engine.spend.show().caps
    assert row.used == before.total.cost


@pytest.mark.rule("SC-03")
def test_a_crash_between_the_ledger_and_the_removal_counts_nothing_twice(play: Play) -> None:
    priced(play.home, "2")
    play.admit(A)
    play.until(A, S.RUNNING)
    play.clock.at += 1800
    play.driver.ends[A] = EXIT_0
    job = play.until(A, S.COMPLETED, cleaned=True)
    store.settle(play.home.layout, spend.charges(job))
    play.engine.stop()
    engine = play.again()
    engine.spend.set_cap(SetCap(4, Per.DAY))
    total = engine.spend.cost(ALL).total
    assert total.cost is not None and (total.jobs, total.hosts) == (1, 1)
    assert engine.spend.show().caps[0].used == total.cost
    engine.delete(A)
    assert engine.spend.cost(ALL).total == total
    play.engine.stop()
    assert play.again().spend.cost(ALL).total == total


@pytest.mark.rule("SC-03")
def test_old_records_are_removed_and_what_they_cost_is_not(play: Play) -> None:
    priced(play.home, "1")
    play.admit(A)
    play.until(A, S.RUNNING)
    play.clock.at += 3600
    play.driver.ends[A] = EXIT_0
    play.until(A, S.COMPLETED, cleaned=True)
    cost = play.engine.spend.cost(CostQuery(A)).total.cost
    play.clock.at += 89.97 * 86400
    play.that(lambda: not jobs.exists(play.home.layout, A) or play.clock.at > NOW + 95 * 86400 or _later(play))
    assert not jobs.exists(play.home.layout, A)
    assert play.engine.spend.cost(CostQuery(A)).total.cost == cost


def _later(play: Play) -> bool:
    """Let another hour pass, once the janitor waits for it."""
    if play.clock.is_awaited(3600):
        play.clock.at += 3600
    return False


@pytest.mark.rule("C-027", "AG-06")
def test_costs_are_summed_by_agent_user_and_provider_and_what_has_no_price_is_counted(play: Play) -> None:
    priced(play.home, "1")
    for job_id, agent, session in ((A, "codex", "s1"), (B, "claude", "s2"), (C, None, None)):
        play.admit(job_id, agent=agent, session=session)
        play.until(job_id, S.RUNNING)
    play.clock.at += 3600
    play.home.layout.prices.unlink()
    sent = Record(
        rfc3339(play.clock.at), "dddddddd", "q-dddddddd", "direct", RecordState.SUBMITTED, None, "t", "sing", "n"
    )
    journal.append(play.home.layout, PROJECT, replace(sent, agent="codex"))
    journal.append(play.home.layout, PROJECT, replace(sent, id="eeeeeeee", state=RecordState.FAILED))
    answer = play.engine.spend.cost(ALL)
    total = answer.total
    assert total.cost is not None and (total.jobs, total.hosts, total.unpriced) == (4, 3, 1)
    for groups in (answer.agents, answer.users, answer.providers):
        assert sum(one.cost or 0 for one in groups) == total.cost
        assert sum(one.lasted_us for one in groups) == total.lasted_us
        assert sum(one.unpriced for one in groups) == 1
    assert {one.name for one in answer.agents} == {"codex", "claude", "(none)"}
    assert {one.name: one.cost for one in answer.providers}["sing"] is None
    codex = play.engine.spend.cost(CostQuery(agent="codex")).total
    assert (codex.jobs, codex.unpriced) == (2, 1)
    assert play.engine.spend.cost(CostQuery(session="s2")).total.jobs == 1
    assert play.engine.spend.cost(CostQuery(project="elsewhere")).total.jobs == 0
    part = play.engine.spend.cost(CostQuery(period_s=1800.0)).total
    assert part.cost == 3 * DOLLAR // 2


def test_costs_of_a_job_that_nobody_knows_and_of_a_time_that_is_too_long(play: Play) -> None:
    with pytest.raises(NotFound):
        play.engine.spend.cost(CostQuery("ffffffff"))
    with pytest.raises(UserError):
        play.engine.spend.cost(CostQuery(period_s=91 * 86400.0))
    play.driver.places = 0
    play.admit(A)
    assert play.engine.spend.cost(CostQuery(A)).total.cost == 0


def hosts(length: st.SearchStrategy[int | None]) -> st.SearchStrategy[list[tuple[int, int | None, int | None]]]:
    prices = st.sampled_from([None, 0, 3, DOLLAR, 7_654_321])
    return st.lists(st.tuples(st.integers(0, 40 * 86400), length, prices), max_size=6)


LENGTH = st.integers(0, 3 * 86400)
STANDING = hosts(st.none() | LENGTH)


@given(STANDING, STANDING, hosts(LENGTH), st.integers(0, 45 * 86400), st.sampled_from(list(Per)))
@pytest.mark.rule("SC-01", "SC-03")
def test_the_account_is_the_sum_of_its_hosts_wherever_they_stand(
    living: list[tuple[int, int | None, int | None]],
    over: list[tuple[int, int | None, int | None]],
    removed: list[tuple[int, int | None, int | None]],
    now_s: int,
    per: Per,
) -> None:
    """Known as living, as over, as removed, or as all of them at once: each host counts once."""
    made = [_job(number, known) for number, known in enumerate((living, over, removed))]
    clock = MovedClock(at=NOW + 45 * 86400 + now_s)
    account = Account.__new__(Account)
    account.__init__(None, clock, lambda: [made[0]])  # type: ignore[misc, arg-type]
    account._is_open = True
    account._over = {job.id: spend.charges(job) for job in made[:2]}
    account._removed = {charge.key: charge for charge in spend.charges(made[2])}
    span = window(per, clock.at)
    known = {charge.key: charge for job in made for charge in spend.charges(job)}
    due = sum(charge.cost(span.begins_at, clock.at) for charge in known.values())
    assert [account.used(span, None).spent for _ in range(2)] == [due, due]
    assert {charge.key: charge for charge in account.all()} == known
    account.left(made[0])
    assert account.used(span, None).spent == due


def _job(number: int, known: list[tuple[int, int | None, int | None]]) -> Workload:
    made = {
        rfc3339(NOW + begin): Host(
            rfc3339(NOW + begin), None if length is None else rfc3339(NOW + begin + length), price=price
        )
        for begin, length, price in known
    }
    return workload(f"{number:08x}", S.COMPLETED, hosts=tuple(made.values()))


# A daemon that is killed


@pytest.mark.rule("SC-12")
def test_a_daemon_killed_between_holding_back_and_the_start_spends_once(yard: Yard) -> None:
    priced(yard.home, "1")
    per = long_window(SYSTEM.now())
    yard.engine.spend.set_cap(SetCap(1, per))
    yard.engine.stop()
    ran = yard.root / "ran"
    argv = [sys.executable, "-m", "tests.engine.jobhost", str(yard.root), "00000001", f"echo ran >> {ran}; sleep 60"]
    env = {**yard.home.env, "AJ_TEST_CRASH": "spend.after-reservation"}
    log = os.open(yard.home.root / "host.log", os.O_CREAT | os.O_WRONLY, 0o600)
    child = proc.spawn(argv, stdout=log, stderr=log, env=env, cwd=Path(__file__).parents[2])
    os.close(log)
    proc.let_go(child)
    assert proc.wait_any(proc.identity(child.pid), 30), (yard.home.root / "host.log").read_text()
    proc.reap(child.pid)
    left = jobs.read(yard.home.layout, "00000001")
    assert (left.state, len(left.hosts), left.hosts[0].price) == (S.PROVISIONING, 1, DOLLAR)
    engine = yard.again()
    engine.adopt(PROJECT)
    next(yard.ids)
    other = yard.shell("true")
    yard.until("00000001", S.RUNNING)
    limit = SYSTEM.monotonic() + 20
    while f"blocked by the {per.adjective} budget" not in (yard.show(other).workload.waiting_for or ""):
        assert SYSTEM.monotonic() < limit
        SYSTEM.sleep(0.01)
    (row,) = engine.spend.show().caps
    assert DOLLAR - 1 <= row.used + row.held <= DOLLAR
    while not ran.exists():  # a shell that runs has not said its first word yet
        assert SYSTEM.monotonic() < limit
        SYSTEM.sleep(0.01)
    engine.terminate("00000001", 0)
    job = yard.until("00000001", S.TERMINATED, cleaned=True)
    assert len(job.hosts) == 1 and ran.read_text() == "ran\n"
    total = engine.spend.cost(CostQuery("00000001")).total
    assert (total.hosts, total.running) == (1, 0)
