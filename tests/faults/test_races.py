"""Two owners race for one thread, and many processes change one registry, half of them killed: one
wins, nothing is lost.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
from testbed.bundles import MARKED, Placed, place, source
from testbed.fault_checks import check_the_recovery
from testbed.foreground import at_window, environment, worker
from testbed.journals import records_of
from testbed.processes import end
from testbed.steering import finish, marks
from testbed.windows import place as code_at
from uncaged_engine.api import Engine
from uncaged_engine.journal.recover import recover
from uncaged_engine.threads import steering
from uncaged_engine.worker import client
from uncaged_engine.worker.wire import pack, receive_line, unpack

pytestmark = pytest.mark.slow

RESULT = {"success": True, "message": "100 answers", "data": list(range(1, 101))}
UNLOCKED = ("-m", "testbed.patched", "no-worker-lock", "uncaged_engine.worker")
LAWLESS = ("-m", "testbed.patched", "no-worker-lock,no-lock", "uncaged_engine.worker")


@pytest.fixture
def placed(engine: Engine) -> Placed:
    return place(engine.store, MARKED, params={"n": 100})


def ask(connection: socket.socket, placed: Placed) -> None:
    connection.sendall(
        pack({"op": "drive", "threadId": placed.thread, "environment": {}, "directory": "/"})
    )


def told(connection: socket.socket) -> str:
    """Return a worker's answer: ok, or the text of its refusal."""
    line = receive_line(connection, bytearray())
    assert line is not None
    return str(unpack(line).get("error", {}).get("message", "ok"))


def connected(engine: Engine, placed: Placed) -> socket.socket:
    connection = client.connect(engine.store, placed.bundle.hash)
    assert connection is not None
    return connection


def race(engine: Engine, placed: Placed, python: tuple[str, ...]) -> list[str]:
    """Two workers of one bundle, both asked for the same thread at the same moment; both have left
    when this returns.
    """
    with (
        worker(engine.store, placed.bundle.hash, python=python) as one,
        connected(engine, placed) as first,
        # its socket takes the other's place
        worker(engine.store, placed.bundle.hash, python=python) as other,
        connected(engine, placed) as second,
    ):
        ask(first, placed)
        ask(second, placed)
        answers = [told(first), told(second)]
        for process in (one, other):
            process.wait(timeout=120)
    return answers


def check_the_race(engine: Engine, placed: Placed) -> None:
    """Check that the journal has one history, and no effect was performed more often than its lines
    say.
    """
    data = placed.path.read_bytes()
    assert recover(data, placed.bundle.hash, placed.thread).damage is None, (
        "two owners wrote into one journal"
    )
    said = Counter(record["seq"] for record in records_of(data) if "because" in record)
    twice = {
        seq: times
        for seq, times in Counter(marks(engine, placed.thread)).items()
        if times > 1 + said[seq]
    }
    assert twice == {}, f"performed twice: {twice}"


def test_a_second_worker_of_a_bundle_leaves_at_once(engine: Engine, placed: Placed) -> None:
    """The first holds the lock of the bundle; the second says nothing and ends with 75."""
    with (
        worker(engine.store, placed.bundle.hash) as first,
        worker(engine.store, placed.bundle.hash) as second,
    ):
        assert second.wait(timeout=60) == 75
        assert first.poll() is None
        with connected(engine, placed) as connection:
            ask(connection, placed)
            assert told(connection) == "ok"
        list(engine.follow(placed.thread))
    check_the_recovery(engine, placed, RESULT)


COMING = """
import sys
from pathlib import Path
from uncaged_bundles.ids import BundleHash
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine
from uncaged_engine.worker import client
engine = Engine(Store.open(Path(sys.argv[1])))
bundle = BundleHash(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
pids = {client.request(engine.store, bundle, {"op": "list"}, start=True)["pid"] for _ in range(48)}
threads = [engine.run("marked", prompt="", params={"n": 1}) for _ in range(2)]
print(*pids, flush=True)
"""
CLIENTS = 20


