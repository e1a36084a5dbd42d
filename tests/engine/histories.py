"""Any history of one queue, with the power going at any write of it, driven step by step in one thread."""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from aj.base.errors import OutcomeUnknown, Refused
from aj.engine import reconcile, retry, submit, worker
from aj.engine.desk import Desk
from aj.engine.means import Entrance, Means
from aj.engine.steps import Steps
from aj.model.ticket import Mode, Outcome, Ticket, TicketState
from aj.store import journal, tickets
from aj.store.archives import Archives
from aj.wire.messages import Submission
from tests.conftest import MovedClock
from tests.engine import host
from tests.engine.stand import BARE, FAR, NEAR, REFUSED, Far, Near, Packer, Services, raising
from tests.store import nouns

KEY = "_none"


class Dead(BaseException):
    """The power went."""


class Disk:
    """Counts what reaches the disk, and lets the power go before, in or after one of these."""

    NAMES = ("fsync", "replace", "pwrite", "unlink", "ftruncate", "rename")

    def __init__(self) -> None:
        self._real = {name: getattr(os, name) for name in self.NAMES}
        self._left = -1
        self._how = "before"
        self.is_dead = False

    def plan(self, left: int | None, how: str) -> None:
        """Let the power go at the write that so many others precede; None for never."""
        self._left = -1 if left is None else left
        self._how = how
        self.is_dead = False

    def __enter__(self) -> Disk:
        for name in self.NAMES:
            setattr(os, name, self._wrapped(name))
        return self

    def __exit__(self, *_: object) -> None:
        for name, real in self._real.items():
            setattr(os, name, real)

    def _wrapped(self, name: str) -> Callable[..., object]:
        real = self._real[name]

        def call(*arguments: object, **more: object) -> object:
            if self.is_dead:
                raise Dead
            self._left -= 1
            if self._left != -1:
                return real(*arguments, **more)
            self.is_dead = True
            if self._how == "in" and name == "pwrite":
                handle, data, offset = arguments
                assert isinstance(data, bytes)
                real(handle, data[: len(data) // 2], offset)
            elif self._how == "after":
                real(*arguments, **more)
            raise Dead

        return call


CRASH = st.none() | st.tuples(st.integers(0, 14), st.sampled_from(["before", "in", "after"]))
NOTHING: Callable[[object], None] = lambda _: None  # noqa: E731
ANSWERS: dict[str, tuple[Callable[[object], None], Callable[[object], None]]] = {
    "yes": (NOTHING, NOTHING),
    "no": (raising(REFUSED), NOTHING),
    "lost before": (raising(OutcomeUnknown("lost")), NOTHING),
    "lost after": (NOTHING, raising(OutcomeUnknown("lost"))),
    "broken after": (NOTHING, raising(ValueError("odd"))),
}


class Queue(RuleBasedStateMachine):
    """One project's queue, driven step by step in one thread, with the power going at any write."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="aj-q-"))
        variables = {
            f"AJ_{kind}_DIR": str(self.root / kind.lower()) for kind in ("STATE", "CACHE", "CONFIG", "RUNTIME")
        }
        before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        self.home = host.home(self.root)
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        for name in ("far", "near", "tree"):
            (self.root / name).mkdir()
        (self.root / "tree" / "train.py").write_text("x")
        self.far, self.near = Far(self.root / "far"), Near(self.root / "near")
        self.clock = MovedClock()
        self.disk = Disk()
        self.asked: dict[str, Submission] = {}
        self.told: set[str] = set()
        self.canceled: set[str] = set()
        self.over: dict[str, tuple[TicketState, Outcome | None]] = {}
        self.count = 0

    @initialize()
    def begin(self) -> None:
        self.home.layout.prepare()
        self._open()

    def teardown(self) -> None:
        self.desk.close()
        if self.desk._ownership is not None:
            self.desk._ownership.release()
        shutil.rmtree(self.root)

    def _open(self) -> None:
        """What a new daemon does; the lock of a dead one is free."""
        layout = self.home.layout
        self.means = Means(
            layout=layout,
            clock=self.clock,
            settings=self.home.settings,
            debug=False,
            places=Services(self.far),
            jobs=self.near,
            pack=Packer(self.home),  # type: ignore[arg-type]
            archives=Archives(layout),
            ids=journal.KnownIds(layout),
            entrance=Entrance(),
            steps=Steps(),
        )
        self.desk = Desk(layout, KEY, None, self.clock, lambda *_: None)
        self.desk.open("here")

    def _do(self, when: tuple[int, str] | None, step: Callable[[], object]) -> object | None:
        """Do a step, with the power going at a write of it; then a new daemon begins. None when it died."""
        self.clock.move(1)
        self.disk.plan(*(when or (None, "before")))
        try:
            with self.disk:
                result = step()
            died = self.disk.is_dead  # some step may have swallowed the end: it is dead all the same
        except Dead:
            died = True
        if not died:
            return result
        assert self.desk._ownership is not None
        self.desk._ownership.release()
        self._open()
        return None

    def _names(self, *states: TicketState) -> list[str]:
        return [ticket.ticket for ticket in self.desk.all() if ticket.state in states]

    # What may happen

    @rule(mode=st.sampled_from(Mode), service=st.sampled_from([FAR, NEAR, BARE]), when=CRASH)
    def accept(self, mode: Mode, service: str, when: tuple[int, str] | None) -> None:
        self.count += 1
        tree = str(self.root / "tree")
        (self.root / "tree" / "train.py").write_text(str(self.count // 3))
        spec = nouns.spec(self.count, service=service, root=tree)
        asked = Submission(spec.id, mode, spec)
        self.asked[spec.id] = asked
        accepted = self._do(when, lambda: submit.accept(self.desk, asked, self.means))
        if accepted is not None:
            self.told.add(tickets.name_of(spec.id))

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), when=CRASH)
    def repeat(self, data: st.DataObject, when: tuple[int, str] | None) -> None:
        asked = data.draw(st.sampled_from(sorted(self.asked.values(), key=lambda one: one.key)))
        accepted = self._do(when, lambda: submit.accept(self.desk, asked, self.means))
        if isinstance(accepted, submit.Accepted):
            assert accepted.ticket.id == asked.key
            assert not (accepted.is_new and accepted.ticket.ticket in self.told)
            self.told.add(accepted.ticket.ticket)

    @rule(answer=st.sampled_from(sorted(ANSWERS)), when=CRASH)
    def work(self, answer: str, when: tuple[int, str] | None) -> None:
        self._answer(answer)

        def step() -> None:
            ticket = self.desk.take_next()
            if ticket is not None:
                worker.carry_out(ticket, self.desk, self.means)

        self._do(when, step)

    @precondition(lambda self: self._direct())
    @rule(data=st.data(), answer=st.sampled_from(sorted(ANSWERS)), when=CRASH)
    def work_directly(self, data: st.DataObject, answer: str, when: tuple[int, str] | None) -> None:
        name = data.draw(st.sampled_from(self._direct()))
        self._answer(answer)
        ticket = self.desk.find(name)
        self._do(when, lambda: worker._run_direct(ticket, self.desk, self.means))

    def _direct(self) -> list[str]:
        return [
            ticket.ticket
            for ticket in self.desk.all()
            if ticket.mode is Mode.DIRECT and ticket.state is TicketState.QUEUED
        ]

    def _answer(self, word: str) -> None:
        self.far.before, self.far.after = ANSWERS[word]
        self.near.before, self.near.after = ANSWERS[word]

    @precondition(lambda self: self._names(TicketState.QUEUED))
    @rule(data=st.data(), when=CRASH)
    def cancel(self, data: st.DataObject, when: tuple[int, str] | None) -> None:
        name = data.draw(st.sampled_from(self._names(TicketState.QUEUED)))
        if self._do(when, lambda: self.desk.cancel(name)) is not None:
            self.canceled.add(name)

    @precondition(lambda self: self._names(TicketState.FAILED))
    @rule(data=st.data(), when=CRASH)
    def look(self, data: st.DataObject, when: tuple[int, str] | None) -> None:
        name = data.draw(st.sampled_from(self._names(TicketState.FAILED)))
        if self.desk.find(name).outcome is Outcome.UNKNOWN:
            whole = self.desk.whole(name)
            self._do(when, lambda: reconcile.settle(whole, self.desk, self.means, threading.Event()))

    @precondition(lambda self: self._names(TicketState.FAILED))
    @rule(data=st.data(), force=st.booleans(), when=CRASH)
    def retry(self, data: st.DataObject, force: bool, when: tuple[int, str] | None) -> None:
        name = data.draw(st.sampled_from(self._names(TicketState.FAILED)))

        def step() -> object:
            try:
                return retry.retry(name, self.desk, self.means, force=force)
            except (Refused, OutcomeUnknown):
                return None

        accepted = self._do(when, step)
        if isinstance(accepted, submit.Accepted):
            self.told.add(accepted.ticket.ticket)

    @rule()
    def restart(self) -> None:
        self.desk.close()
        self._open()

    # What always holds

    @invariant()
    def nothing_told_is_lost(self) -> None:
        if hasattr(self, "desk"):
            assert self.told <= {ticket.ticket for ticket in self.desk.all()}
            assert self.desk.warnings() == ()

    @invariant()
    def nothing_is_sent_twice_or_after_its_cancel(self) -> None:
        sent = [*self.far.sent, *self.near.admitted]
        assert len(sent) == len(set(sent))
        assert not {name[2:] for name in self.canceled} & {name[-8:] for name in sent}

    @invariant()
    def every_ticket_says_what_is_so(self) -> None:
        for ticket in self.desk.all() if hasattr(self, "desk") else []:
            there = ticket.id in self.near.jobs or f"far-{ticket.name}" in self.far.jobs
            sent = ticket.id in {name[-8:] for name in (*self.far.sent, *self.near.admitted)}
            if ticket.outcome is Outcome.SUBMITTED:
                assert there
            elif ticket.outcome is not Outcome.UNKNOWN:
                assert not there
            if ticket.state in (TicketState.QUEUED, TicketState.CANCELED):
                assert not sent
            assert ticket.state is not TicketState.RUNNING  # nobody works between two steps

    @invariant()
    def what_is_known_stays(self) -> None:
        for ticket in self.desk.all() if hasattr(self, "desk") else []:
            ended = ticket.state.is_final and ticket.outcome is not Outcome.UNKNOWN
            stood = self.over.get(ticket.ticket)
            assert stood in (None, (ticket.state, ticket.outcome))
            if ended:
                self.over[ticket.ticket] = (ticket.state, ticket.outcome)

    @invariant()
    def the_line_keeps_its_order(self) -> None:
        if not hasattr(self, "desk"):
            return
        order = {ticket.id: ticket.sequence for ticket in self.desk.all() if ticket.mode is Mode.QUEUED}
        for sent in (self.far.sent, self.near.admitted):
            seen = [order[name[-8:]] for name in sent if name[-8:] in order]
            assert seen == sorted(seen)

    @invariant()
    def the_journal_tells_of_everything_that_was_sent(self) -> None:
        damaged: list[str] = []
        records = {record.id: record for record in journal.read(self.home.layout, KEY, damaged.append)}
        assert damaged == []
        assert {name[-8:] for name in (*self.far.sent, *self.near.admitted)} <= records.keys()

    @invariant()
    def a_look_from_outside_says_the_same(self) -> None:
        if hasattr(self, "desk"):
            looked = tickets.scan(self.home.layout, KEY)
            assert looked.warnings == ()
            assert [_said(ticket) for ticket in looked.tickets] == [_said(ticket) for ticket in self.desk.all()]

    @invariant()
    def every_ticket_that_may_run_has_its_code(self) -> None:
        for ticket in self.desk.all() if hasattr(self, "desk") else []:
            if ticket.code and ticket.state in (TicketState.QUEUED, TicketState.FAILED):
                assert self.home.layout.archive(ticket.code.digest).exists()


def _said(ticket: Ticket) -> tuple[object, ...]:
    return dataclasses.astuple(dataclasses.replace(ticket, request=None, code=None, git=None, error=None))
