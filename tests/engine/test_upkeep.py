"""Upkeep of jobs on clusters: renewed in time, given to their jobs, and nothing left that nobody needs."""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import parse_qs, quote

import pytest

from aj.azure.arm import Session
from aj.backend.volcano import names, payload, pins, porter, sas
from aj.backend.volcano.courier import Courier
from aj.backend.volcano.variables import Facts
from aj.base.clock import SYSTEM
from aj.base.errors import NotFound, UserError
from aj.engine.kubecare import DAY_S, KubeCare
from aj.engine.upkeep import EVERY_S, Upkeep
from aj.kube import config, jobs, secrets
from aj.kube.client import Cluster
from aj.kube.jobs import Job
from aj.model.job import JobSpec
from aj.model.json import Json
from aj.store.config import Config
from aj.store.traces import HELPER, SECRET, Trace, Traces
from aj.view import k8s as view
from aj.wire.kube import Refreshed
from tests.azure.conftest import secure_azurite as secure_azurite
from tests.backend.volcano.test_sas import AT, SHA, TEMPLATE, session
from tests.conftest import Home, MovedClock
from tests.servers import kube
from tests.servers.azurite import Azurite
from tests.servers.kube import NAMESPACE
from tests.template.kit import ID, built

OWNER = "0123456789abcdef"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


@dataclass
class House:
    """A daemon's part in it, before a cluster and a storage account."""

    server: kube.Cluster
    home: Home
    azurite: Azurite
    clock: MovedClock = field(default_factory=lambda: MovedClock(at=SYSTEM.now()))
    log: list[str] = field(default_factory=list)
    config: Config = field(default_factory=lambda: Config(()))

    @property
    def traces(self) -> Traces:
        return Traces(self.home.layout.clusters)

    @property
    def care(self) -> KubeCare:
        choose = self.choose or (lambda project: self.chosen)
        return KubeCare(self.open, self.session, choose, self.azurite.settings, self.clock, self.traces, OWNER)

    chosen: pins.Chosen = field(default_factory=lambda: pins.read(Config(())))
    choose: Callable[[str | None], pins.Chosen] | None = None

    def body(self, job: str, *, owner: str = OWNER) -> dict[str, Json]:
        """A pod that brings code."""
        about = {"name": names.helper(job), "labels": names.labels(job), "annotations": {porter.OWNER: owner}}
        spec = {"containers": [{"name": "upload", "image": "x:1"}]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}

    def wanted(self, job: str) -> porter.Helper:
        return porter.Helper(job, NAMESPACE, OWNER, self.body(job))

    def helper(self, job: str, *, host: str | None = None) -> None:
        """Leave such a pod behind, as a daemon that was killed does."""
        here = platform.node() if host is None else host
        self.traces.note(Trace(HELPER, job, kube.CONTEXT, NAMESPACE, self.clock.now(), host=here))
        self.open().create(porter.PODS, self.body(job), NAMESPACE)

    def session(self, project: str | None = None) -> Session:
        return replace(session(self.azurite), clock=self.clock)

    def open(self, context: str | None = None, namespace: str | None = None) -> Cluster:
        settings = self.home.having(KUBECONFIG=str(self.server.config)).settings
        return Cluster(config.read(settings).access(context, namespace), settings, self.clock, self.home.root / "k")

    def daemon(self) -> Upkeep:
        """What a daemon that begins now looks after."""
        return Upkeep(self.traces, self.clock, lambda: self.care, self.log.append)

    @property
    def spec(self) -> JobSpec:
        return built(self.home.root / "p", TEMPLATE).spec

    def signed(self, project: str | None = None) -> None:
        """Sign for a job and make its Secret, as a submission does."""
        spec = replace(self.spec, project=project)
        chosen = payload.options(spec)
        facts = Facts(AT, namespace=NAMESPACE, digest="d1", archive_sha256=SHA)
        courier = Courier(
            lambda _: self.session(),
            lambda _: self.chosen,
            self.azurite.settings,
            self.clock,
            self.traces,
            OWNER,
            lambda *_: None,
        )
        keys = payload.build(spec, chosen, facts).secret_keys
        values = courier.secrets(self.open(), spec, chosen, facts, keys)
        assert set(values) == set(keys)
        secrets.create(self.open(), payload.secret(spec, facts, values), NAMESPACE)

    def job(self) -> Job:
        """Create the job itself."""
        spec = self.spec
        facts = Facts(AT, namespace=NAMESPACE, digest="d1", archive_sha256=SHA)
        return jobs.create(self.open(), payload.build(spec, payload.options(spec), facts).job)

    def values(self) -> dict[str, str]:
        found = secrets.find(self.open(), names.secret(ID), NAMESPACE)
        assert found is not None
        return dict(found.data)

    def there(self) -> list[str]:
        return [*self.server.kube.names("secrets"), *(trace.name for trace in self.traces.all())]


