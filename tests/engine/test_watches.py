"""Watches on a clock that the test moves: what is told, how often, and what a crash leaves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pytest

from aj.base.clock import SYSTEM, rfc3339
from aj.base.errors import AjError, Refused, Unavailable, UserError
from aj.engine import watches
from aj.engine.notify import Notice, Notifier
from aj.engine.outbox import WORKERS, Outbox
from aj.engine.sight import Sight
from aj.engine.watches import Means, Watches
from aj.model.handle import Handle
from aj.model.json import Json
from aj.model.state import JobState
from aj.model.ticket import Outcome, Submitted, TicketState
from aj.model.watch import Delivery, Sighting, Watch, Way, way
from aj.net.origin import Origin
from aj.store import watches as store
from aj.wire.watch import WatchWish
from tests.cli import seed
from tests.conftest import Home, MovedClock

pytestmark = pytest.mark.rule("C-034")
LIMIT_S = 20.0


def until(look: Callable[[], object]) -> None:
    """Wait for something to be true, with a limit."""
    end = SYSTEM.monotonic() + LIMIT_S
    while not look():
        assert SYSTEM.monotonic() < end, "it never came"
        SYSTEM.sleep(0.005)


class Deaf(Notifier):
    """Remembers what it was to send."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str | None, str | None]] = []
        self.fails = False
        self.hanging, self.free = threading.Event(), threading.Event()
        self.before: Callable[[], None] = lambda: None

    def send(self, way: Way, notice: Notice) -> None:
        self.before()
        if way.value == "hang":
            self.hanging.set()
            assert self.free.wait(LIMIT_S)
        self.sent.append((str(way), notice.before, notice.watch.state))
        if way.value == "odd":
            raise ValueError("Port out of range: http://ada:pass-word@host:99999")
        if self.fails:
            raise AjError("no")


class AtOnce(Outbox):
    """Runs each errand where it is put."""

    def put(self, lane: str, errand: Callable[[], None]) -> None:
        errand()


