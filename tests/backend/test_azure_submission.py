"""Submissions to Azure through the engine: an answer that was lost is settled by looking, and never sent again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from aj.backend.protocol import Backend, Traits
from aj.backend.sing import backend
from aj.base.errors import OutcomeUnknown, Unavailable
from aj.engine.engine import Engine
from aj.model.job import JobSpec
from aj.model.record import RecordState
from aj.model.ticket import Mode, Outcome, Ticket, TicketState
from aj.store import journal
from aj.wire.messages import Submission
from tests.backend.azure import NAME, Courier, Desk, sent, spec
from tests.backend.sing.test_backend import desk, worked_example
from tests.backend.sing.test_payload import TEMPLATE
from tests.conftest import Home, MovedClock
from tests.engine.stand import Near, Packer
from tests.servers.azure import ONE, WORKSPACE
from tests.servers.loopback import Cut, problem

__all__ = ["desk"]  # a fixture

JOBS = f"{WORKSPACE.id}/jobs/"


@dataclass
class Places:
    """One service: Singularity, over the servers of the test."""

    desk: Desk

    def traits(self, service: str) -> Traits:
        return backend.SingBackend.traits

    def backend(self, service: str) -> Backend:
        return backend.make(self.desk.means)


@dataclass
class House:
    """An engine that hands jobs to Azure."""

    home: Home
    desk: Desk
    engine: Engine[Near]
    spec: JobSpec

    def submit(self) -> Ticket:
        """Submit directly and wait for the outcome."""
        self.engine.submit(None, Submission(self.spec.id, Mode.DIRECT, self.spec))
        return self.engine.submission(None, self.spec.id, 20).ticket

    def reconcile(self) -> Ticket:
        return self.engine.queue_reconcile(None, f"q-{self.spec.id}").ticket

    @property
    def states(self) -> list[str]:
        """The last state of each submission in the journal."""
        return [record.state.value for record in journal.read(self.home.layout, "_none", lambda _: None)]

    @property
    def puts(self) -> int:
        got = self.desk.azure.arm_server.got
        return len([one for one in got if one.method == "PUT" and one.path.startswith(JOBS)])


@pytest.fixture
def house(home: Home, desk: Desk, clock: MovedClock, tmp_path: Path) -> Iterator[House]:
    worked_example(desk.azure)
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "train.py").write_text("print('hello')\n")
    wanted = spec(tmp_path, TEMPLATE)
    wanted = replace(wanted, directory=str(tree), project=None, code=replace(wanted.code, root=str(tree), scripts=None))
    (home.root / "near").mkdir()
    near = Near(home.root / "near")
    engine: Engine[Near] = Engine(
        home.settings, home.folders, clock, lambda _: near, places=Places(desk), pack=Packer(home)
    )
    engine.start()
    yield House(home, desk, engine, wanted)
    engine.stop()


@pytest.mark.rule("A-183", "A-128")
def test_a_submission_that_works(house: House) -> None:
    ticket = house.submit()
    assert (ticket.state, ticket.outcome) == (TicketState.COMPLETED, Outcome.SUBMITTED)
    assert ticket.result is not None
    assert ticket.result.handle == f"sing://{ONE}/rg-one/ws-one/{NAME}"
    assert house.states == ["submitted"]
    assert b"python train.py" in sent(house.desk.azure)


@pytest.mark.rule("A-180", "A-181", "A-205")
@pytest.mark.parametrize(
    ("cut", "outcome"),
    [(Cut.AFTER_BODY, Outcome.SUBMITTED), (problem(503, "Busy", "down"), Outcome.NEVER_ARRIVED)],
)
def test_a_lost_answer_is_settled_by_looking(house: House, cut: Cut, outcome: Outcome) -> None:
    house.desk.azure.arm_server.on(f"PUT {JOBS}", cut)
    ticket = house.submit()
    assert (ticket.state, ticket.outcome) == (TicketState.FAILED, Outcome.UNKNOWN)
    assert ticket.error is not None
    assert ticket.error.type == OutcomeUnknown.__name__
    assert ticket.error.message == f"the answer to the submission of {NAME} was lost; it may be running"
    assert ticket.error.hint == f"`aj queue reconcile {ticket.ticket}` finds out what became of it"
    assert ticket.error.details["workspace"] == WORKSPACE.id
    assert house.states == ["unknown"]
    assert house.puts == 1
    settled = house.reconcile()
    assert settled.outcome is outcome
    assert house.puts == 1, "looking sends nothing"


@pytest.mark.rule("A-180", "A-181")
def test_a_place_that_does_not_answer_leaves_it_unknown(house: House) -> None:
    house.desk.azure.arm_server.on(f"PUT {JOBS}", Cut.AFTER_BODY)
    house.submit()
    house.desk.azure.arm_server.on(f"GET {JOBS}", problem(403, "AuthorizationFailed", "no"))
    with pytest.raises(OutcomeUnknown):
        house.reconcile()
    assert house.reconcile().outcome is Outcome.SUBMITTED


@pytest.mark.rule("A-127", "A-183")
def test_a_store_that_is_down_is_a_failure_that_may_be_tried_again(house: House) -> None:
    house.desk.courier = Courier(trouble=Unavailable("the store is down"))
    ticket = house.submit()
    assert (ticket.state, ticket.outcome) == (TicketState.FAILED, Outcome.FAILED)
    assert ticket.error is not None
    assert ticket.error.message == "nothing was submitted: the store is down"
    assert house.puts == 0


def forget(house: House) -> None:
    """Lose what was kept about where submissions were sent."""
    shutil.rmtree(house.desk.folder / "azure")


@pytest.mark.rule("A-181", "A-182", "C-233", "C-245", "C-249")
def test_what_was_never_intended_never_arrived_even_if_no_place_is_remembered(house: House) -> None:
    house.desk.azure.arm_server.on(f"PUT {JOBS}", problem(503, "Busy", "down"))
    house.submit()
    forget(house)
    with pytest.raises(OutcomeUnknown, match="whether it was sent there is not remembered"):
        house.reconcile()
    line = house.home.layout.journal("_none")
    line.unlink()  # as if it had been killed before it could write down what it intended
    assert house.reconcile().outcome is Outcome.NEVER_ARRIVED


@pytest.mark.rule("A-181", "C-249")
def test_a_look_that_died_before_the_ticket_was_written_is_taken_up(house: House) -> None:
    house.desk.azure.arm_server.on(f"PUT {JOBS}", problem(503, "Busy", "down"))
    ticket = house.submit()
    forget(house)
    (unknown,) = journal.read(house.home.layout, "_none", lambda _: None)
    found = replace(unknown, state=RecordState.FAILED, outcome=Outcome.NEVER_ARRIVED.value)
    assert journal.append(house.home.layout, "_none", found) is None
    assert (ticket.outcome, house.reconcile().outcome) == (Outcome.UNKNOWN, Outcome.NEVER_ARRIVED)
