"""The exchange with children that misbehave, that are cancelled, and that are many."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from testbed.processes import await_end
from uncaged_engine.door.effects import Cancel
from uncaged_engine.processes import communicate as module
from uncaged_engine.processes.child import Child
from uncaged_engine.processes.communicate import OutputBuffer, communicate, never

LONG_S = 60.0


def start(*argv: str) -> Child:
    return Child.start(argv, directory="/", environment={"PATH": os.environ["PATH"]})


def python(code: str) -> tuple[str, str, str]:
    return (sys.executable, "-c", code)


class Exchange:
    """Result of `communicate` with a child that is ended afterwards."""

    def __init__(
        self,
        child: Child,
        *,
        stdin: bytes = b"",
        timeout_s: float = LONG_S,
        grace_s: float = LONG_S,
        on_cancel: module.OnCancel = never,
        max_bytes: int = 1 << 20,
        on_data: Callable[[bytes], None] | None = None,
    ) -> None:
        self.stdout = OutputBuffer(max_bytes=max_bytes, on_data=on_data)
        self.stderr = OutputBuffer(max_bytes=max_bytes, keep_last=True)
        begin = time.monotonic()
        with child:
            self.timed_out = communicate(
                child,
                stdin=stdin,
                stdout=self.stdout,
                stderr=self.stderr,
                deadline=begin + timeout_s,
                grace_s=grace_s,
                on_cancel=on_cancel,
            )
        self.took_s = time.monotonic() - begin
        self.exit_code = child.end()


def test_a_child_that_never_reads_its_input_reaches_its_timeout() -> None:
    """A child that leaves a full pipe unread is ended at the deadline; the writer never blocks."""
    done = Exchange(start("sleep", "600"), stdin=b"x" * (8 << 20), timeout_s=0.1)
    assert (done.timed_out, done.exit_code) == (True, -signal.SIGTERM)


def test_a_child_that_dies_before_it_is_fed_has_its_exit_code() -> None:
    """A child that exited before the first byte of its input was written is no error."""
    child = start("sh", "-c", "echo early; exit 3")
    assert child.ends_within(LONG_S)
    done = Exchange(child, stdin=b"x" * (1 << 20))
    assert (done.timed_out, done.exit_code, bytes(done.stdout.data)) == (False, 3, b"early\n")


def test_a_child_that_closes_its_output_and_goes_on_is_waited_for() -> None:
    """Closed outputs end neither the wait for the exit code nor the time limit."""
    done = Exchange(start("sh", "-c", "exec >&- 2>&-; read line; exit 4"), stdin=b"go\n")
    assert (done.timed_out, done.exit_code) == (False, 4)
    done = Exchange(start("sh", "-c", "exec >&- 2>&-; exec sleep 600"), timeout_s=0.1)
    assert done.timed_out


def test_a_child_that_another_process_kills_has_the_exit_code_of_the_signal() -> None:
    """A signal from elsewhere counts neither as a timeout nor as a cancellation."""
    child = start("sh", "-c", "echo $$; exec sleep 600")

    def kill(chunk: bytes) -> None:
        os.kill(int(chunk), signal.SIGKILL)

    done = Exchange(child, on_data=kill)
    assert (done.timed_out, done.exit_code) == (False, -signal.SIGKILL)


def test_a_grandchild_in_a_session_of_its_own_holds_the_pipe_for_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A daemon outside of the group keeps the output open: it is read for `DRAIN_S`, and no
    longer.
    """
    monkeypatch.setattr(module, "DRAIN_S", 0.1)
    done = Exchange(
        start(
            *python(
                "import subprocess as s; print(s.Popen(['sleep','600'], start_new_session=True).pid)"
            )
        )
    )
    try:
        assert (done.timed_out, done.exit_code) == (False, 0)
        assert done.took_s < LONG_S / 2
    finally:
        os.kill(int(done.stdout.data), signal.SIGKILL)


def test_an_error_of_the_reader_ends_the_child() -> None:
    """An exception from a callback ends the child with its group and is raised."""
    pids: list[int] = []

    def fail(chunk: bytes) -> None:
        pids.append(int(chunk))
        raise RuntimeError("too much")

    with pytest.raises(RuntimeError, match="too much"):
        Exchange(start("sh", "-c", "sleep 600 & echo $!; wait"), on_data=fail)
    assert await_end(pids[0])