@dataclass
class World:
    """Jobs as they stand, and everything that was told of them."""

    home: Home
    clock: MovedClock
    seen: dict[str, Sighting | Exception] = field(default_factory=dict)
    looks: list[str] = field(default_factory=list)
    told: list[Mapping[str, Json]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    notifier: Deaf = field(default_factory=Deaf)

    def look(self, watch: Watch) -> Sighting | None:
        self.looks.append(watch.id)
        found = self.seen.get(watch.id)
        if isinstance(found, Exception):
            raise found
        return found

    def watches(self, outbox: Outbox | None = None, own: Callable[[str], None] = lambda _: None) -> Watches:
        """A daemon that has just begun; its rounds are the test's own, and notices leave at once or by an outbox."""
        publish = lambda topic, project, payload: self.told.append(payload)  # noqa: E731
        box = outbox or AtOnce()
        means = Means(self.home.layout, self.clock, self.look, publish, self.notifier, self.log.append, box, own)
        made = Watches(means)
        made._run = lambda: None  # type: ignore[method-assign]
        return made


@pytest.fixture
def world(home: Home, clock: MovedClock) -> World:
    return World(home, clock)


def add(of: Watches, job: str = "0a1b2c3d", *ways: str, handle: str | None = None) -> None:
    assert of.add("p", None, WatchWish(job, f"train_{job}", handle, ways)).status == "ok"


def test_each_state_is_told_once_and_the_first_sight_is_no_change(world: World) -> None:
    of = world.watches()
    add(of, "0a1b2c3d", "desktop", "cmd:x y")
    for state in ("queued", "queued", "running", "running", "completed", "completed"):
        world.seen["0a1b2c3d"] = Sighting(state, state == "completed")
        of.round()
    assert [one["state"] for one in world.told] == ["running", "completed"]
    assert world.notifier.sent == [
        *(("desktop", "queued", "running"), ("cmd:x", "queued", "running")),
        *(("desktop", "running", "completed"), ("cmd:x", "running", "completed")),
    ]
    assert of.open_count() == 0


def test_the_end_is_told_even_when_nothing_was_seen_before(world: World) -> None:
    of = world.watches()
    add(of, "0a1b2c3d", "desktop")
    world.seen["0a1b2c3d"] = Sighting("errored", True, "exit code 3")
    of.round()
    assert world.notifier.sent == [("desktop", None, "errored")]


def test_a_watch_that_is_older_than_its_job_tells_that_it_has_begun(world: World) -> None:
    of = world.watches()
    for job, first in (("0a1b2c3d", "queued"), ("4e5f6a7b", "running")):
        assert of.add("p", None, WatchWish(job, job, None, ("desktop",), ahead=True)).status == "ok"
        world.seen[job] = Sighting(first)
    of.round()
    assert world.notifier.sent == [("desktop", None, "running")]
    world.seen["0a1b2c3d"] = Sighting("running")
    of.round()
    assert world.notifier.sent[1:] == [("desktop", "queued", "running")]


def test_why_a_notice_did_not_arrive_stays_until_another_one_does(world: World) -> None:
    of = world.watches()
    add(of, "0a1b2c3d", "desktop", "cmd:x")
    world.notifier.fails = True
    for state in ("queued", "running", "running"):
        world.seen["0a1b2c3d"] = Sighting(state)
        of.round()
    (row,) = of.listing("p").rows
    assert (row.delivery, row.problem) == ("failed", "no; no")
    world.notifier.fails = False
    world.seen["0a1b2c3d"] = Sighting("completed", True)
    of.round()
    (row,) = of.listing("p").rows
    assert (row.delivery, row.problem) == ("sent", None)


@pytest.mark.usefixtures("programs")
def test_a_command_that_fails_tells_its_exit_code_and_last_words(home: Home, clock: MovedClock) -> None:
    one = Watch("a", "p", "train", rfc3339(clock.now()), state="running", changed_at=rfc3339(clock.now()))
    notifier = Notifier(home.having(PATH="/nowhere").settings, clock)
    for line, words in (("cmd:exit 3", "cmd:exit ended with exit code 3"), ("desktop", "desktop: neither")):
        with pytest.raises(AjError, match=words):
            notifier.send(way(line), Notice(one, None))
    with pytest.raises(AjError, match="ended with exit code 1: no display"):
        notifier.send(way("cmd:echo no display >&2; exit 1"), Notice(one, None))


def test_what_moved_while_no_daemon_ran_is_told_by_the_next(world: World) -> None:
    of = world.watches()
    add(of, "0a1b2c3d", "desktop")
    world.seen["0a1b2c3d"] = Sighting("running")
    of.round()
    world.seen["0a1b2c3d"] = Sighting("completed", True)
    later = world.watches()
    later.start()
    later.round()
    assert world.notifier.sent == [("desktop", "running", "completed")]
    third = world.watches()
    third.start()
    third.round()
    assert len(world.notifier.sent) == 1


class Killed(BaseException):
    """The daemon is gone."""


def test_a_notice_that_was_on_its_way_when_the_daemon_died_is_not_sent_twice(world: World) -> None:
    of = world.watches()
    add(of, "0a1b2c3d", "desktop")
    world.seen["0a1b2c3d"] = Sighting("completed", True)

    def die() -> None:
        raise Killed

    world.notifier.before = die
    with pytest.raises(Killed):
        of.round()
    world.notifier.before = lambda: None
    later = world.watches()
    later.start()
    later.round()
    assert world.notifier.sent == []
    assert [row.delivery for row in later.listing("p").rows] == [Delivery.UNSURE]


@pytest.mark.rule("WA-02")
@pytest.mark.usefixtures("real_clock")
def test_a_way_that_hangs_delays_itself_alone_and_no_state_between_is_missed(world: World) -> None:
    of = world.watches(Outbox())
    add(of, "0a1b2c3d", "cmd:hang", "cmd:x")
    add(of, "4e5f6a7b", "desktop")
    for state in ("queued", "running", "completed"):
        for job in ("0a1b2c3d", "4e5f6a7b"):
            world.seen[job] = Sighting(state, state == "completed")
        of.round()
    until(lambda: len(world.notifier.sent) == 4)
    assert [one for one in world.notifier.sent if one[0] == "cmd:x"] == [
        ("cmd:x", "queued", "running"),
        ("cmd:x", "running", "completed"),
    ]
    rows = of.listing("p").rows
    assert [row.state for row in rows] == ["completed", "completed"]
    until(lambda: [row.delivery for row in of.listing("p").rows] == [None, "sent"])
    assert of.open_count() == 1, "an end that is still being told keeps the daemon"
    world.notifier.free.set()
    until(lambda: of.open_count() == 0)
    assert [one for one in world.notifier.sent if one[0] == "cmd:hang"] == [
        ("cmd:hang", "queued", "running"),
        ("cmd:hang", "running", "completed"),
    ]
    assert {row.delivery for row in of.listing("p").rows} == {"sent"}


@pytest.mark.rule("WA-02")
@pytest.mark.usefixtures("real_clock")
def test_the_end_of_the_daemon_does_not_wait_for_a_notice_that_hangs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "LAST_NOTICES_S", 0.05)
    of = world.watches(Outbox())
    add(of, "0a1b2c3d", "cmd:hang")
    world.seen["0a1b2c3d"] = Sighting("errored", True)
    of.round()
    assert world.notifier.hanging.wait(LIMIT_S)
    of.stop()
    (kept,) = store.each(world.home.layout, world.log.append)
    assert (kept.leaving, kept.delivery) == (False, Delivery.UNSURE)
    world.notifier.free.set()


