"""Server side of the worker socket: answers requests, runs a driver per flow thread, and ends when
idle.

Rule 1: the socket is bound and unlinked only by the holder of the worker lock, so there is one
worker per bundle.
Rule 2: before it ends, it unlinks the socket, then serves the clients that had connected; a client
without an answer asks again.
Rule 3: a worker that met an engine bug accepts no more threads. It leaves the socket's name and the
lock to another, and keeps its own.
Rule 4: the answer to a request for a thread follows once this worker holds the journal's lock and
the request is in the journal.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from uncaged_bundles.errors import (
    NotFoundError,
    RefusedError,
    StorageError,
    UncagedError,
    UsageError,
)
from uncaged_bundles.ids import BundleHash, ThreadId, parse_thread_id
from uncaged_bundles.storage.store import Store

from ..cells.cell import Cell, CellLimits
from ..cells.shared import start_cells
from ..effect_kinds import KNOWN
from ..journal import copied
from ..journal.file import JournalFile
from ..notify.sender import Sender
from ..sandbox.mechanism import Mechanism
from ..settings.loading import load
from ..state.states import refusal
from ..steps.driver import Driver
from ..steps.observing import Observers
from ..steps.request import DriveRequest, WorkerContext
from . import address
from .hub import Hub
from .wire import MAX_REQUEST_BYTES, error_message, listen, pack, unpack

Begun = tuple[Cell, Mechanism]
REQUEST_TIMEOUT_S = 30.0
ACCEPT_PAUSE_S = 0.05
SEND_WAIT_S = 15.0
"""How long a worker that is idle otherwise waits for its notifications."""
SPARE_FILES = 10
"""Open files that must be left when a thread is accepted, for its journal and its steps."""
OBSERVERS_S = 5.0
"""For what observers have left to send when a worker ends."""
STACK_BYTES = 512 << 10  # a driver's stack is shallow; a thousand of them should be cheap


class WorkerServer:
    """One worker. `serve` returns some time after the last thread and the last request."""

    def __init__(
        self,
        *,
        store: Store,
        bundle: BundleHash,
        linger_s: float,
        clock_ms: Callable[[], int],
        limits: CellLimits,
        begun: Begun | None,
        release: Callable[[], None],
    ) -> None:
        """Args: limits: of each sandbox process. begun: one that is starting already. release:
        gives the worker lock back.
        """
        self._store = store
        self._hash = bundle
        self._linger_s = linger_s
        self._clock_ms = clock_ms
        self._limits = limits
        self._begun = begun
        self._hub = Hub()
        self._sender = Sender()
        self._observers = Observers()
        self._drivers: dict[ThreadId, Driver] = {}
        self._lock = threading.Lock()
        self._around: WorkerContext | None = None
        self._slots = 0
        self._killing = 0  # kills under way; those of child threads are requests to this worker
        self._release = release
        self._path = address.socket_path(store, bundle)
        self._has_met_a_bug = False
        self._is_draining = False
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)

    def serve(self, ready: Callable[[], None]) -> None:
        """Listen until there is nothing left to do. ready: called once callers can connect."""
        threading.stack_size(STACK_BYTES)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        try:
            self._serve_here(ready)
            # a thread was accepted while we were leaving: stay for others to reach it
            while self._drivers:
                try:
                    self._serve_here(_report_nothing)
                except StorageError:  # no client can connect, and the threads continue
                    self._selector.select()
                    os.read(self._wake_read, 4096)
        finally:
            self._sender.close()
            self._hub.close()
            if self._around is not None:
                self._around.cells.close()
            elif self._begun is not None:
                self._begun[0].close()
            if not self._observers.is_empty:
                self._release()  # a new worker of the bundle need not wait for what is sent here
                self._observers.close(OBSERVERS_S)

    def _serve_here(self, ready: Callable[[], None]) -> None:
        """Listen until idle, then unlink the socket and serve the clients that had connected."""
        with listen(self._path) as listener:
            self._selector.register(listener, selectors.EVENT_READ)
            try:
                ready()
                if self._begun is not None:
                    # the first request for a thread meets the error again
                    with suppress(UncagedError, OSError):
                        self._surroundings()
                self._serve_until_idle(listener)
                self._path.unlink(missing_ok=True)
                # crash here, or a client that connected just now: no client can come any more,
                # those that came are still served
                while self._serve_once(listener, timeout_s=0.05):
                    pass
            finally:
                self._path.unlink(missing_ok=True)
                self._selector.unregister(listener)

    def _serve_until_idle(self, listener: socket.socket) -> None:
        """Serve until there was nothing to do for the lingering time."""
        idle_since = time.monotonic()
        while True:
            served = self._serve_once(listener, timeout_s=self._linger_s)
            if self._has_met_a_bug:
                self._drain()
            # more than listener and wake pipe: a request is being read
            if served or self._drivers or self._killing or len(self._selector.get_map()) > 2:
                idle_since = time.monotonic()
            elif self._sender.is_busy and time.monotonic() - idle_since < SEND_WAIT_S:
                continue
            # a select may return a little before its timeout
            elif time.monotonic() - idle_since >= self._linger_s * 0.9:
                return

    def _serve_once(self, listener: socket.socket, *, timeout_s: float) -> bool:
        events = self._selector.select(timeout_s)
        for key, _ in events:
            if key.fileobj is listener:
                self._accept(listener)
            elif key.fileobj == self._wake_read:
                os.read(self._wake_read, 4096)
            else:
                self._read(key.data)
        return bool(events)

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            # no file left for it: it stays in the queue, and a busy loop would not help
            time.sleep(ACCEPT_PAUSE_S)
            return
        connection.setblocking(False)
        self._selector.register(connection, selectors.EVENT_READ, _Incoming(connection))

    def _read(self, incoming: _Incoming) -> None:
        try:
            part = incoming.connection.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        incoming.data += part
        if part and not incoming.data.endswith(b"\n") and len(incoming.data) <= MAX_REQUEST_BYTES:
            return
        self._selector.unregister(incoming.connection)
        if not incoming.data.endswith(b"\n"):
            incoming.connection.close()
            return
        # no more to read: the answer is written at once, or the hub takes the connection over
        incoming.connection.setblocking(True)
        incoming.connection.settimeout(REQUEST_TIMEOUT_S)
        try:
            self._answer(incoming.connection, bytes(incoming.data))
        except UncagedError as exc:
            _send(incoming.connection, error_message(exc))
        # too many open files, no free process: this request fails, and the threads continue
        except OSError as exc:
            problem = f"bundle {self._hash}: the worker cannot do that now ({exc.strerror or exc}); free what it lacks, then try again"
            _send(incoming.connection, error_message(UncagedError(problem)))
        except (ValueError, KeyError, TypeError, RecursionError) as exc:
            _send(
                incoming.connection,
                error_message(UsageError(f"the worker did not understand a request: {exc!r}")),
            )

    def _answer(self, connection: socket.socket, line: bytes) -> None:
        message = unpack(line)
        match message.get("op"):
            case "drive":
                self._drive(parse_thread_id(str(message["threadId"])), message, connection)
            case "pause":
                self._live(message).pause()
                _send(connection, {"ok": True})
            case "kill":
                self._kill(self._live(message), connection)
            case "follow":
                self._follow(message, connection)
            case "list":
                with self._lock:
                    drivers = list(self._drivers.values())
                doing = [
                    {
                        "threadId": one.thread,
                        "doing": one.doing,
                        "sinceMs": one.since_ms,
                        "queued": one.queued,
                    }
                    for one in drivers
                ]
                _send(connection, {"pid": os.getpid(), "threads": doing})
            case other:
                raise UsageError(f"the worker does not know the request {other!r}")

    def _kill(self, driver: Driver, connection: socket.socket) -> None:
        """Kill a thread in another thread of execution: its children may be in this worker, and are
        killed by requests to it.
        """

        def kill() -> None:
            try:
                driver.kill()
            except UncagedError as exc:
                _send(connection, error_message(exc))
            else:
                _send(connection, {"ok": True})
            finally:
                with self._lock:
                    self._killing -= 1

        with self._lock:
            self._killing += 1
        threading.Thread(target=kill, name=f"kill {driver.thread}", daemon=True).start()

    def _live(self, message: Mapping[str, Any]) -> Driver:
        thread = parse_thread_id(str(message["threadId"]))
        with self._lock:
            driver = self._drivers.get(thread)
        if driver is None:
            raise NotFoundError(f"thread {thread} does not run here")
        return driver

    def _follow(self, message: Mapping[str, Any], connection: socket.socket) -> None:
        driver = self._live(message)
        self._hub.follow(driver.thread, connection, lambda: {"flushed": driver.flushed_bytes})
        with self._lock:
            gone = driver.thread not in self._drivers
        if gone:  # it ended between the two looks
            self._hub.leave(driver.thread, "ended")

    def _drive(
        self, thread: ThreadId, message: Mapping[str, Any], connection: socket.socket
    ) -> None:
        if self._has_met_a_bug:
            self._drain()
        if self._is_draining:
            # no answer: the caller asks again, and finds or starts the worker that replaces this
            # one
            connection.close()
            return
        around = self._surroundings()
        with self._lock:
            driving = self._drivers.get(thread)
        if driving is not None:
            if message.get("resume") is not None and not driving.has_same_request(
                message["resume"]
            ):
                # another client came first, with another request
                raise RefusedError(refusal("running", "resume", thread))
            _send(connection, {"ok": True, "already": True})
            return
        self._require_spare_files()
        journal = JournalFile.open(self._store, self._hash, thread)
        request = DriveRequest(
            environment=dict(message.get("environment") or {}),
            directory=Path(str(message.get("directory") or "/")),
            resume=message.get("resume"),
        )
        self._slots += 1
        try:
            driver = Driver(
                thread=thread,
                slot=self._slots,
                journal=journal,
                request=request,
                config=load(self._store),
                worker=around,
            )
            driver.accept()
            copied.unmark(journal.path)  # not before: a refused request takes nothing up
        except BaseException:
            journal.close()
            raise
        with self._lock:
            self._drivers[thread] = driver
        try:
            threading.Thread(target=self._run, args=(driver,), name=thread, daemon=True).start()
        # the system gives us no more of them; the thread is `interrupted`, and `resume` starts it
        except RuntimeError as exc:
            self._forget(driver)
            raise OSError(str(exc)) from exc
        _send(connection, {"ok": True})

    def _require_spare_files(self) -> None:
        """Raise OSError unless the process may open `SPARE_FILES` more: a thread that was accepted
        opens blobs, logs and sockets, and would be left interrupted without them.
        """
        spare: list[int] = []
        try:
            while len(spare) < SPARE_FILES:
                spare.append(os.dup(self._wake_write))
        finally:
            for fd in spare:
                os.close(fd)

    def _run(self, driver: Driver) -> None:
        word = "interrupted"
        try:
            word = driver.run()
        except Exception:  # worker top level: a bug of ours, not of the bundle
            self._report(driver)
        finally:
            self._forget(driver)
            self._hub.leave(driver.thread, word)
            self._wake()  # the serving loop looks again: it may be idle by now, or has to drain

    def _forget(self, driver: Driver) -> None:
        # both at once: a client that finds the journal free must not find a driver
        with self._lock:
            try:
                driver.close()
            finally:
                self._drivers.pop(driver.thread, None)

    def _report(self, driver: Driver) -> None:
        import traceback  # a worker that meets no bug starts without it

        path = self._store.run / f"report-{self._clock_ms()}-{driver.thread}.txt"
        text = f"uncaged-workflow worker, bundle {self._hash}, thread {driver.thread}\n\n{traceback.format_exc()}"
        sys.stderr.write(text)
        driver.info.note("8FJ3R0XS", f"a bug of the engine, reported in {path}")
        self._has_met_a_bug = True
        with suppress(OSError):  # a full disk: the report is on standard error, too
            path.write_text(text, encoding="utf-8")
        self._hub.publish(driver.thread, {"bug": str(path)})

    def _drain(self) -> None:
        """Accept no more threads: make room for another worker, and listen beside it for requests
        about the threads that remain here.
        """
        self._has_met_a_bug = False
        if self._is_draining:
            return
        aside = address.draining_path(self._store, self._hash, os.getpid())
        try:
            self._path.rename(aside)
        except OSError:
            return  # a broken disk: better this worker for new threads than none
        # crash here: no worker listens, and the lock goes with this one
        self._path = aside
        self._is_draining = True
        self._release()

    def _surroundings(self) -> WorkerContext:
        if self._around is None:
            bundle = self._store.load_bundle(self._hash, KNOWN)
            begun, self._begun = self._begun, None
            cells = start_cells(bundle, load(self._store).sandbox, limits=self._limits, begun=begun)
            self._around = WorkerContext(
                store=self._store,
                cells=cells,
                clock_ms=self._clock_ms,
                publish=self._hub.publish,
                sender=self._sender,
                observers=self._observers,
            )
        return self._around

    def _wake(self) -> None:
        with suppress(BlockingIOError):  # it is awake already
            os.write(self._wake_write, b"w")


def _report_nothing() -> None:
    """Report nothing: the socket was announced before."""


class _Incoming:
    """Connection with an incomplete request."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.data = bytearray()


def _send(connection: socket.socket, message: Mapping[str, object]) -> None:
    """Answer and close the connection. A client that has gone away is ignored."""
    try:
        connection.sendall(pack(message))
    except OSError:
        pass
    finally:
        connection.close()
