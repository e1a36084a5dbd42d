"""The first process of a pod, run for real: order, ranks, code, setup, launchers, signals, and an end in good order."""

from __future__ import annotations

import ctypes
import hashlib
import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import aj
from aj.backend.volcano import program
from tests.azure.nodes import BASH, Ended, Node, ended, until
from tests.azure.nodes import node as making
from tests.backend.volcano import kit
from tests.template.kit import VOLCANO

pytestmark = pytest.mark.usefixtures("programs")
PYTHON = shlex.quote(sys.executable)
SCRIPTS = Path(aj.__file__).parent / "backend/volcano/scripts"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with making(tmp_path) as made:
        yield from kit.pods(made)


def start(node: Node, command: str, **env: str) -> subprocess.Popen[bytes]:
    return node.start(*kit.PROGRAM, AJ_COMMAND=command, **env)


def run(node: Node, command: str, **env: str) -> Ended:
    return ended(start(node, command, **env))


def archive(node: Node, members: Mapping[str, str]) -> dict[str, str]:
    """Put an archive on the shared volume; return the variables that tell of it."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.uid = len(content.encode()), 0o644, 12345
            tar.addfile(info, io.BytesIO(content.encode()))
    path = node.root / "shared/aj_code/0a1b2c3d/code.tar.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(data.getvalue())
    return {
        "AJ_CODE_FROM": str(path),
        "AJ_CODE_ARCHIVE_SHA256": hashlib.sha256(data.getvalue()).hexdigest(),
        "AJ_WORKDIR": str(node.root / "work dir"),
    }


# exit status and words


@pytest.mark.rule("V-093", "A-146")
@pytest.mark.parametrize(
    ("command", "code"),
    [("exit 0", 0), ("exit 7", 7), ("false\necho no", 1), ("kill -9 $$", 137), ("kill -TERM $$", 143), ("nope", 127)],
)
def test_the_pod_ends_as_its_command(node: Node, command: str, code: int) -> None:
    found = run(node, command)
    assert (found.code, found.out) == (code, "")
    assert list(node.tmp.iterdir()) == []


@pytest.mark.rule("A-147", "C-159")
def test_words_mean_themselves(node: Node) -> None:
    words = ["a b", "$HOME", "$(id)", "`id`", "'", '"', "\\", "*", "é\n", "", "--x=$$", "~"]
    found = run(node, shlex.join([sys.executable, "-c", "import sys; print(sys.argv[1:])", *words]))
    assert (found.out, found.code) == (f"{words}\n", 0)


def test_nothing_to_run_is_told(node: Node) -> None:
    assert run(node, "").err == "aj: AJ_COMMAND is not set\n"
    assert run(node, "true", AJ_TERM_GRACE="soon").err == "aj: AJ_TERM_GRACE is not a whole number: soon\n"
    found = run(node, "true", TMPDIR="/dev/null/nowhere")
    assert (found.code, "private folder /dev/null/nowhere/aj-" in found.err) == (110, True)


# order


@pytest.mark.rule("V-045", "V-093")
def test_ranks_come_before_the_setup_and_the_code_before_both(node: Node) -> None:
    code = archive(node, {"where": "here\n"})
    tell = 'echo "$1 $RANK $NODE_RANK $WORLD_SIZE $AJ_TASK_INDEX $PWD $AJ_WORKDIR $(cat where)"'
    many = {
        "AJ_NODES": "4",
        "AJ_WORLD_SIZE": "4",
        "AJ_RANK_BASE": "1",
        "VC_TASK_INDEX": "2",
        "MASTER_ADDR": "127.0.0.1",
    }
    found = run(node, f"set -- command; {tell}", AJ_SETUP=f"set -- setup; {tell}", **code, **many)
    work = code["AJ_WORKDIR"]
    assert found.out.splitlines() == [f"{word} 3 3 4 2 {work} {work} here" for word in ("setup", "command")]


@pytest.mark.rule("V-060")
def test_without_code_the_pod_starts_where_the_image_does(node: Node) -> None:
    assert run(node, 'echo "$PWD $AJ_WORKDIR"').out == f"{node.root} {node.root}\n"


@pytest.mark.rule("V-034", "V-040", "V-042", "V-045", "V-130")
@pytest.mark.parametrize(("task", "index", "rank"), [("master", 0, 0), ("worker", 9, 10), ("worker", 99, 100)])
def test_a_pod_of_a_manifest_starts_as_a_node_starts_it(node: Node, task: str, index: int, rank: int) -> None:
    template = VOLCANO.replace("instance_count: 2", "instance_count: 102")
    template = template.replace("image: train:1", "image: train:1, setup: ['export FROM_SETUP=\"$$(id) $NODE_RANK\"']")
    (node.root / "my-master").mkdir()
    tell = 'echo "$1|$FROM_SETUP|$AJ_NODE_RANK|$RANK|$WORLD_SIZE|$AJ_TASK_NAME|$MASTER_ADDR|$PWD|$(cat here)"'
    objects = kit.made(node.root / "my-master", template, "bash", "-c", tell, "x", "$(AJ_ID) $$ é")
    found = kit.arrived(objects, task, index)
    node.program("getent", "exit 0\n")
    code = archive(node, {"here": "yes"})
    child = node.start(*found.argv[1:], **{**found.env, **code, "HOME": node.env["HOME"]})
    told = ended(child)
    job = f"my-master-0a1b2c3d-{kit.SUFFIX}"
    assert found.argv[0] == "/bin/bash"
    marked, from_setup, *rest = told.out.rstrip("\n").split("|")
    assert marked == "$(AJ_ID) $$ é"
    assert re.fullmatch(rf"[0-9]+\(id\) {rank}", from_setup)
    master = f"{job}-master-0.{job}"
    assert rest == [str(rank), str(rank), "102", task, master, code["AJ_WORKDIR"], "yes"], told.err


# code


@pytest.mark.rule("V-061", "A-148")
def test_another_archive_than_was_sent_is_not_unpacked(node: Node) -> None:
    code = archive(node, {"x": "1"}) | {"AJ_CODE_ARCHIVE_SHA256": "0" * 64}
    found = run(node, "echo ran", **code)
    assert (found.code, found.out) == (111, "")
    assert f"where {'0' * 64} was expected" in found.err
    assert list((node.root / "work dir").iterdir()) == []


@pytest.mark.rule("V-061", "A-148")
def test_code_that_cannot_be_read_or_unpacked_is_told(node: Node) -> None:
    code = archive(node, {"x": "1"})
    absent = run(node, "echo ran", **{**code, "AJ_CODE_FROM": "/dev/null/nowhere"})
    assert (absent.code, absent.out, "the code /dev/null/nowhere cannot be copied" in absent.err) == (112, "", True)
    Path(code["AJ_CODE_FROM"]).write_bytes(b"no archive")
    found = run(node, "echo ran", **{**code, "AJ_CODE_ARCHIVE_SHA256": hashlib.sha256(b"no archive").hexdigest()})
    assert (found.code, found.out, "cannot be unpacked" in found.err) == (112, "", True)
    assert run(node, "true", **{**code, "AJ_CODE_ARCHIVE_SHA256": "x"}).code == 110


@pytest.mark.rule("V-061")
def test_the_copy_on_the_volume_is_never_run(node: Node) -> None:
    code = archive(node, {"run.sh": "echo right"})
    assert (
        run(node, f"echo wrong >{shlex.quote(code['AJ_CODE_FROM'])}; bash run.sh; ls -A", **code).out
        == "right\nrun.sh\n"
    )


@pytest.mark.rule("A-114")
def test_files_for_ssh_leave_the_tree(node: Node) -> None:
    code = archive(node, {".ssh/known_hosts": "h", ".ssh/id_x": "k", "x": ""})
    tell = "ls -A; echo $GIT_SSH_COMMAND; stat -c %a ${GIT_SSH_COMMAND##* } $(dirname ${GIT_SSH_COMMAND##* })"
    listed, command, *_, mode = run(node, tell, **code, AJ_SSH="1").out.splitlines()
    assert (listed, mode) == ("x", "700")
    assert command.startswith(f"ssh -o StrictHostKeyChecking=yes -o UserKnownHostsFile={node.tmp}/aj-")
    assert command.endswith("/ssh/id_x")


# setup


@pytest.mark.rule("V-093", "A-143")
def test_what_setup_exports_is_there_for_the_command(node: Node) -> None:
    setup = (
        "export A='a b' B=$'x\\ny' PATH=/opt/new:$PATH\nunset GONE\nexport RANK=9 AJ_X=1 MASTER_PORT=1\n"
        "C=local\ncd /\nf() { :; }\nexport -f f"
    )
    command = 'printf "%s|" "$A" "$B" "${GONE-gone}" "$RANK" "${AJ_X-no}" "${C-no}" "$PWD" "${PATH%%:*}"'
    found = run(node, command, AJ_SETUP=setup, GONE="there")
    assert found.out == f"a b|x\ny|gone|0|no|no|{node.root}|/opt/new|"


@pytest.mark.rule("V-093", "A-142")
def test_a_setup_that_fails_ends_the_pod_with_its_status_and_line(node: Node) -> None:
    found = run(node, "echo ran", AJ_SETUP="true\n\n(exit 5)\necho on")
    assert (found.code, found.out) == (5, "")
    assert found.err == "aj: the setup ended with status 5 at its line 3\n"


@pytest.mark.rule("A-142")
def test_a_setup_has_a_limit_when_one_is_set(node: Node) -> None:
    found = run(node, "echo ran", AJ_SETUP="sleep 600 & sleep 600", AJ_SETUP_TIMEOUT="1")
    assert (found.code, found.out, found.err) == (114, "", "aj: the setup took longer than 1 s\n")


@pytest.mark.rule("V-093")
def test_setup_and_command_run_in_login_shells_that_keep_the_path_of_the_image(node: Node) -> None:
    profile = node.root / "home/.bash_profile"
    profile.write_text("export FROM_PROFILE=yes\ncalled() { echo called; }\nPATH=/usr/bin:/bin\n")
    tell = "echo $FROM_PROFILE ${PATH%%:*}; called"
    image = f"{node.bin}:/opt/a b:/opt/*:/usr/bin:/bin"
    found = run(node, f"{tell}; echo $PATH", AJ_SETUP=tell, PATH=image)
    assert found.out == f"yes {node.bin}\ncalled\n" * 2 + f"{image}\n"


def test_a_profile_that_fails_does_not_end_the_pod(node: Node) -> None:
    (node.root / "home/.bash_profile").write_text("false\nls /dev/null/nowhere 2>/dev/null\n")
    assert run(node, "echo ran", AJ_SETUP="true").out == "ran\n"


def test_what_setup_leaves_running_runs_beside_the_command_and_ends_with_it(node: Node) -> None:
    setup = f"sleep 600 & echo $! >{node.root}/pid"
    found = run(node, f"kill -0 $(cat {node.root}/pid) && echo runs", AJ_SETUP=setup)
    assert (found.out, found.code) == ("runs\n", 0)


# the master


@pytest.mark.rule("V-047")
def test_a_name_that_does_not_resolve_is_told_and_the_command_starts(node: Node) -> None:
    node.program("getent", f'echo "$@" >>{node.root}/asked\nexit 2\n')
    many = {"AJ_NODES": "2", "AJ_WORLD_SIZE": "2", "MASTER_ADDR": "x-master-0.x", "AJ_MASTER_WAIT": "1"}
    found = run(node, "echo ran", AJ_SETUP="echo setup", **many)
    assert found.out == "setup\nran\n"
    assert found.err == "aj: the name x-master-0.x did not resolve within 1 s: the command starts all the same\n"
    assert set((node.root / "asked").read_text().splitlines()) == {"hosts x-master-0.x"}


@pytest.mark.rule("V-047")
def test_a_job_of_one_node_waits_for_nobody(node: Node) -> None:
    node.program("getent", "echo asked >&2\nexit 2\n")
    assert run(node, "echo ran", MASTER_ADDR="x-master-0.x").err == ""


# processes


@pytest.mark.rule("V-046")
def test_our_launcher_starts_as_many_processes_as_the_node_has(node: Node) -> None:
    gang = {"AJ_LAUNCHER": "processes", "AJ_PROCESSES_PER_NODE": "3", "AJ_WORLD_SIZE": "10", "AJ_PROCESS_BASE": "1"}
    more = {"AJ_NODES": "4", "AJ_RANK_BASE": "1", "VC_TASK_INDEX": "2", "MASTER_ADDR": "127.0.0.1"}
    setup = "echo setup $RANK $LOCAL_RANK"
    found = run(node, "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $NODE_RANK", AJ_SETUP=setup, **gang, **more)
    first, *others = found.out.splitlines()
    assert first == "setup 7 0"
    assert sorted(others) == ["7 0 10 3 3", "8 1 10 3 3", "9 2 10 3 3"]


@pytest.mark.rule("V-046")
def test_the_first_process_that_fails_ends_the_others(node: Node) -> None:
    gang = {"AJ_LAUNCHER": "processes", "AJ_PROCESSES_PER_NODE": "3", "AJ_WORLD_SIZE": "3", "AJ_PROCESS_BASE": "0"}
    found = run(node, "[ $LOCAL_RANK = 1 ] && exit 6\nsleep 600", **gang)
    assert found.code == 6
    assert "process 1 of this node ended with status 6" in found.err


@pytest.mark.rule("V-044")
def test_without_our_launcher_one_command_starts_whatever_the_count(node: Node) -> None:
    found = run(node, "echo ${RANK-no} $AJ_PROCESSES_PER_NODE", AJ_PROCESSES_PER_NODE="8", AJ_WORLD_SIZE="8")
    assert found.out == "no 8\n"


# signals


def catching(path: Path, *, ends: bool = True) -> str:
    """A program below a shell that notes a signal."""
    leave = "sys.exit(0)" if ends else "None"
    code = (
        "import signal, sys, pathlib, time\n"
        f"note = lambda n, f: (pathlib.Path({str(path)!r}).write_text(str(n)), {leave})\n"
        "for n in (1, 2, 3, 10, 12, 15): signal.signal(n, note)\n"
        f"pathlib.Path({str(path) + '.up'!r}).write_text('up')\n"
        "while True: time.sleep(60)\n"
    )
    return f"exec {PYTHON} -c {shlex.quote(code)}"


@pytest.mark.rule("V-093", "A-145")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1])
def test_a_signal_reaches_the_program_below_the_shell(node: Node, number: signal.Signals) -> None:
    spot = node.root / "heard"
    child = start(node, f"( {catching(spot)} )\ntrue")
    until((node.root / "heard.up").exists, "the program")
    os.kill(child.pid, number)
    ended(child)
    assert spot.read_text() == str(number.value)


@pytest.mark.rule("V-093", "A-145")
def test_what_does_not_hear_is_killed_after_the_grace(node: Node) -> None:
    spot = node.root / "heard"
    child = start(node, catching(spot, ends=False), AJ_TERM_GRACE="1")
    until((node.root / "heard.up").exists, "the program")
    os.kill(child.pid, signal.SIGTERM)
    assert ended(child).code == 137
    assert spot.read_text() == "15"


@pytest.mark.rule("A-145")
def test_a_setup_that_is_asked_to_end_ends_the_pod(node: Node) -> None:
    child = start(node, "echo ran", AJ_SETUP=f"touch {node.root}/up\nsleep 600")
    until((node.root / "up").exists, "the setup")
    os.kill(child.pid, signal.SIGUSR1)  # no word for a setup
    os.kill(child.pid, signal.SIGTERM)
    assert (ended(child).code, (node.root / "up").exists()) == (143, True)


@pytest.mark.rule("A-145")
def test_what_a_setup_leaves_behind_when_it_is_asked_to_end_is_asked_again(node: Node) -> None:
    """A program that lost the first signal, as one may that is just being started."""
    deaf = (
        f"import signal, pathlib, time; signal.signal(15, lambda n, f: signal.signal(15, signal.SIG_DFL)); "
        f"pathlib.Path('{node.root}/up').write_text(''); [time.sleep(60) for _ in range(10)]"
    )
    child = start(node, "echo ran", AJ_SETUP=f"{PYTHON} -c {shlex.quote(deaf)} & wait", AJ_TERM_GRACE="600")
    until((node.root / "up").exists, "the program")
    os.kill(child.pid, signal.SIGTERM)
    assert ended(child).code == 143


@pytest.mark.rule("A-145")
def test_a_pod_that_still_fetches_code_ends_at_once(node: Node) -> None:
    code = archive(node, {"x": "1"})
    node.program("cp", f"touch {node.root}/up\nexec sleep 600\n")
    child = start(node, "echo ran", **code)
    until((node.root / "up").exists, "the copy")
    os.kill(child.pid, signal.SIGTERM)
    found = ended(child)
    assert (found.code, found.out) == (143, "")


@pytest.mark.rule("A-145")
def test_nothing_of_the_command_outlives_the_pod(node: Node) -> None:
    found = run(
        node,
        f"trap '' TERM\n(trap '' TERM; echo up >{node.root}/up; sleep 600) &\n"
        f"while [ ! -e {node.root}/up ]; do sleep 0.01; done",
    )
    assert found.code == 0  # `communicate` has seen the end of all that held the output


# the first process


def subreaper() -> None:
    """Let what is started adopt orphans, as the first process of a container does."""
    assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0


ORPHAN = "(setsid sh -c 'echo $$ >PLACE/orphan; exec sleep 0.2' &)\nwhile [ ! -s PLACE/orphan ]; do sleep 0.01; done\n"
REAPED = "while [ -d /proc/$(cat PLACE/orphan) ]; do sleep 0.05; done\necho reaped\n"


@pytest.mark.rule("V-093")
def test_children_that_others_left_are_reaped(node: Node) -> None:
    words = [BASH, *kit.PROGRAM]
    command = (ORPHAN + REAPED).replace("PLACE", str(node.root))
    child = subprocess.Popen(
        words,
        env={**node.env, "AJ_COMMAND": command},
        cwd=node.root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=subreaper,
    )
    node.started.append(child)
    assert ended(child).out == "reaped\n"


@pytest.mark.rule("V-093")
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs a namespace of processes: root")
def test_as_process_1_it_passes_signals_and_ends_as_its_command(node: Node) -> None:
    spot = node.root / "heard"
    words = ["unshare", "--pid", "--fork", "--mount-proc", BASH, *kit.PROGRAM]
    orphan = (ORPHAN + REAPED).replace("PLACE", str(node.root))
    command = f"echo $PPID\n{orphan}{catching(spot).replace('sys.exit(0)', 'sys.exit(9)')}"
    child = subprocess.Popen(
        words,
        env={**node.env, "AJ_COMMAND": command},
        cwd=node.root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    node.started.append(child)
    until((node.root / "heard.up").exists, "the program")
    os.kill(only_child(child.pid), signal.SIGTERM)
    found = ended(child)
    assert (found.code, found.out.splitlines()[1:], spot.read_text()) == (9, ["reaped"], "15")


def only_child(pid: int) -> int:
    (found,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(found)


# storage

BLOBFUSE = """
case $1 in
  --version) echo 'blobfuse2 version 9.9.9' ;;
  mount)
    cp "${3#--config-file=}" PLACE/settings
    mount -t tmpfs storage "$2" || exit 1
    while grep -q " $2 " /proc/self/mounts; do sleep 0.02; done
    echo flushed >>PLACE/flushed
    exit ${FLUSH:-0} ;;
  unmount) ls "$2" >PLACE/last; umount "$2" ;;