@pytest.fixture
def house(home: Home, loopback: None, secure_azurite: Azurite, tmp_path: Path) -> Iterator[House]:
    with kube.running(tmp_path / "cluster", tls=False) as server:
        yield House(server, home, secure_azurite)


@pytest.mark.rule("V-084", "V-117")
def test_a_refresh_renews_every_key_and_tells_old_and_new_ends(house: House) -> None:
    house.signed()
    job, before = house.job(), house.values()
    house.clock.move(3600)
    found = house.care.refresh(house.open(), job)
    after = house.values()
    assert set(after) == set(before) == {"code.url", "storage.data", "storage.refs"}
    assert all(after[key] != before[key] for key in after)
    assert [row.key for row in found.signatures] == sorted(after)
    for row in found.signatures:
        ends = sas.end_of(before[row.key]), sas.end_of(after[row.key])
        assert (ends[1] or 0) - (ends[0] or 0) == pytest.approx(3600, abs=2)
        assert row.old_end and row.new_end and row.old_end < row.new_end
    longer = house.care.refresh(house.open(), job, 100)
    ends = [(sas.end_of(value) or 0) - house.clock.now() for value in house.values().values()]
    assert ends == pytest.approx([360_000] * 3, abs=2)
    trace = house.traces.find(SECRET, ID)
    assert trace is not None and trace.expires_at == pytest.approx(house.clock.now() + 360_000, abs=2)
    shown = "\n".join(str(line) for line in (view.refreshed(longer),))
    assert not any(value in shown for value in house.values().values())


@pytest.mark.rule("V-072", "A-011")
def test_signatures_reach_the_secret_and_nothing_else(house: House) -> None:
    house.signed()
    job = house.job()
    old = house.values()
    house.clock.move(3600)
    house.care.refresh(house.open(), job)
    signs = [
        parse_qs(value.partition("?")[2] or value)["sig"][0] for value in [*old.values(), *house.values().values()]
    ]
    plain = house.server.said()
    assert all(sign.encode() in plain or quote(sign).encode() in plain for sign in signs), "the search can find them"
    for got in house.server.server.got:
        body = b"" if got.path.startswith(SECRETS) else got.body
        said = f"{got.path} {got.query} {got.headers}".encode() + body
        assert not any(sign.encode() in said or quote(sign).encode() in said for sign in signs), got.path
    on_disk = b"".join(path.read_bytes() for path in house.home.root.parent.rglob("*") if path.is_file())
    kept = on_disk + "".join(house.log).encode()
    assert not any(sign.encode() in kept or quote(sign).encode() in kept for sign in signs)


@pytest.mark.rule("V-117", "V-084")
def test_what_cannot_be_refreshed_is_told(house: House) -> None:
    house.signed()
    job = house.job()
    for hours in (0.0, 169.0):
        with pytest.raises(UserError, match="a signature cannot live for"):
            house.care.refresh(house.open(), job, hours)
    secrets.remove(house.open(), names.secret(ID), NAMESPACE)
    with pytest.raises(NotFound, match=f"job {job.name} has no secret"):
        house.care.refresh(house.open(), job)


@pytest.mark.rule("V-084")
def test_a_daemon_renews_when_a_quarter_is_left_and_no_sooner(house: House) -> None:
    house.signed()
    house.job()
    first = house.values()
    daemon = house.daemon()
    house.clock.move(17 * 3600)
    daemon.round()
    assert house.values() == first
    house.clock.move(2 * 3600)
    daemon.round()
    second = house.values()
    assert all(second[key] != first[key] for key in second)
    daemon.round()
    assert house.values() == second
    house.chosen = replace(house.chosen, auto_refresh=False)
    house.clock.move(23 * 3600)
    daemon.round()
    assert house.values() == second
    assert house.log == []


@pytest.mark.rule("V-085", "V-103")
def test_a_secret_without_an_owner_is_given_to_its_job(house: House) -> None:
    house.signed()
    job = house.job()
    house.daemon().round()
    (owner,) = house.server.kube.stored("secrets", names.secret(ID))["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Job", job.uid)
    asked = len(house.server.requests("PUT", SECRETS))
    house.daemon().round()
    assert len(house.server.requests("PUT", SECRETS)) == asked


