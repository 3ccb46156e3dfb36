"""The cell's protocol with well-behaved bundles and with accidents; hostile bundles have tests of
their own.
"""

from __future__ import annotations

import hashlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from testbed.cells import (
    DEADLINE_S,
    MECHANISMS,
    START,
    begin,
    cell_for,
    error_of,
    go_on,
    step_line,
    unchecked,
    value_of,
)
from uncaged_bundles.errors import BundleError
from uncaged_engine.cells.cell import Cell, CellDied, CellLimits
from uncaged_engine.journal.blobs import effect_mark
from uncaged_engine.journal.lines import MARK_BYTES
from uncaged_engine.sandbox.mechanism import choose

ALL = (*MECHANISMS, "none")

ECHO = """
def run(input, options):
    last = input["prompt"]
    for number in range(1, 6):
        last = yield {"null": {"number": number, "last": last}}
    return {"success": True, "data": last}
"""
CATCHING = """
def run(input, options):
    try:
        yield {"http": {"url": "https://example.org"}}
    except EffectError as error:
        caught = error
    record = yield {"output": {"meta": {"kind": caught.kind}, "content": str(caught), "role": "report"}}
    return {"record": record, "error": caught.error}
"""
LOOPING = """
def run(input, options):
    yield {"null": 1}
    while True:
        pass
"""


