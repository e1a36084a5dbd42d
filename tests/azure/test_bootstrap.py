"""The bootstrap, run for real: many at once, killed at every step, on full disks, beside strangers."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from aj.base import proc
from aj.model import exits
from aj.model.code import CodePlan
from aj.pack import archive, walk
from aj.pack import node as programs
from tests.azure.nodes import AJ_ID, BASH, BOOTSTRAP, RUNNER, Ended, Node, ended, kill, until
from tests.azure.nodes import node as making
from tests.house.test_pages import need

pytestmark = [pytest.mark.usefixtures("programs"), pytest.mark.rule("A-212")]

NOBODY = 65534
APPLETS = ("cat", "chmod", "gzip", "id", "ln", "ls", "mkdir", "mv", "rm", "sha256sum", "sleep", "tar")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with making(tmp_path) as made:
        yield made


def needs_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can act for another user")


def codes(found: list[Ended]) -> list[int]:
    return [one.code for one in found]


# The programs themselves


def test_both_scripts_are_clean_to_the_linter() -> None:
    found = subprocess.run([need("shellcheck"), BOOTSTRAP, RUNNER], capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout) == (0, "")


@pytest.mark.rule("A-130", "C-190")
def test_they_are_the_same_bytes_for_every_job() -> None:
    assert programs.bootstrap() == BOOTSTRAP.read_bytes()
    assert dict(programs.added(CodePlan("/x"), None)) == {b"aj_runner.sh": (RUNNER.read_bytes(), 0o755)}


def test_what_both_do_is_written_alike() -> None:
    def functions(path: Path) -> dict[str, str]:
        found = re.findall(r"^(aj_\w+)\(\) \{.*?^\}$", path.read_text(), re.MULTILINE | re.DOTALL)
        return {name: re.search(rf"^{name}\(\).*?^\}}$", path.read_text(), re.M | re.S)[0] for name in found}  # type: ignore[index]

    mine, other = functions(BOOTSTRAP), functions(RUNNER)
    shared = {"aj_say", "aj_die", "aj_start_of", "aj_pause"}
    assert {name for name in shared if mine[name] != other[name]} == set()


@pytest.mark.rule("A-148")
def test_each_status_of_ours_has_a_meaning() -> None:
    used = {
        int(code) for path in (BOOTSTRAP, RUNNER) for code in re.findall(r"aj_(?:die|fail) (\d+)", path.read_text())
    }
    assert used == {110, 111, 112, 113, 114}
    assert used < set(exits.MEANINGS) <= set(range(110, 120))


# Input


@pytest.mark.rule("A-130")
@pytest.mark.parametrize(
    "changed, words",
    [
        ({"AJ_ID": ""}, "AJ_ID is not set"),
        ({"AJ_ID": "../../x"}, "AJ_ID is not an id of eight hex characters"),
        ({"AJ_CODE_ARCHIVE_SHA256": ""}, "AJ_CODE_ARCHIVE_SHA256 is not set"),
        ({"AJ_CODE_ARCHIVE_SHA256": "A" * 64}, "AJ_CODE_ARCHIVE_SHA256 is not a SHA-256"),
        ({"AJ_BOOTSTRAP_TIMEOUT": "a[$(touch /tmp/x)]"}, "AJ_BOOTSTRAP_TIMEOUT is not a number of seconds"),
    ],
)
def test_wrong_input_is_named(node: Node, changed: dict[str, str], words: str) -> None:
    node.archive()
    assert ended(node.boot(**changed)) == Ended(110, "", f"aj: {words}\n")
    assert list(node.tmp.iterdir()) == []


@pytest.mark.rule("A-130")
def test_a_missing_archive_is_named(node: Node) -> None:
    node.archive()
    assert ended(node.start(BOOTSTRAP)) == Ended(110, "", "aj: no archive was named\n")
    gone = node.root / "gone"
    assert ended(node.boot(gone)) == Ended(110, "", f"aj: the archive {gone} cannot be read\n")
    assert ended(node.boot(node.tmp)).err == f"aj: the archive {node.tmp} cannot be read\n"


@pytest.mark.rule("A-131")
@pytest.mark.parametrize("kind", ["link", "file", "open", "no folder"])
def test_no_folder_but_a_private_one_is_used(node: Node, kind: str) -> None:
    node.archive()
    elsewhere = node.root / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    match kind:
        case "link":
            node.private.symlink_to(elsewhere)
        case "file":
            node.private.write_text("")
        case "open":
            node.private.mkdir()
            node.private.chmod(0o750)
        case "no folder":
            node.env["TMPDIR"] = str(node.root / "absent")
    found = ended(node.boot())
    assert found.code == 110 and found.err.startswith(f"aj: {node.env['TMPDIR']}/aj-{os.geteuid()} is ")
    assert list(elsewhere.iterdir()) == []
    if kind == "open":
        assert found.err.endswith("is open to others: drwxr-x---\n")


@pytest.mark.rule("A-131")
def test_a_private_folder_of_somebody_else_is_not_used(node: Node) -> None:
    needs_root()
    node.archive()
    node.private.mkdir(mode=0o700)
    os.chown(node.private, NOBODY, NOBODY)
    assert ended(node.boot()) == Ended(110, "", f"aj: {node.private} belongs to another user\n")


# Once


@pytest.mark.rule("C-196", "A-131", "A-132", "A-139")
@pytest.mark.parametrize("count", [1, 8, 64])
def test_of_many_processes_one_unpacks(node: Node, count: int) -> None:
    node.archive({"data/a file": "content", "deep/er/b": "b"})
    node.count("tar")
    node.count("sha256sum")
    found = [ended(child) for child in [node.boot() for _ in range(count)]]
    assert codes(found) == [0] * count, found
    assert (node.ran("tar"), node.ran("sha256sum")) == (1, 1)
    said = [one.out.splitlines() for one in found]
    assert {lines[0] for lines in said} == {f"ran in {node.tree}/code"}
    assert len({lines[1] for lines in said}) == count  # each has a folder of its own
    assert {(lines[2], lines[3]) for lines in said} == {(f"{node.private}/{AJ_ID}", said[0][3])}
    for lines in said:
        assert stat.S_IMODE(Path(lines[1]).stat().st_mode) == 0o700
    assert stat.S_IMODE(node.private.stat().st_mode) == 0o700
    assert (node.tree / ".aj-ready").read_text() == node.env["AJ_CODE_ARCHIVE_SHA256"] + "\n"
    assert (node.tree / "code/data/a file").read_text() == "content"
    assert (node.tree / "code/data/a file").stat().st_uid == os.geteuid()
    assert not list((node.tree / "code").glob(".aj*"))
    assert node.turns == {"1": ""} and node.staged() == []


@pytest.mark.rule("A-132", "A-138")
def test_another_attempt_on_the_same_node_finds_the_code(node: Node) -> None:
    node.archive()
    node.count("tar")
    found = [ended(node.boot(AJ_ATTEMPT=str(number))) for number in (1, 1, 2)]
    tokens = [one.out.splitlines()[3] for one in found]
    assert tokens[0] == tokens[1] != tokens[2]
    assert all(re.fullmatch(r"[0-9a-f]{16}", token) for token in tokens)
    assert node.ran("tar") == 1


@pytest.mark.rule("A-138")
@pytest.mark.parametrize("name", ["AZUREML_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "AJ_ATTEMPT"])
def test_what_makes_another_attempt(node: Node, name: str) -> None:
    node.archive()
    first, second, third = (ended(node.boot(**{name: value})).out.splitlines()[3] for value in ("é 1", "é 2", "é 1"))
    assert first == third != second


@pytest.mark.rule("A-132")
@pytest.mark.parametrize("kind", ["other hash", "no mark", "file", "link", "empty"])
def test_a_tree_that_is_not_ready_is_replaced(node: Node, kind: str) -> None:
    node.archive({"new": ""})
    node.private.mkdir(mode=0o700)
    elsewhere = node.root / "elsewhere"
    (elsewhere / "code").mkdir(parents=True)
    match kind:
        case "other hash" | "no mark":
            (node.tree / "code").mkdir(parents=True)
            (node.tree / "code/old").write_text("")
            # The folder's name is the beginning of a hash: another one may begin alike.
            if kind == "other hash":
                (node.tree / ".aj-ready").write_text(node.env["AJ_CODE_ARCHIVE_SHA256"][:-1] + "x\n")
        case "file":
            node.tree.write_text("")
        case "link":
            (elsewhere / ".aj-ready").write_text(node.env["AJ_CODE_ARCHIVE_SHA256"])
            node.tree.symlink_to(elsewhere)
        case "empty":
            node.tree.mkdir()
    found = [ended(child) for child in [node.boot() for _ in range(4)]]
    assert codes(found) == [0] * 4, found
    assert sorted(path.name for path in (node.tree / "code").iterdir()) == ["aj_runner.sh", "new"]
    assert list((elsewhere / "code").iterdir()) == []
    assert node.staged() == []


# Whoever dies


@pytest.mark.rule("A-133", "A-134", "C-196")
@pytest.mark.parametrize(
    "program, after",
    [("ln", True), ("sha256sum", False), ("mkdir", False), ("tar", False), ("tar", True), ("mv", False), ("mv", True)],
)
def test_when_who_unpacks_is_killed_another_goes_on(node: Node, program: str, after: bool) -> None:
    node.archive({"data": "x" * 100_000})
    # The first folders are made before anyone takes the turn: only the one to unpack in is meant.
    node.stop_at(program, after=after, only="*code" if program == "mkdir" else "*")
    starters = {child.pid: child for child in (node.boot() for _ in range(4))}
    owner = node.stopped(program)
    kill(starters.pop(owner))
    found = [ended(child) for child in starters.values()]
    assert codes(found) == [0] * 3, found
    assert (node.tree / "code/data").stat().st_size == 100_000
    left = {turn: words.split()[0] if words else "" for turn, words in node.turns.items()}
    if (program, after) == ("mv", True):  # all was done: nobody had to take the turn
        (folder,) = node.staged()
        assert left == {"1": str(owner)} and list((node.private / folder).iterdir()) == []
    else:
        assert left == {"1": str(owner), "2": ""} and node.staged() == []


@pytest.mark.rule("A-134")
def test_a_stale_turn_goes_to_exactly_one_of_many(node: Node) -> None:
    node.archive()
    node.count("tar")
    lock = node.private / f"{AJ_ID}.lock"
    lock.mkdir(parents=True)
    node.private.chmod(0o700)
    (lock / "7").write_text(f"999999999 1 {proc.boot_id()} 999999999-1-2\n")
    (node.private / f".{node.tree.name}.999999999-1-2").mkdir()  # what the dead one left
    found = [ended(child) for child in [node.boot() for _ in range(16)]]
    assert codes(found) == [0] * 16, found
    assert node.ran("tar") == 1 and sorted(node.turns) == ["7", "8"] and node.staged() == []


@pytest.mark.rule("A-133")
@pytest.mark.parametrize("kind", ["reused pid", "other boot", "given back", "rubbish", "zombie"])
def test_a_turn_of_nobody_is_taken_at_once(node: Node, kind: str) -> None:
    node.archive()
    lock = node.private / f"{AJ_ID}.lock"
    lock.mkdir(parents=True)
    node.private.chmod(0o700)
    other = node.start("-c", "read -r line")  # its stdin is empty: it has ended, and nobody has taken note
    who = proc.identity(os.getpid())
    text = {
        "reused pid": f"{who.pid} {int(who.start_time) + 1} {who.boot_id} 1-1-1\n",
        "other boot": f"{who.pid} {who.start_time} 00000000-0000-0000-0000-000000000000 1-1-1\n",
        "given back": "",
        "rubbish": "../../x $(touch y) \x01\n",
        "zombie": f"{other.pid} {_field(other.pid, 22)} {who.boot_id} 1-1-1\n",
    }[kind]
    until(lambda: _field(other.pid, 3) == "Z", "its end")
    (lock / "1").write_text(text)
    assert ended(node.boot()).code == 0
    assert node.turns["2"] == ""


def _field(pid: int, number: int) -> str:
    """A field of what the system tells of a process, a zombie too."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[number - 3]


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A folder that every user may enter and write; pytest's own are closed, and closed again by each run."""
    with tempfile.TemporaryDirectory(prefix="aj-t-", dir="/tmp") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.mark.rule("A-133", "A-137")
