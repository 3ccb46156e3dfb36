"""Runner of operating-system scripts within bounds: input, capped output, timeout, cancellation."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..processes.communicate import OnCancel, OutputBuffer, communicate, never
from .bounds import ScriptBounds
from .hidden import Refusal
from .mechanism import Mechanism
from .scratch import ScratchUser, scratch_copy, scratch_user
from .script_process import KILL_TIMEOUT_S, ScriptProcess
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
    stop: OnCancel = never,
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
        stop: registers the function that ends the script early, by a signal.
        prepare, watch_path: as in `start_script`.
    Raises:
        SandboxUnavailable, FileNotFoundError, RefusedError: no sandbox for scripts works here, the
            program does not exist, or a path is not the object that *bounds* name.
    """
    begin = time.monotonic()
    stdout, stderr = (OutputBuffer(max_bytes=bounds.output_bytes) for _ in range(2))
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
        script.within(bounds.scratch_bytes) as quota,
    ):
        timed_out = communicate(
            script,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            deadline=begin + bounds.timeout_s,
            grace_s=KILL_TIMEOUT_S,
            on_cancel=stop,
        )
    return ScriptResult(
        exit_code=None if timed_out else script.exit_code,
        stdout=bytes(stdout.data),
        stderr=bytes(stderr.data) + quota.message(),
        duration_ms=round((time.monotonic() - begin) * 1000),
        truncated=stdout.truncated or stderr.truncated,
        timed_out=timed_out,
        refused=script.refused,
    )
