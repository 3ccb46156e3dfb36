"""Bundles that attack, started as if there were no syntax-tree gate: all protection here is by the
kernel and the pipe's protocol.

After each attack the world outside is what it was, the cell is dead or has answered, the error says
what happened, and the worker's side goes on with the next cell.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from testbed.cells import (
    MECHANISMS,
    START,
    WALLS,
    begin,
    cell_for,
    error_of,
    mechanism_for,
    step_line,
    unchecked,
)
from testbed.users import as_user
from uncaged_bundles.errors import BundleError
from uncaged_bundles.validation.validate import read_bundle
from uncaged_engine.cells import cell as cell_module
from uncaged_engine.cells.cell import Cell, CellDied, CellLimits
from uncaged_engine.cells.reply import BundleReply
from uncaged_engine.sandbox.interpreter import find_interpreter
from uncaged_engine.sandbox.mechanism import choose

DEADLINE_S = 15.0
DESCRIPTOR = """descriptor = {"contract": 1, "name": "hostile", "description": "An attack.", "kind": "script",
              "parameters": {}, "roles": {}, "policy": {"null": {}}, "continues": False}
"""

HARM = """
def tried(name, action, found):
    try:
        action()
    except (OSError, ValueError, MemoryError):
        return
    found.append(name)

def harm(posix, world):
    "What of the world can be reached; it must be nothing."
    found = []
    for path in world["read"]:
        tried("read " + path, lambda: posix.open(path, 0), found)
    for path in world["write"]:
        for flags in (1, 2, 0o101, 0o1101, 0o2001, 0o20200002):
            tried("write " + path, lambda: posix.open(path, flags, 0o666), found)
    for path in world["places"]:
        tried("list " + path, lambda: posix.listdir(path), found)
        tried("mkdir " + path, lambda: posix.mkdir(path + "/evil"), found)
        tried("symlink " + path, lambda: posix.symlink("/etc", path + "/evil"), found)
        tried("rename " + path, lambda: posix.rename(path, path + "2"), found)
        tried("rename away " + path, lambda: posix.rename(path, "/tmp/evil"), found)
        tried("link " + path, lambda: posix.link(path, "/tmp/evil"), found)
        tried("chmod " + path, lambda: posix.chmod(path, 0o777), found)
        tried("chown " + path, lambda: posix.chown(path, 1, 1), found)
        tried("unlink " + path, lambda: posix.unlink(path), found)
        tried("truncate " + path, lambda: posix.truncate(path, 0), found)
        tried("utime " + path, lambda: posix.utime(path, (0, 0)), found)
        tried("chroot " + path, lambda: posix.chroot(path), found)
    for name in ("fork", "forkpty"):
        tried(name, getattr(posix, name), found)
    tried("exec", lambda: posix.execv(world["program"], ["python", "-c", "pass"]), found)
    tried("spawn", lambda: posix.posix_spawn(world["program"], ["python", "-c", "pass"], {}), found)
    for pid in world["pids"]:
        tried("signal %d" % pid, lambda: posix.kill(pid, 0), found)
    tried("setuid", lambda: posix.setuid(1), found)
    tried("nice", lambda: posix.nice(-5), found)
    tried("memfd", lambda: posix.memfd_create("x"), found)
    tried("pipe", posix.pipe, found)
    tried("eventfd", lambda: posix.eventfd(0), found)
    return found
"""

REACHES = {
    "import": "import posix\ndef reach():\n    return posix\n",
    "frames": """
def reach():
    def climb():
        frame = climbing.gi_frame
        while "posix" not in frame.f_globals:
            frame = frame.f_back
        yield frame.f_globals["posix"]
    climbing = climb()
    return next(climbing)
""",
    "tracebacks": """
def reach():
    try:
        1 / 0
    except ZeroDivisionError as error:
        frame = error.__traceback__.tb_frame
    while "posix" not in frame.f_globals:
        frame = frame.f_back
    return frame.f_globals["posix"]