def test_somebody_elses_living_process_keeps_its_turn(open_path: Path) -> None:
    needs_root()
    with making(open_path, user=NOBODY) as node:
        node.archive()
        node.tmp.chmod(0o777)
        (node.private / f"{AJ_ID}.lock").mkdir(parents=True)
        other = subprocess.Popen(["sleep", "600"])  # of root: nobody may signal it
        try:
            who = proc.identity(other.pid)
            (node.private / f"{AJ_ID}.lock/1").write_text(f"{who.pid} {who.start_time} {who.boot_id} 1-1-1\n")
            for path in (node.private, node.private / f"{AJ_ID}.lock", node.private / f"{AJ_ID}.lock/1"):
                os.chown(path, NOBODY, NOBODY)
            node.private.chmod(0o700)
            late = ended(node.boot(AJ_BOOTSTRAP_TIMEOUT="1"))
            words = f"the code was not unpacked within 1 s: process {other.pid} of this node was at it"
            assert late == Ended(114, "", f"aj: {words}\n")
            waiting = node.boot()
            until((node.private / AJ_ID).exists, "the waiting process")
        finally:
            other.kill()
            other.wait()
        assert ended(waiting).code == 0
        assert (node.tree / "code/aj_runner.sh").stat().st_uid == NOBODY


