"""Scripts with real programs, under both mechanisms: what they may, what they may not, and that
nothing of them stays.
"""

from __future__ import annotations

import ast
import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed.cells import MECHANISMS
from testbed.deadlines import over_at
from testbed.users import as_user
from uncaged_bundles.errors import RefusedError, SandboxUnavailable
from uncaged_engine.sandbox.mechanism import choose
from uncaged_engine.sandbox.script import (
    ScriptBounds,
    ScriptResult,
    run_script,
    scratch_copy,
    start_script,
)

PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A copy of a small tree, for the script to work on."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "data.txt").write_text("data")
    scratch_copy(source, tmp_path / "scratch")
    return tmp_path / "scratch"


def run(
    mechanism: str,
    scratch: Path,
    *argv: str,
    stdin: bytes = b"",
    environment: dict[str, str] | None = None,
    **bounds: Any,
) -> ScriptResult:
    allowed = ScriptBounds(**{"write": (scratch,), "timeout_s": 60.0, **bounds})
    return run_script(
        argv,
        allowed,
        mechanism=choose(mechanism),
        cwd=scratch,
        environment=environment or ENVIRONMENT,
        stdin=stdin,
    )


def tell(mechanism: str, scratch: Path, program: str, *arguments: str, **bounds: Any) -> Any:
    """Return the JSON that a small Python program prints; ``attempt(f)`` in it is None or the
    error's name.
    """
    head = """
    import json, os, socket, sys
    def attempt(action):
        try:
            action()
        except Exception as error:
            return type(error).__name__
    """
    source = textwrap.dedent(head) + textwrap.dedent(program)
    result = run(mechanism, scratch, PYTHON, "-c", source, *arguments, **bounds)
    assert result.exit_code == 0, result
    return json.loads(result.stdout)


def is_locked(path: Path) -> bool:
    """Whether some process still holds the lock on a file that a script's process took."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


LOCKING = """
import fcntl, os, signal, sys, time
def hold(path):
    global held
    held = open(path, "w")
    fcntl.flock(held, fcntl.LOCK_EX)
def daemon(path, depth=2):
    ready, done = os.pipe()
    if os.fork():
        os.close(done)
        os.read(ready, 1)
        return
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    if depth:
        daemon(path, depth - 1)
    else:
        hold(path)
    os.write(done, b"x")
    time.sleep(100)
"""
OVER = """
sys.stdin.read()
open("up", "w")
print(flush=True)
time.sleep(100)
"""
"""End of a program that waits for the end of its time (`over_at`)."""


def test_a_script_works_in_its_scratch_copy(mechanism: str, scratch: Path) -> None:
    """A script reads and writes in its copy, and its files are there afterwards, owned by the
    copy's owner.
    """
    result = run(
        mechanism,
        scratch,
        "sh",
        "-c",
        "cat data.txt && echo more > new.txt && mkdir d && mv new.txt d/moved.txt && pwd",
    )
    assert (result.exit_code, result.stdout.decode(), result.timed_out, result.truncated) == (
        0,
        f"data{scratch}\n",
        False,
        False,
    )
    written = scratch / "d" / "moved.txt"
    assert written.read_text() == "more\n"
    assert written.stat().st_uid == scratch.stat().st_uid
    assert (written.stat().st_uid != 0) or os.geteuid() == 0
    assert written.stat().st_uid != 0


def test_the_world_outside_is_closed(mechanism: str, scratch: Path, tmp_path: Path) -> None:
    """Files beside the bounds can be neither read nor written, nor can the system's."""
    secret = tmp_path / "secret.txt"
    secret.write_text("planted secret")
    secret.chmod(0o666)
    before = sorted(tmp_path.iterdir())
    program = """
    outside = sys.argv[1]
    print(json.dumps({
        "read": attempt(lambda: open(outside).read()),
        "write": attempt(lambda: open(outside, "w")),
        "remove": attempt(lambda: os.remove(outside)),
        "make": attempt(lambda: open(outside + ".new", "w")),
        "list": attempt(lambda: os.listdir(os.path.dirname(outside)) == ["scratch"] or 1 / 0),
        "etc": attempt(lambda: open("/etc/evil", "w")),
        "usr": attempt(lambda: open("/usr/bin/evil", "w")),
        "shadow": attempt(lambda: open("/etc/shadow").read()),
    }))
    """
    told = tell(mechanism, scratch, program, str(secret))
    assert told.pop("list") == (None if mechanism == "bubblewrap" else "PermissionError")
    assert None not in told.values()
    assert sorted(tmp_path.iterdir()) == before
    assert secret.read_text() == "planted secret"


