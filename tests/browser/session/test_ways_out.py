"""Ways out of a browser beside its proxy: everything that a page can open to another host."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import pytest
from playwright.async_api import Browser, async_playwright
from testbed.browser_harness import BrowserHarness
from testbed.webserver import Reply, Seen, WebServer, serving, text
from uncaged_browser.browsers.installed import find_browser
from uncaged_browser.session.messages import ContextSpec
from uncaged_browser.session.proxies import proxied

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

PAGE = """<!doctype html><title>busy</title>
<link rel=preconnect href="http://OTHER/"><link rel=prefetch href="http://OTHER/prefetch">
<script type=module>
const ended = (target, ...names) => new Promise(go => names.forEach(name => target.addEventListener(name, go)));
const image = new Image(), socket = new WebSocket("ws://OTHER/socket"), {serviceWorker} = navigator;
const peer = new RTCPeerConnection({iceServers: [{urls: "stun:AT_UDP"},
  {urls: "turn:AT_TCP?transport=tcp", username: "a", credential: "b"}]});
// a server that does not answer delays the end of the search by half a minute
const gathered = new Promise(go => { peer.onicecandidate = found => found.candidate || go(); setTimeout(go, 5000); });
const attempts = [ended(image, "load", "error"), ended(socket, "open", "error", "close"),
  ended(serviceWorker, "message"), gathered,
  fetch("http://OTHER/fetch", {mode: "no-cors"}).catch(() => 0), new WebTransport("https://AT_UDP/").ready.catch(() => 0)];
image.src = "http://OTHER/image";
navigator.sendBeacon("http://OTHER/beacon", "text");
peer.createDataChannel("data");
await peer.setLocalDescription(await peer.createOffer());
serviceWorker.startMessages();
await serviceWorker.register("/worker.js");
(await serviceWorker.ready).active.postMessage("ask");
for (const [number, attempt] of attempts.entries()) { document.title = `attempt ${number}`; await attempt; }
document.title = "done";
</script>"""
WORKER = """
self.addEventListener("message", async event => {
  try { await fetch("http://OTHER/worker", {mode: "no-cors"}); } catch {}
  event.source.postMessage("asked");
});"""
REQUESTS = {"/socket", "/image", "/beacon", "/fetch", "/worker", "/prefetch"}


@dataclass
class Outside:
    """A host that no page may reach. requests: what its web server got, by path. datagrams,
    connections: counts of its other ports, at `udp` and `tcp`.
    """

    host: str
    udp: str
    tcp: str
    requests: set[str] = field(default_factory=set)
    datagrams: int = 0
    connections: int = 0

    def hear(
        self, datagrams: socket.socket, listener: socket.socket, ending: socket.socket
    ) -> None:
        """Count until *ending* is closed."""
        while True:
            ready, _, _ = select.select([datagrams, listener, ending], [], [])
            if ending in ready:
                return
            if datagrams in ready:
                datagrams.recv(2048)
                self.datagrams += 1
            if listener in ready:
                listener.accept()[0].close()
                self.connections += 1


@contextmanager
def two_hosts() -> Iterator[tuple[WebServer, Outside]]:
    """A site with the page, and the host that it tries to reach."""
    seen: list[str] = []

    def outside(request: Seen) -> Reply:
        seen.append(request.path)
        return text("")

    def inside(request: Seen) -> Reply:
        page = (WORKER if request.path == "/worker.js" else PAGE).replace("OTHER", other.host)
        kind = "text/javascript" if request.path == "/worker.js" else "text/html"
        return text(page.replace("AT_UDP", other.udp).replace("AT_TCP", other.tcp), kind)

    def place(found: socket.socket) -> str:
        return f"127.0.0.1:{found.getsockname()[1]}"

    ours, theirs = socket.socketpair()
    with (
        ours,
        theirs,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
        socket.create_server(("127.0.0.1", 0)) as listener,
        serving(outside) as away,
        serving(inside) as site,
    ):
        datagrams.bind(("127.0.0.1", 0))
        other = Outside(host=away.host, udp=place(datagrams), tcp=place(listener))
        hearing = threading.Thread(target=other.hear, args=(datagrams, listener, theirs))
        hearing.start()
        try:
            yield site, other
        finally:
            ours.close()
            hearing.join()
        other.requests |= set(seen)


async def visit(browser: Browser, site: WebServer, proxy: str | None) -> None:
    """Open the page and wait until all its attempts have ended."""
    settings = {"server": proxy} if proxy else None
    context = await browser.new_context(proxy=settings)  # type: ignore[arg-type]
    page = await context.new_page()
    await page.goto(f"{site.url}/")
    await page.wait_for_function("document.title === 'done'", timeout=120_000)
    await context.close()


@asynccontextmanager
async def unguarded() -> AsyncIterator[Browser]:
    """A browser without our options."""
    async with async_playwright() as playwright:
        program = find_browser(None, os.environ)
        browser = await playwright.chromium.launch(executable_path=program)
        yield browser
        await browser.close()


def test_a_page_reaches_no_host_beside_the_proxy(harness: BrowserHarness) -> None:
    """Requests of pages and service workers, WebSockets, beacons, prefetches, WebRTC and QUIC reach
    another host from a browser without our options, and none of them from a session's.
    """

    async def open_page(site: WebServer) -> None:
        async with unguarded() as browser:
            await visit(browser, site, None)

    with two_hosts() as (site, other):
        asyncio.run(open_page(site))
    assert other.requests == REQUESTS, "the control reaches it"
    assert other.datagrams and other.connections, "the control reaches it"
    with two_hosts() as (site, other):
        spec = ContextSpec(name="thread", hosts=(site.host,), private=True)
        address, proxy, _ = proxied(spec)
        with proxy:
            harness.run(visit(harness.browser.browser, site, address))
    assert (other.requests, other.datagrams, other.connections) == (set(), 0, 0)