@pytest.mark.rule("A-137")
@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_signal_ends_it_and_leaves_nothing_behind(node: Node, number: int, code: int) -> None:
    node.archive()
    node.stop_at("tar")
    first = node.boot()
    assert node.stopped("tar") == first.pid
    (inner,) = proc.children_of({first.pid})
    first.send_signal(number)
    assert ended(first).code == code
    assert not Path(f"/proc/{inner}").exists() and node.staged() == [] and node.turns == {"1": ""}
    assert ended(node.boot()).code == 0


@pytest.mark.rule("A-137")
def test_unpacking_has_a_limit_in_all(node: Node) -> None:
    node.archive()
    node.stop_at("tar")
    starters = [node.boot(AJ_BOOTSTRAP_TIMEOUT="1") for _ in range(3)]
    found = [ended(child) for child in starters]
    assert codes(found) == [114] * 3, found
    assert "aj: the code could not be unpacked within 1 s: tar still ran\n" in {one.err for one in found}
    assert node.staged() == []


# Whatever fails


@pytest.mark.rule("A-135", "A-136", "C-196", "T102")
def test_another_archive_than_expected_ends_all_with_one_message(node: Node) -> None:
    path = node.archive()
    good = path.read_bytes()
    wanted = node.env["AJ_CODE_ARCHIVE_SHA256"]
    path.write_bytes(b"other")
    node.count("sha256sum")
    found = [ended(child) for child in [node.boot() for _ in range(8)]]
    assert codes(found) == [111] * 8
    (words,) = {one.err for one in found}
    assert re.fullmatch(rf"aj: the archive has SHA-256 [0-9a-f]{{64}} where {wanted} was expected\n", words)
    assert node.ran("sha256sum") == 1 and not node.tree.exists() and node.staged() == []
    path.write_bytes(good)
    assert ended(node.boot()).code == 111  # the same attempt
    assert ended(node.boot(AJ_ATTEMPT="2")).code == 0  # a later one


