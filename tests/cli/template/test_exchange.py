"""aj template pull, push and diff, with real git and repositories on this disk."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from aj.base import proc
from tests.cli.conftest import Ran, Shell

IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}
LEAF = "base:\nconfig: {target: {service: local}, jobs: [{instance_count: 1}]}\n"


@dataclass
class Hub:
    """A bare repository, and somebody else who works with it."""

    folder: Path
    env: dict[str, str]

    @property
    def url(self) -> str:
        return str(self.folder)

    def git(self, *words: str, stdin: bytes | None = None) -> str:
        done = proc.run(["git", *words], cwd=self.folder, env=self.env, stdin=stdin, timeout_s=30)
        assert done.code == 0, done.err
        return done.out.decode()

    def commit(self, files: dict[str, str | bytes | None], modes: dict[str, str] | None = None) -> None:
        """Put files into the repository; None removes one, a mode of git's makes it something else."""
        lines = []
        for path, data in files.items():
            if data is None:
                lines.append(f"0 {'0' * 40}\t{path}\n")
                continue
            raw = data.encode() if isinstance(data, str) else data
            name = self.git("hash-object", "-w", "--stdin", stdin=raw).strip()
            lines.append(f"{(modes or {}).get(path, '100644')} {name}\t{path}\n")
        head = self.head
        self.git("read-tree", *([head] if head else ["--empty"]))
        self.git("update-index", "--index-info", stdin="".join(lines).encode())
        self.put(self.git("write-tree").strip())

    def put(self, tree: str) -> None:
        head = self.head
        parent = ["-p", head] if head else []
        self.git("update-ref", "refs/heads/main", self.git("commit-tree", tree, *parent, "-m", "x").strip())

    @property
    def head(self) -> str:
        done = proc.run(["git", "rev-parse", "-q", "--verify", "main"], cwd=self.folder, env=self.env, timeout_s=30)
        return done.out.decode().strip()

    @property
    def files(self) -> dict[str, str]:
        paths = self.git("ls-tree", "-r", "--name-only", "main").splitlines() if self.head else []
        return {path: self.git("show", f"main:{path}") for path in paths}


@pytest.fixture
def hub(tmp_path: Path, programs: None) -> Hub:
    folder = tmp_path / "hub.git"
    env = {**IDENTITY, "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    proc.run(["git", "init", "-q", "--bare", "-b", "main", str(folder)], env=env, timeout_s=30)
    return Hub(folder, env)


@pytest.fixture
def shell(aj: Shell, hub: Hub) -> Iterator[Shell]:
    aj.write(".azure_jobs/aj.toml", f"template_repo = {json.dumps(hub.url)}\n")
    yield Shell(aj.home.having(PATH="/usr/bin:/bin", **IDENTITY), aj.directory)


def ran(seen: Ran, code: int = 0) -> Ran:
    assert seen.code == code, (seen.err, seen.out)
    return seen


def here(shell: Shell) -> dict[str, str]:
    folder = shell.directory / ".azure_jobs"
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "aj.toml"]
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


def changes(seen: Ran) -> dict[str, str]:
    return {item["path"]: item["change"] for item in seen.json["items"]}


@pytest.mark.rule("C-045", "C-137", "C-138", "C-004")
def test_shared_files_come_and_nothing_else(shell: Shell, hub: Hub) -> None:
    shared = {
        "template/gpu.yaml": LEAF,
        "account/a.yaml": "config:\n",
        "scripts/deep/run.sh": "ls\n",
        "README.md": "hi\n",
    }
    own = {
        "aj.toml": "x",
        "aj_config.json": "{}",
        "submission/a.yaml": "x",
        "template/logs/x.yaml": "x",
        "src/x.py": "x",
    }
    hub.commit({**shared, **own, "clusters/eu.yaml": "config:\n"}, {"scripts/deep/run.sh": "100755"})
    dry = ran(shell("template", "pull", "-d", "--json"))
    assert (dry.json["status"], len(dry.json["items"]), here(shell)) == ("noop", 5, {})
    seen = ran(shell("pull", "--json"))
    assert set(changes(seen).values()) == {"added"}
    assert seen.json["commit"] == hub.head
    assert "scripts that run in your jobs: scripts/deep/run.sh" in seen.err
    assert here(shell) == {**shared, "clusters/eu.yaml": "config:\n"}
    assert shell("config", "get", "template_repo").out == f"{hub.url}\n"
    modes = {
        name: stat.S_IMODE((shell.directory / ".azure_jobs" / name).stat().st_mode)
        for name in ("scripts/deep/run.sh", "template/gpu.yaml")
    }
    assert modes == {"scripts/deep/run.sh": 0o755, "template/gpu.yaml": 0o644}
    assert ran(shell("template", "pull", "--json")).json["status"] == "noop"
    hub.commit({"template/gpu.yaml": LEAF + "# 2\n", "account/a.yaml": None})
    seen = ran(shell("template", "pull"))
    assert "template/gpu.yaml\tupdated" in seen.out
    assert "the repository has no more, and you still have: account/a.yaml" in seen.err
    assert (shell.directory / ".azure_jobs/account/a.yaml").exists()