@pytest.mark.rule("WA-02")
@pytest.mark.usefixtures("real_clock")
def test_as_many_lanes_are_served_at_once_as_there_are_workers_and_the_others_after_them() -> None:
    outbox, free, done = Outbox(), threading.Event(), []
    for number in range(WORKERS + 2):
        for turn in range(2):
            outbox.put(str(number), lambda one=(number, turn): done.append(one) if free.wait(LIMIT_S) else None)  # type: ignore[misc]
    assert sum(thread.name == "notices" for thread in threading.enumerate()) == WORKERS
    free.set()
    until(lambda: len(done) == 2 * (WORKERS + 2))
    assert all(done.index((number, 0)) < done.index((number, 1)) for number in range(WORKERS + 2))


@pytest.mark.rule("WA-03")
def test_an_error_that_nobody_foresaw_stops_neither_looking_nor_telling(world: World) -> None:
    of = world.watches()
    add(of, "0a1b2c3d", "cmd:odd", "cmd:x")
    add(of, "4e5f6a7b", "desktop")
    world.seen["0a1b2c3d"] = Sighting("completed", True)
    world.seen["4e5f6a7b"] = KeyError("odd")
    of.round()
    assert ("cmd:x", None, "completed") in world.notifier.sent
    first, second = of.listing("p").rows
    assert first.delivery == "failed" and "ValueError: Port out of range" in str(first.problem)
    assert second.problem == "KeyError: 'odd'"
    assert len(world.log) == 2 and "pass-word" not in str(world.log) + str(first)
    world.seen["4e5f6a7b"] = Sighting("completed", True)
    of.round()
    assert ("desktop", None, "completed") in world.notifier.sent