@pytest.mark.rule("A-135")
@pytest.mark.parametrize("name", ["/etc/aj-test", "../aj-test", "a/../../aj-test", "a/.."])
@pytest.mark.parametrize("tar", ["tar", "busybox"])
def test_a_name_that_leads_elsewhere_is_refused(node: Node, name: str, tar: str) -> None:
    if tar == "busybox":
        (node.bin / "tar").symlink_to(need("busybox"))
    node.archive({name: "no"})
    found = ended(node.boot())
    assert found.code == 112 and re.match(r"aj: the archive cannot be unpacked \(\d+ KiB are free\): tar: ", found.err)
    assert not node.tree.exists() and node.staged() == [] and not list(node.root.rglob("aj-test"))


@pytest.mark.rule("A-135")
def test_an_archive_without_a_runner_or_that_is_none_is_refused(node: Node) -> None:
    node.archive({"train.py": ""}, runner=None)
    assert ended(node.boot()) == Ended(112, "", "aj: the archive holds no aj_runner.sh\n")
    path = node.archive()
    path.write_bytes(b"no archive at all")
    node.env["AJ_CODE_ARCHIVE_SHA256"] = "0a48cb31f0ae04d42bbdd1fabeaa7dd7a3ed03ee85ad5a2d6bb8bbbbafb2d2f3"
    found = subprocess.run(["sha256sum", path], capture_output=True, text=True)
    node.env["AJ_CODE_ARCHIVE_SHA256"] = found.stdout.split()[0]
    one = ended(node.boot())
    assert one.code == 112 and one.err.startswith("aj: the archive cannot be unpacked (")


@pytest.fixture
def small_disk(node: Node) -> Iterator[Node]:
    """A node whose temporary folder holds 1 MiB."""
    needs_root()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", os.fsencode(node.tmp), b"tmpfs", 0, b"size=1m,mode=700") != 0:
        pytest.skip(f"no small disk can be mounted here: {os.strerror(ctypes.get_errno())}")
    try:
        yield node
    finally:
        for child in node.started:
            kill(child)
        libc.umount2(os.fsencode(node.tmp), 2)