@pytest.mark.rule("V-085", "V-103")
def test_a_secret_without_an_owner_is_given_to_a_job_that_has_ended_meanwhile(house: House) -> None:
    house.signed()
    job = house.job()
    house.server.play(job.name, "Completed")
    house.daemon().round()
    (owner,) = house.server.kube.stored("secrets", names.secret(ID))["metadata"]["ownerReferences"]
    assert owner["uid"] == job.uid
    assert house.traces.all() == ()


@pytest.mark.rule("V-085", "V-101", "V-102")
def test_a_secret_whose_job_never_came_goes_after_a_day(house: House) -> None:
    house.signed()
    daemon = house.daemon()
    daemon.round()
    house.clock.move(DAY_S - 60)
    daemon.round()
    assert house.there() == [names.secret(ID), f"secret-{ID}.json"], "its job may still be found"
    house.clock.move(120)
    daemon.round()
    assert house.there() == []


@pytest.mark.rule("V-085")
def test_a_secret_of_somebody_else_stays(house: House) -> None:
    house.traces.note(Trace(SECRET, ID, kube.CONTEXT, NAMESPACE, 0.0, 1.0))
    house.server.kube.add("secrets", names.secret(ID), data={"x": "eA=="}, type="Opaque")
    house.daemon().round()
    assert house.there() == [names.secret(ID)]


@pytest.mark.rule("V-085")
def test_what_ended_or_went_is_forgotten(house: House) -> None:
    house.signed()
    job = house.job()
    house.server.play(job.name, "Completed")
    house.daemon().round()
    assert house.there() == [names.secret(ID)], "it dies with the job"
    house.traces.note(Trace(SECRET, "deadbeef", kube.CONTEXT, NAMESPACE, house.clock.now()))
    house.daemon().round()
    assert house.there() == [names.secret(ID)]


@pytest.mark.rule("V-068")
def test_helpers_of_an_earlier_daemon_are_swept_at_the_start(house: House) -> None:
    house.helper(ID)
    house.daemon().round()
    assert house.server.kube.names("pods") == []
    assert house.traces.all() == ()


@pytest.mark.rule("V-068")
def test_an_upload_of_this_very_daemon_goes_on_whatever_the_clock_says(house: House) -> None:
    """A clock that was put back makes its pod look older than the daemon."""
    house.clock.move(100)
    daemon = house.daemon()
    house.clock.move(-200)
    with porter.running(house.open(), house.wanted("deadbeef"), house.traces):
        daemon.round()
        house.daemon().round()
        assert house.server.kube.names("pods") == [names.helper("deadbeef")]
        assert [trace.job for trace in house.traces.all()] == ["deadbeef"]
    assert house.there() == [] and house.server.kube.names("pods") == []


@pytest.mark.rule("V-068")
def test_a_pod_that_could_not_be_removed_is_removed_by_the_same_daemon(house: House) -> None:
    daemon = house.daemon()
    house.clock.move(1)
    house.server.server.on(f"DELETE {PODS}", *[kube.unavailable()] * porter.TRIES)
    told: list[str] = []
    with porter.running(house.open(), house.wanted(ID), house.traces, told.append):
        pass
    assert "it is tried again later" in told[0] and house.server.kube.names("pods") == [names.helper(ID)]
    daemon.round()
    assert house.server.kube.names("pods") == [] and house.traces.all() == ()


@pytest.mark.rule("V-068")
def test_an_upload_of_another_machine_with_the_same_state_goes_on(house: House) -> None:
    house.helper(ID, host="another-machine")
    house.daemon().round()
    assert house.server.kube.names("pods") == [names.helper(ID)]
    assert [trace.job for trace in house.traces.all()] == [ID], "whoever made it may need that"
    house.open().delete(porter.PODS, names.helper(ID), NAMESPACE)
    house.daemon().round()
    assert house.traces.all() == ()


@pytest.mark.rule("V-068")
def test_a_pod_of_another_daemon_stays_until_it_has_been_over_for_long(house: House) -> None:
    house.server.nodes.fate(names.helper("00000001"), kube.exits(1, after=0))
    for job in ("00000001", "00000002"):
        house.open().create(porter.PODS, house.body(job, owner="another"), NAMESPACE)
    house.helper(ID)
    house.daemon().round()
    assert house.server.kube.names("pods") == [names.helper("00000001"), names.helper("00000002")]
    house.clock.move(porter.LONG_OVER_S + 60)
    house.helper(ID)
    house.daemon().round()
    assert house.server.kube.names("pods") == [names.helper("00000002")], "one that runs is never touched"