@pytest.fixture(params=ALL)
def mechanism(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def echo() -> Iterator[Cell]:
    with cell_for(ECHO) as cell:
        yield cell


def test_a_run_from_first_yield_to_return(mechanism: str) -> None:
    """Each answer carries the next seq; the last one the value that run() returned."""
    with cell_for(ECHO, mechanism) as cell:
        assert cell.mechanism == mechanism
        reply = begin(cell)
        assert (reply.seq, reply.word, reply.digest) == (1, "effect", "-")
        assert reply.body == b'{"null":{"number":1,"last":"do it"}}'
        for seq in range(1, 5):
            reply = go_on(cell, seq, {"n": [seq, "ä\u2028"]})
            assert (reply.seq, reply.word) == (seq + 1, "effect")
        assert json.loads(reply.body) == {"null": {"number": 5, "last": {"n": [4, "ä\u2028"]}}}
        reply = go_on(cell, 5, None)
        assert (reply.seq, reply.word, reply.body) == (6, "return", b'{"success":true,"data":null}')


def test_a_failure_is_thrown_and_a_role_step_is_sent_whole(mechanism: str) -> None:
    """An error becomes EffectError with the mapping; a step with a role arrives as its record
    without the chain.
    """
    with cell_for(CATCHING, mechanism) as cell:
        begin(cell)
        line = step_line(1, error={"kind": "timeout", "message": "too slow", "after_s": 3})
        reply = cell.send_outcome(1, 1, line, deadline_s=DEADLINE_S)
        assert (
            reply.body
            == b'{"output":{"role":"report","content":"too slow","meta":{"kind":"timeout"}}}'
        )
        reply = cell.send_outcome(
            1,
            2,
            step_line(2, role="report", content="too slow", meta={}, by="bundle"),
            deadline_s=DEADLINE_S,
        )
        value = json.loads(reply.body)
    assert value["error"] == {"kind": "timeout", "message": "too slow", "after_s": 3}
    assert value["record"] == {
        "seq": 2,
        "role": "report",
        "content": "too slow",
        "meta": {},
        "by": "bundle",
        "timestamp": 1,
    }


def test_an_uncaught_failure_ends_the_run(echo: Cell) -> None:
    """An outcome's error that the bundle does not catch is the bundle's own error, with the line
    that raised it.
    """
    begin(echo)
    reply = echo.send_outcome(
        1, 1, step_line(1, error={"kind": "http", "message": "HTTP 500"}), deadline_s=DEADLINE_S
    )
    error = error_of(reply)
    assert (error["type"], error["message"]) == ("EffectError", "HTTP 500")
    assert ":5 in run: last = yield" in error["trace"]


def test_slots_do_not_share_a_namespace() -> None:
    """A module global that one thread changes is not seen by another."""
    source = (
        "seen = []\ndef run(input, options):\n    seen.append(1)\n    yield {'null': len(seen)}\n"
    )
    with cell_for(source) as cell:
        assert [begin(cell, slot).body for slot in (1, 2, 3)] == [b'{"null":1}'] * 3


def test_decimal_precision_stays_in_its_slot() -> None:
    """Context variables are the slot's own."""
    source = """
import decimal
def run(input, options):
    decimal.getcontext().prec = options["seed"]
    while True:
        yield {"null": str(decimal.Decimal(1) / 3)}
"""
    with cell_for(source) as cell:
        begin(cell, 1, START.replace(b'"seed":7', b'"seed":3'))
        begin(cell, 2, START.replace(b'"seed":7', b'"seed":5'))
        assert go_on(cell, 1, None, slot=1).body == b'{"null":"0.333"}'


def test_a_replay_digests_what_a_live_run_says(mechanism: str) -> None:
    """Streaming all outcomes leads to the same state, and the digest is the one over the live
    answers.
    """
    outcomes = [
        step_line(1, outcome="a"),
        step_line(2, outcome=[1.5]),
        step_line(3, outcome={"x": None}),
    ]
    with cell_for(ECHO, mechanism) as cell:
        live = [begin(cell)]
        live += [
            cell.send_outcome(1, seq, line, deadline_s=DEADLINE_S)
            for seq, line in enumerate(outcomes, 1)
        ]
        digest = hashlib.blake2b(digest_size=16)
        for reply in live[:-1]:
            digest.update(effect_mark(reply.body) + b"\n")
        replayed = cell.replay(2, START, outcomes, deadline_s=DEADLINE_S)
        assert (replayed.seq, replayed.word, replayed.body) == (4, "effect", live[-1].body)
        assert replayed.digest == digest.hexdigest()
        assert go_on(cell, 4, "b", slot=2) == go_on(cell, 4, "b", slot=1)


def test_a_replay_of_large_effects_digests_their_marks() -> None:
    """A long effect is digested by its hash, so that the journal need not keep it."""
    source = f"""
def run(input, options):
    yield {{"null": "ü" * {MARK_BYTES}}}
    yield {{"null": "x" * {MARK_BYTES - len('{"null":""}')}}}
    yield {{"null": 3}}
"""
    with cell_for(source) as cell:
        effects = [begin(cell).body, go_on(cell, 1, None).body]
        digest = hashlib.blake2b(digest_size=16)
        digest.update(effect_mark(effects[0]) + b"\n")
        digest.update(effects[1] + b"\n")
        assert len(effects[1]) == MARK_BYTES
        lines = [step_line(1, outcome=None), step_line(2, outcome=None)]
        assert cell.replay(2, START, lines, deadline_s=DEADLINE_S).digest == digest.hexdigest()


def test_a_replay_that_ends_early_says_where(echo: Cell) -> None:
    """More outcomes than effects: the rest is drained, and the answer names the seq at which the
    run ended.
    """
    lines = [step_line(seq, outcome=seq) for seq in range(1, 20)]
    reply = echo.replay(1, START, lines, deadline_s=DEADLINE_S)
    assert (reply.seq, reply.word) == (6, "return")
    assert begin(echo, 2).word == "effect"


def test_a_long_replay_streams() -> None:
    """Many megabytes pass through the pipe although the child is silent until the end."""
    source = "def run(input, options):\n    while True:\n        yield {'null': 1}\n"
    with cell_for(source) as cell:
        line = step_line(1, outcome="v" * 4000)
        reply = cell.replay(1, START, (line for _ in range(2000)), deadline_s=DEADLINE_S)
        assert (reply.seq, reply.word) == (2001, "effect")


def test_a_dropped_slot_is_forgotten(echo: Cell) -> None:
    """Dropping answers, twice as well, and the slot can be used again."""
    begin(echo)
    for _ in range(2):
        reply = echo.ask("D", 1, 0, b"", deadline_s=DEADLINE_S)
        assert (reply.seq, reply.word) == (0, "dropped")
    assert begin(echo).seq == 1


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("'role'", "exactly one key"),
        ("{}", "exactly one key"),
        ("{'a': 1, 'b': 2}", "exactly one key"),
        ("None", "yielded None"),
        ("{'null': {1, 2}}", "not a JSON value"),
        ("{'null': float('nan')}", "JSON"),
        ("{'null': b'x'}", "a bytes of 1 is not a JSON value"),
        ("{'null': '\\ud800'}", "surrogates"),
        ("{'null': 'x' * 9_000_000}", "at most"),
        ("{'null': object()}", "a object is not a JSON value"),
    ],
)
def test_what_is_no_effect_ends_the_run(value: str, complaint: str) -> None:
    """Anything but a mapping of one kind to JSON is the author's error, told with the line; the
    cell goes on.
    """
    with cell_for(f"def run(input, options):\n    yield {value}\n") as cell:
        error = error_of(begin(cell))
        assert complaint in error["message"]
        assert ":2 in run" in error["trace"]
        assert error_of(begin(cell, 2)) == error


