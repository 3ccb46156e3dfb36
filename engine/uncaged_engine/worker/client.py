"""Client side of the worker socket. Starts a worker for the bundle if none is listening.

A request names its thread and is safe to repeat, so a worker that leaves in between costs a retry.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from uncaged_bundles.errors import (
    EngineBug,
    NotFoundError,
    StorageError,
    UncagedError,
    os_problem,
)
from uncaged_bundles.ids import BundleHash
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store

from ..settings.variables import CARRIED, INTERPRETER
from ..settings.variables import select as select_variables
from . import address
from .wire import pack, raise_error, receive_line, unpack

if TYPE_CHECKING:
    from ..processes.programs import Cancellation

START_TIMEOUT_S = 60.0
ANSWER_TIMEOUT_S = 120.0
BUSY_PAUSE_S = 0.02
DETACH = '"$@" </dev/null &'
"""Shell script that exits at once, so that init reaps the worker."""


def request(
    store: Store,
    bundle: BundleHash,
    message: Mapping[str, object],
    *,
    start: bool,
    launching: Launching | None = None,
) -> dict[str, Any] | None:
    """Send a request to the worker of *bundle* and return its answer.

    Args:
        start: start a worker if there is none; without it the result is None then.
        launching: a worker that is starting already, and is waited for first.
    Raises:
        The error that the worker answered with; EngineBug if none can be started.
    """
    if not start:
        return next(answers(store, bundle, message), None)
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        connection = connect(store, bundle)
        if connection is None:
            with launching or Launching(store, bundle) as worker:
                worker.wait()
            launching = None  # used up: if no worker listens then, another is started
            continue
        with connection:
            answer = _exchange(connection, message)
        if answer is not None:
            raise_error(answer)
            return answer
        # crash here: the worker left between our connect and its answer, or takes no more threads;
        # ask again
    raise EngineBug(
        f"no worker for bundle {bundle} answers; see {address.report_path(store, bundle)}"
    )


def answers(
    store: Store, bundle: BundleHash, message: Mapping[str, object]
) -> Iterator[dict[str, Any]]:
    """Ask the live worker, and those that it replaces and that still drive threads; yield their
    answers.

    Raises:
        NotFoundError: none of them has the thread, but one lives.
    """
    missing: NotFoundError | None = None
    answered = False
    for path in (address.socket_path(store, bundle), *address.draining_paths(store, bundle)):
        answer = None
        # a worker that is leaving closes without an answer, and its successor may have the path
        while answer is None and (connection := _connect(path)) is not None:
            with connection:
                answer = _exchange(connection, message)
        if answer is None:
            continue
        try:
            raise_error(answer)
        except NotFoundError as exc:
            missing = exc
        else:
            answered = True
            yield answer
    if missing is not None and not answered:
        raise missing


def rouse(store: Store, bundle: BundleHash) -> Launching | None:
    """Start a worker unless one listens, without waiting for it."""
    connection = connect(store, bundle)
    if connection is None:
        return Launching(store, bundle)
    connection.close()
    return None


def rouse_flow(flow: str, root: Path | None = None) -> Launching | None:
    """Start the worker of an enabled flow unless one listens, before the caller has imported what
    prepares its request. A worker that gets no request for a thread ends.

    Returns:
        None as well after an error, which the run itself will report.
    """
    try:
        store = Store.open(root)
        found = Registry(store).indexed_flow(flow)
        return rouse(store, found.hash) if found is not None and found.enabled else None
    except (UncagedError, OSError, ValueError):
        return None


def connect(store: Store, bundle: BundleHash) -> socket.socket | None:
    """Connect to the live worker; None if there is none."""
    return _connect(address.socket_path(store, bundle))


def _connect(path: Path) -> socket.socket | None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(ANSWER_TIMEOUT_S)
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            return None
        except BlockingIOError:  # its queue is full: so many came at once
            connection.close()
            if time.monotonic() >= deadline:
                raise
            time.sleep(BUSY_PAUSE_S)
        except OSError as exc:
            connection.close()
            raise StorageError(f"cannot reach a worker at {os_problem(exc, path)}") from exc
        except BaseException:
            connection.close()
            raise
        else:
            return connection


@contextmanager
def following(
    store: Store, bundle: BundleHash, thread: str, cancel: Cancellation | None = None
) -> Iterator[Iterator[dict[str, Any]] | None]:
    """Follow a live thread: its events as the worker sends them, or None if no worker has it.
    cancel: ends them, from another thread of execution.
    """
    for path in (address.socket_path(store, bundle), *address.draining_paths(store, bundle)):
        connection = _connect(path)
        if connection is None:
            continue
        with connection:
            buffer = bytearray()
            first = _exchange(connection, {"op": "follow", "threadId": thread}, buffer)
            if first is None or "error" in first:
                continue
            connection.settimeout(None)  # hours may pass between two events
            with (
                nullcontext()
                if cancel is None
                else cancel.on_request(partial(_hang_up, connection))
            ):
                yield _events(connection, first, buffer)
            return
    yield None


def _events(
    connection: socket.socket, first: dict[str, Any], buffer: bytearray
) -> Iterator[dict[str, Any]]:
    yield first
    while (line := receive_line(connection, buffer)) is not None:
        yield unpack(line)


def _hang_up(connection: socket.socket) -> None:
    """End the reading of a connection by another thread of execution."""
    with suppress(OSError):  # the worker left just now
        connection.shutdown(socket.SHUT_RDWR)


def _exchange(
    connection: socket.socket, message: Mapping[str, object], buffer: bytearray | None = None
) -> dict[str, Any] | None:
    try:
        connection.sendall(pack(message))
        line = receive_line(connection, bytearray() if buffer is None else buffer)
    except OSError:
        return None
    return None if line is None else unpack(line)


class Launching:
    """Start of a worker; another client's may win the race."""

    def __init__(self, store: Store, bundle: BundleHash) -> None:
        self._store = store
        self._bundle = bundle
        self._report = address.report_path(store, bundle)
        self._ready, theirs = os.pipe()
        command = [
            sys.executable,
            "-m",
            "uncaged_engine.worker",
            str(store.root),
            bundle,
            str(theirs),
        ]
        report = -1
        try:
            report = os.open(
                self._report, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
            )
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", DETACH, "worker", *command],
                stdout=report,
                stderr=report,
                pass_fds=(theirs,),
                start_new_session=True,
                cwd=store.root,
                # nothing else stays with it for later threads
                env=select_variables(os.environ, (*CARRIED, *INTERPRETER)),
            )
        except OSError as exc:
            os.close(self._ready)
            raise StorageError(_cannot_start(bundle, os_problem(exc))) from exc
        finally:
            os.close(theirs)
            if report >= 0:
                os.close(report)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait(self) -> None:
        """Wait until a worker listens, or until it is time to connect again.

        Raises:
            StorageError: it cannot start here. EngineBug: it died before it listened.
        """
        readable, _, _ = select.select([self._ready], [], [], START_TIMEOUT_S)
        report = os.read(self._ready, select.PIPE_BUF) if readable else b""
        if report.startswith(address.READY):
            with suppress(OSError):  # an old report that stays does no harm
                self._report.unlink()
        elif report.startswith(address.NOT_READY):
            raise StorageError(
                _cannot_start(
                    self._bundle, report.removeprefix(address.NOT_READY).decode("utf-8", "replace")
                )
            )
        else:
            _wait_for_the_other(self._store, self._bundle)

    def close(self) -> None:
        """Stop waiting for the worker. Idempotent."""
        if self._ready >= 0:
            os.close(self._ready)
            self._ready = -1
            self._shell.wait()


def _cannot_start(bundle: BundleHash, why: str) -> str:
    return f"the worker of bundle {bundle} cannot start: {why}; correct that and try again"


def _wait_for_the_other(store: Store, bundle: BundleHash) -> None:
    """Wait for another worker, which holds the lock while it starts or ends; or raise the bug that
    ended ours.
    """
    report = address.report_path(store, bundle)
    text = ""
    with suppress(FileNotFoundError):  # the other's client may remove it at any time
        text = report.read_text("utf-8", "replace")[-2000:]
    if text:
        raise EngineBug(
            f"the worker for bundle {bundle} died before it listened; {report} ends with:\n{text}"
        )
    time.sleep(0.02)
