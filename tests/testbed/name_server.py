"""A browser in a network of its own, whose only resolver notes the names that it is asked for.

`unshare --net --mount python -m testbed.name_server guarded | plain` opens a page that names other
hosts in many ways, and prints the names as JSON.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.async_api import BrowserContext, async_playwright
from testbed.webserver import serving, text
from uncaged_browser.browsers.installed import find_browser
from uncaged_browser.browsers.launch import LaunchOptions, launched
from uncaged_browser.session.messages import ContextSpec
from uncaged_browser.session.proxies import proxied

WAYS = ("dns-prefetch", "preconnect", "prefetch", "stylesheet", "image", "frame", "fetch", "socket")
LAST = "last.elsewhere.example"
PORT = 53
SET_FLAGS, UP = 0x8914, 1
"""Request that sets the flags of a network device (SIOCSIFFLAGS), and the flag of one in use."""
WAIT_S = 60.0
PAGE = """<!doctype html><title>busy</title>
<link rel=dns-prefetch href="http://dns-prefetch.elsewhere.example">
<link rel=preconnect href="http://preconnect.elsewhere.example">
<link rel=prefetch href="http://prefetch.elsewhere.example/">
<link rel=stylesheet href="http://stylesheet.elsewhere.example/">
<img src="http://image.elsewhere.example/"><iframe src="http://frame.elsewhere.example/"></iframe>
<script type=module>
await fetch("http://fetch.elsewhere.example/", {mode: "no-cors"}).catch(() => 0);
await new Promise(go => { new WebSocket("ws://socket.elsewhere.example/").onerror = go; });
if (document.readyState !== "complete") await new Promise(go => { window.onload = go; });
document.title = "done";
</script>"""


class NameServer:
    """Name server that knows no name. asked: the names that it was asked for."""

    def __init__(self, opened: socket.socket) -> None:
        self.asked: set[str] = set()
        self._opened = opened

    def serve(self) -> None:
        """Answer until the socket is shut down."""
        while True:
            query, client = self._opened.recvfrom(4096)
            if not query:
                return
            self.asked.add(name_in(query))
            no_such_name = query[:2] + b"\x81\x83" + query[4:6] + bytes(6) + question_in(query)
            self._opened.sendto(no_such_name, client)

    def wait_for(self, names: set[str]) -> None:
        """Wait until it was asked for all of these names."""
        end_s = time.monotonic() + WAIT_S
        while not names <= self.asked and time.monotonic() < end_s:
            time.sleep(0.02)


def name_in(query: bytes) -> str:
    """Return the name that a query asks for."""
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii"))
        at += 1 + query[at]
    return ".".join(labels)


def question_in(query: bytes) -> bytes:
    return query[12 : query.index(b"\0", 12) + 5]


@contextmanager
def secluded() -> Iterator[NameServer]:
    """Bring loopback up, and make the name server the resolver of this mount namespace."""
    with (
        tempfile.NamedTemporaryFile("w", suffix=".conf") as settings,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened,
    ):
        fcntl.ioctl(opened, SET_FLAGS, struct.pack("16sH14x", b"lo", UP))
        settings.write("nameserver 127.0.0.1\n")
        settings.flush()
        Path(settings.name).chmod(0o644)
        subprocess.run(["mount", "--bind", settings.name, "/etc/resolv.conf"], check=True)
        opened.bind(("127.0.0.1", PORT))
        server = NameServer(opened)
        serving_names = threading.Thread(target=server.serve)
        serving_names.start()
        try:
            yield server
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ending:
                ending.sendto(b"", ("127.0.0.1", PORT))
            serving_names.join()
            subprocess.run(["umount", "/etc/resolv.conf"], check=True)


async def visit(context: BrowserContext, url: str) -> None:
    """Open the page and wait until its attempts have ended."""
    page = await context.new_page()
    await page.goto(url, wait_until="commit")
    await page.wait_for_function("document.title === 'done'", timeout=WAIT_S * 1000)


async def plain(url: str, directory: Path, names: NameServer) -> None:
    """Visit the page with a browser that has none of our options, until all names were asked."""
    async with async_playwright() as playwright:
        context = await playwright.chromium.launch_persistent_context(
            directory, executable_path=find_browser(None, os.environ)
        )
        await visit(context, url)
        await asyncio.to_thread(names.wait_for, {f"{way}.elsewhere.example" for way in WAYS})
        await context.close()


async def guarded(url: str, host: str, directory: Path) -> None:
    """Visit the page in a session's own tabs, and in the context of a thread; both may reach this
    host only.
    """
    address, proxy, _ = proxied(ContextSpec(name="thread", hosts=(host,), private=True))
    options = LaunchOptions(program=find_browser(None, os.environ), proxy=address)
    with proxy:
        async with (
            async_playwright() as playwright,
            launched(playwright, options, directory) as running,
        ):
            await visit(running.kept, url)
            await visit(await running.browser.new_context(proxy={"server": address}), url)


def main() -> None:
    """Print the names that were asked for."""
    with (
        tempfile.TemporaryDirectory(prefix="uncaged-browser-") as made,
        secluded() as names,
        serving(lambda _: text(PAGE, "text/html")) as site,
    ):
        directory = Path(made)
        directory.chmod(0o711)
        if sys.argv[1] == "plain":
            asyncio.run(plain(f"{site.url}/", directory, names))
        else:
            asyncio.run(guarded(f"{site.url}/", site.host, directory))
        try:
            socket.getaddrinfo(LAST, None)
        except socket.gaierror:
            names.wait_for({LAST})
        asked = set(names.asked)
    sys.stdout.write(json.dumps(sorted(asked)))


if __name__ == "__main__":
    main()
