"""Runner of operating-system scripts within bounds: feeds and drains the pipes, ends the whole
process tree, caps the output.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from .bounds import ScriptBounds
from .hidden import Refusal
from .mechanism import Mechanism
from .scratch import ScratchUser, scratch_copy, scratch_user
from .script_process import ScriptProcess
from .script_start import private_directory, start_script

__all__ = [
    "ScratchUser",
    "ScriptBounds",
    "ScriptProcess",
    "ScriptResult",
    "private_directory",
    "run_script",
    "scratch_copy",
    "scratch_user",
    "start_script",
]

CHUNK_BYTES = 1 << 16

Stop = Callable[[Callable[[], None]], AbstractContextManager[None]]
"""Context in which a callback is registered, such as `Cancel.on_request`: any thread may call
it.
"""


def never(_action: Callable[[], None]) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptResult:
    """Result of a script.

    exit_code: 128 and more for a signal; None after a timeout. truncated: some output was dropped.
    refused: existing things of this machine that were hidden from the script, if it was watched.
    """

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    duration_ms: int
    truncated: bool
    timed_out: bool
    refused: tuple[Refusal, ...] = ()


def run_script(
    argv: Sequence[str],
    bounds: ScriptBounds,
    *,
    mechanism: Mechanism,
    cwd: Path | None,
    environment: Mapping[str, str],
    stdin: bytes = b"",
    user: ScratchUser | None = None,
    stop: Stop = never,
    prepare: Callable[[int], None] | None = None,
    watch_path: str | None = None,
) -> ScriptResult:
    """Run a script until it ends, is stopped, or reaches its timeout.

    Args:
        argv: the program (a path, or a name on the PATH of *environment*) and its arguments; no
            shell is involved.
        environment: the script's whole environment, but for HOME and TMPDIR if they are missing.
        cwd: None: the private directory. user: the script's user if this process is root; by
            default the owner of *cwd*, if that is a user for scripts, else another of these users.
        stop: registers the function that ends the script early; its exit code is then that of a
            signal.
        prepare, watch_path: as in `start_script`.
    Raises:
        SandboxUnavailable: no sandbox for scripts works here; the script was not started.
        FileNotFoundError: the program does not exist. RefusedError: a path is not the object that
            *bounds* name.
    """
    begin = time.monotonic()
    with (
        start_script(
            argv,
            bounds,
            mechanism=mechanism,
            cwd=cwd,
            environment=environment,
            user=user,
            prepare=prepare,
            watch_path=watch_path,
        ) as script,
        stop(script.interrupt),
        script.within(bounds.scratch_bytes) as quota,
    ):
        streams, truncated, timed_out = _converse(
            script, stdin, begin + bounds.timeout_s, bounds.output_bytes
        )
        exit_code = None
        if not timed_out:
            try:
                exit_code = script.wait(max(0.0, begin + bounds.timeout_s - time.monotonic()))
            except subprocess.TimeoutExpired:  # the script closed its output and went on
                timed_out = True
    return ScriptResult(
        exit_code=exit_code,
        stdout=streams[0],
        stderr=streams[1] + quota.message(),
        duration_ms=round((time.monotonic() - begin) * 1000),
        truncated=truncated,
        timed_out=timed_out,
        refused=script.refused,
    )


def _converse(
    script: ScriptProcess, stdin: bytes, end: float, output_bytes: int
) -> tuple[tuple[bytes, bytes], bool, bool]:
    """Write input and read output until both outputs are closed or the time is over; output above
    the limit is dropped.
    """
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
    """Return the rest of the input after one write; nothing if the reader has closed the pipe."""
    try:
        return view[os.write(script.stdin.fileno(), view[:CHUNK_BYTES]) :]
    except BlockingIOError:
        return view
    except BrokenPipeError:
        return memoryview(b"")