""",
    "sys.modules": "import sys\ndef reach():\n    return sys.modules['posix']\n",
    "builtins": "def reach():\n    return __builtins__['__import__']('posix')\n",
    "subclasses": """
def reach():
    for kind in ().__class__.__base__.__subclasses__():
        space = getattr(getattr(kind, "__init__", None), "__globals__", {})
        if "posix" in space:
            return space["posix"]
        if "sys" in space:
            return space["sys"].modules["posix"]
""",
    "the engine's own code": "import sys\ndef reach():\n    return sys._getframe(2).f_globals['posix']\n",
}


@dataclass(frozen=True)
class World:
    """Resources that a bundle must not reach: a directory with a secret, and two servers."""

    place: Path
    servers: tuple[socket.socket, ...]

    @property
    def constants(self) -> str:
        secret = str(self.place / "secret")
        port = self.servers[0].getsockname()[1]
        world = {
            "read": [
                secret,
                "/etc/passwd",
                "/etc/hostname",
                f"/proc/{os.getpid()}/environ",
                "/proc/self/environ",
                __file__,
            ],
            "write": [
                secret,
                str(self.place / "new"),
                "/tmp/evil",
                "/dev/shm/evil",
                "/evil",
                "evil",
            ],
            "places": [str(self.place), secret],
            "program": str(find_interpreter().executable),
            "pids": [os.getpid(), os.getppid()],
        }
        return f"WORLD = {world!r}\nPORT = {port}\nLOCAL = {str(self.place / 'socket')!r}\n"

    def state(self) -> object:
        files = {
            path.name: (path.read_bytes(), path.stat().st_mtime_ns)
            for path in self.place.iterdir()
            if path.is_file()
        }
        return (
            files,
            sorted(path.name for path in self.place.iterdir()),
            [Path(name).exists() for name in ("/tmp/evil", "/evil", "/dev/shm/evil")],
        )

    def visitors(self) -> int:
        count = 0
        for server in self.servers:
            try:
                server.accept()[0].close()
                count += 1
            except BlockingIOError:
                continue
        return count


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """The world of an attack; its state is compared after the test."""
    place = tmp_path / "world"
    place.mkdir()
    place.chmod(0o777)
    (place / "secret").write_text("planted secret")
    (place / "secret").chmod(0o666)
    with socket.socket() as internet, socket.socket(socket.AF_UNIX) as local:
        internet.bind(("127.0.0.1", 0))
        local.bind(str(place / "socket"))
        for server in (internet, local):
            server.listen()
            server.setblocking(False)
        built = World(place, (internet, local))
        before = built.state()
        yield built
        assert built.state() == before
        assert built.visitors() == 0


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> Iterator[str]:
    """After each attack a well-behaved bundle runs as if nothing had been."""
    name = str(request.param)
    yield name
    with cell_for("def run(input, options):\n    yield {'null': 1}\n", name) as cell:
        assert begin(cell).body == b'{"null":1}'


def attack(source: str, mechanism: str, limits: CellLimits | None = None) -> BundleReply:
    """Run a bundle up to its first answer."""
    with cell_for(source, mechanism, limits) as cell:
        return cell.ask("S", 1, 0, START, deadline_s=DEADLINE_S)


def death(
    source: str, mechanism: str, limits: CellLimits | None = None, *, deadline_s: float = DEADLINE_S
) -> CellDied:
    """Run a bundle that must not get an answer through."""
    with cell_for(source, mechanism, limits) as cell, pytest.raises(CellDied) as caught:
        cell.ask("S", 1, 0, START, deadline_s=deadline_s)
        cell.send_outcome(1, 1, step_line(1, outcome=None), deadline_s=deadline_s)
        cell.send_outcome(1, 2, step_line(2, outcome=None), deadline_s=deadline_s)
    assert not cell.alive
    return caught.value


# Reaching for the world


@pytest.mark.parametrize("mechanism", WALLS, indirect=True)
@pytest.mark.parametrize("way", REACHES)
def test_whatever_is_reached_it_reaches_nothing(world: World, mechanism: str, way: str) -> None:
    """The raw system module can be got at by many ways; with it no file, process or user can be
    touched.
    """
    source = f"{HARM}{REACHES[way]}{world.constants}\ndef run(input, options):\n    yield {{'null': harm(reach(), WORLD)}}\n"
    reply = attack(source, mechanism)
    assert (reply.word, reply.body) == ("effect", b'{"null":[]}')


@pytest.mark.parametrize("way", REACHES)
def test_the_gate_stops_the_same_before_it_runs(way: str) -> None:
    """The syntax tree refuses each of these ways with line and column."""
    source = (
        f"{DESCRIPTOR}{REACHES[way]}\ndef run(input, options):\n    yield {{'null': reach()}}\n"
    )
    with pytest.raises(BundleError, match=r"line \d+, column \d+"):
        read_bundle(source.encode())


@pytest.mark.usefixtures("world")
def test_format_strings_tell_nothing_of_the_world(mechanism: str) -> None:
    """A format string walks through frames into the engine's globals; what it reads is the
    sandbox's own.
    """
    source = """