def test_a_read_path_is_only_read(mechanism: str, scratch: Path, tmp_path: Path) -> None:
    """Bounds for reading give no writing, not even below a writable directory's neighbour."""
    library = tmp_path / "library"
    library.mkdir()
    (library / "text.txt").write_text("to be read")
    if os.geteuid() == 0:
        os.chown(library, scratch.stat().st_uid, scratch.stat().st_gid)
    program = """
    place = sys.argv[1]
    text = open(place + "/text.txt").read()
    print(json.dumps([text, attempt(lambda: open(place + "/new", "w")), attempt(lambda: os.rename(place, place + "2"))]))
    """
    text, made, renamed = tell(mechanism, scratch, program, str(library), read=(library,))
    assert text == "to be read"
    assert made in ("OSError", "PermissionError")
    assert renamed is not None
    assert sorted(path.name for path in library.iterdir()) == ["text.txt"]


@contextlib.contextmanager
def listener(family: int, address: Any) -> Iterator[socket.socket]:
    with socket.socket(family) as server:
        server.bind(address)
        server.listen()
        yield server


@pytest.mark.parametrize("network", [False, True])
def test_the_network_is_closed_unless_declared(
    mechanism: str, scratch: Path, network: bool
) -> None:
    """A server on loopback is reached only with network; another process's local socket never."""
    place = scratch.parent / "socket"
    program = """
    tcp = socket.socket
    def internet():
        socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5)
    def local():
        socket.socket(socket.AF_UNIX).connect(sys.argv[2])
    def abstract():
        socket.socket(socket.AF_UNIX).connect("\\0" + sys.argv[2])
    print(json.dumps([attempt(internet), attempt(local), attempt(abstract)]))
    """
    name = f"uncaged-{os.getpid()}-{mechanism}-{network}"
    with (
        listener(socket.AF_INET, ("127.0.0.1", 0)) as server,
        listener(socket.AF_UNIX, str(place)),
        listener(socket.AF_UNIX, f"\0{name}"),
    ):
        place.chmod(0o777)
        told = tell(
            mechanism, scratch, program, str(server.getsockname()[1]), str(place), network=network
        )
    assert (told[0] is None) == network
    assert told[1] is not None


def test_abstract_sockets_of_others_are_not_reached(mechanism: str, scratch: Path) -> None:
    """A name without a file is reached neither."""
    name = f"uncaged-{os.getpid()}-{mechanism}"
    with listener(socket.AF_UNIX, f"\0{name}"):
        program = 'print(json.dumps(attempt(lambda: socket.socket(socket.AF_UNIX).connect("\\0" + sys.argv[1]))))'
        assert tell(mechanism, scratch, program, name) is not None


def test_no_set_id_file_is_left(mechanism: str, scratch: Path) -> None:
    """By no call, on no own file: the bits are refused, and nothing belongs to root."""
    program = """
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY, 0o755))
    print(json.dumps([
        attempt(lambda: os.chmod("f", 0o4755)),
        attempt(lambda: os.chmod("f", 0o2755)),
        attempt(lambda: os.fchmod(os.open("f", os.O_RDONLY), 0o6755)),
        attempt(lambda: os.close(os.open("g", os.O_CREAT | os.O_WRONLY, 0o4755))),
        attempt(lambda: os.mknod("h", 0o104755)),
        attempt(lambda: os.chown("f", 0, 0)),
        attempt(lambda: os.setuid(0)),
    ]))
    """
    assert None not in tell(mechanism, scratch, program)
    for path in scratch.rglob("*"):
        assert not path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID)
        assert path.lstat().st_uid == scratch.stat().st_uid


