"""An operating-system script runs within its bounds, in a process tree that ends as a whole, and its output is kept up to a limit."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from uncaged_bundles.errors import SandboxUnavailable

from . import bubblewrap, seccomp
from .bounds import DEFAULT_PATH, ScriptBounds, View, find_program, view_of
from .interpreter import find_interpreter
from .mechanism import Mechanism
from .parcel import LOADER, call_numbers, make_parcel
from .reach import carries, script_landlock
from .rlimits import count_tasks, script_limits
from .scratch import ScratchUser, scratch_copy, scratch_user

__all__ = ["ScratchUser", "ScriptBounds", "ScriptProcess", "ScriptResult", "run_script", "scratch_copy", "scratch_user", "start_script"]

START_TIMEOUT_S = 20.0
KILL_TIMEOUT_S = 10.0
CHUNK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptResult:
    """What became of a script.

    exit_code: 128 and more: a signal ended it; None: it was ended because its time was over. truncated: some output was dropped.
    """

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    duration_ms: int
    truncated: bool
    timed_out: bool


class ScriptProcess:
    """A running script; leave its ``with`` block, or call `kill`, and its whole process tree is gone."""

    def __init__(self, process: subprocess.Popen[bytes], mechanism: str, private: Path | None) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ValueError("a script needs three pipes")
        self.stdin: IO[bytes] = process.stdin
        self.stdout: IO[bytes] = process.stdout
        self.stderr: IO[bytes] = process.stderr
        self._process = process
        self._supervised = mechanism == "landlock"
        self._private = private

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """Of the process that holds the tree together."""
        return self._process.pid

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        return self._process.poll()

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait for the end and return the exit code; 128 and more: a signal ended it.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        code = self._process.wait(timeout_s)
        self._remove_private()
        return 128 - code if code < 0 else code

    def kill(self) -> None:
        """End the whole tree, reap it and close the pipes; calling it twice does no harm."""
        if self._process.poll() is None:
            if self._supervised:
                self._process.send_signal(signal.SIGTERM)  # the supervisor ends the rest; it cannot if it is killed itself
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(KILL_TIMEOUT_S)
            self._process.kill()
            self._process.wait()
        for pipe in (self.stdin, self.stdout, self.stderr):
            with suppress(OSError):  # what was not written yet has nobody to read it
                pipe.close()
        self._remove_private()

    def _remove_private(self) -> None:
        if self._private is not None:
            shutil.rmtree(self._private, ignore_errors=True)
            self._private = None


def run_script(
    argv: Sequence[str],
    bounds: ScriptBounds,
    *,
    mechanism: Mechanism,
    cwd: Path,
    environment: Mapping[str, str],
    stdin: bytes = b"",
    user: ScratchUser | None = None,
) -> ScriptResult:
    """Run a script to its end, or to the end of its time.

    Args:
        argv: the program (a path, or a name on the PATH of *environment*) and its arguments; no shell is involved.
        environment: exactly what the script gets, besides HOME and TMPDIR if they are missing.
        user: who it runs as when we are root; by default whoever owns *cwd*, if that is a user of ours, else one of ours.
    Raises:
        SandboxUnavailable: it cannot be locked up here; it was not started.
        FileNotFoundError: there is no such program.
    """
    begin = time.monotonic()
    with start_script(argv, bounds, mechanism=mechanism, cwd=cwd, environment=environment, user=user) as script:
        streams, truncated, timed_out = _converse(script, stdin, begin + bounds.timeout_s, bounds.output_bytes)
        exit_code = None
        if not timed_out:
            try:
                exit_code = script.wait(max(0.0, begin + bounds.timeout_s - time.monotonic()))
            except subprocess.TimeoutExpired:  # it closed its output and went on
                timed_out = True
    return ScriptResult(
        exit_code=exit_code,
        stdout=streams[0],
        stderr=streams[1],
        duration_ms=round((time.monotonic() - begin) * 1000),
        truncated=truncated,
        timed_out=timed_out,
    )


def start_script(
    argv: Sequence[str],
    bounds: ScriptBounds,
    *,
    mechanism: Mechanism,
    cwd: Path,
    environment: Mapping[str, str],
    user: ScratchUser | None = None,
) -> ScriptProcess:
    """Start a script and return when its walls stand. Its time is not watched here; all other bounds hold.

    Raises:
        SandboxUnavailable, FileNotFoundError: as in `run_script`.
    """
    program = find_program(argv[0], environment, cwd)
    if program is None:
        raise FileNotFoundError(f"no program {argv[0]!r} on PATH {environment.get('PATH', DEFAULT_PATH)!r}")
    view = view_of(bounds, program)
    root = os.geteuid() == 0
    user = user or scratch_user(cwd)
    private = _private_directory(user) if mechanism.name == "landlock" else None
    home = str(private or "/tmp")  # noqa: S108 - a private one, inside
    settings: dict[str, object] = {
        "numbers": call_numbers(mechanism.machine),
        "parent": os.getpid(),
        "program": str(program),
        "argv": list(argv),
        "environment": {"HOME": home, "TMPDIR": home, "PATH": DEFAULT_PATH, **environment},
        "directory": str(cwd),
        "user": (user.uid, user.gid) if root else None,
        "carry": False,
        "filter": seccomp.assemble(
            seccomp.script_rules(network=bounds.network, unix_sockets=mechanism.name == "bubblewrap"), mechanism.machine
        ),
    }
    others = 0 if root or mechanism.name == "bubblewrap" else count_tasks(user.uid)
    settings["limits"] = script_limits(
        memory_bytes=bounds.memory_bytes, cpu_s=bounds.cpu_s, file_bytes=bounds.file_bytes, tasks=bounds.processes + others + 1
    )
    modules = ["lockdown"]
    if private is not None:
        modules.append("landlock")
        settings["landlock"] = script_landlock(view, private, network=bounds.network, abi=mechanism.landlock_abi)
        settings["carry"] = root and carries(view, program, cwd, user)
    try:
        process = _start(mechanism, view, bounds, user, make_parcel("stage", modules, settings))
    except BaseException:
        if private is not None:
            shutil.rmtree(private)
        raise
    return ScriptProcess(process, mechanism.name, private)


def _private_directory(user: ScratchUser) -> Path:
    directory = tempfile.mkdtemp(prefix="uncaged-script-")
    if os.geteuid() == 0:
        os.chown(directory, user.uid, user.gid)
    return Path(directory)


def _start(mechanism: Mechanism, view: View, bounds: ScriptBounds, user: ScratchUser, parcel: bytes) -> subprocess.Popen[bytes]:
    parcel_read, parcel_write = os.pipe()
    status_read, status_write = os.pipe()
    accounts = _accounts_file(user)
    try:
        interpreter = find_interpreter()
        command = [str(interpreter.executable), *bubblewrap.PYTHON_FLAGS, "-c", LOADER, str(parcel_read), str(status_write)]
        if mechanism.program is not None:
            command = bubblewrap.script_command(
                mechanism.program,
                view,
                interpreter,
                disable_userns=mechanism.disable_userns,
                network=bounds.network,
                root=os.geteuid() == 0,
                temporary_bytes=bounds.file_bytes,
                accounts_fd=accounts,
                arguments=command,
            )
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(parcel_read, status_write, accounts),
            env=bubblewrap.ENVIRONMENT,
            cwd="/",
            start_new_session=True,
            bufsize=0,
        )
    except OSError as exc:
        os.close(status_read)
        os.close(parcel_write)
        raise SandboxUnavailable(f"a script's sandbox cannot be started: {exc}") from exc
    finally:
        for fd in (parcel_read, status_write, accounts):
            os.close(fd)
    with os.fdopen(status_read, "rb", buffering=0) as status:
        with suppress(BrokenPipeError), os.fdopen(parcel_write, "wb", buffering=0) as pipe:
            pipe.write(parcel)
        _require_started(process, status.fileno(), mechanism)
    return process


def _require_started(process: subprocess.Popen[bytes], status_fd: int, mechanism: Mechanism) -> None:
    poll = select.poll()
    poll.register(status_fd, select.POLLIN)
    word = os.read(status_fd, 4096) if poll.poll(START_TIMEOUT_S * 1000) else b"noit did not start in time"
    if word == b"ok":
        return
    process.kill()
    _, complaint = process.communicate()
    why = word[2:].decode(errors="replace") or complaint.decode(errors="replace").strip()[:1000]
    raise SandboxUnavailable(f"the {mechanism.name} sandbox for scripts does not work here: {why}")


def _accounts_file(user: ScratchUser) -> int:
    """An /etc/passwd that knows one user, as an open file."""
    fd = os.memfd_create("passwd")
    os.write(fd, f"script:x:{user.uid}:{user.gid}::/tmp:/bin/sh\n".encode())
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _converse(script: ScriptProcess, stdin: bytes, end: float, output_bytes: int) -> tuple[tuple[bytes, bytes], bool, bool]:
    """Feed and drain until both outputs are closed or the time is over; what exceeds the limit is read and dropped."""
    kept = {script.stdout.fileno(): bytearray(), script.stderr.fileno(): bytearray()}
    open_ends = set(kept)
    truncated = timed_out = False
    feed = script.stdin.fileno()
    os.set_blocking(feed, False)
    poll = select.poll()
    for fd in kept:
        poll.register(fd, select.POLLIN)
    poll.register(feed, select.POLLOUT)
    view = memoryview(stdin)
    while open_ends:
        remaining_ms = (end - time.monotonic()) * 1000
        ready = poll.poll(remaining_ms) if remaining_ms > 0 else []
        if not ready:
            timed_out = True
            break
        for fd, _ in ready:
            if fd == feed:
                view = _fed(script, view)
                if not view:
                    poll.unregister(feed)
                    script.stdin.close()
                continue
            chunk = os.read(fd, CHUNK_BYTES)
            if not chunk:
                poll.unregister(fd)
                open_ends.discard(fd)
            room = output_bytes - len(kept[fd])
            truncated |= len(chunk) > room
            kept[fd] += chunk[:room]
    out, err = (bytes(stream) for stream in kept.values())
    return (out, err), truncated, timed_out


def _fed(script: ScriptProcess, view: memoryview) -> memoryview:
    """What is left to write; nothing once nobody reads."""
    try:
        return view[os.write(script.stdin.fileno(), view[:CHUNK_BYTES]) :]
    except BlockingIOError:
        return view
    except BrokenPipeError:
        return memoryview(b"")