def run(input, options):
    def inner():
        yield
    generator = inner()
    next(generator)
    def climb():
        step = "{0.gi_frame.f_back.f_back"
        yield (step + ".f_globals} " + step + ".f_locals} " + step + ".f_back.f_locals}").format(climbing)
    climbing = climb()
    yield {"null": next(climbing)[:100000]}
"""
    text = attack(source, mechanism).body.decode()
    for value in (
        "planted secret",
        *(
            value
            for name, value in os.environ.items()
            if len(value) > 8 and name not in ("LANG", "PATH")
        ),
    ):
        assert value not in text


@pytest.mark.parametrize("mechanism", WALLS, indirect=True)
def test_sockets_cannot_be_made(world: World, mechanism: str) -> None:
    """A socket of any family is refused, so no server can be reached."""
    source = f"""
import _socket
{world.constants}
def run(input, options):
    found = []
    for family in range(46):
        for kind in (1, 2, 3, 5):
            try:
                _socket.socket(family, kind, 0)
                found.append([family, kind])
            except OSError:
                pass
    try:
        found.append(str(_socket.socketpair()))
    except OSError:
        pass
    yield {{"null": found}}
"""
    assert attack(source, mechanism).body == b'{"null":[]}'


NATIVE = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[item if isinstance(item, bytes) else ctypes.c_long(item) for item in arguments])
    return ctypes.get_errno() if result < 0 else 0
"""


@pytest.mark.parametrize("mechanism", WALLS, indirect=True)
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of that processor")
@pytest.mark.usefixtures("world")
def test_native_code_meets_the_kernel(mechanism: str) -> None:
    """Every system call that there is, called by number with harmless arguments, fails or is one of
    those that compute and look.
    """
    # sigreturn, exit, an endless poll; the last two are a probe's, which no filter sees
    ending = {15, 60, 231, 271, 335, 336}
    computing = {0, 1, 3, 7, 9, 10, 11, 12, 13, 14, 25, 28, 131, 158, 202, 218, 219, 273, 324, 334}
    source = f"""
{NATIVE}
def run(input, options):
    yield {{"null": [n for n in range(470) if n not in {ending!r} and call(n, -1, 0, 0, 0, 0, 0) not in (1, 38)]}}
"""
    passed = set(json.loads(attack(source, mechanism).body)["null"])
    looking = {
        2,
        4,
        5,
        6,
        8,
        17,
        19,
        20,
        21,
        24,
        39,
        63,
        72,
        78,
        79,
        89,
        96,
        97,
        98,
        99,
        100,
        102,
        104,
        107,
        108,
        110,
        127,
        186,
        201,
        204,
    }
    looking |= {217, 228, 229, 257, 262, 267, 269, 332, 439}
    assert passed <= looking | computing