def test_a_script_is_not_root(mechanism: str, scratch: Path) -> None:
    """A script, started by root or another user, has a user without rights, no other groups, and
    cannot get more.
    """
    program = """
    status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
    print(json.dumps({"ids": [os.getuid(), os.geteuid(), os.getgid()], "groups": [g for g in os.getgroups() if g != os.getgid()],
                      "caps": int(status["CapEff"], 16), "more": int(status["NoNewPrivs"]), "filter": int(status["Seccomp"])}))
    """
    told = tell(mechanism, scratch, program)
    assert 0 not in told["ids"] or os.geteuid() != 0
    # 4: to pass through closed directories, where nothing can be mounted
    assert told["caps"] in (0, 4)
    if mechanism == "bubblewrap":
        assert told["caps"] == 0
    assert (told["more"], told["filter"]) == (1, 2)
    if os.geteuid() == 0:
        assert told["groups"] == []
        assert told["ids"][0] >= 64000


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make what only root can read")
def test_the_capability_to_pass_reads_nothing_else(scratch: Path, tmp_path: Path) -> None:
    """Under Landlock as root the user passes closed directories, and still reads only what the
    bounds name.
    """
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    (private / "declared").write_text("declared")
    (private / "secret").write_text("planted secret")
    program = 'print(json.dumps([open(sys.argv[1] + "/declared").read(), attempt(lambda: open(sys.argv[1] + "/secret").read())]))'
    assert tell("landlock", scratch, program, str(private), read=(private / "declared",)) == [
        "declared",
        "PermissionError",
    ]


def test_dangerous_calls_are_refused(mechanism: str, scratch: Path) -> None:
    """No namespaces, no mounts, no looking into other processes."""
    program = """
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    def call(name, *arguments):
        result = getattr(libc, name)(*arguments)
        return ctypes.get_errno() if result < 0 else None
    print(json.dumps({
        "unshare": call("unshare", 0x10000000),
        "mount": call("mount", b"none", b"/", b"tmpfs", 0, None),
        "ptrace": call("ptrace", 0, 0, 0, 0),
        "personality": call("personality", 0x0040000),
        "kill": attempt(lambda: os.kill(int(sys.argv[1]), 9)),
    }))
    """
    assert None not in tell(mechanism, scratch, program, str(os.getpid())).values()


def test_other_processes_cannot_be_looked_into(mechanism: str, scratch: Path) -> None:
    """Environment and command line of the engine's process are out of reach."""
    program = """
    pid = sys.argv[1]
    def foreign(name):
        text = open(f"/proc/{pid}/{name}", "rb").read()
        assert b"pytest" in text or b"PATH=" in text
    print(json.dumps([attempt(lambda: foreign("environ")), attempt(lambda: foreign("cmdline"))]))
    """
    assert None not in tell(mechanism, scratch, program, str(os.getpid()))


def test_the_environment_is_what_was_given(mechanism: str, scratch: Path) -> None:
    """Nothing of ours; HOME and TMPDIR point to a private place that can be written."""
    program = """
    open(os.environ["TMPDIR"] + "/t", "w").write("t")
    print(json.dumps(dict(os.environ)))
    """
    told = tell(mechanism, scratch, program, environment={"PATH": "/usr/bin", "GREETING": "hello"})
    told.pop("LC_CTYPE", None)
    assert set(told) == {"PATH", "GREETING", "HOME", "TMPDIR"}
    assert told["GREETING"] == "hello"
    assert not Path(told["TMPDIR"], "t").exists()
    assert mechanism == "bubblewrap" or not Path(told["TMPDIR"]).exists()


@pytest.mark.slow
def test_the_given_interpreter_comes_along(mechanism: str, scratch: Path) -> None:
    """A virtual environment's Python finds its packages and its base, wherever these are."""
    result = run(mechanism, scratch, sys.executable, "-c", "import sys, pytest; print(sys.prefix)")
    assert (result.stderr, result.stdout.decode().strip()) == (b"", sys.prefix)