@pytest.mark.rule("C-138")
@pytest.mark.parametrize("point", ["after-note", "after-step", "after-all"])
@pytest.mark.parametrize("then", ["pull", "run"])
def test_a_pull_that_is_killed_changes_all_files_or_none(shell: Shell, hub: Hub, point: str, then: str) -> None:
    old = {f"template/t{number}.yaml": LEAF for number in range(4)}
    hub.commit(old)
    ran(shell("template", "pull"))
    shell.write("code.py")
    new = {f"template/t{number}.yaml": LEAF + "# new\n" for number in range(1, 6)}
    hub.commit(new)
    died = shell.home.aj("template", "pull", cwd=shell.directory, AJ_TEST_CRASH=f"changes.{point}")
    assert died.code == -9
    if point != "after-all":
        seen = ran(shell("run", "-d", "-t", "t0", "true") if then == "run" else shell("template", "pull", "-d"))
        assert "a pull that was cut off was taken back" in seen.err
        assert {path: text for path, text in here(shell).items() if "dryrun" not in path} == old
    ran(shell("template", "pull"))
    assert here(shell) == {**old, **new}


@pytest.mark.rule("C-138", "C-337", "C-045")
def test_local_edits_are_never_overwritten_unasked(shell: Shell, hub: Hub) -> None:
    hub.commit({"template/a.yaml": "1\n", "template/b.yaml": "1\n", "template/c.yaml": "1\n"})
    ran(shell("pull"))
    shell.template("a", "mine\n")
    shell.template("own", "own\n")
    hub.commit({"template/a.yaml": "2\n", "template/b.yaml": "2\n", "template/c.yaml": None})
    before = here(shell)
    seen = ran(shell("template", "pull", "--json"), 5)
    assert seen.json["error"]["details"]["files"] == ["template/a.yaml"]
    assert here(shell) == before
    assert ran(shell("template", "pull", "--force"), 5).err.startswith("asking ")  # a file would go: not without a yes
    assert here(shell) == before
    seen = ran(shell("template", "pull", "--force", "--yes", "--json"))
    assert changes(seen) == {"template/a.yaml": "updated", "template/b.yaml": "updated", "template/c.yaml": "deleted"}
    assert here(shell) == {
        "template/a.yaml": "2\n",
        "template/a.yaml.orig-1": "mine\n",
        "template/b.yaml": "2\n",
        "template/c.yaml.orig-1": "1\n",
        "template/own.yaml": "own\n",
    }
    assert ran(shell("template", "pull", "--json")).json["status"] == "noop"


@pytest.mark.rule("C-138", "C-337")
def test_files_that_never_came_from_there_count_as_edited(shell: Shell, hub: Hub) -> None:
    shell.template("a", "mine\n")
    shell.template("same", "same\n")
    hub.commit({"template/a.yaml": "theirs\n", "template/same.yaml": "same\n"})
    assert "template/a.yaml" in ran(shell("template", "pull"), 5).err
    assert here(shell)["template/a.yaml"] == "mine\n"