@pytest.mark.parametrize("mechanism", WALLS, indirect=True)
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="machine code of that processor")
def test_machine_code_meets_the_kernel(mechanism: str) -> None:
    """Code that the bundle wrote into memory and jumped to forks no better; a 32-bit call kills the
    process.
    """
    source = """
import ctypes, mmap
def machine(code):
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    place = libc.mmap(None, ctypes.c_size_t(4096), 7, 0x22, -1, ctypes.c_long(0))
    ctypes.memmove(place, code, len(code))
    return ctypes.CFUNCTYPE(ctypes.c_long)(place)()
def run(input, options):
    fork = machine(bytes.fromhex("b839000000" "0f05" "c3"))
    execve = machine(bytes.fromhex("b83b000000" "31ff" "31f6" "31d2" "0f05" "c3"))
    yield {"null": [fork, execve]}
    machine(bytes.fromhex("b802000000" "cd80" "c3"))
    yield {"null": "alive"}
"""
    with cell_for(source, mechanism) as cell:
        assert cell.ask("S", 1, 0, START, deadline_s=DEADLINE_S).body == b'{"null":[-1,-1]}'
        with pytest.raises(CellDied, match="signal 31 ended it") as caught:  # SIGSYS
            cell.send_outcome(1, 1, step_line(1, outcome=None), deadline_s=DEADLINE_S)
    assert caught.value.reason == "died"


@pytest.mark.parametrize("mechanism", WALLS, indirect=True)
def test_limits_and_filters_cannot_be_loosened(mechanism: str) -> None:
    """The process can change neither its limits, nor its filter, nor the permission to trace it."""
    source = """
import resource, ctypes
libc = ctypes.CDLL(None, use_errno=True)
def run(input, options):
    found = []
    for name in ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_NPROC", "RLIMIT_NOFILE"):
        try:
            resource.setrlimit(getattr(resource, name), (1 << 40, 1 << 40))
            found.append(name)
        except (OSError, ValueError):
            pass
    found += [option for option in (4, 15, 22, 23, 28, 38, 47) if libc.prctl(option, 1, 0, 0, 0) == 0]
    yield {"null": found}
"""
    assert attack(source, mechanism).body == b'{"null":[]}'