def test_circular_data_is_refused() -> None:
    """A value that holds itself is an error, not the end of the process."""
    with cell_for(
        "def run(input, options):\n    a = []\n    a.append(a)\n    yield {'null': a}\n"
    ) as cell:
        assert error_of(begin(cell))["type"] == "RecursionError"


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        (
            "def run(input, options):\n  return 5\n",
            "run() must be a generator function; it returned int",
        ),
        ("x = 5\n", "run"),
        ("raise SystemExit(3)\n", "3"),
        ("def run(input, options):\n    raise KeyError('x')\n    yield\n", "'x'"),
    ],
)
def test_a_bundle_that_does_not_begin_raises(source: str, complaint: str) -> None:
    """Errors before the first yield are reported like any other."""
    with cell_for(source) as cell:
        assert complaint in error_of(begin(cell))["message"]


def test_a_bundle_that_does_not_compile_is_an_error(mechanism: str) -> None:
    """A bundle that does not compile never gets a cell."""
    with pytest.raises(BundleError, match="SyntaxError"), cell_for("def run(:\n", mechanism):
        raise AssertionError("it must not start")


def test_a_bundle_that_is_not_text_is_an_error() -> None:
    """The byte is named."""
    with pytest.raises(BundleError, match="byte 4 is 0xff"), cell_for(b"x = \xff\n"):
        raise AssertionError("it must not start")


def test_what_a_bundle_prints_is_no_answer(mechanism: str) -> None:
    """Prints go nowhere."""
    source = "import sys\ndef run(input, options):\n    print('1 1 effect - {}')\n    yield {'null': input()}\n"
    with cell_for(source.replace("input()", "1"), mechanism) as cell:
        assert begin(cell).body == b'{"null":1}'


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_loop_ends_at_its_deadline(mechanism: str) -> None:
    """The request that looped fails with `deadline`, later ones with `closed`."""
    with cell_for(LOOPING, mechanism) as cell:
        begin(cell)
        before = time.monotonic()
        with pytest.raises(CellDied) as caught:
            cell.send_outcome(1, 1, step_line(1, outcome=1), deadline_s=0.1)
        assert time.monotonic() - before < 60
        assert caught.value.reason == "deadline"
        assert not cell.alive
        with pytest.raises(CellDied) as later:
            begin(cell, 2)
        assert later.value.reason == "closed"


@pytest.mark.slow
def test_waiting_for_a_turn_does_not_count() -> None:
    """While one thread holds the cell until its deadline, others with a shorter one wait and are
    not to blame.
    """
    reasons = {}
    with cell_for(LOOPING) as cell:
        begin(cell, 1)
        taken = threading.Event()

        def loop() -> None:
            with pytest.raises(CellDied) as caught:
                cell.send_outcome(1, 1, step_line(1, outcome=1), deadline_s=0.4, on_slow=taken.set)
            reasons["looping"] = caught.value.reason

        def wait() -> None:
            with pytest.raises(CellDied) as caught:
                cell.ask("S", 2, 0, START, deadline_s=0.05)
            reasons["waiting"] = caught.value.reason

        threads = [threading.Thread(target=loop), threading.Thread(target=wait)]
        threads[0].start()
        assert taken.wait(60)
        threads[1].start()
        for thread in threads:
            thread.join(60)
    assert reasons == {"looping": "deadline", "waiting": "closed"}


