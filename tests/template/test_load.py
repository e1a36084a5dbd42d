"""Files, names, bases: what is found, what is refused, and in what order it merges."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from aj.base.errors import AjError, NotFound, TemplateError, UserError
from aj.template import load, source
from aj.template.load import Library
from tests.template.kit import LOCAL, project, resolved, spot


def refused(root: Path, name: str = "t", **files: str) -> TemplateError:
    with pytest.raises(TemplateError) as caught:
        resolved(root, files, name)
    return caught.value


@pytest.mark.rule("C-098", "C-099", "C-104", "C-128")
def test_bases_merge_from_left_to_right_and_the_file_last(tmp_path: Path) -> None:
    files = {
        "common": "base: [account.default, storage.big.disk]\nconfig: {a: common, l: [1]}\n",
        "t": "base: [common, account.default]\nconfig: {c: t, l: [2]}\n",
        "account/default": "config: {a: account, b: account, l: [0]}\n",
        "storage/big.disk": "config: {b: storage}\n",
    }
    found = resolved(tmp_path, files)
    assert found.config() == {"a": "account", "l": [0, 1, 0, 2], "b": "account", "c": "t"}
    names = [link.name for link in found.chain]
    assert names == ["account.default", "storage.big.disk", "common", "account.default", "t"]


@pytest.mark.rule("C-099")
def test_a_name_without_a_dot_is_a_sibling_of_the_file_that_names_it(tmp_path: Path) -> None:
    files = {
        "t": "base: account.one\n",
        "account/one": "base: two\n",
        "account/two": "config: {a: 1}\n",
        "two": "config: {a: 2}",
    }
    assert resolved(tmp_path, files).config() == {"a": 1}


@pytest.mark.rule("C-098")
def test_the_key_base_makes_a_leaf_even_when_null(tmp_path: Path) -> None:
    where = project(tmp_path, {"leaf": "base:\nconfig: {a: 1}\n", "part": "config: {a: 1}\n", "empty": ""})
    assert [(entry.name, entry.kind) for entry in load.names(where)] == [
        ("empty", "component"),
        ("leaf", "leaf"),
        ("part", "component"),
    ]
    assert load.resolve(where, "part").config() == {"a": 1}


@pytest.mark.rule("C-128")
def test_what_can_be_merged_is_shown_whether_or_not_it_is_valid(tmp_path: Path) -> None:
    found = resolved(tmp_path, {"t": "base:\nconfig: {target: {service: nowhere}, jobs: 5}\n"})
    assert found.config() == {"target": {"service": "nowhere"}, "jobs": 5}


@pytest.mark.rule("C-125")
def test_a_base_reached_twice_counts_twice_and_is_told(tmp_path: Path) -> None:
    files = {
        "common": "config: {setup: [s]}",
        "l": "base: common\n",
        "r": "base: common\n",
        "t": "base: [l, r]\n",
    }
    found = resolved(tmp_path, files)
    assert found.config() == {"setup": ["s", "s"]}
    assert [(told.code, told.message) for told in found.warnings] == [
        ("diamond", "`common` is merged 2 times here, so its lists are joined as often")
    ]


@pytest.mark.rule("C-100", "C-304")
def test_a_missing_base_names_place_path_and_the_nearest(tmp_path: Path) -> None:
    error = refused(tmp_path, t="config: {}\nbase: [comon]\n", common="")
    assert error.message == "the base `comon` does not exist: .azure_jobs/template/comon.yaml"
    assert error.hint == "`common` is the nearest name"
    assert spot(error) == (2, 8)
    other = refused(tmp_path, t="base: acount.default\n", **{"account/default": ""})
    assert other.hint == "`account.default` is the nearest name"


@pytest.mark.rule("C-100", "C-304")
def test_a_circle_is_told_in_order(tmp_path: Path) -> None:
    error = refused(
        tmp_path, t="base: a\n", a="base: [c, b]\n", b="base: account.x\n", c="", **{"account/x": "base: template.a"}
    )
    assert error.message == "the bases go round in a circle: a -> b -> account.x -> a"
    assert error.place is not None
    assert error.place.file.endswith("account/x.yaml")
    itself = refused(tmp_path, t="base: t\n")
    assert itself.message == "the bases go round in a circle: t -> t"


@pytest.mark.rule("C-100")
def test_a_circle_is_found_through_links(tmp_path: Path) -> None:
    where = project(tmp_path, {"t": "base: other\n"})
    os.symlink("t.yaml", where.directory / "template" / "other.yaml")
    with pytest.raises(TemplateError, match="circle"):
        load.resolve(where, "t")


@pytest.mark.rule("C-099", "C-304")
@pytest.mark.parametrize(
    ("base", "says"),
    [
        ("[null]", "a base is a name, not null"),
        ("5", "a base is a name, not the number `5`"),
        ("{a: b}", "a base is a name, not a mapping"),
        ("[[a]]", "a base is a name, not a list"),
        ("../x", "`../x` cannot name a base: `` is no folder of layers"),
        ("a/b", "`a/b` cannot name a base: a name is"),
        ("''", "`` cannot name a base: it is empty"),
        ("submission.x", "`submission` is no folder of layers"),
        ("account.", "`account.` cannot name a base: a name is"),
        ("account.a..b", "`account.a..b` cannot name a base: a name is"),
        ("a b.c", "`a b` is no folder of layers"),
        ("-x", "`-x` cannot name a base"),
    ],
)
def test_any_other_form_of_base_is_refused_at_its_line(tmp_path: Path, base: str, says: str) -> None:
    error = refused(tmp_path, t=f"config: {{a: 1}}\nbase: {base}\n")
    assert says in error.message
    assert spot(error)[0] == 2


@pytest.mark.rule("C-306", "C-305")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[a]", "the file is a list; a mapping with `base` and `config` is due"),
        ("text", "the file is text; a mapping with `base` and `config` is due"),
        ("base:\nconfig: text", "`config` is the text `text`; a mapping is due"),
        ("base:\nconfig: [a]", "`config` is a list; a mapping is due"),
        ("base:\nconfig: !unset ", "`config` itself cannot be removed"),
    ],
)
def test_a_wrong_kind_at_the_top_names_the_due_one(tmp_path: Path, text: str, says: str) -> None:
    assert refused(tmp_path, t=text).message == says


@pytest.mark.rule("C-305")
def test_a_part_without_config_contributes_nothing(tmp_path: Path) -> None:
    assert resolved(tmp_path, {"t": "base: [a, b]\nconfig: {x: 1}", "a": "config:\n", "b": ""}).config() == {"x": 1}


@pytest.mark.rule("C-098")
def test_another_key_at_the_top_is_told(tmp_path: Path) -> None:
    found = resolved(tmp_path, {"t": "base:\nconfg: {a: 1}\n"})
    assert [(told.message, told.hint, told.code) for told in found.warnings] == [
        ("unknown key `confg`", "`config` is the nearest key", "unknown-key")
    ]


def chain(length: int) -> dict[str, str]:
    files = {f"t{n}": f"base: t{n + 1}\nconfig: {{l: [{n}]}}\n" for n in range(length - 1)}
    return {**files, f"t{length - 1}": "config: {l: [0]}\n"}


@pytest.mark.rule("C-101", "C-311")
def test_an_endless_chain_is_refused_at_once(tmp_path: Path) -> None:
    where = project(tmp_path, chain(1200))
    began = time.process_time()
    with pytest.raises(TemplateError) as caught:
        load.resolve(where, "t0")
    assert time.process_time() - began < 1
    assert caught.value.message == "more than 64 files inherit from each other, the limit"
    assert caught.value.place is not None
    assert caught.value.place.file.endswith("t64.yaml")


@pytest.mark.rule("C-101")
def test_the_depth_counts_from_the_file_that_is_asked_for(tmp_path: Path) -> None:
    library = Library(project(tmp_path, chain(66)))
    for name, fits in [("t0", False), ("t1", False), ("t2", True), ("t40", True), ("t1", False), ("t0", False)]:
        if fits:
            assert len(library.resolve(name).chain) == 66 - int(name[1:])
        else:
            with pytest.raises(TemplateError, match="64 files"):
                library.resolve(name)


@pytest.mark.rule("C-101")
def test_values_count_at_each_use(tmp_path: Path) -> None:
    files = {"t": "base: [t1, t1]\n"}
    files |= {f"t{n}": f"base: [t{n + 1}, t{n + 1}]\n" for n in range(1, 20)}
    files["t20"] = "config: {l: [x]}\n"
    began = time.process_time()
    error = refused(tmp_path, **files)
    assert time.process_time() - began < 1
    assert error.message == "with this base more than 10000 values come together, the limit"


@pytest.mark.rule("C-101")
def test_empty_bases_are_not_free(tmp_path: Path) -> None:
    files = {"t": f"base: [{', '.join(['e'] * 2000)}]\n"}
    files["e"] = f"base: [{', '.join(['f'] * 20)}]\n"
    assert "10000 values" in refused(tmp_path, **files, f="").message


@pytest.mark.rule("C-101")
def test_a_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    really = source.read
    monkeypatch.setattr(source, "read", lambda link: read.append(link.name) or really(link))
    library = Library(
        project(tmp_path, {"t": "base: [a, b]\n", "a": "base: b\n", "b": "config: {x: 1}\n", "c": "base: t\n"})
    )
    library.entries()
    library.resolve("t")
    library.resolve("c")
    assert sorted(read) == ["a", "b", "c", "t"]


@pytest.mark.rule("C-097", "C-327")
@pytest.mark.parametrize("name", ["../x", "a/b", "", "a..b", ".hidden", "-x", "a b", "x\n"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError) as caught:
        load.resolve(project(tmp_path, {"t": LOCAL}), name)
    assert not isinstance(caught.value, TemplateError)
    assert "letters, digits" in (caught.value.hint or "")


@pytest.mark.rule("C-327", "C-342")
def test_a_name_that_nobody_has_is_not_found_and_hints(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        load.resolve(project(tmp_path, {"gpu": LOCAL, "cpu-big": LOCAL}), "gpuu")
    assert caught.value.message == "no template called `gpuu`"
    assert caught.value.hint == "`aj template list` shows 2; `gpu` is the nearest name"


@pytest.mark.rule("C-097")
def test_links_to_files_are_followed_and_odd_files_are_not_waited_for(tmp_path: Path) -> None:
    where = project(tmp_path, {"t": "base:\nconfig: {a: 1}\n"})
    folder = where.directory / "template"
    os.symlink("t.yaml", folder / "same.yaml")
    os.symlink("nowhere.yaml", folder / "lost.yaml")
    os.mkfifo(folder / "pipe.yaml")
    (folder / "folder.yaml").mkdir()
    (folder / ".#t.yaml").write_text("editor")
    assert load.resolve(where, "same").config() == {"a": 1}
    found = {entry.name: entry.error.message if entry.error else entry.kind for entry in load.names(where)}
    assert found == {"t": "leaf", "same": "leaf", "lost": "the link leads nowhere", "pipe": "not a regular file"}


@pytest.mark.rule("C-097")
def test_files_of_the_other_ending_are_strays(tmp_path: Path) -> None:
    where = project(tmp_path, {"t": LOCAL})
    (where.directory / "template" / "old.yml").write_text(LOCAL)
    assert [path.name for path in Library(where).strays()] == ["old.yml"]
    assert [entry.name for entry in load.names(where)] == ["t"]


@pytest.mark.rule("C-042", "C-303")
def test_one_broken_file_hides_no_other(tmp_path: Path) -> None:
    files = {f"t{n:02}": LOCAL for n in range(28)} | {"broken": "base:\nconfig: {a: [}\n", "child": "base: broken\n"}
    found = load.names(project(tmp_path, files))
    assert len(found) == 30
    broken = {entry.name: entry.error for entry in found if entry.kind == "broken"}
    assert list(broken) == ["broken", "child"]
    for error in broken.values():
        assert error is not None
        assert spot(error) == (2, 14)
        assert error.place is not None
        assert error.place.file.endswith("broken.yaml")


@pytest.mark.rule("C-042")
def test_a_row_shows_what_is_asked_for_most(tmp_path: Path) -> None:
    jobs = "[{instance_count: 2, sku: {1: G1, 2+: G8}}]"
    text = f"base: [a]\nconfig: {{target: {{service: sing, gpus_per_node: 4}}, jobs: {jobs}}}\n"
    entry = load.names(project(tmp_path, {"t": text, "a": ""}))[1]
    assert (entry.bases, entry.service, entry.nodes, entry.processes) == (("a",), "sing", 2, 4)
    assert entry.sku == "1: G1, 2+: G8"


def test_all_faults_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    error = refused(tmp_path, t="base: [null, 5]\nconfig: {a: 1, a: 2}\n")
    assert len(error.details["issues"]) == 3  # type: ignore[arg-type]


def test_a_component_is_found_by_its_dotted_name(tmp_path: Path) -> None:
    where = project(tmp_path, {"t": LOCAL, "account/x.y": "config: {a: 1}\n"})
    assert load.resolve(where, "account.x.y").config() == {"a": 1}
    with pytest.raises(NotFound):
        load.resolve(where, "submission.x")


def test_a_folder_that_is_not_there_has_no_templates(tmp_path: Path) -> None:
    where = project(tmp_path, {})
    (where.directory / "template").rmdir()
    assert load.names(where) == []
    where.directory.rmdir()
    assert Library(where).strays() == []
    with pytest.raises(AjError):
        load.resolve(where, "t")
