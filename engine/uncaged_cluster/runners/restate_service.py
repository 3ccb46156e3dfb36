"""Service at which Restate calls a worker. Its handler follows a turn that is driven in another
thread of execution, and records each finished step as a step of the invocation.

Restate calls again after a lost connection: then the turn is driven still, and the new attempt
follows it from its first step on, of which Restate has the recorded ones.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import closing
from datetime import timedelta
from ipaddress import ip_address
from typing import Any

import restate
from hypercorn.asyncio import serve
from hypercorn.config import Config
from uncaged_bundles.errors import DamagedError, EnvironmentLacks, UsageError
from uncaged_engine.services.shared import Recorder, ThreadExchange

from ..turns import TakenTurn
from .restate_server import HANDLER

DEFAULT_LISTEN = "127.0.0.1:0"
KEPT_ENDED = 100
"""Turns that are kept after their end, for an attempt whose result was lost."""
MOST_STREAMS = 10_000
STOP_S = 1.0
_LONG = timedelta(days=365)
_RETRIES = restate.InvocationRetryPolicy(
    initial_interval=timedelta(milliseconds=100),
    exponentiation_factor=2.0,
    max_interval=timedelta(seconds=5),
    max_attempts=1_000_000_000,
)


DriveTaken = Callable[[TakenTurn, Recorder], str]
"""Drives a turn to its end, and returns the word with which the thread was left."""


class TurnRun:
    """A turn that is driven, as attempts of its invocation follow it. All but `record` and `end` is
    called by the thread of execution of the loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._exchanges: list[tuple[ThreadExchange, Future[None]]] = []
        self._changed = asyncio.Event()
        self._word: str | None = None
        self.waits_since_s: float | None = time.monotonic()
        """Since when Restate has not recorded what it should; None if nothing waits for it."""

    def record(self, exchange: ThreadExchange) -> None:
        """Record a finished step, and return once Restate has it (`Recorder`).

        Raises:
            DamagedError: Restate knows another one in its place.
        """
        recorded: Future[None] = Future()
        self._loop.call_soon_threadsafe(self._add, exchange, recorded)
        recorded.result()

    def end(self, word: str) -> None:
        """Note how the thread was left."""
        self._loop.call_soon_threadsafe(self._end, word)

    async def follow(self, context: restate.Context) -> str:
        """Record each step, and return the word at the end."""
        followed = 0
        while True:
            while followed < len(self._exchanges):
                await self._record(context, *self._exchanges[followed])
                followed += 1
            self.waits_since_s = None
            if self._word is not None:
                return self._word
            await self._changed.wait()

    async def _record(
        self, context: restate.Context, exchange: ThreadExchange, recorded: Future[None]
    ) -> None:
        made = {"seq": exchange.seq, "kind": exchange.kind, "digest": exchange.digest}
        known: object = await context.run_typed(exchange.kind, lambda: made)
        if recorded.done():
            return
        if known == made:
            recorded.set_result(None)
        else:
            recorded.set_exception(
                DamagedError(f"Restate recorded {known} where the journal has {made}")
            )

    def _add(self, exchange: ThreadExchange, recorded: Future[None]) -> None:
        self._exchanges.append((exchange, recorded))
        self._wake()

    def _end(self, word: str) -> None:
        self._word = word
        self._wake()

    def _wake(self) -> None:
        self.waits_since_s = time.monotonic()
        self._changed.set()
        self._changed = asyncio.Event()