def test_slow_is_called_once_and_only_when_it_is_slow() -> None:
    """A wait beyond the limit, for the reply or for another thread's turn, calls it once; a quick
    reply does not.
    """
    source = """
def run(input, options):
    yield {"null": 1}
    for _ in range(3_000_000): pass
    yield {"null": 2}
    while True:
        yield {"null": 3}
"""
    calls: list[int] = []
    with cell_for(source) as cell:
        begin(cell)
        cell.send_outcome(
            1, 1, step_line(1, outcome=1), deadline_s=DEADLINE_S, on_slow=lambda: calls.append(1)
        )
        assert calls == [1]
        quick = 0
        for seq in range(2, 50):  # a busy machine may make one of them slow, not all
            calls.clear()
            cell.send_outcome(
                1,
                seq,
                step_line(seq, outcome=1),
                deadline_s=DEADLINE_S,
                on_slow=lambda: calls.append(1),
            )
            quick += not calls
        assert quick > 0


def test_the_time_of_slow_is_not_the_bundle_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flush that takes as long as the deadline leaves the bundle its whole time."""
    flushed, now_s, spent_s = tmp_path / "flushed", time.monotonic, 0.0
    source = f"""
import os, time
def run(input, options):
    yield {{"null": 1}}
    while not os.path.exists({str(flushed)!r}):
        time.sleep(0.001)
    time.sleep(0.05)
    yield {{"null": 2}}
"""

    def flush() -> None:
        nonlocal spent_s
        spent_s += DEADLINE_S
        flushed.touch()

    cell = Cell.start(unchecked(source, trusted=True), choose())
    try:
        begin(cell)
        monkeypatch.setattr(time, "monotonic", lambda: now_s() + spent_s)
        line = step_line(1, outcome=1)
        reply = cell.send_outcome(1, 1, line, deadline_s=DEADLINE_S, on_slow=flush)
        assert reply.body == b'{"null":2}'
    finally:
        cell.close()


def test_an_error_in_slow_ends_the_cell() -> None:
    """A reply that was not read must not be taken for the next one."""
    source = "def run(input, options):\n    yield {'null': 1}\n    for _ in range(3_000_000): pass\n    yield {'null': 2}\n"

    def fail() -> None:
        raise OSError("no space left")

    with cell_for(source) as cell:
        begin(cell)
        with pytest.raises(OSError, match="no space"):
            cell.send_outcome(1, 1, step_line(1, outcome=1), deadline_s=DEADLINE_S, on_slow=fail)
        assert not cell.alive


def test_many_threads_share_a_cell() -> None:
    """Each thread gets its own replies, with messages larger than a pipe in both directions."""
    source = "def run(input, options):\n    last = input['prompt']\n    while True:\n        last = yield {'null': last}\n"
    wrong: list[object] = []
    with cell_for(source) as cell:

        def work(slot: int) -> None:
            begin(cell, slot)
            for seq in range(1, 6):
                value = f"{slot}.{seq}." + "x" * 200_000
                reply = go_on(cell, seq, value, slot)
                if json.loads(reply.body) != {"null": value}:
                    wrong.append((slot, seq))

        threads = [threading.Thread(target=work, args=(slot,)) for slot in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert wrong == []


@pytest.mark.slow
def test_a_used_up_cpu_allowance_ends_the_cell() -> None:
    """The limit is the kernel's: it holds even when the deadline is far away."""
    with cell_for(LOOPING, limits=CellLimits(cpu_s=1)) as cell:
        begin(cell)
        with pytest.raises(CellDied, match="its CPU allowance of 1 s is used up") as caught:
            cell.send_outcome(1, 1, step_line(1, outcome=1), deadline_s=240)
    assert caught.value.reason == "died"


def test_memory_beyond_the_limit_raises(mechanism: str) -> None:
    """Inside the bundle it is a MemoryError, and the cell goes on."""
    if mechanism == "none":
        pytest.skip("a trusted bundle has no limits")
    with cell_for(
        "def run(input, options):\n    yield {'null': len(bytearray(options['seed'] << 27))}\n",
        mechanism,
    ) as cell:
        assert (
            error_of(begin(cell, 1, START.replace(b'"seed":7', b'"seed":20')))["type"]
            == "MemoryError"
        )
        assert begin(cell, 2, START.replace(b'"seed":7', b'"seed":1')).body == b'{"null":134217728}'