@pytest.mark.rule("WA-03")
def test_a_round_that_breaks_is_followed_by_another(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    of = world.watches()
    rounds: list[int] = []

    def odd() -> float:
        rounds.append(1)
        if len(rounds) == 3:
            of.stop()
        raise KeyError("odd")

    monkeypatch.setattr(of, "round", odd)
    of._rounds()
    assert len(rounds) == 3 and world.log[0] == "watches: KeyError: 'odd'"


def test_a_disk_that_refuses_delays_a_notice_and_loses_none(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    of = world.watches()
    add(of, "0a1b2c3d", "desktop")
    world.seen["0a1b2c3d"] = Sighting("completed", True)

    def full(*_: object) -> None:
        raise AjError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(store, "write", full)
        of.round()
    assert world.notifier.sent == [] and "disk full" in world.log[0]
    world.clock.move(watches.LOOK_S)
    of.round()
    assert world.notifier.sent == [("desktop", None, "completed")]


def test_a_job_elsewhere_is_looked_at_now_and_then_and_less_often_when_it_cannot_be_seen(world: World) -> None:
    of = world.watches()
    add(of, "run-1", "desktop", handle="aml://s/g/w/run-1")
    world.seen["run-1"] = Unavailable("no network")
    pauses = []
    for _ in range(6):
        of.round()
        before = len(world.looks)
        pause_s = of.round()
        assert len(world.looks) == before, "it is not due"
        pauses.append(round(pause_s))
        world.clock.move(pause_s)
    assert pauses == [30, 60, 120, 240, 300, 300]
    assert of.listing(None).rows[0].problem == "no network"
    world.seen["run-1"] = Sighting("completed", True)
    of.round()
    assert of.listing(None).rows[0].problem is None and world.notifier.sent


def test_a_job_that_turns_out_to_be_elsewhere_is_not_asked_for_at_every_event(world: World) -> None:
    of = world.watches()
    add(of, "0a1b2c3d", "desktop")
    world.seen["0a1b2c3d"] = Sighting("queued")
    for _ in range(3):
        of.round()
    assert len(world.looks) == 3, "what happens on this machine is looked at each time"
    world.seen["0a1b2c3d"] = Sighting("running", handle="aml://s/g/w/run-1")
    for _ in range(5):
        of.round()
    assert len(world.looks) == 4
    world.clock.move(watches.LOOK_S)
    of.round()
    assert len(world.looks) == 5
    later = world.watches()
    later.start()
    for _ in range(5):
        later.round()
    assert len(world.looks) == 6, "another daemon knows where it is, too"


@dataclass
class Far:
    """A job at a place that answers."""

    state: JobState | None
    words: str = ""
    error: str | None = None


def test_a_watched_ticket_is_followed_to_where_its_job_went(home: Home) -> None:
    asked: list[str] = []

    def elsewhere(project: object, handle: Handle) -> Far | None:
        asked.append(str(handle))
        return Far(JobState.RUNNING) if handle.service == "aml" else None

    look = Sight(home.layout, lambda job_id: None, elsewhere)
    one = Watch("0a1b2c3d", home.project().key, "train", rfc3339(0))
    assert look(one) is None
    for state, outcome, result, due in (
        (TicketState.QUEUED, None, None, Sighting("queued")),
        (TicketState.FAILED, Outcome.UNKNOWN, None, Sighting("unknown", False, "lost")),
        (TicketState.FAILED, Outcome.FAILED, None, Sighting("failed", True, "lost")),
        (
            TicketState.COMPLETED,
            Outcome.SUBMITTED,
            Submitted("r", "aml://s/g/w/r"),
            Sighting("running", handle="aml://s/g/w/r"),
        ),
    ):
        ticket = seed.ticket("0a1b2c3d", state=state, outcome=outcome, result=result, detail="lost", error=None)
        seed.write_tickets(home, one.project, ticket)
        assert look(one) == due
    assert asked == ["aml://s/g/w/r"]


def test_a_job_that_never_comes_is_given_up(world: World) -> None:
    of = world.watches()
    add(of, "0a1b2c3d", "desktop")
    of.round()
    assert of.open_count() == 1
    world.clock.move(watches.ARRIVAL_S + 1)
    of.round()
    assert of.open_count() == 0 and world.notifier.sent == []
    assert of.listing("p").rows[0].problem == "no such job is known any more"


def test_watches_of_ended_jobs_go_after_a_week_and_damaged_files_hide_no_other(world: World) -> None:
    of = world.watches()
    for job in ("0a1b2c3d", "4e5f6a7b"):
        add(of, job)
    world.seen["0a1b2c3d"] = Sighting("completed", True)
    world.seen["4e5f6a7b"] = Sighting("running")
    of.round()
    (world.home.layout.watches / "x.json").write_text("{")
    world.clock.move(watches.KEPT_S + 1)
    later = world.watches()
    later.start()
    later.round()
    assert [row.id for row in later.listing("p").rows] == ["4e5f6a7b"]
    assert len(world.log) == 1 and "x.json" in world.log[0]


def test_a_removed_watch_is_not_told_of_and_projects_are_apart(world: World) -> None:
    of = world.watches()
    add(of, "0a1b2c3d", "desktop")
    of.add("other", None, WatchWish("0a1b2c3d", "train", None, ()))
    assert [row.project for row in of.listing("other").rows] == ["other"]
    assert (of.remove("p", "0a1b2c3d").status, of.remove("p", "0a1b2c3d").status) == ("ok", "noop")
    world.seen["0a1b2c3d"] = Sighting("completed", True)
    of.round()
    assert world.notifier.sent == [] and [one["project"] for one in world.told] == ["other"]


def test_a_way_that_is_none_is_refused(world: World) -> None:
    with pytest.raises(UserError, match="--notify"):
        world.watches().add("p", None, WatchWish("a", "a", None, ("mail:x",)))
    assert not world.home.layout.watches.exists()
    assert repr(way("webhook:https://h/secret")).count("secret") == 0


@pytest.mark.rule("WA-08")
def test_watches_are_told_by_the_owner_of_their_project_alone(world: World) -> None:
    first = world.watches()
    add(first, "0a1b2c3d", "desktop")
    owners = {"p": "another"}

    def own(project: str) -> None:
        if owners.get(project, "us") != "us":
            raise Refused("held by process 1", code="lock-held")
        owners[project] = "us"

    second = world.watches(own=own)
    second.start()
    world.seen["0a1b2c3d"] = Sighting("completed", True)
    second.round()
    assert world.notifier.sent == [] and second.listing(None).rows == () and "held by process 1" in world.log[0]
    for refused in (lambda: add(second, "4e5f6a7b"), lambda: second.remove("p", "0a1b2c3d")):
        with pytest.raises(Refused):
            refused()
    assert [one.id for one in store.each(world.home.layout, world.log.append)] == ["0a1b2c3d"]
    owners.clear()
    world.clock.move(second.round())
    second.round()
    assert world.notifier.sent == [("desktop", None, "completed")]


@pytest.mark.rule("WA-06")
@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("SLACK=xoxb-secret true", "true"),
        ("A=secret B='secret secret' /opt/bin/tell secret", "tell"),
        ('A="secret secret"; tell', "tell"),
        ("A=secret;echo secret", "echo"),
        ("A=secret", "…"),
        ("A='secret", "…"),
        ("A=`cat secret` true", "…"),
        ('"secret words" x', "…"),
        ("$secret x", "…"),
        (">/tmp/secret A=secret", "secret"),  # a file is no secret
        ("mail -s 'x' me", "mail"),
        ("# secret", "…"),
    ],
)
def test_of_a_command_the_name_of_its_program_alone_is_shown(line: str, shown: str) -> None:
    assert str(way(f"cmd:{line}")) == f"cmd:{shown}"


