"""Programs that the engine starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from testbed.deadlines import over_at
from uncaged_engine.door.effects import Cancel
from uncaged_engine.processes import communicate
from uncaged_engine.processes.leftovers import (
    MARK,
    kill_leftovers,
    ledger_of,
    marked,
    record_process,
    still_running,
)
from uncaged_engine.processes.programs import Finished, run_program

KEY = "01HX5WBE00ABCDEFGHJKMNPQRS/3"
THREAD = KEY.partition("/")[0]


def run(tmp_path: Path, *argv: str, **more: Any) -> Finished:
    usual: dict[str, Any] = {"stdin": b"", "timeout_s": 30.0, "cancel": Cancel(), "grace_s": 60.0}
    environment = {"PATH": os.environ["PATH"], MARK: KEY}
    return run_program(
        argv,
        directory=tmp_path,
        environment=environment,
        scratch=tmp_path,
        key=KEY,
        **(usual | more),
    )


def python(code: str) -> tuple[str, str, str]:
    return (sys.executable, "-c", code)


def has_ended(pid: int) -> bool:
    """Whether the process is gone, or goes within a minute: a killed one takes a moment."""
    try:
        return still_running([psutil.Process(pid)], 60) == []
    except psutil.NoSuchProcess:
        return True


def test_input_goes_in_and_both_outputs_come_back(tmp_path: Path) -> None:
    """Directory and environment are the given ones; more than a pipe holds passes both ways at
    once.
    """
    program = "import sys, os; data = sys.stdin.buffer.read(); sys.stdout.buffer.write(data); sys.stderr.write(os.getcwd())"
    big = b"x" * 300_000
    finished = run(tmp_path, *python(program), stdin=big)
    assert finished == Finished(
        exit_code=0,
        stdout=big,
        stderr=str(tmp_path).encode(),
        overlong=False,
        timed_out=False,
        cancelled=False,
    )
    assert run(tmp_path, "sh", "-c", f"echo ${MARK}$HOME").stdout.decode() == f"{KEY}\n"


def test_a_program_may_leave_its_input_unread(tmp_path: Path) -> None:
    """A broken pipe is its choice, not an error."""
    assert (
        run(tmp_path, "sh", "-c", "exec 0<&-; echo done", stdin=b"x" * 300_000).stdout == b"done\n"
    )


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", -9)])
def test_the_exit_code_is_told(tmp_path: Path, script: str, code: int) -> None:
    """A signal is a negative one."""
    assert run(tmp_path, "sh", "-c", script).exit_code == code


def test_output_is_capped(tmp_path: Path) -> None:
    """A long standard output keeps its first bytes, a long standard error its last; the program is
    read to its end all the same.
    """
    finished = run(
        tmp_path,
        "sh",
        "-c",
        "printf abcdef; printf 123456 >&2",
        max_stdout_bytes=4,
        max_stderr_bytes=4,
    )
    assert (finished.stdout, finished.stderr, finished.overlong, finished.exit_code) == (
        b"abcd",
        b"3456",
        True,
        0,
    )


def test_over_time_the_whole_group_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TERM first, so that a program can tidy up; what it started ends with it."""
    over_at(monkeypatch, tmp_path / "up")
    finished = run(
        tmp_path,
        "sh",
        "-c",
        "trap 'echo tidy; exit 5' TERM; cat; sleep 600 & echo $!; touch up; echo up >&2; wait",
    )
    child, tidy = finished.stdout.split()
    assert finished.timed_out
    assert (tidy, finished.exit_code) == (b"tidy", 5)
    assert has_ended(int(child))