def test_a_thousand_requests_from_twenty_processes_start_one_worker(
    engine: Engine, placed: Placed
) -> None:
    """All come at the same moment, when there is none; each is answered, by the same one, and every
    thread runs.
    """
    command = [sys.executable, "-c", COMING, str(engine.store.root), placed.bundle.hash]
    pipe = subprocess.PIPE
    with ExitStack() as stack:
        clients = [
            stack.enter_context(
                subprocess.Popen(
                    command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment()
                )
            )
            for _ in range(CLIENTS)
        ]
        for one in clients:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
        for one in clients:
            assert one.stdin is not None
            one.stdin.write("go\n")
            one.stdin.flush()
        told = [one.communicate(timeout=120) for one in clients]
    assert [errors for _, errors in told if errors] == []
    assert len({word for said, _ in told for word in said.split()}) == 1
    for summary in engine.threads():
        if summary.thread_id != placed.thread:
            finish(engine, summary.thread_id)
    assert len(engine.threads()) == 1 + 2 * CLIENTS


def test_two_workers_race_for_one_thread(engine: Engine, placed: Placed) -> None:
    """Even if a bundle had two workers, a journal has one owner: the second is refused, by name,
    and one history comes out.
    """
    winner, loser = sorted(race(engine, placed, UNLOCKED), key=len)
    assert winner == "ok"
    assert loser == f"thread {placed.thread} is in use by another process"
    check_the_race(engine, placed)
    check_the_recovery(engine, placed, RESULT)
    assert Counter(marks(engine, placed.thread)) == Counter(range(1, 101))


def test_the_harness_sees_a_missing_lock(engine: Engine) -> None:
    """Positive control: with the journal's lock taken out, the same race spoils the journal or
    performs effects twice.

    The thread is long, so that the first owner cannot be at its end before the second has begun.
    """
    placed = place(engine.store, MARKED, params={"n": 2000})
    race(engine, placed, LAWLESS)
    with pytest.raises(AssertionError, match=r"two owners|performed twice"):
        check_the_race(engine, placed)


def test_many_openers_of_one_journal(engine: Engine, placed: Placed) -> None:
    """Twelve processes steer one thread at the same moment: every acknowledged word is in the
    journal, whole and in one chain.
    """
    script = (
        "import sys; from pathlib import Path; from uncaged_bundles.errors import UncagedError\n"
    )
    script += (
        "from uncaged_engine.api import Engine; from uncaged_bundles.storage.store import Store\n"
    )
    script += "engine = Engine(Store.open(Path(sys.argv[1])))\nsys.stdin.readline()\n"
    script += "try:\n    engine.pause(sys.argv[2]); print('done')\nexcept UncagedError as exc:\n    print(exc)\n"
    words = [sys.executable, "-c", script, str(engine.store.root), placed.thread]
    many = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(12)
    ]
    for one in many:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    answers = [one.communicate(timeout=120)[0].strip() for one in many]
    pauses = [
        record
        for record in records_of(placed.path.read_bytes())
        if record.get("control") == "pause"
    ]
    assert len(pauses) == answers.count("done") == 1
    assert all("is paused: it cannot be paused" in answer for answer in answers if answer != "done")
    assert recover(placed.path.read_bytes(), placed.bundle.hash, placed.thread).damage is None


def test_who_takes_the_lock_looks_again(engine: Engine, placed: Placed) -> None:
    """A pause by another process between the check of the state and the lock is noticed: the second
    pause is refused and not written.
    """
    at = code_at(Path(steering.__file__), "journal = _ask_or_take(")
    words = [
        sys.executable,
        *at_window(at, "testbed.store_actions", deed="hold"),
        str(engine.store.root),
        "pause",
        placed.thread,
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env=environment()) as late:
        assert late.stdout is not None
        assert late.stdout.readline() == b"held\n"
        engine.pause(placed.thread)
        before = placed.path.read_bytes()
        _, complaint = late.communicate(b"\n", timeout=60)
    assert b"is paused: it cannot be paused" in complaint
    assert placed.path.read_bytes() == before