def test_only_listed_programs_run(mechanism: str, scratch: Path) -> None:
    """With a list, others are absent or cannot be executed."""
    shell, echo = (Path(os.path.realpath(f"/usr/bin/{name}")) for name in ("sh", "uname"))
    result = run(
        mechanism,
        scratch,
        str(shell),
        "-c",
        "/usr/bin/uname; /usr/bin/id; echo $?",
        executables=(shell, echo),
    )
    assert result.stdout.decode().split() in (["Linux", "127"], ["Linux", "126"])


@pytest.mark.slow
@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("key", ["read", "write"])
def test_a_granted_tmp_is_the_machines_own(key: str) -> None:
    """A script whose bounds name /tmp has the machine's /tmp in bubblewrap, as its working
    directory, too; it writes there only if the bounds say so.
    """
    tmp = Path("/tmp")
    found = tmp.stat()
    paths: dict[str, Any] = {key: (tmp,)}
    bounds = ScriptBounds(**paths, identities={tmp: (found.st_dev, found.st_ino)})
    with tempfile.TemporaryDirectory(dir=tmp) as name:
        Path(name).chmod(0o755)
        Path(name, "file").write_text("granted ")
        done = run_script(
            ["/bin/sh", "-c", f"cat {name}/file && pwd && echo > {name}.more; rm {name}.more"],
            bounds,
            mechanism=choose("bubblewrap"),
            cwd=None,
            environment=ENVIRONMENT,
        )
    assert done.stdout == b"granted /tmp\n", done.stderr
    assert (done.exit_code == 0) == (key == "write")


@pytest.mark.slow
def test_a_virtual_environment_on_path_runs(mechanism: str, scratch: Path, tmp_path: Path) -> None:
    """A virtual environment's Python is a link to a link of the system's: every place on the way is
    there inside.
    """
    environment = tmp_path / "venv"
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", str(environment)], check=True)
    program = environment / "bin" / "python3"
    assert program.is_symlink()
    result = run(
        mechanism,
        scratch,
        str(program),
        "-c",
        "import json, sys; print(sys.prefix)",
        executables=(program,),
    )
    assert (result.exit_code, result.stdout.decode().strip()) == (0, str(environment)), result


def test_exit_codes_are_told(mechanism: str, scratch: Path) -> None:
    """A code is the program's; a signal counts from 128; a file that is no program is 127."""
    (scratch / "text").write_text("no program")
    (scratch / "text").chmod(0o755)
    assert run(mechanism, scratch, "sh", "-c", "exit 3").exit_code == 3
    assert run(mechanism, scratch, "sh", "-c", "kill -9 $$").exit_code == 128 + 9
    assert run(mechanism, scratch, "./text").exit_code == 127
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        run(mechanism, scratch, "no-such-program")


def test_a_directory_outside_the_bounds_is_refused(
    mechanism: str, scratch: Path, tmp_path: Path
) -> None:
    """Nothing starts in a place that the script cannot see."""
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    bounds = ScriptBounds(write=(scratch,))
    if mechanism == "bubblewrap":
        with pytest.raises(SandboxUnavailable, match="other"):
            run_script(
                ["true"], bounds, mechanism=choose(mechanism), cwd=other, environment=ENVIRONMENT
            )
    else:
        result = run_script(
            ["ls"], bounds, mechanism=choose(mechanism), cwd=other, environment=ENVIRONMENT
        )
        assert result.exit_code != 0


def test_much_goes_in_and_out(mechanism: str, scratch: Path) -> None:
    """More than a pipe holds, both ways at once."""
    data = os.urandom(600_000)
    result = run(mechanism, scratch, "cat", stdin=data, output_bytes=1 << 20)
    assert (result.stdout == data, result.truncated) == (True, False)


def test_output_is_cut(mechanism: str, scratch: Path) -> None:
    """Output above the limit is dropped, and the result says so; the program goes on."""
    result = run(
        mechanism,
        scratch,
        "sh",
        "-c",
        "head -c 3000000 /dev/zero; echo end >&2; exit 4",
        output_bytes=1000,
    )
    assert (len(result.stdout), result.stderr, result.truncated, result.exit_code) == (
        1000,
        b"end\n",
        True,
        4,
    )