@pytest.mark.slow
def test_a_gigabyte_of_output_is_read_and_dropped() -> None:
    """A child that writes 1 GB runs to its end in the memory of the limit."""
    done = Exchange(start("head", "-c", str(1 << 30), "/dev/zero"), max_bytes=1000)
    assert (done.exit_code, len(done.stdout.data), done.stdout.truncated) == (0, 1000, True)


@pytest.mark.parametrize("chunks", [[b"abcdef"], [b"a", b"bcd", b"ef"], [b"abc", b"def"]])
def test_a_buffer_keeps_the_first_or_the_last_bytes(chunks: list[bytes]) -> None:
    """A buffer has its limit's bytes from one end, however they arrive; at the limit none is
    dropped.
    """
    for limit, keep_last, expected in ((4, False, b"abcd"), (4, True, b"cdef"), (0, True, b"")):
        buffer = OutputBuffer(max_bytes=limit, keep_last=keep_last)
        for chunk in chunks:
            buffer.take(chunk)
        assert (bytes(buffer.data), buffer.truncated) == (expected, True)
    whole = OutputBuffer(max_bytes=6)
    for chunk in chunks:
        whole.take(chunk)
    assert (bytes(whole.data), whole.truncated) == (b"abcdef", False)


def test_a_cancel_while_the_input_is_written() -> None:
    """A child that stopped reading is ended at once, before its input is through."""
    cancel = Cancel()
    child = start("sh", "-c", "head -c 100 >/dev/null; echo up; exec sleep 600")
    done = Exchange(
        child,
        stdin=b"x" * (8 << 20),
        on_cancel=cancel.on_request,
        on_data=lambda _: cancel.request(),
    )
    assert (done.timed_out, done.exit_code) == (False, -signal.SIGTERM)


@pytest.mark.slow
def test_a_cancel_of_a_child_that_ignores_it_kills_after_the_grace() -> None:
    """A second cancellation during the grace changes nothing; KILL comes at its end."""
    cancel = Cancel()
    child = start("sh", "-c", "trap 'echo no' TERM; echo up; while :; do sleep 0.05; done")
    done = Exchange(
        child, grace_s=0.3, on_cancel=cancel.on_request, on_data=lambda _: cancel.request()
    )
    assert (done.timed_out, done.exit_code) == (False, -signal.SIGKILL)
    assert bytes(done.stdout.data) == b"up\nno\n"


def test_a_cancel_that_comes_too_late_writes_to_no_file() -> None:
    """A callback that is kept and called after the end touches no descriptor, though its number
    belongs to another file by then.
    """
    kept: list[Callable[[], None]] = []

    @contextmanager
    def keep(action: Callable[[], None]) -> Iterator[None]:
        kept.append(action)
        yield

    assert Exchange(start("true"), on_cancel=keep).exit_code == 0
    pipes = [os.pipe() for _ in range(8)]
    kept[0]()
    for _, write in pipes:
        os.close(write)
    assert [os.read(read, 10) for read, _ in pipes] == [b""] * 8
    for read, _ in pipes:
        os.close(read)


def test_a_system_without_pidfd_is_polled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a handle of the exit the wait, the timeout and the end are the same."""
    monkeypatch.delattr(os, "pidfd_open")
    assert Exchange(start("sh", "-c", "cat; exit 2"), stdin=b"in").exit_code == 2
    assert Exchange(start("sleep", "600"), timeout_s=0.1).timed_out
    with start("sleep", "600") as child:
        assert not child.ends_within(0.01)


@pytest.mark.slow
def test_two_hundred_at_once_leave_nothing() -> None:
    """Children in two hundred threads, half of them cancelled, each have their own output; no
    process and no descriptor is left.
    """
    cancel, up = Cancel(), threading.Semaphore(0)

    def one(number: int) -> tuple[int, str]:
        stays = number % 2
        code = f"sleep 600 & echo {number}; " + ("wait" if stays else "exit 9")
        done = Exchange(
            start("sh", "-c", code),
            on_cancel=cancel.on_request if stays else never,
            on_data=(lambda _: up.release()) if stays else None,
        )
        return done.exit_code, bytes(done.stdout.data).decode()

    with ThreadPoolExecutor(200) as pool:
        results = pool.map(one, range(200))
        for _ in range(100):
            assert up.acquire(timeout=LONG_S)
        cancel.request()
        expected = [(-signal.SIGTERM if n % 2 else 9, f"{n}\n") for n in range(200)]
        assert list(results) == expected