@pytest.mark.rule("WA-07")
@pytest.mark.parametrize(
    ("address", "words"),
    [
        *((f"https://{place}/x", "a user or a password") for place in ("u:secret@h", "secret@h", "u:secret@[::1]")),
        *(
            (f"https://{place}/secret", "a port")
            for place in ("h:99999", "h:0", "[::1]:65536", "h:000080", "h:" + "9" * 5000)
        ),
        *((f"https://h/{tail}", "a space") for tail in ("a secret", "secret\n", "\tsecret", "secrét", "a\0secret")),
        *(
            (f"https://{place}/x", "no host")
            for place in ("::1", "[::1", "h:", "h:port", "-h", "[:::::]", "h#secret", "h\\x")
        ),
        *((one, "an address is due") for one in ("ftp://h/x", "https:///x", "h/x", "", "https://")),
    ],
)
def test_a_web_hook_that_can_never_work_is_refused(address: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as error:
        way(f"webhook:{address}")
    assert "secret" not in str(error.value)


@pytest.mark.rule("WA-07")
@pytest.mark.parametrize(
    "address", ["https://h", "http://127.0.0.1:8080/a?b=c", "https://[::1]:9/x", "HTTPS://A-b.example:65535/x#y"]
)
def test_a_web_hook_that_is_taken_is_an_address_of_the_door(address: str) -> None:
    assert Origin.of_url(way(f"webhook:{address}").value).port
    assert str(way(f"webhook:{address}")).startswith("webhook:")


def test_a_watch_is_private_on_disk(world: World) -> None:
    one = Watch("a", "p", "a", rfc3339(world.clock.now()), ways=(way("webhook:https://h/secret"),))
    store.write(world.home.layout, replace(one, state="running"))
    (file,) = world.home.layout.watches.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600 and world.home.layout.watches.stat().st_mode & 0o777 == 0o700
