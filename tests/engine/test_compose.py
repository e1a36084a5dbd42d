"""The engine as the daemon gets it: real code, real jobs, the user's settings, and no wrong one in its way."""

from __future__ import annotations

import logging
import sys
import tarfile
from pathlib import Path

import pytest

from aj.backend import registry
from aj.backend.protocol import Traits
from aj.backend.registry import Entry
from aj.base import clock as clocks
from aj.base.errors import UserError
from aj.engine import compose
from aj.model.code import CodePlan
from aj.model.job import JobSpec, Shape
from aj.model.state import JobState
from aj.model.ticket import Mode, TicketState
from aj.pack import archive, node
from aj.wire.messages import Submission
from tests.conftest import Home, MovedClock
from tests.store import nouns


def spec(root: Path, number: int, *argv: str, service: str = "local") -> JobSpec:
    aj_id = nouns.aj_id(number)
    return JobSpec(
        id=aj_id,
        name=f"job_{aj_id}",
        service=service,
        template="t",
        experiment=None,
        directory=str(root),
        project=None,
        shape=Shape(1, 0, 1, 0),
        argv=argv,
        code=CodePlan(str(root)),
        inherited={"PATH": "/usr/bin:/bin"},
    )


@pytest.mark.rule("C-235", "C-236", "C-241")
def test_a_queued_submission_becomes_a_job_that_runs_the_code_as_it_was(
    home: Home, programs: None, real_clock: None
) -> None:
    tree = home.root / "tree"
    tree.mkdir()
    (tree / "say.py").write_text("print('as submitted')\n")
    (tree / ".codeignore").write_text("*.log\n!kept.log/inside\n")
    engine = compose.engine(home.settings, home.folders, clocks.SYSTEM)
    engine.start()
    try:
        asked = Submission(nouns.aj_id(1), Mode.QUEUED, spec(tree, 1, sys.executable, "say.py"))
        answer = engine.submit(None, asked)
        (tree / "say.py").write_text("print('edited')\n")
        assert answer.ticket.code is not None
        assert answer.ticket.code.files == 2
        end = engine.submission(None, nouns.aj_id(1), 60).ticket
        assert end.state is TicketState.COMPLETED
        assert end.result is not None
        assert end.result.handle == f"local://jobs/{nouns.aj_id(1)}"
        seen = 0
        while not (job := engine.jobs.wait(nouns.aj_id(1), seen, 60)).workload.state.is_final:
            seen = job.events_total
        assert job.workload.state is JobState.COMPLETED
        folder = home.layout.job(nouns.aj_id(1))  # its scratch folder is just being removed
        kept = [path for part in ("logs", "work") for path in (folder / part).rglob("*") if path.is_file()]
        said = [path.read_bytes() for path in kept]
        assert any(b"as submitted" in text for text in said)
        assert not any(b"edited" in text for text in said)
        assert engine.jobs.digests() == {answer.ticket.code.digest}
    finally:
        assert engine.drain(30)
        engine.stop()


def test_what_the_user_should_know_of_the_code_comes_with_its_place(home: Home) -> None:
    tree = home.root / "tree"
    tree.mkdir()
    (tree / "a.py").write_text("")
    (tree / ".codeignore").write_text("data/\n!data/keep.txt\n")
    packed = compose.packer(home.layout)(spec(tree, 1, "python"))
    assert len(packed.warnings) == 1
    assert ".codeignore:2" in packed.warnings[0]
    (tree / "a.py").unlink()
    (tree / ".codeignore").write_text("*\n")
    with pytest.raises(UserError, match="no files selected"):
        compose.packer(home.layout)(spec(tree, 1, "python"))


@pytest.mark.rule("C-086", "C-329")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[retention]\nqueue = "many"\n', "aj.toml:2: `retention.queue` is"),
        ("[local]\nslots = 0\n", "aj.toml:2: `local.slots` is 0"),
        ("[local]\ngpus = -1\n", "aj.toml:2: `local.gpus` is -1"),
        ("a = \n", "aj.toml:1"),
    ],
)
def test_a_wrong_setting_is_told_in_the_log_and_the_default_holds(
    home: Home, clock: MovedClock, caplog: pytest.LogCaptureFixture, text: str, says: str
) -> None:
    home.layout.user_settings.parent.mkdir(parents=True)
    home.layout.user_settings.write_text(text)
    with caplog.at_level(logging.WARNING):
        engine = compose.engine(home.settings, home.folders, clock)
    assert says in caplog.text
    assert engine.queue_list(None, False, (), 0).tickets == ()
    engine.stop()


def test_the_users_settings_count(home: Home, clock: MovedClock) -> None:
    home.layout.user_settings.parent.mkdir(parents=True)
    home.layout.user_settings.write_text("[retention]\nqueue = 3\n")
    engine = compose.engine(home.settings, home.folders, clock)
    assert engine._keep_final == 3
    engine.stop()


def test_a_service_that_only_renders_takes_no_submission(
    home: Home, clock: MovedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    shut = Entry("aj.backend.shut", "checked and rendered", Traits(driven=False, moves_code=False, submits=False))
    monkeypatch.setattr(registry, "ENTRIES", {**registry.ENTRIES, "shut": shut})
    engine = compose.engine(home.settings, home.folders, clock)
    for service in ("shut", "nope"):
        with pytest.raises(UserError):
            engine.submit(None, Submission(nouns.aj_id(1), Mode.QUEUED, spec(home.root, 1, "x", service=service)))
    engine.stop()


@pytest.mark.rule("C-195", "A-113", "A-135")
def test_only_code_for_a_workspace_has_the_runner_and_its_digest_is_that_of_the_tree(home: Home) -> None:
    tree = home.root / "tree"
    tree.mkdir()
    (tree / "a.py").write_text("print(1)\n")
    pack = compose.packer(home.layout)
    here, there, same = (pack(spec(tree, 1, "x", service=name)).code for name in ("local", "aml", "sing"))
    assert there == same
    assert here.digest == there.digest, "the digest counts what was selected"
    assert here.archive_sha256 != there.archive_sha256
    for code, names in ((here, ["a.py"]), (there, ["a.py", "aj_runner.sh"])):
        path = archive.find(home.layout.code, code)
        assert path is not None
        with tarfile.open(path) as members:
            assert members.getnames() == names
            if "aj_runner.sh" in names:
                assert members.getmember("aj_runner.sh").mode == 0o755
                runner = members.extractfile("aj_runner.sh")
                assert runner is not None and runner.read() == node.runner()


def test_a_tree_with_a_file_of_the_runners_name_is_refused(home: Home) -> None:
    tree = home.root / "tree"
    tree.mkdir()
    (tree / "aj_runner.sh").write_text("mine\n")
    with pytest.raises(UserError, match=r"aj_runner\.sh"):
        compose.packer(home.layout)(spec(tree, 1, "x", service="aml"))