@pytest.mark.slow
def test_what_ignores_term_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the grace comes KILL."""
    over_at(monkeypatch, tmp_path / "up")
    program = "trap '' TERM; cat; echo up; touch up; echo up >&2; while :; do sleep 1; done"
    finished = run(tmp_path, "sh", "-c", program, grace_s=0.2)
    assert (finished.timed_out, finished.exit_code, finished.stdout) == (
        True,
        -signal.SIGKILL,
        b"up\n",
    )


def test_a_cancel_ends_it_at_once(tmp_path: Path) -> None:
    """A cancel ends the program before its time limit; a cancel before the start counts, too."""
    cancel = Cancel()
    os.mkfifo(tmp_path / "up")

    def stop() -> None:
        (tmp_path / "up").read_bytes()  # blocks until the program has opened it
        cancel.request()

    stopper = threading.Thread(target=stop, daemon=True)
    stopper.start()
    finished = run(tmp_path, "sh", "-c", "echo up > up; exec sleep 600", cancel=cancel)
    stopper.join()
    assert (finished.cancelled, finished.timed_out, finished.exit_code) == (
        True,
        False,
        -signal.SIGTERM,
    )
    assert run(tmp_path, "sleep", "600", cancel=cancel).cancelled


def test_what_it_left_in_its_group_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A background process neither outlives its program nor keeps us waiting for the pipe that it
    holds.
    """
    monkeypatch.setattr(communicate, "DRAIN_S", 60.0)
    begun_s = time.monotonic()
    finished = run(tmp_path, "sh", "-c", "sleep 600 & echo $!")
    assert time.monotonic() - begun_s < 30
    assert finished.exit_code == 0
    assert has_ended(int(finished.stdout))


@pytest.mark.slow
@pytest.mark.parametrize(("last", "timed_out"), [("time.sleep(600)", True), ("pass", False)])
def test_a_daemon_that_left_the_group_is_found_by_its_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str, timed_out: bool
) -> None:
    """Everything ends that the step started, a session of its own or not: it must not write into
    the next step's files.
    """
    program = (
        "import subprocess, sys, time; sys.stdin.read();"
        "p = subprocess.Popen(['sleep', '600'], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL);"
        f"print(p.pid, flush=True); open('up', 'w'); print(file=sys.stderr, flush=True); {last}"
    )
    if timed_out:
        over_at(monkeypatch, tmp_path / "up")
    finished = run(tmp_path, *python(program))
    assert finished.timed_out is timed_out
    assert has_ended(int(finished.stdout))


def test_a_program_that_cannot_be_started_is_an_oserror(tmp_path: Path) -> None:
    """The caller knows what the program was for and says it better."""
    with pytest.raises(FileNotFoundError):
        run(tmp_path, "/no/such/program")


def test_nothing_is_left_of_an_ordinary_end(tmp_path: Path) -> None:
    """Record and pipes are gone: the next step finds no leftovers, and the worker no growing table
    of handles.
    """
    before = len(list(Path("/proc/self/fd").iterdir()))
    run(tmp_path, "true")
    assert not ledger_of(tmp_path, KEY).exists()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def sleeper(environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["sleep", "600"], env={"PATH": os.environ["PATH"], **environment}, start_new_session=True
    )


def test_leftovers_of_a_crash_are_ended_by_record_and_by_mark(tmp_path: Path) -> None:
    """Leftovers of the whole thread or of one step are ended; a process of another thread, or
    without a mark, lives on.
    """
    by_record, by_mark, part = sleeper({}), sleeper({MARK: KEY}), sleeper({MARK: f"{KEY}.1"})
    other, plain = sleeper({MARK: f"{THREAD}0/3"}), sleeper({})
    try:
        record_process(ledger_of(tmp_path, KEY), by_record.pid)
        assert kill_leftovers(tmp_path, KEY) == 2
        assert has_ended(by_record.pid)
        assert has_ended(by_mark.pid)
        assert [process.poll() for process in (part, other, plain)] == [None, None, None]
        assert kill_leftovers(tmp_path, THREAD) == 1
        assert has_ended(part.pid)
        assert [process.poll() for process in (other, plain)] == [None, None]
    finally:
        for process in (by_record, by_mark, part, other, plain):
            process.kill()
            process.wait()


def test_a_recycled_number_is_never_signalled(tmp_path: Path) -> None:
    """The record names a number that now belongs to another process: its start time differs, so it
    is left alone.
    """
    stranger = sleeper({})
    try:
        started_s = psutil.Process(stranger.pid).create_time()
        ledger_of(tmp_path, KEY).write_text(
            f"{stranger.pid} {started_s - 60}\n999999999 1.0\ntorn", "utf-8"
        )
        assert kill_leftovers(tmp_path, KEY) == 0
        assert stranger.poll() is None
        assert not ledger_of(tmp_path, KEY).exists()
    finally:
        stranger.kill()
        stranger.wait()


def test_nobody_ends_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that an agent started carries the mark of the agent's step."""
    program = f"from uncaged_engine.processes.leftovers import marked; print([p.pid for p in marked({THREAD!r})])"
    monkeypatch.setenv(MARK, KEY)
    said = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    assert said == "[]\n"
    assert list(marked("nobody")) == []