@pytest.mark.rule("V-068", "V-064")
def test_a_pod_that_took_the_place_of_ours_is_left_alone(house: House) -> None:
    cluster = house.open()
    with porter.running(cluster, house.wanted(ID), house.traces):
        cluster.delete(porter.PODS, names.helper(ID), NAMESPACE)
        cluster.create(porter.PODS, house.body(ID, owner="another"), NAMESPACE)
    assert house.server.kube.names("pods") == [names.helper(ID)]
    assert house.traces.all() == ()


@pytest.mark.rule("V-068")
def test_the_word_of_a_state_folder_is_drawn_once_and_like_no_other(tmp_path: Path) -> None:
    """Two machines with the same name and the same folders are two owners."""
    first, second = Traces(tmp_path / "a"), Traces(tmp_path / "b")
    assert first.owner() == first.owner() == Traces(tmp_path / "a").owner() != second.owner()
    assert first.all() == ()


@pytest.mark.rule("V-084")
def test_a_daemon_that_comes_back_late_renews_at_once(house: House) -> None:
    house.signed()
    house.job()
    first = house.values()
    house.clock.move(30 * 3600)  # there was none while the signatures ended
    house.daemon().round()
    assert all(house.values()[key] != first[key] for key in first)


@pytest.mark.rule("V-084")
def test_a_short_signature_is_renewed_before_it_ends(house: House) -> None:
    """A quarter of it is less than the time between two rounds."""
    house.signed()
    job = house.job()
    house.care.refresh(house.open(), job, 0.5)
    ends = sas.end_of(house.values()["storage.data"])
    assert ends is not None
    daemon = house.daemon()
    while house.clock.now() < ends:
        daemon.round()
        house.clock.move(EVERY_S)
    assert (sas.end_of(house.values()["storage.data"]) or 0) > house.clock.now()


@pytest.mark.rule("V-084")
def test_the_settings_of_a_jobs_own_project_count_when_it_is_renewed(house: House) -> None:
    house.signed(project="/a/project")
    house.job()
    first = house.values()
    asked: list[str | None] = []

    def chosen(project: str | None) -> pins.Chosen:
        asked.append(project)
        return replace(house.chosen, auto_refresh=False)

    house.choose = chosen
    house.clock.move(20 * 3600)
    house.daemon().round()
    assert (set(asked), house.values()) == ({"/a/project"}, first)
    house.choose = lambda project: replace(house.chosen, storage_sas_s=7200.0)
    house.daemon().round()
    ends = sas.end_of(house.values()["storage.data"])
    assert ends == pytest.approx(house.clock.now() + 7200, abs=2)
    trace = house.traces.find(SECRET, ID)
    assert trace is not None and trace.project == "/a/project"


@pytest.mark.rule("V-068")
def test_a_cluster_that_is_away_is_told_once_and_tried_again(house: House) -> None:
    house.traces.note(Trace(HELPER, ID, "no-such-context", NAMESPACE, 0.0))
    house.traces.note(Trace(SECRET, ID, kube.CONTEXT, NAMESPACE, 0.0))
    daemon = house.daemon()
    daemon.round()
    daemon.round()
    (words,) = house.log
    assert words.startswith(f"helper of job {ID} in no-such-context/{NAMESPACE}: no context called no-such-context")
    assert [trace.kind for trace in house.traces.all()] == [HELPER], "the other one was looked after"


@pytest.mark.rule("V-084")
def test_where_nothing_is_noted_nothing_is_made(home: Home, real_clock: None) -> None:
    looked = threading.Event()

    class Looking(MovedClock):
        def wait(self, event: threading.Event, timeout_s: float) -> bool:
            assert timeout_s == 600
            looked.set()
            return SYSTEM.wait(event, 30)

    def never() -> KubeCare:
        raise AssertionError("nothing is noted")

    upkeep = Upkeep(Traces(home.layout.clusters), Looking(), never, lambda words: None)
    upkeep.start()
    assert looked.wait(30)
    upkeep.stop()


def test_what_was_renewed_is_shown_without_its_values() -> None:
    from aj.wire.kube import Signature

    rows = (Signature("code.url", None, "2026-01-01T00:00:00.000000Z"),)
    shown = view.refreshed(Refreshed("train-x", NAMESPACE, "aj-1", rows))
    assert "code.url: until 2026-01-01" in str(shown)
