"""HTTP server of one visit to a page: sends its documents and keeps what the page reports."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from queue import SimpleQueue

from .case import OTHER_ORIGIN, PageCase

__all__ = ["Visit", "serving_page", "visiting"]

ROUTES = "/app"
"""Paths below this one have the document of ``/``."""


class Visit:
    """acts: what the page was made to do so far."""

    def __init__(self, case: PageCase, redesign: int | None) -> None:
        self.acts: list[str] = []
        self.case = case
        self._redesign = redesign
        self._ports: list[int] = []

    @property
    def origin(self) -> str:
        """Return the address of the site."""
        return f"http://127.0.0.1:{self._ports[0]}"

    @property
    def done(self) -> bool:
        """Whether the task is done, and nothing besides."""
        return tuple(self.acts) == self.case.acts

    @property
    def wrong(self) -> bool:
        """Whether the page was made to do anything that the task does not ask for."""
        return tuple(self.acts) != self.case.acts[: len(self.acts)]

    async def wait(self, timeout_s: float = 1.5) -> None:
        """Wait until the task is done, or the time is over."""
        with suppress(asyncio.TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not self.done:
                    await asyncio.sleep(0.02)

    async def serve(self, count: int = 2) -> list[asyncio.Server]:
        """Listen on so many ports of loopback, each an origin."""
        servers = [await asyncio.start_server(self._attend, "127.0.0.1", 0) for _ in range(count)]
        self._ports = [server.sockets[0].getsockname()[1] for server in servers]
        return servers

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while line := await reader.readline():
                method, path, _ = line.decode("latin-1").split(" ", 2)
                length = 0
                while (header := await reader.readline()) not in (b"\r\n", b""):
                    name, _, value = header.partition(b":")
                    if name.lower() == b"content-length":
                        length = int(value)
                body = await reader.readexactly(length)
                writer.write(self._reply(method, path.partition("?")[0], body))
                await writer.drain()
        writer.close()

    def _reply(self, method: str, path: str, body: bytes) -> bytes:
        if method == "POST":
            self.acts.append(body.decode())
            return b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"
        found = self.case.html("/" if path.startswith(ROUTES) else path, self._redesign)
        status = "404 Not Found" if found is None else "200 OK"
        html = found or "<!doctype html><title>Nothing here</title>"
        sent = html.replace(OTHER_ORIGIN, f"http://127.0.0.1:{self._ports[1]}").encode()
        head = f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(sent)}\r\n\r\n"
        return head.encode() + sent


@asynccontextmanager
async def visiting(case: PageCase, redesign: int | None = None) -> AsyncIterator[Visit]:
    """Serve a page for the block. redesign: its number if it is redesigned."""
    visit = Visit(case, redesign)
    servers = await visit.serve()
    try:
        yield visit
    finally:
        for server in servers:
            server.close()


@contextmanager
def serving_page(case: PageCase) -> Iterator[str]:
    """Serve a page from another thread of execution for the block, and return its address."""
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()
    found: SimpleQueue[str] = SimpleQueue()

    async def serve() -> None:
        async with visiting(case) as visit:
            found.put(f"{visit.origin}/")
            await ended.wait()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:  # connections that are kept
            task.cancel()

    server = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    server.start()
    try:
        yield found.get(timeout=10)
    finally:
        loop.call_soon_threadsafe(ended.set)
        server.join()
        loop.close()
