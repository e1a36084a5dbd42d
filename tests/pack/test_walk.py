"""The selection of a tree: what is in it, what is left out, what is told, and what cannot be packed."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from aj.base.errors import UserError
from aj.pack import walk
from aj.pack.selection import Kind, Member
from tests.pack import trees
from tests.pack.trees import Link, names, plan, plant, told


@pytest.mark.rule("C-185", "C-186")
def test_entries_come_in_byte_order_and_empty_folders_stay(root: Path) -> None:
    plant(
        root, {"b.txt": "1", "a/z": "2", "a-b": "3", "a/c/": "", "Z": "4", b"\xff": "5", "a.b/x": "6", "only/x.log": ""}
    )
    found = names(root, "*.log")
    assert found == [b"Z", b"a-b", b"a.b/", b"a.b/x", b"a/", b"a/c/", b"a/z", b"b.txt", b"only/", b"\xff"]
    assert found == sorted(found)


@pytest.mark.rule("C-185")
def test_a_folder_is_sorted_with_its_slash(root: Path) -> None:
    plant(root, {"a/x": "", "a-b": "", "a0": "", "d/b/x": "", "d/b.c": "", "d/b!": ""})
    assert names(root) == [b"a-b", b"a/", b"a/x", b"a0", b"d/", b"d/b!", b"d/b.c", b"d/b/", b"d/b/x"]


@pytest.mark.rule("C-270")
def test_a_file_that_goes_before_it_is_looked_at_was_not_there(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(root, {"a": "", "b": ""})
    real = os.stat

    def stat(path: bytes, **more: object) -> os.stat_result:
        if path == b"a":
            (root / "a").unlink()
        return real(path, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", stat)
    assert names(root) == [b"b"]


@pytest.mark.rule("T21", "T23", "T03", "C-183")
def test_T21_everything_that_is_not_ignored_is_taken_and_T23_gitignore_is_not_read(root: Path) -> None:
    plant(root, {".gitignore": "*", "bin/tool": b"\x7fELF", "a.csv": "", ".hidden": "", "no_suffix": ""})
    assert names(root) == [b".gitignore", b".hidden", b"a.csv", b"bin/", b"bin/tool", b"no_suffix"]


@pytest.mark.rule("T02", "T11", "T25", "C-182", "C-265")
def test_T02_built_in_names_are_left_out_with_the_links_in_them(root: Path) -> None:
    plant(
        root,
        {
            "a.py": "",
            ".git/config": "",
            ".venv/bin/python": Link("/usr/bin/python3"),
            "pkg/node_modules/x": Link("../../.."),
            "pkg/__pycache__": "a file of that name",
            "pkg/.azure_jobs/scripts/x": "",
        },
    )
    selection = walk.select(plan(root))
    assert list(selection.paths) == [b"a.py", b"pkg/"]
    assert (selection.files, selection.folders, selection.links) == (1, 1, 0)
    assert told(selection) == []


@pytest.mark.rule("C-182")
def test_scripts_of_the_project_travel_and_the_rest_of_its_folder_does_not(root: Path) -> None:
    plant(root, {".azure_jobs/scripts/run.sh": "", ".azure_jobs/scripts/.git/x": "", ".azure_jobs/template/a.yaml": ""})
    assert names(root) == [b".azure_jobs/", b".azure_jobs/scripts/", b".azure_jobs/scripts/run.sh"]
    assert names(root, "*.sh") == [b".azure_jobs/", b".azure_jobs/scripts/"]
    assert names(root, ".azure_jobs/") == []
    assert names(root, "!.azure_jobs/template/") == names(root)


@pytest.mark.rule("C-182")
def test_a_project_folder_without_scripts_is_left_out(root: Path) -> None:
    plant(root, {".azure_jobs/template/a.yaml": "", "a": ""})
    selection = walk.select(plan(root))
    assert list(selection.paths) == [b"a"]
    assert selection.excluded_top == (".azure_jobs",)


@pytest.mark.rule("C-182")
def test_a_project_folder_that_is_a_link_is_left_out(root: Path) -> None:
    plant(root, {"other/scripts/a.sh": "", ".azure_jobs": Link("other")})
    assert names(root) == [b"other/", b"other/scripts/", b"other/scripts/a.sh"]


@pytest.mark.rule("C-182")
def test_scripts_come_from_the_project_when_the_root_is_another_folder(root: Path) -> None:
    plant(root, {".azure_jobs/scripts/a.sh": "project", "sub/train.py": "", "sub/.azure_jobs/scripts/b.sh": "sub"})
    plant(root, {".azure_jobs/scripts/in": Link("a.sh")})
    selection = walk.select(plan(root / "sub", scripts=str(root / ".azure_jobs/scripts")))
    scripts = [b".azure_jobs/", b".azure_jobs/scripts/", b".azure_jobs/scripts/a.sh", b".azure_jobs/scripts/in"]
    assert list(selection.paths) == [*scripts, b"train.py"]
    assert Path(os.fsdecode(selection.place(b".azure_jobs/scripts/a.sh"))).read_text() == "project"
    assert names(root / "sub", scripts=str(root / "nowhere")) == [b"train.py"]


@pytest.mark.rule("C-182", "C-186")
def test_a_link_among_those_scripts_may_not_leave_them(root: Path) -> None:
    plant(root, {".azure_jobs/scripts/up": Link("../../sub/train.py"), "sub/train.py": ""})
    with pytest.raises(UserError, match=r"up` is a link to `\.\./\.\./sub/train\.py`"):
        walk.select(plan(root / "sub", scripts=str(root / ".azure_jobs/scripts")))
    assert b".azure_jobs/scripts/up" in names(root)


@pytest.mark.rule("C-182")
def test_scripts_that_are_a_link_are_packed_as_a_link(root: Path) -> None:
    plant(root, {"tools/a.sh": "", ".azure_jobs/scripts": Link("../tools")})
    selection = walk.select(plan(root))
    assert list(selection.paths) == [b".azure_jobs/", b".azure_jobs/scripts", b"tools/", b"tools/a.sh"]
    assert selection.targets == {b".azure_jobs/scripts": b"../tools"}


@pytest.mark.rule("C-183", "T10")
def test_T10_one_ignore_file_is_in_force_and_is_named(root: Path) -> None:
    plant(root, {".amltignore": "*.a", "x.a": "", "x.b": ""})
    selection = walk.select(plan(root))
    assert selection.ignore_file == ".amltignore"
    assert list(selection.paths) == [b".amltignore", b"x.b"]
    plant(root, {".codeignore": ""})
    selection = walk.select(plan(root))
    assert selection.ignore_file == ".codeignore"
    assert list(selection.paths) == [b".amltignore", b".codeignore", b"x.a", b"x.b"]
    assert told(selection) == [".amltignore is not read, because .codeignore is there"]


@pytest.mark.rule("C-183")
def test_the_ignore_file_speaks_after_the_template(root: Path) -> None:
    plant(root, {".codeignore": "!b.log", "a.log": "", "b.log": ""})
    selection = walk.select(plan(root, "*.log"))
    assert list(selection.paths) == [b".codeignore", b"b.log"]
    assert selection.patterns == 2


@pytest.mark.rule("C-183", "C-263")
def test_a_folder_with_the_name_of_an_ignore_file_is_passed_over(root: Path) -> None:
    plant(root, {".codeignore/": "", ".amltignore": "a", "a": ""})
    selection = walk.select(plan(root))
    assert selection.ignore_file == ".amltignore"
    assert list(selection.paths) == [b".amltignore", b".codeignore/"]
    assert told(selection) == [".codeignore is not a file, so it is not read"]


@pytest.mark.rule("C-263")
def test_an_ignore_file_is_bytes(root: Path) -> None:
    plant(root, {".codeignore": b"\xef\xbb\xbfd\xe9j\xe0\r\n*.log\r\n", b"d\xe9j\xe0": "", "x.log": "", "y": ""})
    assert names(root) == [b".codeignore", b"y"]


@pytest.mark.rule("C-183", "T13")
def test_T13_an_ignore_file_below_the_root_is_told_and_not_read(root: Path) -> None:
    plant(root, {"a/.codeignore": "*", "a/b/.amltignore": "*", "a/x": "", "out/.codeignore": ""})
    selection = walk.select(plan(root, "out/"))
    assert b"a/x" in selection.paths
    assert [warning.file for warning in selection.warnings] == ["a/.codeignore", "a/b/.amltignore"]


@pytest.mark.rule("C-183")
def test_an_ignore_file_of_the_project_root_is_told_when_the_code_is_elsewhere(root: Path) -> None:
    plant(root, {".codeignore": "*", ".azure_jobs/scripts/": "", "sub/a": ""})
    selection = walk.select(plan(root / "sub", scripts=str(root / ".azure_jobs/scripts")))
    assert b"a" in selection.paths
    assert [warning.file for warning in selection.warnings] == [str(root / ".codeignore")]


@pytest.mark.rule("T12", "T13", "C-184", "C-260", "C-261")
@pytest.mark.parametrize(
    ("patterns", "out"),
    [
        ("data/*", {b"data/a", b"data/keep.txt"}),
        ("data/*\n!data/keep.txt", {b"data/a"}),
        ("data/\n!data/keep.txt\n!keep.txt", {b"data/", b"data/a", b"data/keep.txt", b"src/data/", b"src/data/a"}),
        ("data/a", {b"data/a"}),
        ("*\n!*.py", {b"data/", b"data/a", b"data/keep.txt", b"src/", b"src/data/", b"src/data/a", b".codeignore"}),
    ],
)
def test_T13_negations_act_where_git_lets_them(root: Path, patterns: str, out: set[bytes]) -> None:
    plant(root, {"data/a": "", "data/keep.txt": "", "src/data/a": "", "x.py": ""})
    everything = set(names(root)) | {b".codeignore"}
    plant(root, {".codeignore": patterns})
    assert everything - set(names(root)) == out


@pytest.mark.rule("C-186", "T18")
def test_T18_links_within_the_tree_stay_links(root: Path) -> None:
    plant(
        root,
        {
            "file": "",
            "d/x": "",
            "to_file": Link("file"),
            "to_folder": Link("d"),
            "d/up": Link(".."),
            "dangling": Link("gone"),
            "a": Link("b"),
            "b": Link("a"),
        },
    )
    selection = walk.select(plan(root))
    assert len(selection.targets) == selection.links == 6
    assert b"to_folder/x" not in selection.paths
    kinds = {warning.code for warning in selection.warnings}
    assert kinds == {"link-missing", "link-loop"}
    assert Member(b"to_folder", Kind.LINK, 0, False, b"d") in selection.members


@pytest.mark.rule("C-266", "C-186")
def test_a_link_to_what_is_not_selected_is_kept_and_told(root: Path) -> None:
    plant(root, {"data/x": "", "x": Link("data/x"), "code": ""})
    selection = walk.select(plan(root, "data/"))
    assert list(selection.paths) == [b"code", b"x"]
    assert [warning.file for warning in selection.warnings] == ["x"]


@pytest.mark.rule("C-264", "T18", "T02")
@pytest.mark.parametrize("target", ["/etc/passwd", "../../other", "d/../../other", "{root}/file"])
def test_T18_a_link_out_of_the_tree_is_named_with_its_target(root: Path, target: str) -> None:
    target = target.format(root=root)
    plant(root, {"file": "", "d/": "", "x": Link(target)})
    with pytest.raises(UserError) as error:
        walk.select(plan(root))
    assert f"`x` is a link to `{target}`" in error.value.message
    assert error.value.hint is not None and "add `/x` to .codeignore" in error.value.hint
    assert error.value.exit_code == 2


@pytest.mark.rule("C-264")
def test_a_link_out_of_the_tree_is_a_note_where_links_are_not_strict(root: Path) -> None:
    plant(root, {"x": Link("/etc/passwd"), "y": Link("../z")})
    selection = walk.select(plan(root, strict_links=False))
    assert list(selection.paths) == [b"x", b"y"]
    assert [warning.code for warning in selection.warnings] == ["link-absolute", "link-outside"]


@pytest.mark.rule("C-265")
def test_a_bad_link_that_is_ignored_is_not_looked_at(root: Path) -> None:
    plant(root, {"data/x": Link("/etc/passwd"), "y": Link("/etc"), "z": ""})
    assert names(root, "data/", "/y") == [b"z"]


@pytest.mark.rule("C-267", "C-186")
def test_pipes_and_sockets_are_named_and_never_opened(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(root, {"a": "", "sub/": ""})
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root / "sub")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("plug")
        with trees.opened(root) as opened, pytest.raises(UserError) as error:
            walk.select(plan(root))
    assert "`pipe` is a named pipe; `sub/plug` is a socket" in error.value.message
    assert opened == []
    assert names(root, "pipe", "plug") == [b"a", b"sub/"]


@pytest.mark.rule("C-267")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make devices")
def test_a_device_is_named(root: Path) -> None:
    import stat

    try:
        os.mknod(root / "null", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("this machine lets nobody make a device")
    with pytest.raises(UserError, match="`null` is a character device"):
        walk.select(plan(root))


@pytest.fixture
def public() -> Iterator[Path]:
    folder = trees.open_folder()
    yield folder
    shutil.rmtree(folder)


@pytest.mark.rule("C-268", "C-186")
def test_unreadable_files_and_folders_are_named_all_at_once(public: Path) -> None:
    plant(public, {"a": "", "secret": "", "closed/x": "", "blind/x": "", "half/x": ""})
    for name, mode in (("secret", 0o000), ("closed", 0o000), ("blind", 0o111), ("half", 0o444)):
        (public / name).chmod(mode)
    if os.geteuid() == 0:
        for path in (public / "secret", public / "half/x"):
            os.chown(path, 0, 0)

    def refused() -> str:
        with pytest.raises(UserError) as error:
            walk.select(plan(public))
        return error.value.message

    words = str(trees.as_nobody(refused))
    assert words.startswith("4 entries cannot be packed: ")
    assert "`secret` may not be read" in words
    assert "`closed/` cannot be listed: Permission denied" in words
    assert "`blind/` cannot be listed" in words
    assert "`half/x` cannot be looked at: Permission denied" in words
    chosen = plan(public, "secret", "closed", "blind", "half")
    assert trees.as_nobody(lambda: list(walk.select(chosen).paths)) == [b"a"]


@pytest.mark.rule("C-185")
def test_what_is_left_out_is_never_looked_at(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(root, {"in/a": "", "left/b": "", "left/deep/c": "", "x.log": "", "l.log": Link("/etc")})
    asked: list[str] = []

    def spy(name: str) -> None:
        real = getattr(os, name)

        def noting(path: object, *rest: object, **more: object) -> object:
            asked.append(str(path))
            return real(path, *rest, **more)

        monkeypatch.setattr(os, name, noting)

    for name in ("stat", "lstat", "readlink", "scandir", "listdir", "open", "access"):
        spy(name)
    assert names(root, "left/", "*.log") == [b"in/", b"in/a"]
    monkeypatch.undo()
    assert any("/in" in path for path in asked)
    assert [path for path in asked if "/left" in path or "b'left" in path or ".log" in path] == []


@pytest.mark.rule("C-186")
def test_at_most_twenty_offenders_are_told_and_the_rest_is_counted(root: Path) -> None:
    plant(root, {f"l{number:02}": Link("/x") for number in range(25)})
    with pytest.raises(UserError) as error:
        walk.select(plan(root))
    assert error.value.message.startswith("25 entries cannot be packed")
    assert "`l19`" in error.value.message and "`l20`" not in error.value.message
    assert error.value.message.endswith("and 5 more")
    offences = error.value.details["offences"]
    assert isinstance(offences, list) and len(offences) == 25


@pytest.mark.rule("C-187")
@pytest.mark.parametrize("name", ["aj_runner.sh", "aj_runner.sh/"])
def test_the_name_of_a_generated_file_is_reserved(root: Path, name: str) -> None:
    plant(root, {name: "", "sub/aj_runner.sh": ""})
    with pytest.raises(UserError, match=r"`aj_runner\.sh` has the name of a file that is added"):
        walk.select(plan(root, reserved=True))
    assert b"sub/aj_runner.sh" in names(root)
    assert names(root, "/aj_runner.sh", reserved=True) == [b"sub/", b"sub/aj_runner.sh"]


@pytest.mark.rule("C-187", "T04", "T08")
def test_T04_a_large_tree_is_told_with_its_five_largest(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(root, {f"f{number}": "x" * number for number in range(8)})
    assert told(walk.select(plan(root))) == []
    with (root / "huge").open("wb") as out:
        out.truncate((1 << 30) + 1)
    selection = walk.select(plan(root))
    [message] = told(selection)
    assert "9 files, 1.0 GiB" in message
    assert "`huge` 1.0 GiB, `f7` 7 B, `f6` 6 B, `f5` 5 B, `f4` 4 B" in message
    assert selection.bytes == (1 << 30) + 1 + sum(range(8))
    assert [member.path for member in selection.largest(2)] == [b"huge", b"f7"]
    (root / "huge").unlink()
    monkeypatch.setattr(walk, "MANY_FILES", 7)
    assert len(told(walk.select(plan(root)))) == 1


@pytest.mark.rule("C-194", "T14", "T22")
def test_T14_names_left_out_of_the_root_are_listed(root: Path) -> None:
    plant(root, {"data/a": "", "logs/a": "", "src/data/a": "", ".git/a": "", ".azure_jobs/scripts/a": ""})
    selection = walk.select(plan(root, "data", "logs/"))
    assert selection.excluded_top == (".git", "data", "logs")


@pytest.mark.rule("C-271", "T07")
def test_an_empty_selection_names_the_rule_that_left_out_most(root: Path) -> None:
    plant(root, {"a": "", "b": "", ".git/x": "", "c.log": ""})
    selection = walk.select(plan(root, "*.log", "[ab]*"))
    assert selection.files == 0
    with pytest.raises(UserError) as error:
        walk.need_files(selection)
    assert error.value.message == f"no files selected in {root}: `[ab]*` of t.yaml:2 left out 2 entries"
    assert error.value.exit_code == 2


@pytest.mark.rule("C-271")
def test_an_empty_folder_selects_nothing(root: Path) -> None:
    with pytest.raises(UserError, match=r"no files selected in .*: the folder is empty"):
        walk.need_files(walk.select(plan(root)))


@pytest.mark.rule("C-269")
def test_odd_names_are_selected_and_shown_escaped(root: Path) -> None:
    odd = [b'"quoted";x', b"-rf", b"new\nline", b"\xff\xfe", "naïve.py".encode(), b"tab\t", b" space "]
    plant(root, dict.fromkeys(odd, ""))
    selection = walk.select(plan(root))
    assert list(selection.paths) == sorted(odd)
    shown = [member.shown for member in selection.members]
    assert "new\\x0aline" in shown and "\\xff\\xfe" in shown and "naïve.py" in shown and "tab\\x09" in shown


def test_what_looks_like_a_secret_is_told_once_with_the_lines_that_keep_it_here(root: Path) -> None:
    plant(
        root, {"keys/id_rsa": "", "server.pem": "", "b/x.pem": "", ".netrc": "", "id_rsa.pub": "", ".env.example": ""}
    )
    assert told(walk.select(plan(root))) == [
        "`.netrc`, `b/x.pem`, `keys/id_rsa`, `server.pem` look like secrets and travel with the code; "
        "`.netrc`, `*.pem`, `id_rsa` in .codeignore keeps them here"
    ]
    assert told(walk.select(plan(root, "keys/", "*.pem", ".netrc"))) == []


@pytest.mark.parametrize("name", [".env", ".env.local", "a/.env", "x.pem", "id_rsa", ".netrc", ".npmrc", ".pypirc"])
def test_each_of_them_is_taken_and_told(root: Path, name: str) -> None:
    plant(root, {name: "", ".amltignore": "", "env": "", "my.env": "", ".environment": "", ".env.d/x": ""})
    selection = walk.select(plan(root))
    assert selection.has(name.encode())
    base = name.rpartition("/")[2]
    line = "*.pem" if base == "x.pem" else base
    assert [(warning.code, warning.message) for warning in selection.warnings] == [
        (
            "private-file",
            f"`{name}` looks like a secret and travels with the code; `{line}` in .amltignore keeps it here",
        )
    ]
    assert told(walk.select(plan(root, line))) == []


def test_many_of_them_are_counted(root: Path) -> None:
    plant(root, {f"{at}/.env": "" for at in range(8)})
    (message,) = told(walk.select(plan(root)))
    assert message.startswith("`0/.env`, `1/.env`, `2/.env`, `3/.env`, `4/.env` and 3 more look like secrets")


@pytest.mark.rule("C-268")
def test_a_root_that_may_not_be_listed_is_named(public: Path) -> None:
    plant(public, {"in/a": ""})
    (public / "in").chmod(0o111)

    def refused() -> str:
        with pytest.raises(UserError) as error:
            walk.select(plan(public / "in"))
        return error.value.message

    assert trees.as_nobody(refused) == f"the code root {public}/in cannot be listed: Permission denied"


@pytest.mark.parametrize("name", ["gone", "file"])
def test_a_root_that_is_no_folder_is_named(root: Path, name: str) -> None:
    plant(root, {"file": ""})
    with pytest.raises(UserError, match="is not a folder"):
        walk.select(plan(root / name))


@pytest.fixture
def deep(root: Path) -> Iterator[int]:
    """Plant folders in each other, deeper than Python's stack; and take them away as no recursion can."""
    handles = [os.open(root, os.O_RDONLY)]
    depth = 1010
    for _ in range(depth):
        os.mkdir("d", dir_fd=handles[-1])
        handles.append(os.open("d", os.O_RDONLY, dir_fd=handles[-1]))
        if len(handles) > 2:
            os.close(handles.pop(0))
    try:
        yield depth
    finally:
        for handle in handles:
            os.close(handle)
        for level in range(depth, 0, -1):
            (root / Path(*["d"] * level)).rmdir()