@pytest.mark.parametrize("mechanism", WALLS, indirect=True)
def test_the_process_has_no_rights_at_all(mechanism: str) -> None:
    """The process has no capability, cannot gain privileges and has a filter, whichever user
    started it.
    """
    with cell_for("def run(input, options):\n    yield {'null': 1}\n", mechanism) as cell:
        begin(cell)
        pid = cell._launched.child.pid
        inner = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        status = Path("/proc", *(inner or [str(pid)]), "status").read_text()
    words = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert {int(words[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}
    assert (words["NoNewPrivs"], words["Seccomp"]) == ("1", "2")


@pytest.mark.parametrize("mechanism", WALLS, indirect=True)
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_is_as_safe(world: World, mechanism: str) -> None:
    """An attack by an ordinary user fails, with the system's own Python (ours may be in a closed
    home).
    """
    source = (
        f"{HARM}import posix\n{world.constants}\ndef run(input, options):\n"
        "    yield {'null': [posix.getuid(), harm(posix, WORLD)]}\n"
    )
    scenario = f"""
import types
from uncaged_engine.cells.cell import Cell
from pathlib import PosixPath
from uncaged_engine.sandbox.mechanism import Mechanism
cell = Cell.start(types.SimpleNamespace(hash="X", source={source.encode()!r}, trusted=False), {mechanism_for(mechanism)!r})
print(cell.ask("S", 1, 0, {START!r}, deadline_s=60).body.decode())
cell.close()
"""
    assert as_user(scenario) == {"null": [65534, []]}


# Lying on the pipe

FORGE = """
import posix
def pipes():
    "The descriptors that are pipes and can be written."
    found = []
    for fd in range(3, 100):
        try:
            if posix.fstat(fd).st_mode & 0o170000 == 0o010000:
                posix.write(fd, b"")
                found.append(fd)
        except OSError:
            pass
    return found
def say(data):
    for fd in pipes():
        while data:
            data = data[posix.write(fd, data):]
"""

FORGERIES = {
    "a second answer": (b'1 1 effect - {"null":1}\n', "protocol"),
    "an answer for another slot": (b'2 1 effect - {"null":1}\n', "protocol"),
    "an answer for another step": (b'1 7 effect - {"null":1}\n', "protocol"),
    "an answer for a replay": (b"1 0 return - {}\n", "protocol"),
    "a word of another request": (b"1 1 dropped - {}\n", "protocol"),
    "an unknown word": (b"1 1 granted - {}\n", "protocol"),
    "no header": (b"hello\n", "protocol"),
    "an empty line": (b"\n", "protocol"),
    "a number that is none": (b"1 \xd9\xa1 effect - {}\n", "protocol"),
    "zero bytes": (b"\0" * 100 + b"\n", "protocol"),
    "a half answer": (b"1 1 effect - ", "protocol"),
    "two answers at once": (b'1 1 effect - {"null":1}\n1 2 effect - {"null":2}\n', "protocol"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_frame_ends_the_cell(mechanism: str, forgery: str) -> None:
    """Bytes written to the pipe besides the one answer are noticed, at once or before the next
    request.
    """
    data, reason = FORGERIES[forgery]
    source = (
        f"{FORGE}\ndef run(input, options):\n    yield {{'null': 0}}\n    say({data!r})\n"
        "    yield {'null': 1}\n    yield {'null': 2}\n"
    )
    died = death(source, mechanism)
    assert died.reason == reason, died


def test_two_fitting_answers_are_none(mechanism: str) -> None:
    """Two lines in one write are refused at once, even if each fits the request."""
    source = f"{FORGE}\ndef run(input, options):\n    say(b'1 1 effect - {{\"null\":1}}\\n' * 2)\n    yield {{'null': 1}}\n"
    with cell_for(source, mechanism) as cell, pytest.raises(CellDied, match="more than one answer"):
        cell.ask("S", 1, 0, START, deadline_s=DEADLINE_S)


def test_a_forged_frame_never_becomes_the_answer_of_another_thread(mechanism: str) -> None:
    """A frame left in the pipe for the next thread's request is found before that request is
    written.
    """
    source = f"""
{FORGE}
def run(input, options):
    if input["prompt"] == "hostile":
        say(b'2 1 effect - {{"null":"forged"}}\\n')
    yield {{"null": "true"}}
"""
    with cell_for(source, mechanism) as cell:
        hostile = START.replace(b'"do it"', b'"hostile"')
        with pytest.raises(CellDied) as caught:
            cell.ask("S", 1, 0, hostile, deadline_s=DEADLINE_S)
            cell.ask("S", 2, 0, START, deadline_s=DEADLINE_S)
        assert caught.value.reason == "protocol"


def test_a_reply_before_its_request_ends_the_cell(mechanism: str) -> None:
    """A reply that waits in the pipe before the outcome is sent is refused, even if it fits."""
    # the first fills the pipe, so that the second is written once the first was read
    source = f"""
{FORGE}
def run(input, options):
    yield {{"null": 0}}
    head, tail = b'1 2 effect - {{"null":"', b'"}}\\n'
    say(head + b"x" * (65536 - len(head) - len(tail)) + tail)
    say(b'1 3 effect - {{"null":2}}\\n')
    while True:
        pass
"""
    with cell_for(source, mechanism) as cell:
        cell.ask("S", 1, 0, START, deadline_s=DEADLINE_S)
        reply = cell.send_outcome(1, 1, step_line(1, outcome=0), deadline_s=DEADLINE_S)
        assert len(reply.body) > 65000
        assert select.select([cell._launched.answer_fd], [], [], DEADLINE_S)[0]
        with pytest.raises(CellDied, match="it wrote without being asked"):
            cell.send_outcome(1, 2, step_line(2, outcome=0), deadline_s=DEADLINE_S)


def test_silence_ends_at_the_deadline(mechanism: str) -> None:
    """Half an answer and then nothing is no answer."""
    source = f"{FORGE}\ndef run(input, options):\n    say(b'1 1 effect - {{')\n    while True:\n        pass\n    yield\n"
    before = time.monotonic()
    died = death(source, mechanism, deadline_s=0.12)
    assert died.reason == "deadline"
    assert "did not answer in time" in died.detail
    assert time.monotonic() - before < DEADLINE_S


def test_an_endless_answer_is_cut(mechanism: str) -> None:
    """Bytes without a line feed are read up to the cap and no further."""
    source = f"{FORGE}\ndef run(input, options):\n    while True:\n        say(b'x' * 65536)\n    yield\n"
    died = death(source, mechanism, CellLimits(answer_bytes=1 << 20))
    assert died.reason == "protocol"
    assert "longer than 1048576 bytes" in died.detail


@pytest.mark.slow
def test_a_closed_pipe_is_a_dead_cell(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bundle that closes the answering end does not block its caller."""
    monkeypatch.setattr(cell_module, "EXIT_GRACE_MS", 100)
    source = (
        f"{FORGE}\ndef run(input, options):\n    for fd in pipes():\n        posix.close(fd)\n"
        "    while True:\n        pass\n    yield\n"
    )
    died = death(source, mechanism)
    assert died.reason == "died"


@pytest.mark.slow
def test_requests_that_are_not_read_do_not_block_for_ever(mechanism: str) -> None:
    """A write to a cell that reads nothing has a deadline, too."""
    source = f"{FORGE}\ndef run(input, options):\n    say(b'1 1 effect - {{\"null\":1}}\\n')\n    while True:\n        pass\n    yield\n"
    with cell_for(source, mechanism) as cell:
        cell.ask("S", 1, 0, START, deadline_s=DEADLINE_S)
        with pytest.raises(CellDied, match="did not take the request in time") as caught:
            cell.send_outcome(1, 1, step_line(1, outcome="x" * (4 << 20)), deadline_s=0.12)
    assert caught.value.reason == "deadline"


def test_a_cell_that_changes_the_engine_inside_hurts_only_itself(mechanism: str) -> None:
    """The child's own code can be rewritten by the bundle; the parent believes none of it."""
    source = """
import sys
def run(input, options):
    frame = sys._getframe()
    while "AnswerWriter" not in frame.f_globals:
        frame = frame.f_back
    def lie(self, slot, seq, word, body, digest="-"):
        import posix
        posix.write(self._fd, b"9 9 locked - {}\\n")
    frame.f_globals["AnswerWriter"].answer = lie
    yield {"null": 1}
"""
    assert death(source, mechanism).reason == "protocol"


# Using up

UNLIMITED = "import sys\nsys.setrecursionlimit(10**9)\n"


@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "sum(iter(int, 1))",
        "10 ** 10 ** 10",
        "__import__('re').match('(a+)+$', 'a' * 50 + 'b')",
        "max(iter(int, 1))",
    ],
)
def test_a_loop_ends_at_its_deadline(mechanism: str, body: str) -> None:
    """The deadline ends a loop in Python and one inside a C function."""
    died = death(
        f"def run(input, options):\n    {body}\n    yield {{'null': 1}}\n",
        mechanism,
        deadline_s=0.12,
    )
    assert died.reason == "deadline"


@pytest.mark.parametrize(
    "source",
    [
        "while True: pass\n",
        "def run(input, options):\n    try:\n        yield {'null': 1}\n    finally:\n        while True: pass\n",
        "class E(Exception):\n    def __str__(self):\n        while True: pass\ndef run(input, options):\n    raise E\n    yield\n",
    ],
    ids=["module", "finally", "str"],
)
def test_a_loop_in_an_odd_place_ends_too(mechanism: str, source: str) -> None:
    """The deadline holds while the module is executed, while a run is dropped and while an error is
    formatted.
    """
    with cell_for(source, mechanism) as cell, pytest.raises(CellDied) as caught:
        cell.ask("S", 1, 0, START, deadline_s=0.12)
        cell.ask("D", 1, 0, b"", deadline_s=0.12)
    assert caught.value.reason == "deadline"


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        "x = bytearray(1 << 40)",
        "x = 'a' * (1 << 34)",
        "x = []\n    while True:\n        x.append(bytes(1 << 20))",
        "x = 1 << (1 << 36)",
        "x = {}\n    while True:\n        x[len(x)] = str(len(x)) * 1000",
    ],
)
def test_a_memory_bomb_is_an_error(mechanism: str, body: str) -> None:
    """The allocation ends as MemoryError within the bundle, or with the process; the machine's
    memory is not used up.
    """
    with cell_for(
        f"def run(input, options):\n    {body}\n    yield {{'null': 1}}\n",
        mechanism,
        CellLimits(memory_bytes=1 << 28),
    ) as cell:
        try:
            reply = cell.ask("S", 1, 0, START, deadline_s=120)
        except CellDied as died:
            assert died.reason == "died"
        else:
            assert error_of(reply)["type"] in ("MemoryError", "OverflowError")


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        "def f(): return f()\ndef run(input, options):\n    yield {'null': f()}\n",
        "def run(input, options):\n    x = []\n    for _ in range(10**6): x = [x]\n    yield {'null': x}\n",
        "def run(input, options):\n    x = {}\n    for _ in range(10**6): x = {'a': x}\n    yield {'null': repr(x)}\n",
        UNLIMITED + "def f(): return f()\ndef run(input, options):\n    yield {'null': f()}\n",
        f"{UNLIMITED}def run(input, options):\n    x = []\n    for _ in range(10**6): x = [x]\n    yield {{'null': x}}\n",
        "class A:\n    def __getattr__(self, n): return getattr(self, n)\ndef run(input, options):\n    yield {'null': A().x}\n",
    ],
    ids=["function", "list", "repr", "unlimited", "unlimited encoder", "attribute"],
)
def test_a_recursion_bomb_is_an_error(mechanism: str, source: str) -> None:
    """The bundle gets RecursionError, or its process crashes where it raised Python's limit."""
    try:
        with cell_for(source, mechanism, CellLimits(memory_bytes=1 << 27)) as cell:
            reply = cell.ask("S", 1, 0, START, deadline_s=120)
    except CellDied as died:
        assert died.reason == "died"
        assert "signal 11" in died.detail or "Fatal Python error" in died.detail
    else:
        assert error_of(reply)["type"] in ("RecursionError", "MemoryError", "SystemError")