@pytest.mark.rule("A-135", "A-136")
def test_a_full_disk_is_told_by_all_and_is_no_end_for_ever(small_disk: Node) -> None:
    node = small_disk
    node.archive({"large": os.urandom(2_000_000)})
    found = [ended(child) for child in [node.boot() for _ in range(8)]]
    assert codes(found) == [112] * 8, found
    assert all("aj: the archive cannot be unpacked (0 KiB are free): tar: " in one.err for one in found), found
    assert not node.tree.exists() and node.staged() == []
    node.archive({"small": os.urandom(200_000)})
    assert ended(node.boot()).code == 0


@pytest.mark.rule("A-135")
def test_a_disk_without_a_free_byte_ends_it_all_the_same(small_disk: Node) -> None:
    node = small_disk
    node.archive()
    node.private.mkdir(mode=0o700)
    with (node.tmp / "ballast").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass  # it is full
    found = [ended(child) for child in [node.boot() for _ in range(4)]]
    assert all(one.code in (110, 112) and "aj: " in one.err for one in found), found
    (node.tmp / "ballast").unlink()
    assert ended(node.boot(AJ_ATTEMPT="2")).code == 0


# Bare machines


def bare(node: Node, *without: str) -> None:
    """Leave nothing on the PATH but applets of busybox."""
    busybox = need("busybox")
    for name in APPLETS:
        if name not in without:
            (node.bin / name).symlink_to(busybox)
    node.env["PATH"] = str(node.bin)


@pytest.mark.rule("A-135", "A-212")
def test_applets_of_busybox_are_enough(node: Node) -> None:
    bare(node)
    node.archive({"data/a": "x"})
    found = [ended(child) for child in [node.boot() for _ in range(8)]]
    assert codes(found) == [0] * 8, found
    assert (node.tree / "code/data/a").read_text() == "x" and node.staged() == []


@pytest.mark.rule("A-135")
def test_what_is_missing_is_installed_once(node: Node) -> None:
    bare(node, "tar", "sha256sum")
    node.archive()
    busybox = need("busybox")
    node.program(
        "apt-get",
        f'echo "$@" >>{node.root}/apt-get.ran\necho "Get: $1"\n'
        f'[ "$1" = update ] || {{ ln -s {busybox} {node.bin}/tar; ln -s {busybox} {node.bin}/sha256sum; }}\n',
    )
    found = [ended(child) for child in [node.boot() for _ in range(4)]]
    assert codes(found) == [0] * 4, found
    assert (node.root / "apt-get.ran").read_text().splitlines() == [
        "update",
        "install -y --no-install-recommends tar gzip coreutils",
    ]
    assert {one.err for one in found} == {"", "aj: installing tar sha256sum by apt-get\n"}
    assert (node.private / AJ_ID / "tools.log").read_text() == "Get: update\nGet: install\n"


@pytest.mark.rule("A-135")
@pytest.mark.parametrize("manager", ["apk", "dnf", ""])
def test_what_cannot_be_installed_is_named(node: Node, manager: str) -> None:
    bare(node, "gzip")
    node.archive()
    if manager:
        node.program(manager, f'echo "$@" >{node.root}/asked\necho no such thing\nexit 1\n')
    found = ended(node.boot())
    assert found.code == 112
    if manager:
        log = node.private / AJ_ID / "tools.log"
        assert found.err.endswith(f"aj: the code cannot be unpacked: {manager} did not bring gzip (see {log})\n")
        assert log.read_text() == "no such thing\n"
        assert (node.root / "asked").read_text().split()[-3:] == ["tar", "gzip", "coreutils"]
    else:
        assert found.err == "aj: the code cannot be unpacked: no gzip here, and no way to get it\n"


@pytest.mark.rule("A-135")
def test_who_is_not_root_installs_by_sudo(open_path: Path) -> None:
    needs_root()
    with making(open_path, user=NOBODY) as node:
        bare(node, "gzip")
        node.tmp.chmod(0o777)
        node.bin.chmod(0o777)
        node.archive()
        node.program("sudo", f'printf "%s " "$@" >>{node.root}/asked\n')
        node.program("microdnf", "exit 1\n")
        assert ended(node.boot()).code == 112
        assert (node.root / "asked").read_text() == "-n microdnf install -y tar gzip coreutils "


# Into the code