def test_input_that_nobody_reads_is_no_error(mechanism: str, scratch: Path) -> None:
    """A program may ignore what it is given."""
    assert run(mechanism, scratch, "true", stdin=b"x" * 1_000_000).exit_code == 0


@pytest.mark.slow
def test_endless_output_ends_with_the_time(
    mechanism: str, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Output without an end fills neither memory nor disk."""
    over_at(monkeypatch, scratch / "up")
    program = "cat; yes | head -c 6000; touch up; exec yes"
    result = run(mechanism, scratch, "sh", "-c", program, output_bytes=5000)
    assert (result.exit_code, len(result.stdout), result.truncated, result.timed_out) == (
        None,
        5000,
        True,
        True,
    )


@pytest.mark.slow
def test_a_program_that_closes_its_output_is_still_watched(mechanism: str, scratch: Path) -> None:
    """The time is over even for a silent one."""
    result = run(mechanism, scratch, "sh", "-c", "exec >&- 2>&-; sleep 100", timeout_s=0.4)
    assert (result.exit_code, result.timed_out) == (None, True)


@pytest.mark.slow
@pytest.mark.parametrize("end", ["return", "time"])
def test_daemons_end_with_the_script(
    mechanism: str, scratch: Path, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions of their own, ignored signals and orphaned grandchildren do not help: after the
    result nothing runs.
    """
    if end == "time":
        over_at(monkeypatch, scratch / "up")
    program = LOCKING + "daemon('lock')\n" + (OVER if end == "time" else "")
    result = run(mechanism, scratch, PYTHON, "-c", program)
    assert result.timed_out == (end == "time"), result
    assert (scratch / "lock").exists()
    assert not is_locked(scratch / "lock")


@pytest.mark.slow
def test_a_fork_bomb_is_bounded_and_ends(
    mechanism: str, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fork bomb reaches the script's number of processes, not the engine's, and is gone
    afterwards.
    """
    program = LOCKING + textwrap.dedent("""
    hold("lock")
    sys.stdin.read()
    while True:
        try:
            os.fork()
        except OSError:
            if not os.path.exists("full"):
                open("full", "w")
                print(flush=True)
    """)
    over_at(monkeypatch, scratch / "full")
    result = run(mechanism, scratch, PYTHON, "-c", program, processes=20)
    assert result.timed_out
    assert not is_locked(scratch / "lock")


def test_processes_are_counted(mechanism: str, scratch: Path) -> None:
    """Beyond the number a fork fails."""
    program = """
    import time
    started = 0
    try:
        while True:
            if os.fork() == 0:
                time.sleep(30)
                os._exit(0)
            started += 1
    except OSError:
        print(json.dumps(started), flush=True)
        os._exit(0)
    """
    assert 10 <= tell(mechanism, scratch, program, processes=20) <= 20


def test_memory_files_and_cpu_are_bounded(mechanism: str, scratch: Path) -> None:
    """Each limit ends in an error or a signal of the script's own."""
    assert (
        tell(
            mechanism,
            scratch,
            "print(json.dumps(attempt(lambda: bytearray(1 << 30)) or 'fits'))",
            memory_bytes=1 << 29,
        )
        == "MemoryError"
    )
    result = run(
        mechanism, scratch, "sh", "-c", "head -c 3000000 /dev/zero > big", file_bytes=1 << 20
    )
    assert result.exit_code != 0
    assert (scratch / "big").stat().st_size <= 1 << 20


@pytest.mark.slow
def test_cpu_time_is_bounded(mechanism: str, scratch: Path) -> None:
    """An endless loop ends by the kernel's hand."""
    result = run(mechanism, scratch, "sh", "-c", "while :; do :; done", cpu_s=1, timeout_s=240.0)
    assert result.exit_code in (128 + signal.SIGXCPU, 128 + signal.SIGKILL)


def test_a_private_directory_has_a_quota_in_all(mechanism: str, scratch: Path) -> None:
    """Many small files fill a script's private directory like one large file: bubblewrap's has a
    size, Landlock's is watched.
    """
    fill = 'cd "$TMPDIR" && for i in 1 2 3; do head -c 900000 /dev/zero > $i || exit 9; done; while :; do :; done'
    kept = run(
        mechanism,
        scratch,
        "sh",
        "-c",
        fill.replace("while :; do :; done", "echo done"),
        scratch_bytes=4 << 20,
    )
    assert kept.stdout == b"done\n"
    result = run(mechanism, scratch, "sh", "-c", fill, scratch_bytes=2 << 20)
    words = (
        b"No space left"
        if mechanism == "bubblewrap"
        else b"the private directory held more than 2 MiB; the script was ended"
    )
    assert words in result.stderr
    assert (result.exit_code, result.timed_out) == (9 if mechanism == "bubblewrap" else 143, False)


@pytest.mark.needs("landlock")
def test_removed_files_count_while_they_are_open(scratch: Path) -> None:
    """Under Landlock a file that a script removes and keeps open uses the quota of the private
    directory.
    """
    program = """
    import time
    place = os.environ["TMPDIR"] + "/hidden"
    with open(place, "wb") as file:
        os.remove(place)
        file.write(bytes(3 << 20))
        file.flush()
        time.sleep(60)
    """
    result = run(
        "landlock",
        scratch,
        PYTHON,
        "-c",
        "import os\n" + textwrap.dedent(program),
        scratch_bytes=2 << 20,
    )
    assert b"the private directory held more than 2 MiB" in result.stderr


def test_a_started_script_is_talked_to(mechanism: str, scratch: Path) -> None:
    """A long-lived process answers over its pipes, until it is killed with all that it started."""
    program = (
        LOCKING
        + "daemon('lock')\nfor line in sys.stdin:\n    print(line.strip()[::-1], flush=True)\n"
    )
    bounds = ScriptBounds(write=(scratch,))
    with start_script(
        [PYTHON, "-c", program],
        bounds,
        mechanism=choose(mechanism),
        cwd=scratch,
        environment=ENVIRONMENT,
    ) as script:
        for word in (b"abc", b"xyz"):
            script.stdin.write(word + b"\n")
            assert script.stdout.readline() == word[::-1] + b"\n"
        assert script.exit_code is None
        assert is_locked(scratch / "lock")
    assert not is_locked(scratch / "lock")
    script.end()


def test_a_script_whose_head_is_killed_ends_with_it(mechanism: str, scratch: Path) -> None:
    """A signal from elsewhere to bubblewrap, or to the supervisor, leaves no process of the group
    behind.
    """
    program = LOCKING + "hold('lock')\nprint('up', flush=True)\ntime.sleep(100)\n"
    bounds = ScriptBounds(write=(scratch,))
    with start_script(
        [PYTHON, "-c", program],
        bounds,
        mechanism=choose(mechanism),
        cwd=scratch,
        environment=ENVIRONMENT,
    ) as script:
        assert script.stdout.readline() == b"up\n"
        os.kill(script.pid, signal.SIGKILL)
        assert script.ends_within(60)
        assert script.end() == 128 + signal.SIGKILL
    with (scratch / "lock").open("rb") as file:
        # blocks until a killed holder is gone
        waiting = threading.Thread(target=fcntl.flock, args=(file, fcntl.LOCK_EX), daemon=True)
        waiting.start()
        waiting.join(60)
        assert not waiting.is_alive(), "the script outlived its head"


def test_a_started_script_that_ends_by_itself(mechanism: str, scratch: Path) -> None:
    """A script's own exit code is returned."""
    bounds = ScriptBounds(write=(scratch,))
    with start_script(
        ["sh", "-c", "read line; exit 9"],
        bounds,
        mechanism=choose(mechanism),
        cwd=scratch,
        environment=ENVIRONMENT,
    ) as script:
        script.stdin.close()
        assert script.ends_within(60)
        assert script.exit_code == 9


def test_scripts_die_with_the_engine(mechanism: str, scratch: Path) -> None:
    """A killed worker leaves no script behind, whatever it ignores."""
    program = (
        LOCKING
        + "daemon('lock')\nos.makedirs(os.environ['TMPDIR'] + '/a/b', 0o500)\nprint(os.environ['TMPDIR'], flush=True)\ntime.sleep(100)\n"
    )
    engine = f"""
import sys, time
from pathlib import Path
from uncaged_engine.sandbox.mechanism import choose
from uncaged_engine.sandbox.script import ScriptBounds, start_script
scratch = Path({str(scratch)!r})
script = start_script([{PYTHON!r}, "-c", {program!r}], ScriptBounds(write=(scratch,)), mechanism=choose({mechanism!r}),
                      cwd=scratch, environment={ENVIRONMENT!r})
print(script.stdout.readline(), flush=True)
time.sleep(100)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", engine], stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        private = Path(ast.literal_eval(process.stdout.readline().decode()).decode().strip())
        assert is_locked(scratch / "lock")
        pidfd = os.pidfd_open(
            int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
        )
        process.kill()
    with (scratch / "lock").open("rb") as file:
        # blocks until the last one is gone
        waiting = threading.Thread(target=fcntl.flock, args=(file, fcntl.LOCK_EX), daemon=True)
        waiting.start()
        waiting.join(60)
        assert not waiting.is_alive(), "the script outlived the engine"
    if mechanism == "landlock":
        supervisor = select.poll()
        supervisor.register(pidfd, select.POLLIN)
        assert supervisor.poll(60_000)
        assert not private.exists()
    os.close(pidfd)


def test_a_copy_keeps_links_and_leaves_devices(tmp_path: Path) -> None:
    """Links stay links, sockets and pipes stay behind, set-id bits are dropped, times are kept."""
    source = tmp_path / "source"
    (source / "d").mkdir(parents=True)
    (source / "d" / "program").write_text("#!/bin/sh\n")
    (source / "d" / "program").chmod(0o4755)
    os.utime(source / "d" / "program", (1000, 2000))
    (source / "link").symlink_to("/etc/passwd")
    (source / "broken").symlink_to("nowhere")
    (source / "directory").symlink_to("d")
    os.mkfifo(source / "pipe")
    (source / ".git").mkdir()
    user = scratch_copy(source, tmp_path / "copy", skip=(".git",))
    copy = tmp_path / "copy"
    assert sorted(path.name for path in copy.iterdir()) == ["broken", "d", "directory", "link"]
    assert (copy / "link").readlink() == Path("/etc/passwd")
    status = (copy / "d" / "program").stat()
    assert (stat.S_IMODE(status.st_mode), status.st_mtime, status.st_size) == (0o755, 2000, 10)
    for path in (copy, *copy.rglob("*")):
        assert (path.lstat().st_uid, path.lstat().st_gid) == (user.uid, user.gid)
    assert user.uid != 0


def test_a_copy_has_a_size(tmp_path: Path) -> None:
    """A tree beyond the limit is refused, and nothing of it stays."""
    source = tmp_path / "source"
    source.mkdir()
    for number in range(3):
        (source / str(number)).write_bytes(bytes(1000))
    with pytest.raises(RefusedError, match="too large"):
        scratch_copy(source, tmp_path / "copy", max_bytes=2500)
    assert not (tmp_path / "copy").exists()


@pytest.fixture
def open_place() -> Iterator[Path]:
    """Return a directory of an ordinary user, in one that this user can enter (pytest closes its
    own).
    """
    with tempfile.TemporaryDirectory() as name:
        os.chown(name, 65534, 65534)
        yield Path(name)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_all_of_this_holds_for_an_ordinary_user(mechanism: str, open_place: Path) -> None:
    """Bounds hold for a script that an ordinary user starts, with the system's own Python (the
    tests' may be in a closed home).
    """
    interpreter = "/usr/bin/python3"
    place = open_place
    waiting = LOCKING + "daemon('lock')\nopen('up', 'w')\nprint(flush=True)\ntime.sleep(100)\n"
    scenario = f"""
import json, os, sys, time
from pathlib import Path
from uncaged_engine.sandbox.mechanism import choose
from uncaged_engine.sandbox.script import ScriptBounds, run_script, scratch_copy
place = Path({str(place)!r})
source = place / "source"
source.mkdir()
(source / "data").write_text("data")
(place / "secret").write_text("planted secret")
user = scratch_copy(source, place / "scratch")
def run(*argv, **bounds):
    bounds = ScriptBounds(write=(place / "scratch",), **bounds)
    return run_script(argv, bounds, mechanism=choose({mechanism!r}), cwd=place / "scratch", environment={ENVIRONMENT!r})
first = run("sh", "-c", "cat data; echo new > new; cat ../secret; echo x > ../evil; chmod u+s new; id -u")
now_s = time.monotonic
time.monotonic = lambda: now_s() + 1000 * (place / "scratch/up").exists()
second = run("{interpreter}", "-c", {waiting!r})
(place / "scratch/up").unlink()
third = run("{interpreter}", "-c", "import socket; socket.create_connection(('127.0.0.1', 1))")
print(json.dumps([first.stdout.decode(), (place / "scratch/new").stat().st_mode, (place / "evil").exists(), second.timed_out,
                  third.exit_code, third.stderr.decode(), user.uid]))
"""
    text, mode, evil, timed_out, code, complaint, uid = as_user(scenario)
    assert text == "data65534\n"
    assert not mode & stat.S_ISUID
    assert (evil, timed_out, code, uid) == (False, True, 1, 65534)
    assert "Refused" in complaint or "PermissionError" in complaint
    assert not is_locked(place / "scratch" / "lock")


def test_no_descriptor_is_left(mechanism: str, scratch: Path) -> None:
    """A script that ran, was killed, or could not be started leaves no descriptor open."""
    before = sum(1 for _ in Path("/proc/self/fd").iterdir())
    run(mechanism, scratch, "true")
    run(mechanism, scratch, "sleep", "100", timeout_s=0.05)
    bounds = ScriptBounds(write=(scratch,))
    with pytest.raises(SandboxUnavailable):
        run_script(
            ["true"],
            bounds,
            mechanism=choose(mechanism),
            cwd=scratch / "missing",
            environment=ENVIRONMENT,
        )
    assert sum(1 for _ in Path("/proc/self/fd").iterdir()) == before


def test_waiting_has_an_end(mechanism: str, scratch: Path) -> None:
    """Waiting for a script that goes on ends at the caller's timeout."""
    bounds = ScriptBounds(write=(scratch,))
    with start_script(
        ["sleep", "100"], bounds, mechanism=choose(mechanism), cwd=scratch, environment=ENVIRONMENT
    ) as script:
        before = time.monotonic()
        assert not script.ends_within(0.05)
        assert time.monotonic() - before < 60
        pidfd = os.pidfd_open(script.pid)
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    assert poll.poll(0)
    os.close(pidfd)


@pytest.mark.slow
@pytest.mark.needs("bubblewrap")
def test_no_mount_follows_a_link_onto_a_library(tmp_path: Path) -> None:
    """A granted path in a written directory, swapped for a link before it is mounted, covers
    nothing: not even the stage begins.
    """
    tmp_path.chmod(0o755)
    (tmp_path / "shared" / "deep").mkdir(parents=True)
    up = "../" * len(tmp_path.parts)
    grants: dict[str, Any] = {
        "write": (tmp_path / "shared",),
        "read": (tmp_path / "shared" / "in",),
        "executables": (Path("/bin/true"),),
    }
    (tmp_path / "shared" / "in").mkdir()
    assert run("bubblewrap", tmp_path / "shared", "/bin/true", **grants).exit_code == 0
    (tmp_path / "shared" / "in").rmdir()
    for target in (f"{up}usr", up):
        (tmp_path / "shared" / "in").symlink_to(target)
        with pytest.raises(
            RefusedError, match="shared/in' was replaced by something else just now"
        ):
            run("bubblewrap", tmp_path / "shared", "/bin/true", **grants)
        (tmp_path / "shared" / "in").unlink()