@pytest.mark.rule("C-139", "C-137", "C-045", "C-004")
def test_push_is_one_commit_on_top(shell: Shell, hub: Hub) -> None:
    hub.commit({"template/a.yaml": "1\n", "ci.yml": "x\n"})
    ran(shell("pull"))
    assert ran(shell("template", "push", "--force", "--json")).json["status"] == "noop"
    shell.template("a", "2\n")
    shell.template("b", "\xfc\n")
    shell.write(".azure_jobs/scripts/run it.sh", "ls\n").chmod(0o700)
    shell.write(".azure_jobs/submission/x.yaml", "secret\n")
    shell.write(".azure_jobs/template/a.yaml.orig-1", "old\n")
    shell.write(".azure_jobs/template/.swp", "x\n")
    first = hub.head
    assert ran(shell("push", "--force", "-d", "--json")).json["status"] == "noop" and hub.head == first
    seen = ran(shell("push", "--force", "-m", "more\n\nmemory", "--json"))
    assert changes(seen) == {"scripts/run it.sh": "added", "template/a.yaml": "updated", "template/b.yaml": "added"}
    assert seen.json["commit"] == hub.head
    assert hub.files == {
        "ci.yml": "x\n",
        "scripts/run it.sh": "ls\n",
        "template/a.yaml": "2\n",
        "template/b.yaml": "\xfc\n",
    }
    assert hub.git("log", "-1", "--format=%B|%P|%an").strip() == f"more\n\nmemory\n|{first}|Ada"
    assert hub.git("ls-tree", "main", "scripts/").startswith("100755")
    (shell.directory / ".azure_jobs/template/b.yaml").unlink()
    assert changes(ran(shell("template", "push", "--force", "--json"))) == {"template/b.yaml": "deleted"}
    assert "template/b.yaml" not in hub.files
    assert hub.git("log", "-1", "--format=%s").strip() == "template/b.yaml deleted"


@pytest.mark.rule("C-138", "C-139")
@pytest.mark.parametrize("theirs", ["a", "b"])
def test_when_both_sides_changed_the_hint_leads_out(shell: Shell, hub: Hub, theirs: str) -> None:
    hub.commit({"template/a.yaml": LEAF, "template/b.yaml": LEAF})
    ran(shell("pull"))
    shell.template("a", LEAF + "# mine\n")
    alone = ran(shell("pull"), 5).err
    assert "`aj template push` shares yours" in alone
    hub.commit({f"template/{theirs}.yaml": LEAF + "# theirs\n"})
    for words in (("template", "pull"), ("template", "push")):
        hint = ran(shell(*words), 5).err.splitlines()[-1]
        assert "`aj template pull --force` takes theirs and keeps yours as NAME.orig-N: merge by hand" in hint
    ran(shell("template", "pull", "--force"))
    assert (shell.directory / ".azure_jobs/template/a.yaml.orig-1").read_text() == LEAF + "# mine\n"
    shell.template("a", LEAF + "# both\n")
    ran(shell("template", "push"))
    assert hub.files["template/a.yaml"] == LEAF + "# both\n"


@pytest.mark.rule("C-136")
def test_without_a_repository_each_command_says_what_it_takes(aj: Shell) -> None:
    for verb, once in (("pull", "`aj template pull REPO`"), ("diff", "`aj template diff REPO`"), ("push", None)):
        hint = ran(aj("template", verb), 2).err.splitlines()[-1]
        assert hint.startswith("hint: `aj config set template_repo REPO`") and "an address or a path" in hint
        assert (" REPO`, or once " in hint) is (once is not None) and (once or "") in hint


@pytest.mark.rule("C-139")
def test_push_over_what_others_did_is_refused(shell: Shell, hub: Hub) -> None:
    shell.template("a", "mine\n")
    hub.commit({"template/a.yaml": "theirs\n"})
    head = hub.head
    seen = ran(shell("template", "push", "--force", "--json"), 5)
    assert seen.json["error"]["details"]["files"] == ["template/a.yaml"]
    assert "aj template diff" in seen.json["error"]["hint"]
    ran(shell("template", "pull", "--force"))
    shell.template("a", "mine\n")
    hub.commit({"template/new.yaml": "theirs\n", "other.txt": "x"})
    seen = ran(shell("template", "push", "--force"), 5)
    assert "template/new.yaml" in seen.err
    assert hub.files["template/a.yaml"] == "theirs\n" and hub.git("rev-parse", "main~1").strip() == head
    ran(shell("template", "pull", "--force"))
    hub.commit({"other.txt": "y"})  # nothing that is shared
    shell.template("a", "mine\n")
    ran(shell("template", "push", "--force"))
    assert (hub.files["template/a.yaml"], hub.files["other.txt"]) == ("mine\n", "y")


@pytest.mark.rule("C-139b")
def test_what_is_wrong_is_not_shared_unasked(shell: Shell, hub: Hub) -> None:
    hub.commit({"template/theirs.yaml": "not mine, and wrong\n"})
    ran(shell("template", "pull"))
    shell.template("a", LEAF)
    ran(shell("template", "push"))  # what is wrong and not sent is no reason
    head = hub.head
    shell.template("a", LEAF.replace("service: local", "service: locl"))
    seen = ran(shell("template", "push"), 2)
    assert (
        "template/a.yaml:2:28: no service is called `locl`" in seen.err and "`--force` shares it as it is" in seen.err
    )
    assert ran(shell("template", "push", "-d"), 2) and hub.head == head
    ran(shell("template", "push", "--force"))
    assert "locl" in hub.files["template/a.yaml"]