ADDER = """
import sys
from pathlib import Path
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine

engine = Engine(Store.open(Path(sys.argv[1])))
file = Path(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    name = f"{file.stem}-{number}"
    engine.add(name, file.read_bytes().replace(b"'name': 'flow'", f"'name': '{name}'".encode()), accept=lambda widened: True)
    print(name, flush=True)
"""
PROCESSES = 12
EACH = 5


def add_at_once(root: Path, directory: Path, patch: str | None = None) -> tuple[set[str], set[str]]:
    """Run processes that add flows at the same moment; every second one is killed at its third.

    Returns:
        The acknowledged names, and the begun ones.
    """
    adder = directory / "adding.py"
    adder.write_text(ADDER)
    files = []
    for number in range(PROCESSES):
        file = directory / f"flow{chr(97 + number)}.py"
        file.write_bytes(source("flow", f"    yield {{'null': {{'value': {number}}}}}\n"))
        files.append(file)
    variables = {**environment(), "PYTHONPATH": f"{environment()['PYTHONPATH']}:{directory}"}
    python = ["-m", "testbed.patched", patch, "adding"] if patch else [str(adder)]
    many = [
        subprocess.Popen(
            [sys.executable, *python, str(root), str(file), str(EACH)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=variables,
        )
        for file in files
    ]
    said: list[list[str]] = [[] for _ in many]

    def listen(number: int) -> None:
        stream = many[number].stdout
        assert stream is not None
        for line in stream:
            said[number].append(line.strip())
            if number % 2 and len(said[number]) == 3:
                assert end([many[number].pid]) == []

    for one in many:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    listeners = [threading.Thread(target=listen, args=(number,)) for number in range(PROCESSES)]
    for listener in listeners:
        listener.start()
    for one in many:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    for listener, one in zip(listeners, many, strict=True):
        listener.join(timeout=240)
        one.__exit__(None, None, None)
    acknowledged = {name for names in said for name in names}
    begun = {
        f"flow{chr(97 + number)}-{count}"
        for number in range(PROCESSES)
        for count in range(len(said[number]) + 1)
    }
    return acknowledged, begun


def check_the_registry(engine: Engine, acknowledged: set[str], begun: set[str]) -> None:
    """Check that all acknowledged names and only begun ones are registered, and that each leads to
    its bundle.
    """
    snapshot = engine.registry.read()
    assert snapshot.problems == ()
    assert acknowledged <= set(snapshot.flows), (
        f"lost: {sorted(acknowledged - set(snapshot.flows))}"
    )
    assert set(snapshot.flows) <= begun
    for name, flow in snapshot.flows.items():
        bundle = engine.store.load_bundle(flow.hash)
        assert bundle.descriptor.name == name
        assert engine.registry.granted(bundle)


def test_processes_that_add_at_once_half_of_them_killed(engine: Engine, tmp_path: Path) -> None:
    """No acknowledged flow is lost, no lock is left behind, and the next `add` succeeds."""
    acknowledged, begun = add_at_once(engine.store.root, tmp_path)
    assert len(acknowledged) >= PROCESSES // 2 * EACH
    check_the_registry(engine, acknowledged, begun)
    engine.add("after", source("after", "    yield {'null': {}}\n"), accept=lambda _widened: True)
    check_the_registry(engine, acknowledged | {"after"}, begun | {"after"})


def test_the_harness_sees_a_missing_registry_lock(engine: Engine, tmp_path: Path) -> None:
    """Positive control: without the lock, one process writes over what another added."""
    acknowledged, begun = add_at_once(engine.store.root, tmp_path, "no-registry-lock")
    with pytest.raises(AssertionError, match="lost: "):
        check_the_registry(engine, acknowledged, begun)