@pytest.mark.rule("C-185")
def test_a_deep_tree_needs_no_deep_stack(root: Path, deep: int) -> None:
    assert len(names(root)) == deep
    assert names(root, "/d/d/d/") == [b"d/", b"d/d/"]


@pytest.mark.rule("C-181", "T15", "T16")
def test_T15_every_reader_of_a_plan_sees_the_same_files(root: Path, tmp_path: Path) -> None:
    from aj.pack import archive, unpack

    plant(root, {".codeignore": "*.log\n", "a.py": "1", "x.log": "", "d/e": "2", "node_modules/x": ""})
    selection = walk.select(plan(root, "d/e"))
    ref = archive.pack(selection, folder=tmp_path / "store")
    found = archive.find(tmp_path / "store", ref)
    assert found is not None
    unpack.extract(found, ref.archive_sha256, tmp_path / "out")
    explained = walk.explain(plan(root, "d/e"), ["a.py", "x.log", "d/e", "node_modules/x", ".codeignore", "d"])
    assert [path.path for path in explained if path.included] == ["a.py", ".codeignore", "d"]
    assert names(tmp_path / "out") == list(selection.paths) == [b".codeignore", b"a.py", b"d/"]
    assert selection.has(b"d") and selection.has(b"a.py") and not selection.has(b"x.log")
