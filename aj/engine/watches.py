"""Watches: jobs of which somebody wants to hear when they move, whoever runs them.

A move is on disk before it is told, so it is told once: a daemon that dies while a notice is on its way says
afterwards that it is not sure, and does not send it again. What moved while no daemon ran is told when the next
one looks. One thread looks; notices leave by the outbox, so that none of them delays a look or another way.
Of two daemons over one state folder the one that owns a project tells its watches, and nobody else.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Mapping
from dataclasses import field, replace

from aj.base import redact
from aj.base.clock import Clock, from_rfc3339, rfc3339
from aj.base.errors import AjError, UserError
from aj.base.noun import dataclass
from aj.engine.notify import Notice, Notifier
from aj.engine.outbox import Outbox
from aj.model import watch as ways
from aj.model.json import Json
from aj.model.state import JobState
from aj.model.watch import WEBHOOK, Delivery, Sighting, Watch, Way
from aj.store import watches as store
from aj.store.layout import Layout
from aj.wire.watch import WatchDone, WatchList, WatchWish, row_of

LOOK_S = 15.0  # between two looks at a job elsewhere
BREATH_S = 0.2  # between two rounds, however much happens
SLOWEST_S = 300.0  # when it cannot be reached
FOREIGN_S = 60.0  # between two tries to take over what another daemon owns
ARRIVAL_S = 600.0  # how long a watch waits for a job that nobody has seen yet
LAST_NOTICES_S = 1.0  # how long notices, and the last look, may hold up the daemon's end
KEPT_S = 7 * 86400.0  # how long a watch of an ended job is shown

Look = Callable[[Watch], Sighting | None]
Publish = Callable[[str, str | None, Mapping[str, Json]], None]


@dataclass(frozen=True)
class Means:
    """What watching needs. `look` raises AjError when it cannot see.

    `own` makes a project this daemon's. It raises Refused naming another owner, AjError.
    """

    layout: Layout
    clock: Clock
    look: Look
    publish: Publish
    notifier: Notifier
    log: Callable[[str], None]
    outbox: Outbox = field(default_factory=Outbox)
    own: Callable[[str], None] = lambda _: None


class _Flight:
    """A notice that has left by some ways: how many are still out, and why others did not arrive."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.refused: list[str] = []