@pytest.mark.rule("C-139")
def test_push_into_an_empty_repository(shell: Shell, hub: Hub) -> None:
    assert ran(shell("template", "pull", "--json")).json["commit"] is None
    assert ran(shell("template", "push", "--force", "--json")).json["status"] == "noop"
    shell.template("a", "1\n")
    ran(shell("template", "push", "--force"))
    assert hub.files == {"template/a.yaml": "1\n"}


@pytest.mark.rule("C-139")
def test_a_repository_that_refuses_says_why(shell: Shell, hub: Hub) -> None:
    hook = hub.folder / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho not today >&2\nexit 1\n")
    hook.chmod(0o755)
    shell.template("a", "1\n")
    seen = ran(shell("template", "push", "--force"), 5)
    assert "did not take the commit" in seen.err and "pre-receive hook declined" in seen.err
    assert hub.files == {}
    nobody = Shell(shell.home.having(GIT_AUTHOR_EMAIL="", GIT_COMMITTER_EMAIL="", GIT_AUTHOR_NAME=""), shell.directory)
    seen = ran(nobody("template", "push", "--force"), 2)
    assert "git does not know who you are" in seen.err and "git config --global user.name" in seen.err


@pytest.mark.rule("C-045", "C-139")
def test_diff_tells_every_side(shell: Shell, hub: Hub) -> None:
    hub.commit(
        {"template/a.yaml": "1\nsame\n", "template/gone.yaml": "x\n", "scripts/b": b"\xff\n", "scripts/run.sh": "r\n"}
    )
    ran(shell("pull"))
    assert ran(shell("template", "diff")).err.endswith("no difference\n")
    shell.template("a", "2\nsame")
    shell.template("new", "n\n")
    (shell.directory / ".azure_jobs/template/gone.yaml").unlink()
    (shell.directory / ".azure_jobs/scripts/b").write_bytes(b"\xfe\n")
    (shell.directory / ".azure_jobs/scripts/run.sh").chmod(0o755)
    item = ran(shell("template", "diff", "--json")).json["item"]
    assert item["has_changes"] is True
    assert item["files"] == [
        "scripts/b",
        "scripts/run.sh",
        "template/a.yaml",
        "template/gone.yaml",
        "template/new.yaml",
    ]
    assert item["names"] == [hub.url, "local"]
    assert item["diff"].splitlines() == [
        "Binary files remote/scripts/b and local/scripts/b differ",
        "old mode 100644",
        "new mode 100755",
        "--- remote/template/a.yaml",
        "+++ local/template/a.yaml",
        "@@ -1,2 +1,2 @@",
        "-1",
        "-same",
        "+2",
        "+same",
        "\\ No newline at end of file",
        "--- remote/template/gone.yaml",
        "+++ /dev/null",
        "@@ -1 +0,0 @@",
        "-x",
        "--- /dev/null",
        "+++ local/template/new.yaml",
        "@@ -0,0 +1 @@",
        "+n",
    ]
    assert ran(shell("template", "diff")).out == item["diff"]


@pytest.mark.rule("C-138", "C-338")
def test_links_submodules_and_ways_out_are_refused(shell: Shell, hub: Hub) -> None:
    good = {"template/a.yaml": "1\n"}
    bad = {"template/l.yaml": "/etc/passwd", "docs/l": "../../x"}
    hub.commit({**good, **bad}, dict.fromkeys(bad, "120000"))
    seen = ran(shell("template", "pull"), 5)
    assert "docs/l is a link; template/l.yaml is a link" in seen.err
    assert here(shell) == {}
    hub.commit(dict.fromkeys(bad))
    commit = hub.head
    hub.git("update-index", "--index-info", stdin=f"160000 {commit}\tscripts/sub\n".encode())
    hub.put(hub.git("write-tree").strip())
    assert "scripts/sub is a submodule" in ran(shell("template", "pull"), 5).err
    for name in ("..", ".git", ".GIT"):
        blob = hub.git("hash-object", "-w", "--stdin", stdin=b"x\n").strip()
        inner = hub.git("mktree", stdin=f"100644 blob {blob}\tx.yaml\n".encode()).strip()
        raw = f"40000 {name}\0".encode() + bytes.fromhex(inner)
        tree = hub.git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=raw).strip()
        raw = b"40000 template\0" + bytes.fromhex(tree)
        hub.put(hub.git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=raw).strip())
        assert f"template/{name}/x.yaml is" in ran(shell("template", "pull"), 5).err
    assert here(shell) == {}


