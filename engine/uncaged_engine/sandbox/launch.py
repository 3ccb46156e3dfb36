"""Start of a locked-down child process with three pipe ends and no other open file of ours."""

from __future__ import annotations

import fcntl
import itertools
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from uncaged_bundles.errors import SandboxUnavailable
from uncaged_bundles.records import dataclass

from ..processes.child import Child
from . import bubblewrap, seccomp
from .interpreter import find_interpreter
from .mechanism import Mechanism, landlock_settings
from .payload import LOADER, call_numbers, filtered_calls, make_payload
from .rlimits import RESOURCES, Limit

STDERR_BYTES = 4096
_REQUEST_PIPE_BYTES = 1 << 20
_WRITE_PROBES = ("/uncaged-probe", "/tmp/uncaged-probe", "/dev/shm/uncaged-probe", "uncaged-probe")  # noqa: S108 - it must not be writable
EXIT_GRACE_MS = 5_000
"""How long a process that closed its pipes may take to end: a crash on a busy machine takes more
than a second, and its exit status says why it happened.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """Started child. request_fd, answer_fd, stderr_fd: our ends, the first not blocking. cpu_s: its
    CPU limit (None: no limit).
    """

    child: Child
    request_fd: int
    answer_fd: int
    stderr_fd: int
    cpu_s: int | None

    def finish(self, *, grace_ms: int = 0) -> str:
        """Reap the child and close our ends, once; return how it ended, and its last output.

        Args:
            grace_ms: time for it to end by itself.
        """
        ended = self.child.ends_within(grace_ms / 1000)
        code = self.child.end()  # with its group: see `handshake.end_start`
        last_words = _last_words(self.stderr_fd)
        for fd in (self.request_fd, self.answer_fd, self.stderr_fd):
            os.close(fd)
        how = _how(code, self.child.cpu_s, self.cpu_s) if ended else "it was ended by force"
        return how + (f"; it wrote: {last_words}" if last_words else "")


def launch(
    mechanism: Mechanism | None,
    *,
    limits: list[Limit],
    settings: Mapping[str, object],
    environment: Mapping[str, str] | None = None,
) -> Launched:
    """Start the child and send it its payload.

    Args:
        mechanism: None for a trusted bundle: a plain process.
        limits: the resource limits that the process sets on itself.
        settings: further settings for the child's `main`.
        environment: variables for a trusted bundle's process; others get none of them.
    Raises:
        SandboxUnavailable: the sandbox program is missing.
    """
    (request_read, request_write), (answer_read, answer_write), (stderr_read, stderr_write) = (
        _pipes(3)
    )
    # output beyond the pipe's capacity is dropped, and the writer never blocks
    os.set_blocking(stderr_write, False)
    os.set_blocking(stderr_read, False)
    with suppress(OSError):
        fcntl.fcntl(request_write, fcntl.F_SETPIPE_SZ, _REQUEST_PIPE_BYTES)
    try:
        child = _start(mechanism, environment or {}, (request_read, answer_write), stderr_write)
    except OSError as exc:
        for fd in (request_write, answer_read, stderr_read):
            os.close(fd)
        raise SandboxUnavailable(f"the sandbox cannot be started: {exc}") from exc
    finally:
        for fd in (request_read, answer_write, stderr_write):
            os.close(fd)
    launched = Launched(
        child=child,
        request_fd=request_write,
        answer_fd=answer_read,
        stderr_fd=stderr_read,
        cpu_s=None if mechanism is None else _cpu_s(limits),
    )
    _send(launched, _payload(mechanism, limits, settings))
    os.set_blocking(request_write, False)
    return launched


def _start(
    mechanism: Mechanism | None,
    environment: Mapping[str, str],
    pipes: tuple[int, int],
    stderr: int,
) -> Child:
    with _filter_file(mechanism) as filter_fd:
        command, variables = _command(mechanism, filter_fd, pipes, environment)
        return Child.start(
            command,
            directory="/",
            environment=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            pass_fds=(*pipes, *(() if filter_fd is None else (filter_fd,))),
        )


def _cpu_s(limits: list[Limit]) -> int | None:
    return next((soft for number, soft, _ in limits if number == RESOURCES["cpu"]), None)


def _pipes(count: int) -> list[tuple[int, int]]:
    """Open all pipes, or none."""
    made: list[tuple[int, int]] = []
    try:
        for _ in range(count):
            made.append(os.pipe())
    except OSError as exc:
        for fd in itertools.chain.from_iterable(made):
            os.close(fd)
        raise SandboxUnavailable(f"the sandbox cannot be started: {exc}") from exc
    return made


def _command(
    mechanism: Mechanism | None,
    filter_fd: int | None,
    pipes: tuple[int, int],
    environment: Mapping[str, str],
) -> tuple[list[str], dict[str, str]]:
    interpreter = find_interpreter()
    arguments = [*bubblewrap.PYTHON_FLAGS, "-c", LOADER, *map(str, pipes)]
    if mechanism is not None and mechanism.program is not None and filter_fd is not None:
        command = bubblewrap.cell_command(
            mechanism.program,
            interpreter,
            disable_userns=mechanism.disable_userns,
            filter_fd=filter_fd,
            environment=bubblewrap.ENVIRONMENT,
            arguments=arguments,
        )
        return command, {}
    own = {} if mechanism is not None else environment
    return [str(interpreter.executable), *arguments], {**own, **bubblewrap.ENVIRONMENT}


@contextmanager
def _filter_file(mechanism: Mechanism | None) -> Iterator[int | None]:
    """Open a file with the filter under which bubblewrap starts the interpreter; the process sets
    the stricter one by itself.
    """
    if mechanism is None or mechanism.name != "bubblewrap":
        yield None
        return
    with os.fdopen(os.memfd_create("filter"), "w+b") as file:
        file.write(seccomp.assemble(seccomp.CELL_STARTING, mechanism.machine))
        file.seek(0)
        yield file.fileno()


def _payload(
    mechanism: Mechanism | None, limits: list[Limit], settings: Mapping[str, object]
) -> bytes:
    """Return the payload that the child needs before its lockdown."""
    machine = os.uname().machine if mechanism is None else mechanism.machine
    numbers = call_numbers(machine)
    inside: dict[str, object] = {**settings, "numbers": numbers, "parent": os.getpid()}
    names = ["lockdown"]
    if mechanism is not None:
        names.append("boot")
        inside |= {"limits": limits, "filter": seccomp.assemble(seccomp.CELL, machine)}
        probes = {
            "read": _foreign_files(),
            "write": list(_WRITE_PROBES),
            "socket": numbers["socket"],
            "calls": filtered_calls(machine),
        }
        inside |= {"probes": probes}
        if mechanism.name == "landlock":
            names.append("landlock")
            inside["landlock"] = landlock_settings(mechanism, find_interpreter())
        else:
            inside["parent"] = 0
    return make_payload("child", names, inside)


def _foreign_files() -> list[str]:
    """Return existing files that the child must not be able to read."""
    return [path for path in ("/etc/passwd", "/proc/self/status", __file__) if Path(path).exists()]


def _send(launched: Launched, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(launched.request_fd, data) :]
    except BrokenPipeError as exc:
        raise SandboxUnavailable(
            f"the sandbox did not start: {launched.finish(grace_ms=EXIT_GRACE_MS)}"
        ) from exc


def _last_words(fd: int) -> str:
    with suppress(BlockingIOError):
        return os.read(fd, 1 << 16)[-STDERR_BYTES:].decode(errors="replace").strip()
    return ""


def _how(code: int, spent_s: float, cpu_s: int | None) -> str:
    """Return an exit code in words; bubblewrap reports its child's signal as 128 and more."""
    number = -code if code < 0 else code - 128
    # the kernel counts in ticks
    if number == signal.SIGKILL and cpu_s is not None and spent_s > cpu_s * 0.75:
        return f"its CPU allowance of {cpu_s} s is used up"
    return f"signal {number} ended it" if number > 0 else f"it ended with status {code}"
