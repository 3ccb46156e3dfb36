"""Handshake with a script's sandbox: start of bubblewrap or the supervisor, check of the mounts,
payload, report of the stage.
"""

from __future__ import annotations

import json
import os
import pwd
import select
import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress

from uncaged_bundles.errors import RefusedError, SandboxUnavailable

from . import bubblewrap
from .bounds import ScriptBounds, ScriptView
from .interpreter import find_interpreter
from .mechanism import Mechanism
from .mounted import MountBarrier
from .payload import LOADER
from .scratch import ScratchUser
from .script_process import ScriptProcess

START_TIMEOUT_S = 20.0
OVERFLOW_UID = 65534


def start_stage(
    mechanism: Mechanism,
    view: ScriptView,
    bounds: ScriptBounds,
    *,
    user: ScratchUser,
    payload: bytes,
    prepare: Callable[[int], None] | None,
) -> tuple[ScriptProcess, int | None]:
    """Start the stage and wait until it reports that the sandbox is in force.

    Returns:
        The process, and if the script is watched, the listener descriptor of its filter.
    """
    places = bubblewrap.places_of(view, find_interpreter())
    with MountBarrier(_accounts(user), places, view.links) as barrier, ExitStack() as ours:
        with ExitStack() as theirs:
            theirs.callback(os.close, barrier.read_fd)
            payload_read, payload_write = os.pipe()
            theirs.callback(os.close, payload_read)
            pipe = ours.enter_context(os.fdopen(payload_write, "wb", buffering=0))
            info_read, info_write = os.pipe()
            theirs.callback(os.close, info_write)
            info = ours.enter_context(os.fdopen(info_read, "rb", buffering=0))
            status, status_inside = map(ours.enter_context, socket.socketpair())
            passed = (payload_read, status_inside.fileno(), info_write, barrier.read_fd)
            script = _start(_command(mechanism, view, bounds, passed, barrier=barrier), passed)
        status_inside.close()
        try:
            # before the payload, so that process 1 cannot have ended yet
            if mechanism.program is not None:
                _check_mounts(script, info.fileno(), barrier, prepare)
            barrier.release()
            with suppress(BrokenPipeError):
                pipe.write(payload)
            pipe.close()
            word, listener = _receive_within(status, START_TIMEOUT_S)
            if word != b"ok":
                raise _start_failure(mechanism, script, word)
        except BaseException:
            end_start(script)
            raise
    return script, listener


def _start(command: list[str], passed: tuple[int, ...]) -> ScriptProcess:
    try:
        return ScriptProcess.start(
            command, directory="/", environment=bubblewrap.ENVIRONMENT, pass_fds=passed
        )
    except OSError as exc:
        raise SandboxUnavailable(f"a script's sandbox cannot be started: {exc}") from exc


def _command(
    mechanism: Mechanism,
    view: ScriptView,
    bounds: ScriptBounds,
    passed: tuple[int, ...],
    *,
    barrier: MountBarrier,
) -> list[str]:
    payload, status, info, accounts = passed
    interpreter = find_interpreter()
    stage = [
        str(interpreter.executable),
        *bubblewrap.PYTHON_FLAGS,
        "-c",
        LOADER,
        str(payload),
        str(status),
    ]
    if mechanism.program is None:
        return stage
    return bubblewrap.script_command(
        mechanism.program,
        view,
        disable_userns=mechanism.disable_userns,
        network=bounds.network,
        root=os.geteuid() == 0,
        temporary_bytes=bounds.scratch_bytes,
        accounts_fd=accounts if barrier.mounts_accounts else None,
        info_fd=info,
        places=barrier.places,
        arguments=stage,
    )


def _check_mounts(
    script: ScriptProcess,
    info_fd: int,
    barrier: MountBarrier,
    prepare: Callable[[int], None] | None,
) -> None:
    """Check bubblewrap's mounts and call *prepare*; a bubblewrap that failed is reported later."""
    first = _process_1(info_fd)
    if first is None:
        return
    try:
        script.tree_fd = os.pidfd_open(first)
    except ProcessLookupError:
        return
    barrier.check(first, START_TIMEOUT_S)
    if prepare is not None:
        prepare(first)


def _process_1(info_fd: int) -> int | None:
    """Return bubblewrap's process 1, which cannot end before it gets its command; None if
    bubblewrap failed.
    """
    text = b""
    poll = select.poll()
    poll.register(info_fd, select.POLLIN)
    while b"}" not in text:
        more = os.read(info_fd, 4096) if poll.poll(START_TIMEOUT_S * 1000) else b""
        if not more:
            return None
        text += more
    return int(json.loads(text)["child-pid"])


def _receive_within(status: socket.socket, timeout_s: float) -> tuple[bytes, int | None]:
    """Receive a word with its descriptor; nothing at the timeout."""
    status.settimeout(timeout_s)
    try:
        word, descriptors, _, _ = socket.recv_fds(status, 4096, 1)
    except (TimeoutError, ConnectionError):
        return b"", None
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return word, descriptors[0] if descriptors else None


def end_start(script: ScriptProcess) -> None:
    """End a sandbox that is still starting.

    Bubblewrap's own child waits for bubblewrap before it sets its parent-death signal; if
    bubblewrap alone is killed then, it hangs. So its whole group is killed first.
    """
    script.signal_group(signal.SIGKILL)
    script.end()


def _start_failure(
    mechanism: Mechanism, script: ScriptProcess, word: bytes
) -> RefusedError | SandboxUnavailable:
    """End the sandbox and return the error that the stage's report, or the standard error,
    describes.
    """
    script.signal_group(signal.SIGKILL)
    script.kill()
    output = script.stderr.read()
    if word.startswith(b"at"):
        return RefusedError(
            f"the granted path {os.fsdecode(word[2:])!r} was replaced by something else just now; nothing was run"
        )
    why = (
        word[2:].decode(errors="replace")
        or output.decode(errors="replace").strip()[:1000]
        or "it did not start in time"
    )
    return SandboxUnavailable(f"the {mechanism.name} sandbox for scripts does not work here: {why}")


def _accounts(user: ScratchUser) -> bytes:
    """Return an /etc/passwd of one user; as an ordinary user with the name that person has.

    In the user namespace of an ordinary user's bubblewrap the kernel shows every other owner as the
    overflow user, so that one is named for what it means.
    """
    name, others = "script", ""
    if os.geteuid() != 0:
        with suppress(KeyError):
            name = pwd.getpwuid(user.uid).pw_name
        if user.uid != OVERFLOW_UID:
            others = f"other-user:x:{OVERFLOW_UID}:{OVERFLOW_UID}::/:/bin/false\n"
    return f"{name}:x:{user.uid}:{user.gid}::/tmp:/bin/sh\n{others}".encode()