esac
"""


def with_storage(node: Node, command: str, **env: str) -> Ended:
    """Run a pod with one storage, in a namespace of mounts of its own."""
    node.program("blobfuse2", BLOBFUSE.replace("PLACE", str(node.root)))
    (node.root / "sas").write_text("sv=1&sig=planted")
    told = {
        "AJ_STORAGE": "data",
        "AJ_STORAGE_ACCOUNT_data": "account1",
        "AJ_STORAGE_ENDPOINT_data": "https://account1.blob.core.windows.net",
        "AJ_STORAGE_CONTAINER_data": "cont1",
        "AJ_STORAGE_FOLDER_data": str(node.root / "mnt"),
        "AJ_STORAGE_MODE_data": "rw",
        "AJ_STORAGE_SAS_FILE_data": str(node.root / "sas"),
        "AJ_BLOBFUSE2_MINIMUM": "2.3.2",
    }
    child = subprocess.Popen(
        ["unshare", "--mount", "--pid", "--fork", "--mount-proc", BASH, *kit.PROGRAM],
        env={**node.env, **told, "AJ_COMMAND": command, **env},
        cwd=node.root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    node.started.append(child)
    return ended(child)


@pytest.mark.rule("V-045", "V-081", "V-082", "A-148")
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs a namespace of mounts: root")
@pytest.mark.parametrize(
    ("command", "flush", "code"), [("true", "0", 0), ("true", "1", 119), ("exit 3", "1", 3), ("exit 3", "0", 3)]
)
def test_storage_is_there_for_the_setup_and_written_out_at_the_end(
    node: Node, command: str, flush: str, code: int
) -> None:
    folder = node.root / "mnt"
    setup = f"grep -q ' {folder} ' /proc/self/mounts && echo mounted; touch {folder}/by-setup"
    found = with_storage(node, f"ls {folder}; touch {folder}/by-command; {command}", AJ_SETUP=setup, FLUSH=flush)
    assert (found.out, found.code) == ("mounted\nby-setup\n", code), found.err
    assert (node.root / "last").read_text() == "by-command\nby-setup\n"
    assert (node.root / "flushed").exists()
    assert "sig=planted" in (node.root / "settings").read_text()
    assert "planted" not in found.out + found.err


@pytest.mark.rule("V-082", "A-148")
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs a namespace of mounts: root")
def test_storage_that_does_not_come_ends_the_pod(node: Node) -> None:
    found = with_storage(node, "echo ran", AJ_BLOBFUSE2_MINIMUM="10.0.0")
    assert (found.code, found.out) == (118, "")
    assert "no blobfuse2 of version 10.0.0 or later" in found.err


# the files


@pytest.mark.parametrize("part", program.PARTS)
def test_a_script_is_a_file_that_a_checker_of_shells_passes(part: str) -> None:
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is not here")
    found = subprocess.run(["shellcheck", str(SCRIPTS / part)], capture_output=True, text=True)
    assert found.stdout == ""


def test_the_program_is_far_shorter_than_an_argument_may_be_and_loses_nothing_but_comments() -> None:
    text = program.text()
    assert len(text.encode()) < 128 * 1024 / 3
    assert not re.search(r"(?<!<)<<-?[ '\"A-Z]*[A-Z]", text)  # no lines that a shell would take as they are
    assert subprocess.run([BASH, "-n", "-c", text], capture_output=True, text=True).stderr == ""