@pytest.mark.rule("A-139", "A-147")
def test_the_runner_gets_the_environment_as_it_was(node: Node) -> None:
    node.archive(runner=f"umask; env -0 >{node.root}/env; ls /proc/self/fd | wc -l\n")
    odd = {"SPACES": " a  b ", "LINES_": "one\ntwo", "QUOTES": "'\"$(touch x)`", "TAR_OPTIONS": "--keep"}
    found = ended(node.boot(**odd))
    assert (found.code, found.err) == (0, "")
    assert found.out.split() == ["0022", "4"]  # the three, and the folder that is being listed
    pairs = dict(pair.split("=", 1) for pair in (node.root / "env").read_text().split("\0") if pair)
    given = {**node.env, **odd}
    assert {name: pairs.get(name) for name in given} == given
    added = set(pairs) - set(given) - {"PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"}
    assert added == {"AJ_NODE_DIR", "AJ_ATTEMPT_TOKEN", "AJ_RANK_DIR"}


@pytest.mark.rule("A-139")
def test_odd_paths_are_no_obstacle(node: Node) -> None:
    path = node.archive()
    odd = node.root / "a $(touch x) 'b' \\c"
    odd.mkdir()
    shutil.copy(path, odd / "-code.tar.gz")
    script = f'cd "$1" && exec {BASH} "$2" ./-code.tar.gz'
    found = ended(node.start("-c", script, "x", odd, BOOTSTRAP, TMPDIR=str(odd)))
    assert found.code == 0, found
    assert found.out.startswith(f"ran in {odd}/aj-{os.geteuid()}/{AJ_ID}-")


@pytest.mark.rule("A-146")
def test_the_status_of_the_runner_is_the_status(node: Node) -> None:
    node.archive(runner="exit 7\n")
    assert ended(node.boot()).code == 7


@pytest.mark.rule("A-114")
def test_files_for_ssh_go_out_of_the_code_into_a_private_folder(node: Node) -> None:
    members = {".ssh/config": "Host *\n", ".ssh/known_hosts": "h\n", ".ssh/id_ed25519": "k", ".ssh/id_ed25519.pub": "p"}
    node.archive(members, runner='printf "%s\\n" "${GIT_SSH_COMMAND-none}"; ls -a\n')
    found = ended(node.boot(AJ_SSH="1"))
    ssh = node.tree / "ssh"
    assert found.out.splitlines()[0] == (
        f"ssh -o StrictHostKeyChecking=yes -o UserKnownHostsFile={ssh}/known_hosts -F {ssh}/config -i {ssh}/id_ed25519"
    )
    assert ".ssh" not in found.out.splitlines()[1:]
    assert stat.S_IMODE(ssh.stat().st_mode) == 0o700
    assert ended(node.boot(AJ_SSH="1", GIT_SSH_COMMAND="mine")).out.splitlines()[0] == "mine"


@pytest.mark.rule("A-114")
def test_a_ssh_folder_of_the_project_stays_where_it_is(node: Node) -> None:
    node.archive({".ssh/config": "Host *\n"}, runner='printf "%s\\n" "${GIT_SSH_COMMAND-none}"; ls -a\n')
    found = ended(node.boot())
    assert found.out.splitlines()[0] == "none" and ".ssh" in found.out.splitlines()


@pytest.mark.rule("C-196", "A-139", "C-190")
def test_packed_code_runs_on_a_node(node: Node, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "src/train.sh").write_text('echo "rank $RANK of $WORLD_SIZE in $(basename "$PWD"): $1"; exit 5\n')
    plan = CodePlan(str(project), reserved=True)
    packed = archive.pack(walk.select(plan), folder=tmp_path / "kept", generated=programs.added(plan, None))
    path = archive.find(tmp_path / "kept", packed)
    assert path is not None
    node.env["AJ_CODE_ARCHIVE_SHA256"] = packed.archive_sha256
    jobs = [
        node.boot(
            path,
            RANK=str(rank),
            WORLD_SIZE="4",
            LOCAL_RANK=str(rank),
            AJ_PROCESSES_PER_NODE="4",
            AJ_SETUP="export GREETING=hello",
            AJ_COMMAND='bash src/train.sh "$GREETING"',
        )
        for rank in range(4)
    ]
    found = [ended(job) for job in jobs]
    assert [(one.code, one.out, one.err) for one in found] == [
        (5, f"rank {rank} of 4 in code: hello\n", "") for rank in range(4)
    ]