class Watches:
    """All watches of the projects that this daemon owns. Safe between threads."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._guard = threading.RLock()
        self._all: dict[tuple[str, str], Watch] = {}
        self._due: dict[tuple[str, str], float] = {}
        self._pauses: dict[tuple[str, str], float] = {}
        self._ours: set[str] = set()
        self._foreign: set[str] = set()  # projects with watches that another daemon owns
        self._asked_at = 0.0  # when those were last tried to be ours, by the monotonic clock
        self._flights: dict[tuple[str, str], _Flight] = {}  # the newest of each watch
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    # The daemon's own questions

    def start(self) -> None:
        """Take up what is on disk of every project that is ours or becomes so now, and look at once."""
        found = store.each(self._means.layout, self._means.log)
        self._foreign = {watch.project for watch in found if not watch.is_over or watch.leaving}
        self._take_foreign()

    def adopt(self, project: str) -> None:
        """Take up the watches of a project that this daemon owns from now on."""
        with self._guard:
            self._foreign.discard(project)
            if project in self._ours:
                return
            self._ours.add(project)
            for watch in store.each(self._means.layout, lambda _: None):  # `start` tells of damaged ones
                if watch.project == project:
                    self._all[_key(watch)] = watch
                    if watch.leaving:
                        self._settle(watch, Delivery.UNSURE)
        if self.open_count():
            self._run()
            self._wake.set()

    def _take(self, project: str) -> None:
        """Make a project ours, and its watches. Raises Refused, AjError."""
        self._means.own(project)  # outside of the guard: whoever opens a project lets its watches be adopted, too
        self.adopt(project)

    def _take_foreign(self) -> None:
        """Take over what another daemon has let go of meanwhile."""
        self._asked_at = self._means.clock.monotonic()
        for project in sorted(self._foreign):
            try:
                self._take(project)
            except AjError as error:
                self._means.log(f"watches of project {project} are not told by this daemon: {error.message}")
        if self._foreign:
            self._run()

    def stop(self) -> None:
        """End the looking. A notice that does not arrive in a moment holds up nothing: nobody is sure of it then."""
        self._stop.set()
        self._wake.set()
        end = self._means.clock.monotonic() + LAST_NOTICES_S
        self._means.outbox.stop(LAST_NOTICES_S)
        if self._thread is not None:
            self._thread.join(max(0.0, end - self._means.clock.monotonic()))
        with self._guard:
            self._flights.clear()
            for watch in list(self._all.values()):
                if watch.leaving:
                    self._settle(watch, Delivery.UNSURE)

    def open_count(self) -> int:
        """Return how many watched jobs have not ended, or have an end that is still being told."""
        with self._guard:
            return sum(not watch.is_over or watch.leaving for watch in self._all.values())

    def nudge(self) -> None:
        """Look soon: something moved on this machine."""
        self._wake.set()

    # A caller's questions

    def listing(self, project: str | None) -> WatchList:
        """List the watches of a project, or of all, as far as they are ours."""
        if project is not None:
            with contextlib.suppress(AjError):  # another daemon's: `add` and `remove` say so
                self._take(project)
        with self._guard:
            found = [watch for watch in self._all.values() if project in (None, watch.project)]
        return WatchList(tuple(row_of(watch) for watch in sorted(found, key=lambda watch: (watch.added_at, watch.id))))

    def add(self, project: str, folder: str | None, wish: WatchWish) -> WatchDone:
        """Watch a job from now on; ways are added to those that it has.

        Raises UserError on a way that is none, Refused when another daemon owns the project.
        """
        try:
            wanted = tuple(ways.way(word) for word in wish.ways)
        except ValueError as error:
            raise UserError(f"--notify: {error}", code="bad-notify") from error
        self._take(project)
        with self._guard:
            before = self._all.get((project, wish.id))
            watch = before or Watch(
                wish.id, project, wish.name, rfc3339(self._means.clock.now()), wish.handle, folder, ahead=wish.ahead
            )
            made = replace(watch, ways=tuple(dict.fromkeys((*watch.ways, *wanted))))
            if made == before:
                return WatchDone("noop", row_of(made), "it is watched already")
            self._keep(made)
            self._due[_key(made)] = 0.0
        self._run()
        self._wake.set()
        return WatchDone("ok", row_of(made))

    def remove(self, project: str, job_id: str) -> WatchDone:
        """Watch a job no longer. Raises Refused when another daemon owns the project."""
        self._take(project)
        with self._guard:
            found = self._all.pop((project, job_id), None)
            store.remove(self._means.layout, project, job_id)
        if found is None:
            return WatchDone("noop", None, f"{job_id} was not watched")
        return WatchDone("ok", row_of(found))

    # Looking

    def _run(self) -> None:
        with self._guard:
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._rounds, name="watches", daemon=True)
                self._thread.start()

    def _rounds(self) -> None:
        while not self._stop.is_set():
            self._wake.clear()
            try:
                pause_s = self.round()
            except Exception as error:  # noqa: BLE001  whatever it is, the next round may do better
                self._means.log(f"watches: {_words(error)}")
                pause_s = LOOK_S
            self._means.clock.wait(self._stop, BREATH_S)
            self._means.clock.wait(self._wake, pause_s)

    def round(self) -> float:
        """Look at every job that is due, tell what moved, and return how long nothing is due, in seconds."""
        if self._foreign and self._means.clock.monotonic() - self._asked_at >= FOREIGN_S:
            self._take_foreign()
        for key in self._due_now():
            if self._stop.is_set():
                break
            self._visit(key)
        with self._guard:
            self._forget_old()
            now = self._means.clock.monotonic()
            due = [self._due.get(key, 0.0) - now for key, watch in self._all.items() if not watch.is_over]
            longest_s = FOREIGN_S if self._foreign else SLOWEST_S
        return max(BREATH_S, min(longest_s, min(due, default=SLOWEST_S)))

    def _due_now(self) -> list[tuple[str, str]]:
        now = self._means.clock.monotonic()
        with self._guard:
            open_ = [key for key, watch in self._all.items() if not watch.is_over]
            return [key for key in open_ if self._all[key].handle is None or self._due.get(key, 0.0) <= now]

    def _visit(self, key: tuple[str, str]) -> None:
        with self._guard:
            watch = self._all.get(key)
        if watch is None:
            return
        try:
            seen = self._means.look(watch)
        except Exception as error:  # noqa: BLE001  one job that cannot be looked at hides no other
            if not isinstance(error, AjError):
                self._means.log(f"watch of {watch.id}: {_words(error)}")
            self._later(key, failed=True)
            problem = _words(error)
            self._saw(key, lambda now: self._change(replace(now, problem=problem), now))
            return
        self._later(key, failed=False)
        self._saw(key, lambda now: self._judge(now, seen))

    def _saw(self, key: tuple[str, str], act: Callable[[Watch], object]) -> None:
        """Act on a watch as it stands after the look, unless it was removed meanwhile or this is the end."""
        with self._guard:
            watch = self._all.get(key)
            if watch is not None and not self._stop.is_set():
                act(watch)

    def _judge(self, watch: Watch, seen: Sighting | None) -> None:
        if seen is None:
            self._unseen(watch)
        elif seen.state != watch.state:
            self._moved(watch, seen)
        else:
            self._change(replace(watch, problem=None, handle=watch.handle or seen.handle), watch)

    def _later(self, key: tuple[str, str], *, failed: bool) -> None:
        with self._guard:
            pause_s = min(SLOWEST_S, self._pauses.get(key, LOOK_S) * 2) if failed else LOOK_S
            self._pauses[key] = pause_s
            self._due[key] = self._means.clock.monotonic() + pause_s

    def _unseen(self, watch: Watch) -> None:
        """A job that nobody knows: it may be on its way here; after a while it is not."""
        waited_s = self._means.clock.now() - from_rfc3339(watch.changed_at or watch.added_at)
        if watch.state is None and waited_s < ARRIVAL_S:
            return
        self._change(replace(watch, is_over=True, problem="no such job is known any more"), watch)

    def _moved(self, watch: Watch, seen: Sighting) -> None:
        """Tell a move. Where a job stands when it is seen for the first time is none, unless that is its end.

        A watch that is older than its job missed nothing before: there all but the line itself is a move.
        """
        has_begun = watch.ahead and seen.state != JobState.QUEUED.value
        is_news = watch.state is not None or seen.is_final or has_begun
        now = replace(
            watch,
            state=seen.state,
            message=seen.message,
            changed_at=rfc3339(self._means.clock.now()),
            is_over=seen.is_final,
            handle=watch.handle or seen.handle,  # from then on it is asked for there, now and then
            leaving=watch.leaving or (is_news and bool(watch.ways)),
            problem=None,
        )
        if not self._change(now, watch) or not is_news:
            return
        notice = Notice(now, watch.state)
        self._means.publish("watch", watch.project, notice.payload)
        if is_news and now.ways:
            self._hand_out(notice)

    def _hand_out(self, notice: Notice) -> None:
        flight = self._flights[_key(notice.watch)] = _Flight(len(notice.watch.ways))
        for way in notice.watch.ways:
            self._means.outbox.put(_lane(way), functools.partial(self._tell, flight, way, notice))

    def _tell(self, flight: _Flight, way: Way, notice: Notice) -> None:
        """Send a notice by one way, unless its watch is removed; with the last way of the newest one it is over."""
        key = _key(notice.watch)
        with self._guard:
            is_watched = key in self._all
        refused = self._send(way, notice) if is_watched else None
        with self._guard:
            flight.left -= 1
            if refused is not None:
                flight.refused.append(refused)
            watch = self._all.get(key)
            if flight.left or self._flights.get(key) is not flight:
                return  # what left before it by the same ways has arrived when this one has
            del self._flights[key]
            if watch is not None:
                self._settle(
                    watch, Delivery.FAILED if flight.refused else Delivery.SENT, "; ".join(flight.refused) or None
                )

    def _send(self, way: Way, notice: Notice) -> str | None:
        """Send a notice by one way; return why it did not arrive, or None."""
        try:
            self._means.notifier.send(way, notice)
        except Exception as error:  # noqa: BLE001  a way that fails, however it does, stops no other
            words = _words(error)
            self._means.log(f"notice of {notice.watch.id} by {way}: {words}")
            return words
        return None

    def _settle(self, watch: Watch, delivery: Delivery, refusal: str | None = None) -> None:
        """Note what became of the last notice; where the disk refuses, its file goes on saying that it left."""
        settled = replace(watch, leaving=False, delivery=delivery, refusal=refusal)
        try:
            self._keep(settled)
        except AjError as error:
            self._means.log(f"watch of {watch.id}: {error.message}")
            self._all[_key(settled)] = settled

    def _change(self, now: Watch, before: Watch) -> bool:
        """Keep a watch as it stands now; False when it was changed or removed meanwhile, or cannot be kept."""
        with self._guard:
            if self._all.get(_key(before)) != before:
                return False
            if now == before:
                return True
            try:
                self._keep(now)
            except AjError as error:  # what is not on disk is not told: the next round tries again
                self._means.log(f"watch of {now.id}: {error.message}")
                return False
            return True

    def _keep(self, watch: Watch) -> None:
        store.write(self._means.layout, watch)
        self._all[_key(watch)] = watch

    def _forget_old(self) -> None:
        limit = self._means.clock.now() - KEPT_S
        for key, watch in list(self._all.items()):
            if watch.is_over and from_rfc3339(watch.changed_at or watch.added_at) < limit:
                del self._all[key]
                store.remove(self._means.layout, *key)


def _key(watch: Watch) -> tuple[str, str]:
    return watch.project, watch.id


def _lane(way: Way) -> str:
    """What hangs together: of web hooks those of one host, else what does the very same."""
    return str(way) if way.kind == WEBHOOK else f"{way.kind}:{way.value}"


def _words(error: Exception) -> str:
    return redact.text(error.message if isinstance(error, AjError) else f"{type(error).__name__}: {error}")