def test_closing_ends_and_reaps_the_process(mechanism: str) -> None:
    """No process, no zombie and no descriptor stays; closing again does nothing."""
    before = sum(1 for _ in Path("/proc/self/fd").iterdir())
    with cell_for(ECHO, mechanism) as cell:
        pid = cell._launched.child.pid
        assert Path("/proc", str(pid)).exists()
    assert not Path("/proc", str(pid)).exists()
    assert sum(1 for _ in Path("/proc/self/fd").iterdir()) == before
    cell.close()
    assert not cell.alive


def test_descriptors_of_ours_are_not_visible(mechanism: str) -> None:
    """Beside the pipe pair a cell has only 0, 1 and 2, and these are not ours."""
    readable, writable = os.pipe()
    os.set_inheritable(readable, True)
    os.set_inheritable(writable, True)
    source = """
import posix
def run(input, options):
    found = []
    for fd in range(200):
        try:
            found.append([fd, posix.fstat(fd).st_ino])
        except OSError:
            pass
    yield {"null": found}
"""
    try:
        with cell_for(source, mechanism) as cell:
            found = dict(json.loads(begin(cell).body)["null"])
        assert len(found) == 5
        ours = {os.fstat(fd).st_ino for fd in (readable, writable)}
        assert not ours & set(found.values())
        assert not {os.fstat(1).st_ino, os.fstat(2).st_ino} & {found[1], found[2]} - {
            Path("/dev/null").stat().st_ino
        }
    finally:
        os.close(readable)
        os.close(writable)


def test_the_cell_dies_with_its_parent(mechanism: str) -> None:
    """A killed worker leaves no bundle behind, not even one that computes for ever."""
    program = f"""
import os, sys, threading, time
from testbed.cells import begin, cell_for, step_line
with cell_for({LOOPING!r}, {mechanism!r}) as cell:
    begin(cell)
    threading.Thread(target=cell.send_outcome, args=(1, 1, step_line(1, outcome=1)), kwargs={{"deadline_s": 60}}, daemon=True).start()
    children = open(f"/proc/self/task/{{os.getpid()}}/children").read().split()
    inner = [pid for child in children for pid in open(f"/proc/{{child}}/task/{{child}}/children").read().split()]
    print(" ".join(inner or children), flush=True)
    time.sleep(60)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment
    ) as parent:
        assert parent.stdout is not None
        pidfd = os.pidfd_open(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    assert poll.poll(60_000), "the cell outlived its parent"
    os.close(pidfd)


def test_a_trusted_bundle_has_the_world() -> None:
    """A trusted bundle reads the clock and files, and gets the caller's environment."""
    source = """
import os, time
def run(input, options):
    yield {"null": [time.time() > 0, os.path.exists("/etc/passwd"), os.environ["GREETING"], len(os.urandom(2))]}
"""
    cell = Cell.start(unchecked(source, trusted=True), choose(), environment={"GREETING": "hello"})
    try:
        assert cell.mechanism == "none"
        assert begin(cell).body == b'{"null":[true,true,"hello",2]}'
    finally:
        cell.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_environment_is_empty(mechanism: str) -> None:
    """Nothing of the caller's environment is in the cell."""
    os.environ["UNCAGED_TEST_SECRET"] = "planted"
    try:
        names = set(
            value_of("sorted(k.decode() for k in posix.environ)", mechanism, before="import posix")
        )
    finally:
        del os.environ["UNCAGED_TEST_SECRET"]
    assert names <= {"PYTHONHASHSEED", "PYTHONUTF8", "PYTHONCOERCECLOCALE", "TZ", "PWD"}


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ALL)
def test_a_set_has_one_order(mechanism: str) -> None:
    """A bundle that iterates a set of strings says the same in twenty fresh sandboxes."""
    expression = "list({'alpha', 'beta', 'gamma', 'delta', 'epsilon', b'zeta', frozenset({'a', 'b'}).__class__.__name__, 'ä'} - {b'zeta'})"
    orders = {json.dumps(value_of(expression, mechanism)) for _ in range(20)}
    assert len(orders) == 1
    assert orders == {json.dumps(value_of(expression))}


def test_a_frame_with_a_line_feed_is_our_own_fault(echo: Cell) -> None:
    """A frame with a line feed would be two requests."""
    with pytest.raises(ValueError, match="line feed"):
        echo.send_outcome(1, 1, b'{"seq":1,\n"outcome":1}', deadline_s=1)
