"""Server of the routes on a port, of loopback if nothing else is said, until a signal ends it.

Rule 1: a request reaches a route only through the guard.
Rule 2: at the end no connection is accepted any more, each route finishes its requests within the
drain time, and only then the connections are closed; a second signal skips the wait.
Rule 3: beside that the index of threads is completed, and then due schedules and sleeping threads
are started, as `due` does.
"""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from socket import socket

import uvicorn
from uncaged_bundles.errors import UncagedError, UsageError
from uncaged_engine.api import Engine
from uncaged_engine.services.listening import (
    LOCAL_HOSTS,
    LOOPBACK,
    App,
    Guard,
    guarded,
    in_address,
    listen,
    token_of,
)
from uncaged_engine.services.thread_pages import complete_index

from .certificate import check_certificate
from .connections import HttpConnection, WebSocketConnection
from .due_schedules import start_due
from .health import is_health_path
from .lifespan import RouteLifespan
from .page.route import is_page_path
from .routes import dispatching, load_routes

MAX_MESSAGE_BYTES = 4 << 20
"""The longest message of a WebSocket."""
ORIGIN = re.compile(r"https://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTimes:
    """Seconds that the server waits: for a route's start, for the head of a request, for the
    requests of routes at the end, for connections to close after that, and between two looks for
    due schedules.
    """

    start_s: int = 30
    request_s: int = 10
    drain_s: int = 30
    close_s: int = 2
    due_s: float = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A server that is ready. port: where it listens, which is not that of the address behind a
    proxy. problems: a message for each route that is not served.
    """

    address: str
    port: int
    routes: tuple[str, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a server is reached. port: 0 takes a free one.

    certificate: the files of a TLS certificate and its key. proxy: the origin of a reverse proxy in
    front, such as ``https://flows.example.org``, which speaks TLS.
    """

    port: int
    host: str = LOOPBACK
    certificate: tuple[Path, Path] | None = None
    proxy: str | None = None

    def check(self) -> None:
        """Refuse a place at which the token would cross a network in the clear.

        Raises:
            UsageError: with the next step.
        """
        if self.certificate and self.proxy:
            raise UsageError("--tls and --behind-proxy exclude each other")
        if self.proxy is not None and not ORIGIN.fullmatch(self.proxy):
            raise UsageError(
                "--behind-proxy takes the proxy's origin, such as https://flows.example.org"
            )
        is_here = self.host in LOCAL_HOSTS
        if self.proxy is not None and not is_here:
            raise UsageError(
                f"the proxy would reach {self.host} without TLS; leave out --host and run the proxy on this machine"
            )
        if self.certificate and self.host in ("0.0.0.0", "::"):  # noqa: S104 - it is refused
            raise UsageError("--tls needs as --host the name or address in the certificate")
        if not (self.certificate or is_here):
            raise UsageError(
                f"{self.host} is not served without TLS, only {', '.join(LOCAL_HOSTS)}; "
                "add --tls CERT KEY, or serve 127.0.0.1 --behind-proxy ORIGIN"
            )

    def origin(self, port: int) -> str | None:
        """Return the only origin that is served; None: those of loopback, by HTTP."""
        if self.proxy is not None:
            return self.proxy
        if self.certificate is None:
            return None
        return f"https://{in_address(self.host)}" + ("" if port == 443 else f":{port}")

    def address(self, port: int) -> str:
        """Return the address of the page."""
        host = LOOPBACK if self.host == "localhost" else in_address(self.host)
        return f"{self.origin(port) or f'http://{host}:{port}'}/"


def serve(
    engine: Engine,
    place: Place,
    *,
    ready: Callable[[Serving], None],
    report: Callable[[str], None],
    times: ServerTimes | None = None,
    read_only: bool = False,
) -> None:
    """Serve the registered routes until SIGINT or SIGTERM.

    Args:
        ready: is called once requests are served. report: is called with a message about each route
            that did not end in time, and about each schedule that could not be started. read_only:
            refuse what may change something, and start no schedule.
    Raises:
        UsageError: the port is taken, the place is not safe, or its certificate cannot be used.
    """
    place.check()
    if place.certificate:
        check_certificate(*place.certificate)
    with listen(place.port, place.host) as listener:
        asyncio.run(
            _serve(
                engine,
                listener,
                place=place,
                ready=ready,
                report=report,
                times=times or ServerTimes(),
                read_only=read_only,
            )
        )


async def _serve(
    engine: Engine,
    listener: socket,
    *,
    place: Place,
    ready: Callable[[Serving], None],
    report: Callable[[str], None],
    times: ServerTimes,
    read_only: bool,
) -> None:
    port = listener.getsockname()[1]
    guard = Guard(token=token_of(engine.store), port=port, origin=place.origin(port))
    routes, problems = load_routes(engine)
    lifespans = [RouteLifespan(route) for route in routes]
    failures = await asyncio.gather(*(lifespan.start(times.start_s) for lifespan in lifespans))
    started = [
        lifespan for lifespan, failure in zip(lifespans, failures, strict=True) if not failure
    ]
    serving = Serving(
        address=place.address(port),
        port=port,
        routes=tuple(lifespan.route.name for lifespan in started),
        problems=(*problems, *filter(None, failures)),
    )

    async def drain() -> None:
        for problem in await asyncio.gather(*(one.end(times.drain_s) for one in started)):
            if problem:
                report(problem)

    routing = dispatching([lifespan.route for lifespan in started], read_only=read_only)
    app = guarded(routing, guard, is_public=is_public)
    server = DrainingServer(_config(app, times, place), lambda: ready(serving), drain)

    async def look_after_store() -> None:
        if not engine.is_shared:  # first: a look for due threads needs it, and would read all
            await _complete_index(engine)
        if not read_only:
            await start_due(engine, times.due_s, report)

    looking = asyncio.create_task(look_after_store())
    try:
        await server.serve([listener])
    finally:
        looking.cancel()
        for lifespan in started:
            await lifespan.cancel()


async def _complete_index(engine: Engine) -> None:
    """Read the journals that the index lacks, half of the time at most: requests go first."""
    parts = complete_index(engine.store)
    loop = asyncio.get_running_loop()
    with suppress(UncagedError, OSError):  # the store is away; requests say so
        while True:
            begin_s = loop.time()
            if await asyncio.to_thread(next, parts, None) is None:
                return
            await asyncio.sleep(loop.time() - begin_s)


def is_public(path: str) -> bool:
    """Return whether a path can be read without the token."""
    return is_page_path(path) or is_health_path(path)


def _config(app: App, times: ServerTimes, place: Place) -> uvicorn.Config:
    certificate, key = place.certificate or (None, None)
    return uvicorn.Config(
        app,
        http=HttpConnection,
        ws=WebSocketConnection,
        ws_per_message_deflate=False,
        ws_max_size=MAX_MESSAGE_BYTES,
        timeout_keep_alive=times.request_s,
        timeout_graceful_shutdown=times.close_s,
        lifespan="off",
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_level="warning",
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )


class DrainingServer(uvicorn.Server):
    """Server that closes its connections after `drain` is done, or at a second signal."""

    def __init__(
        self,
        config: uvicorn.Config,
        ready: Callable[[], None],
        drain: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(config)
        self._ready, self._drain = ready, drain
        self._hurry = asyncio.Event()

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Begin to serve, and report that."""
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Stop listening, drain, and close the connections."""
        for server in self.servers:
            server.close()
        drained = asyncio.ensure_future(self._drain())
        hurried = asyncio.create_task(self._hurry.wait())
        await asyncio.wait({drained, hurried}, return_when=asyncio.FIRST_COMPLETED)
        for task in (drained, hurried):
            task.cancel()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End the server at a signal while the block runs; the process does not die of it."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._end)
        try:
            yield
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    def _end(self) -> None:
        if self.should_exit:
            self._hurry.set()
            self.force_exit = True
        self.should_exit = True