@pytest.mark.parametrize(
    "source",
    [
        "x = " + "(" * 5000 + ")" * 5000,
        "x = " + "-" * 100_000 + "1",
        "x = 'a' + " * 20000 + "'a'",
        "a" * 900_000,
    ],
)
def test_a_bomb_for_the_compiler_is_an_error(mechanism: str, source: str) -> None:
    """Source that breaks the parser gets no cell, and the process is gone."""
    try:
        with cell_for(source, mechanism) as cell:
            assert begin(cell).word == "raise"
    except BundleError as error:
        assert len(str(error)) < 6000


@pytest.mark.slow
@pytest.mark.parametrize("amount", [9 << 20, 100 << 20])
def test_an_output_bomb_is_an_error(mechanism: str, amount: int) -> None:
    """An answer beyond the cap is reported as the author's error; none of it comes through the
    pipe.
    """
    error = error_of(
        attack(f"def run(input, options):\n    yield {{'null': 'x' * {amount}}}\n", mechanism)
    )
    assert "at most" in error["message"] or error["type"] == "MemoryError"


def test_what_is_printed_fills_nothing(mechanism: str) -> None:
    """Prints and raw writes to the standard streams do not block, and only their end is kept for
    the report.
    """
    source = """
import posix
def run(input, options):
    for _ in range(300):
        print("x" * 10_000)
        for fd in (1, 2):
            try:
                posix.write(fd, b"y" * 10_000)
            except OSError:
                pass
    yield {"null": 1}
    posix.abort()
"""
    with cell_for(source, mechanism) as cell:
        assert cell.ask("S", 1, 0, START, deadline_s=DEADLINE_S).body == b'{"null":1}'
        with pytest.raises(CellDied) as caught:
            cell.send_outcome(1, 1, step_line(1, outcome=None), deadline_s=DEADLINE_S)
    assert len(caught.value.detail) < 5000


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("import posix\nposix._exit(0)\n", "status 0"),
        ("import posix\nposix._exit(77)\n", "status 77"),
        ("import ctypes\nctypes.string_at(8)\n", "signal 11"),
        ("import posix\nposix.abort()\n", "ended it"),
    ],
    ids=["exit", "exit with a code", "crash", "abort"],
)
def test_a_process_that_ends_itself_says_how(mechanism: str, source: str, complaint: str) -> None:
    """How it ended is in the error."""
    died = death(f"{source}\ndef run(input, options):\n    yield\n", mechanism)
    assert died.reason == "died"
    assert complaint in died.detail


