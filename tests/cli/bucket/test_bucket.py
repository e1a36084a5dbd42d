"""aj bucket, aj credentials and aj secrets against a real daemon; what a job's status tells of its checkpoints."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from aj.base.settings import Settings
from aj.cli import complete
from aj.model.bucket import Kind
from aj.store import buckets, credentials
from aj.store.credentials import Credential
from tests.cli.conftest import Shell
from tests.conftest import Home

VALUE = "c2VjcmV0LXRoYXQtbXVzdC1ub3QtYmUtc2Vlbg=="
Typing = Callable[[str], None]


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Typing:
    """Return what puts words on stdin."""

    def put(words: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(words.encode())))

    return put


def everything(home: Home) -> str:
    """All that lies in the state directory, but in the places of values themselves."""
    kept = (home.layout.credentials, home.layout.secrets)
    files = (path for path in home.layout.state.rglob("*") if path.is_file() and path.parent not in kept)
    return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)


@pytest.mark.rule("C-041", "C-070", "C-219", "AG-01")
def test_a_folder_goes_into_a_bucket_and_comes_back(live: Shell) -> None:
    for name in ("data/a", "data/b/c", "data/d"):
        live.write(name, f"this is {name}")
    assert live("bucket", "create", "training").code == 0
    assert live("bucket", "create", "training", "--json").json["status"] == "noop"
    up = live("bucket", "upload", "data", "training/v1", "--json").json
    assert up["action"] == "upload" and (up["items"][0]["objects"], up["items"][0]["skipped"]) == (3, 0)
    again = live("bucket", "upload", "data", "training/v1", "--json").json
    assert again["status"] == "noop" and again["items"][0]["skipped"] == 3
    assert live("bucket", "upload", "data/a", "training").code == 0

    listed = live("bucket", "list", "training", "-n", "2", "--json")
    assert listed.code == 3 and listed.json["truncated"] and len(listed.json["items"]) == 2
    rest = live("bucket", "list", "training", "--cursor", listed.json["next_cursor"], "-o", "name")
    assert rest.code == 0 and rest.out.split() == ["v1/b/c", "v1/d"]
    assert live("bucket", "list", "training/v1/b", "-o", "name").out.split() == ["v1/b/c"]
    assert live("bucket", "list", "-o", "name").out.split() == ["training"]

    down = live("bucket", "download", "training/v1", "back", "--json").json
    assert down["items"][0]["objects"] == 3
    assert (live.directory / "back/b/c").read_text() == "this is data/b/c"
    assert live("bucket", "download", "training/v1/a", "one", "--json").json["status"] == "ok"
    assert (live.directory / "one").read_text() == "this is data/a"

    refused = live("bucket", "delete", "training")
    assert refused.code == 5 and "4 objects" in refused.err
    assert live("bucket", "delete", "training", "--yes").code == 0
    assert live("bucket", "list", "training").code == 3
    assert live("bucket", "download", "training", "x").code == 3
    assert live("bucket", "create", "No Name").code == 2
    assert live("bucket", "create", "s3://x").code == 5


@pytest.mark.rule("C-219")
def test_what_cannot_go_is_named_and_nothing_else_is_kept_back(live: Shell) -> None:
    live.write("disk/data/a", "1")
    live.write("up/good", "2")
    assert live("credentials", "create", "disk", "--kind", "dir", "--root", "disk").code == 0
    here = live.directory / "disk/data"
    (here / "dot.").write_text("x")
    (here / "bad\nname").write_text("x")
    (here / "etc").symlink_to("/etc")
    whose = ("--credentials", "disk")
    listed = live("bucket", "list", "data", *whose)
    assert listed.code == 0 and "a" in listed.out
    down = live("bucket", "download", "data", "back", *whose)
    assert down.code == 0 and (live.directory / "back/a").read_text() == "1"
    for told in (listed.err, down.err):
        assert f"{here}/dot. is passed over" in told and "bad\\x0aname" in told and "etc is passed over" in told
    assert live("bucket", "download", "data", "back", *whose, "--json").json["status"] == "noop"
    through = live("bucket", "download", "data/etc/hostname", "got", *whose)
    assert through.code == 5 and "is a link" in through.err and not (live.directory / "got").exists()
    assert live("bucket", "upload", "up", "data/etc", *whose).code == 1
    missing = live("bucket", "download", "data/v9", "got", *whose)
    assert missing.code == 3 and "nothing named v9" in missing.err

    os.mkfifo(live.directory / "pipe")
    (live.directory / "link").symlink_to("up/good")
    (live.directory / "up/dot.").write_text("x")
    for name, words in (("pipe", "no regular file"), ("link", "it is a link"), ("up", "dot.")):
        ran = live("bucket", "upload", name, "data/new", *whose)
        assert ran.code == 1 and words in ran.err and "goes on where it was" not in ran.err
    assert live("bucket", "list", "data/new", "-o", "name", *whose).out.split() == ["new/good"]


@pytest.mark.rule("C-174")
def test_an_account_key_that_is_none_is_refused_and_not_shown(live: Shell, typed: Typing) -> None:
    typed("this-is-no-key!\n")
    refused = live("credentials", "create", "work", "--account", "store")
    assert refused.code == 2 and "base64" in refused.err and "this-is-no-key" not in refused.err + everything(live.home)
    assert "work" not in live("credentials", "list").out


@pytest.mark.rule("C-041", "C-174", "C-219", "BK-14", "BK-15")
def test_what_opens_storage_is_kept_and_never_shown(live: Shell, typed: Typing) -> None:
    typed(VALUE + "\n")
    ran = [live("credentials", "create", "work", "--account", "store")]
    live.write("key", VALUE)
    ran.append(live("credentials", "create", "file", "--account", "store", "--by", "sas", "--from", "key"))
    ran.append(live("credentials", "create", "me", "--account", "store", "--by", "sign-in"))
    ran.append(live("credentials", "create", "disk", "--kind", "dir", "--root", "disk"))
    ran.append(live("credentials", "list", "--json"))
    typed(VALUE + "\n")
    ran += [live("secrets", "create", "HF_TOKEN"), live("secrets", "list"), live("secrets", "list", "--json")]
    assert [one.code for one in ran] == [0] * len(ran), [one.err for one in ran]
    rows = {row["name"]: row for row in ran[4].json["items"]}
    assert list(rows) == ["local", "disk", "file", "me", "work"]
    assert (rows["work"]["opens"], rows["file"]["opens"], rows["me"]["opens"]) == (
        "account key",
        "signature",
        "sign-in",
    )
    refusals = [
        live("credentials", "create", "work", "--account", "store", "--by", "sign-in"),
        live("credentials", "create", "a", "--kind", "aws"),
        live("credentials", "create", "a", "--kind", "gcp"),
        live("credentials", "create", "a"),
        live("credentials", "create", "a", "--kind", "dir"),
        live("credentials", "create", "a", "--account", "s", "--by", "sign-in", "--from", "key"),
        live("credentials", "create", "a", "--account", "s", "--from", "absent"),
        live("secrets", "create", "NO-NAME", "--from", "key"),
        live("credentials", "delete", "work"),
        live("secrets", "delete", "ABSENT", "--yes"),
    ]
    assert [one.code for one in refusals] == [5, 2, 2, 2, 2, 2, 2, 2, 5, 3]
    assert "Amazon S3 is not supported" in refusals[1].err and "Google Cloud Storage" in refusals[2].err
    typed("")
    assert "the value is empty" in live("secrets", "create", "EMPTY").err
    assert live("credentials", "delete", "work", "file", "--yes").code == 0
    assert live("secrets", "delete", "HF_TOKEN", "--yes").code == 0
    assert VALUE not in everything(live.home) + "".join(one.out + one.err for one in (*ran, *refusals))


@pytest.mark.rule("CB-02", "SP-07", "SP-08", "BK-07", "DA-04")
def test_status_tells_what_of_a_checkpoint_has_arrived(live: Shell) -> None:
    live("bucket", "create", "models")
    live.write("train.py")
    line = 'cd "${AJ_CHECKPOINT_DIR:-/mnt/checkpoint}"; for n in 1 2 3; do head -c 1000000 /dev/zero >f$n; done'
    words = ("--checkpoint-bucket", "models", "--checkpoint-storage-region", "westeurope", "--checkpoint-keep", "2")
    ran = live("run", *words, "--wait", "--json", "sh", "-c", line)
    assert ran.code == 0, ran.err
    job_id = ran.json["item"]["id"] if "item" in ran.json else ran.json["id"]
    seen = live("status", job_id)
    assert "3 objects, 3.0 MB in the bucket, newest " in seen.out
    assert "models (dir of `local`, at /mnt/checkpoint): stays" in seen.out
    told = live("status", job_id, "--json").json["item"]["checkpoint"]
    assert (told["bucket"], told["mount"], told["retained"]) == ("models", "/mnt/checkpoint", True)
    assert (told["health"]["objects"], told["health"]["bytes"]) == (3, 3_000_000)
    assert live("bucket", "delete", "models", "--yes").code == 0


@pytest.mark.rule("BK-10", "BK-12")
def test_a_template_may_name_buckets_and_the_command_line_wins(live: Shell) -> None:
    live.write("train.py")
    live.template(
        "stored",
        "config:\n  target: {service: local}\n  storage_buckets:\n    input: {bucket: absent}\n"
        "    output: {bucket: results}\n  jobs: [{instance_count: 1, submit_args: {secrets: [TOKEN]}}]\n",
    )
    first = live("run", "-t", "stored", "true")
    assert first.code == 3 and "no secret `TOKEN`" in first.err
    live.write("token", "value-of-token")
    live("secrets", "create", "TOKEN", "--from", "token")
    assert "no input bucket" in live("run", "-t", "stored", "true").err
    live("bucket", "create", "there")
    ran = live("run", "-t", "stored", "--input-bucket", "there", "--wait", "sh", "-c", "test $TOKEN = value-of-token")
    assert ran.code == 0, ran.err
    assert live("bucket", "list", "-o", "name").out.split() == ["results", "there"]
    live.template(
        "wrong",
        "config:\n  target: {service: local}\n  storage_buckets: {output: {buckt: x}}\n  jobs: [{instance_count: 1}]\n",
    )
    wrong = live("run", "-t", "wrong", "true")
    assert wrong.code == 2 and "buckt" in wrong.err


def test_buckets_credentials_and_secrets_are_completed(aj: Shell) -> None:
    layout = aj.home.layout
    for folder, name in ((layout.buckets, "results"), (layout.credentials, "work.json"), (layout.secrets, "TOKEN")):
        folder.mkdir(parents=True)
        (folder / name).mkdir()
    (layout.credentials / ".key").touch()
    settings: Settings = aj.home.settings

    def names(*words: str) -> list[str]:
        return [line.partition("\t")[0] for line in complete.answer(words, settings).splitlines()[1:]]

    assert names("bucket", "delete", "") == ["results"]
    assert names("bucket", "list", "--credentials", "") == ["local", "work"]
    assert names("credentials", "delete", "w") == ["work"]
    assert names("run", "--secret", "") == ["TOKEN"]
    assert names("run", "--output-bucket", "r") == ["results"]


def test_a_bucket_outside_the_state_directory_is_opened_by_its_credential(live: Shell, tmp_path: Path) -> None:
    live("credentials", "create", "disk", "--kind", "dir", "--root", str(tmp_path / "disk"))
    assert live("bucket", "create", "shared", "--credentials", "disk").code == 0
    assert (tmp_path / "disk/shared").is_dir()
    rows = live("bucket", "list", "--json").json["items"]
    assert [(row["name"], row["credential"]) for row in rows] == [("shared", "disk")]


@pytest.mark.rule("C-041b")
def test_a_bucket_that_is_known_under_another_credential_is_pointed_to(live: Shell, tmp_path: Path) -> None:
    live("credentials", "create", "disk", "--kind", "dir", "--root", str(tmp_path / "disk"))
    live("bucket", "create", "shared", "--credentials", "disk")
    live("bucket", "create", "mine")
    live.write("up/a", "a")
    for words in (
        ("upload", "up", "shared/v1"),
        ("list", "shared"),
        ("download", "shared", "back"),
        ("delete", "shared", "--yes"),
    ):
        ran = live("bucket", *words)
        assert ran.code == 3 and "hint: `--credentials disk`: there is a bucket `shared`" in ran.err, words
    ran = live("bucket", "list", "mine", "--credentials", "disk")
    assert "hint: this machine itself has a bucket `mine`: leave out `--credentials`" in ran.err
    ran = live("bucket", "list", "none", "--credentials", "disk")
    assert "hint: `aj bucket create none --credentials disk`" in ran.err
    for words in (("run",), ("run", "-d", "--strict")):
        ran = live(*words, "--input-bucket", "shared", "true")
        assert "`--input-storage-credentials disk`: there is a bucket `shared`" in ran.err
    ran = live("bucket", "upload", "nowhere", "mine")
    assert ran.code == 3 and "the path comes first, then the bucket" in ran.err


@pytest.mark.rule("C-041b")
def test_what_was_made_elsewhere_is_remembered_until_it_is_deleted(home: Home) -> None:
    """Storage of others is not asked for the sake of a hint."""
    credentials.save(home.layout, Credential("work", Kind.AZURE, "account-key", account="a", value=VALUE))
    assert buckets.way(home.layout, "results", None) is None
    buckets.remember(home.layout, "results", "work")
    buckets.remember(home.layout, "results", "gone")
    assert buckets.elsewhere(home.layout, "results", None) == ("work",)
    assert buckets.elsewhere(home.layout, "results", "work") == ()
    buckets.forget(home.layout, "results", "work")
    assert buckets.elsewhere(home.layout, "results", None) == ()