class TurnService:
    """The service of one worker, with a loop in a thread of execution of its own."""

    def __init__(self, name: str, drive: DriveTaken) -> None:
        self._drive = drive
        self._loop: asyncio.AbstractEventLoop | None = None
        self._serving: threading.Thread | None = None
        self._stop = asyncio.Event()
        self._lock = threading.Lock()
        self._taken: dict[str, tuple[TakenTurn, float]] = {}
        self._runs: dict[str, TurnRun] = {}
        self._ended: OrderedDict[str, TurnRun] = OrderedDict()
        service = restate.Service(
            name,
            inactivity_timeout=_LONG,
            abort_timeout=_LONG,
            invocation_retry_policy=_RETRIES,
        )
        service.handler(HANDLER)(self._handle)
        self._app = restate.app(services=[service])

    def serve(self, listen: str) -> str:
        """Begin to serve; return the URI for Restate.

        Args:
            listen: ``HOST:PORT``; the port 0 for any.
        Raises:
            UsageError: it is no such address, or one of all interfaces. EnvironmentLacks: it cannot
                be listened at.
        """
        host, port = _host_and_port(listen)
        try:
            bound = socket.create_server(
                (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
            )
        except OSError as exc:
            raise EnvironmentLacks(
                f"cannot listen at {listen}: {exc}; choose another --listen"
            ) from exc
        port = bound.getsockname()[1]
        config = Config()
        config.bind = [f"fd://{bound.detach()}"]
        config.accesslog = config.errorlog = None
        config.h2_max_concurrent_streams = MOST_STREAMS
        config.keep_alive_max_requests = 1_000_000_000
        logging.getLogger("restate").setLevel(logging.CRITICAL)  # of each lost connection
        config.graceful_timeout = STOP_S
        self._loop = asyncio.new_event_loop()
        self._serving = threading.Thread(
            target=self._serve, args=(self._loop, config), name="restate", daemon=True
        )
        self._serving.start()
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def close(self) -> None:
        """Serve no more. Turns that are driven go on."""
        if self._loop is not None and self._serving is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._serving.join(2 * STOP_S)

    def expect(self, turn: TakenTurn) -> bool:
        """Let a call drive a turn; return False for one that has ended."""
        with self._lock:
            if turn.key in self._ended:
                return False
            self._taken[turn.key] = (turn, time.monotonic())
            return True

    def unheard(self, least_s: float) -> list[TakenTurn]:
        """Return the turns of which Restate has not called, or not recorded a step, for so long."""
        before_s = time.monotonic() - least_s
        with self._lock:
            return [
                turn
                for key, (turn, expected_s) in self._taken.items()
                if expected_s < before_s and self._waits(key, before_s)
            ]

    def _serve(self, loop: asyncio.AbstractEventLoop, config: Config) -> None:
        with closing(loop):
            serving = serve(self._app, config, shutdown_trigger=self._stop_asked)
            loop.run_until_complete(serving)
            loop.run_until_complete(loop.shutdown_asyncgens())

    async def _stop_asked(self) -> None:
        await self._stop.wait()

    def _waits(self, key: str, before_s: float) -> bool:
        run = self._runs.get(key)
        since_s = None if run is None else run.waits_since_s
        return run is None or (since_s is not None and since_s < before_s)

    async def _handle(self, context: restate.Context, body: Any) -> str:
        """Follow a turn; drive it at the first call. Anyone who reaches the ingress can call it."""
        key = str(body.get("key")) if isinstance(body, dict) else ""
        with self._lock:
            run = self._runs.get(key) or self._ended.get(key)
            if run is None and key in self._taken:
                run = self._runs[key] = TurnRun(asyncio.get_running_loop())
                begin = threading.Thread(
                    target=self._run, args=(self._taken[key][0], run), name="turn", daemon=True
                )
                begin.start()
        if run is None:
            raise restate.TerminalError("this worker has not taken the turn")
        return await run.follow(context)

    def _run(self, turn: TakenTurn, run: TurnRun) -> None:
        word = "failed here"
        try:
            word = self._drive(turn, run.record)
        finally:
            with self._lock:
                del self._runs[turn.key], self._taken[turn.key]
                self._ended[turn.key] = run
                while len(self._ended) > KEPT_ENDED:
                    self._ended.popitem(last=False)
            run.end(word)


def body_of(turn: TakenTurn) -> Mapping[str, object]:
    """Return what a call of the handler carries."""
    return {"key": turn.key, "bundle": turn.bundle, "thread": turn.thread}


def _host_and_port(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    if not port.isdigit() or int(port) > 65535 or not host:
        raise UsageError(f"--listen {listen!r} is no HOST:PORT")
    if host == "*" or _is_wildcard(host):
        raise UsageError(
            f"--listen {listen!r}: name the address at which Restate reaches this worker, not all"
        )
    return host, int(port)


def _is_wildcard(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:  # a name
        return False