# Odd bytes


@pytest.mark.parametrize(
    "source",
    [b"\xff\xfe\x00", b"x = '\x80'", b"# -*- coding: latin-1 -*-\nx = '\xe4'\n", b"\xed\xa0\x80"],
)
def test_bytes_that_are_not_utf8_get_no_cell(mechanism: str, source: bytes) -> None:
    """A source that is not UTF-8 is refused, with any declaration of its encoding."""
    with pytest.raises(BundleError, match="is not UTF-8: byte"):
        Cell.start(unchecked(source), choose(mechanism))


@pytest.mark.parametrize(
    "value",
    [
        r"'\ud800'",
        r"{'\udfff': 1}",
        "b'\\xff'.decode('utf-8', 'surrogateescape')",
        r"'\ud83d' + 'x'",
    ],
)
def test_text_that_is_no_utf8_is_an_error(mechanism: str, value: str) -> None:
    """Half characters in an effect are the author's error."""
    error = error_of(
        attack(f"def run(input, options):\n    yield {{'null': {value}}}\n", mechanism)
    )
    assert error["type"] == "UnicodeEncodeError"


def test_line_ends_in_text_do_not_split_frames(mechanism: str) -> None:
    """Only a line feed ends a frame, and JSON has none in it."""
    text = "a\nb\rc\x85d\u2028e\x0bf\x1cg\0h"
    source = f"def run(input, options):\n    got = yield {{'null': {text!r}}}\n    yield {{'null': got}}\n"
    with cell_for(source, mechanism) as cell:
        assert json.loads(begin(cell).body) == {"null": text}
        assert json.loads(
            cell.send_outcome(1, 1, step_line(1, outcome=text), deadline_s=DEADLINE_S).body
        ) == {"null": text}


def test_the_interpreter_under_test_is_ours() -> None:
    """The cells ran the Python that these tests run on."""
    with cell_for(
        "import sys\ndef run(input, options):\n    yield {'null': sys.version}\n"
    ) as cell:
        assert json.loads(begin(cell).body)["null"] == sys.version