@pytest.mark.rule("C-138")
def test_links_and_devices_of_this_side_are_refused(shell: Shell, hub: Hub) -> None:
    hub.commit({"template/a.yaml": "1\n"})
    folder = shell.directory / ".azure_jobs"
    (folder / "template" / "l.yaml").symlink_to("/etc/passwd")
    os.mkfifo(folder / "template" / "p.yaml")
    for words in (("pull",), ("push",), ("template", "diff")):
        seen = ran(shell(*words), 5)
        assert "template/l.yaml is a link; template/p.yaml is no plain file" in seen.err
    (folder / "template" / "l.yaml").unlink()
    (folder / "template" / "p.yaml").unlink()
    (folder / "template").rmdir()
    (shell.directory / "elsewhere").mkdir()
    (folder / "template").symlink_to(shell.directory / "elsewhere")
    assert "template is a link" in ran(shell("pull"), 5).err
    assert list((shell.directory / "elsewhere").iterdir()) == []


@pytest.mark.rule("C-136", "C-338")
def test_an_option_is_no_repository(shell: Shell) -> None:
    for word in ("--upload-pack=x", "-x", "ext::sh -c touch%20x", "ext://x", "gopher://x/y", "a\nb"):
        seen = shell("template", "pull", "--", word)
        assert seen.code == 2, seen.err
    assert ran(shell("template", "pull", "--upload-pack=x"), 2)
    assert here(shell) == {}


@pytest.mark.rule("C-136", "C-138", "C-045")
def test_what_cannot_be_reached_is_told(shell: Shell, tmp_path: Path) -> None:
    seen = ran(shell("template", "pull", str(tmp_path / "nowhere")), 3)
    assert f"cannot read {tmp_path}/nowhere" in seen.err and "check the address" in seen.err
    seen = ran(shell("template", "diff", "http://127.0.0.1:9/x.git"), 1)
    assert "is there a network" in seen.err
    seen = ran(Shell(shell.home.having(PATH="/nowhere"), shell.directory)("template", "diff", "x/y"), 2)
    assert "no program `git`" in seen.err
    shell.write(".azure_jobs/aj.toml", "")
    assert "no repository is named" in ran(shell("template", "push"), 2).err


SPY = """#!{python} -I
import json, os, sys
with open({log!r}, "a") as log:
    log.write(json.dumps([sys.argv[1:], dict(os.environ)]) + "\\n")
os.execv("/usr/bin/git", ["git", *sys.argv[1:]])
"""


@pytest.mark.rule("C-136", "C-138")
def test_git_asks_nothing_and_sees_no_secret_in_its_words(shell: Shell, hub: Hub, tmp_path: Path) -> None:
    hub.commit({"template/a.yaml": "1\n"})
    folder, log = tmp_path / "bin", tmp_path / "log"
    folder.mkdir()
    (folder / "git").write_text(SPY.format(python=sys.executable, log=str(log)))
    (folder / "git").chmod(0o755)
    spied = Shell(shell.home.having(PATH=f"{folder}:/usr/bin:/bin", GIT_DIR="/nowhere", GIT_TRACE="1"), shell.directory)
    seen = ran(spied("template", "pull", "http://me:s3cret-pass@127.0.0.1:9/x.git?token=t0ken-t0ken"), 1)
    ran(spied("template", "pull"))
    calls = [json.loads(line) for line in log.read_text().splitlines()]
    assert calls[0][0][-2] == "http://127.0.0.1:9/x.git"
    said = seen.out + seen.err + json.dumps([argv for argv, _ in calls])
    assert "s3cret" not in said and "t0ken" not in said and "me:" not in said
    assert calls[0][1]["GIT_CONFIG_KEY_0"] == "http.http://127.0.0.1:9/.extraHeader"
    assert calls[0][1]["GIT_CONFIG_VALUE_0"].startswith("Authorization: Basic ")
    for argv, env in calls:
        assert env["GIT_TERMINAL_PROMPT"] == "0" and "GIT_DIR" not in env and "GIT_TRACE" not in env
        assert "core.hooksPath=/dev/null" in argv
    assert all("GIT_CONFIG_VALUE_0" not in env for _, env in calls[1:])
    kept = [path.read_bytes() for path in shell.home.folders.state.rglob("*") if path.is_file()]
    assert not any(b"s3cret" in data or b"t0ken" in data for data in kept)
