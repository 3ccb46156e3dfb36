"""Start of browser sessions and their contexts, many threads in one browser, and the extension."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import psutil
from playwright.async_api import async_playwright
from uncaged_browser.browsers.extension import EXTENSION
from uncaged_browser.browsers.installed import find_browser
from uncaged_browser.browsers.launch import LaunchOptions, launched
from uncaged_browser.control import BrowserControl
from uncaged_browser.driving.context import DrivenContext
from uncaged_browser.operations import Operation, read_operation
from uncaged_browser.relay.control import ExtensionControl
from uncaged_browser.relay.listener import EXTENSION_ID, ExtensionListener
from uncaged_browser.relay.pairing import Pairings
from uncaged_browser.session.address import DEFAULT_SESSION
from uncaged_browser.session.client import SessionClient
from uncaged_browser.session.messages import ContextSpec
from uncaged_engine.journal import lock

from . import flows
from .bench import Bench, Figure
from .laboratory import Laboratory
from .pages.site import serving_page
from .table import Row, ratios
from .web_bench import LONG_PAGE, bare_browser, flow_of, session_process, web_laboratory

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

__all__ = ["FIGURES"]

FLOW = "long"
THREADS = 20
POLL_S = 0.1
BARE = """\
import asyncio, os, sys, tempfile
from pathlib import Path
from playwright.async_api import async_playwright
from uncaged_browser.browsers.installed import find_browser
from uncaged_browser.browsers.launch import LaunchOptions, launched

async def main():
    async with async_playwright() as playwright:
        options = LaunchOptions(program=find_browser(None, os.environ))
        async with launched(playwright, options, Path(sys.argv[1])) as running:
            context = await running.browser.new_context()
            page = await context.new_page()
            await page.goto(sys.argv[2])
            print("ready", flush=True)
            sys.stdin.read()

asyncio.run(main())
"""
"""A script of Playwright that starts the same browser and opens the same page."""


def start(bench: Bench) -> Sequence[Row]:
    """Start a session with its first thread's page, then a second thread's, and a bare script."""
    firsts, seconds, bares = [], [], []
    for _ in bench.rounds(5):
        with bench.directory() as directory, serving_page(LONG_PAGE) as url:
            directory.chmod(0o711)
            bares.append(_bare_start_s(directory, url))
        with web_laboratory(bench) as laboratory, serving_page(LONG_PAGE) as url:
            laboratory.add("waits", flows.source("waits", flows.WAITS))
            first, second = laboratory.start("waits"), laboratory.start("waits")
            firsts.append(_thread_start_s(laboratory, first, url))
            seconds.append(_thread_start_s(laboratory, second, url))
    return (
        Row(
            figure="web-start",
            title="browser session with the page of its first thread",
            values=ratios(zip(firsts, bares, strict=True)),
            unit="×",
            baseline=f"{median(bares):.2f} s a script of Playwright with the same page",
            reach=1.2,
            missed="the session is a process of its own, with a proxy for itself and one for the thread",
        ),
        Row(
            figure="web-start",
            title="page of a second thread against the first",
            values=ratios(zip(seconds, firsts, strict=True)),
            unit="×",
            baseline=f"{median(firsts):.2f} s the first, with the session",
            reach=0.15,
            missed="a page has a renderer process of its own, which takes a script of Playwright as long",
        ),
    )


def _bare_start_s(directory: Path, url: str) -> float:
    begin = time.perf_counter()
    command = [sys.executable, "-c", BARE, str(directory), url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        if process.stdout is None or process.stdout.readline() != b"ready\n":
            raise RuntimeError("the script of Playwright did not start its browser")
        spent_s = time.perf_counter() - begin
        process.communicate()
    return spent_s


def _thread_start_s(laboratory: Laboratory, name: str, url: str) -> float:
    """Open the context of a live thread with a page, as its first effect does."""
    begin = time.perf_counter()
    with SessionClient.open(laboratory.engine.store, DEFAULT_SESSION) as client:
        client.open_context(ContextSpec(name=name, hosts=("*",), private=True))
        client.perform(name, {"do": "open", "url": url}, 30.0)
    return time.perf_counter() - begin


def crowd(bench: Bench) -> Sequence[Row]:
    """Run web threads at once, and look at the processes of their session meanwhile."""
    browsers, resident = 0, 0
    with web_laboratory(bench) as laboratory, serving_page(LONG_PAGE) as url:
        with bare_browser() as bare:
            laboratory.add(FLOW, flow_of(bare.record(url), FLOW))
        begin = time.monotonic()
        threads = [laboratory.start(FLOW) for _ in range(THREADS)]
        while any(lock.is_live(laboratory.path(one)) for one in threads):
            family = _family_of(laboratory)
            browsers = max(browsers, sum(_is_browser(command) for _, command in family))
            resident = max(resident, sum(size for size, _ in family))
            time.sleep(POLL_S)
        spent_s = time.monotonic() - begin
        done = sum(laboratory.engine.thread(one).summary.status == "completed" for one in threads)
    return (
        Row(
            figure="web-crowd",
            title=f"browser processes of {THREADS} web threads at once",
            values=(browsers,),
            unit="",
            baseline=f"{done} of {THREADS} threads completed in {spent_s:.0f} s",
            reach=1,
            exact=True,
            missed="a second browser was started, or none",
        ),
        Row(
            figure="web-crowd",
            title="memory of session and browser then",
            values=(resident / 1e6,),
            unit="MB",
            baseline="resident and not shared (USS), all processes",
        ),
    )


def _family_of(laboratory: Laboratory) -> list[tuple[int, list[str]]]:
    """Return memory of its own and command of each process of the session."""
    try:
        session = session_process(laboratory)
    except RuntimeError:
        return []
    found = []
    for process in (session, *session.children(recursive=True)):
        try:
            found.append((process.memory_full_info().uss, process.cmdline()))
        except psutil.NoSuchProcess:
            continue
    return found


def _is_browser(command: Sequence[str]) -> bool:
    """Whether a process is a browser's main one: its helpers have a type."""
    return any("--user-data-dir" in word for word in command) and not any(
        word.startswith("--type=") for word in command
    )


def extension(bench: Bench) -> Sequence[Row]:
    """Perform the same operations in one browser by Playwright and by the extension."""
    with bench.directory() as directory, serving_page(LONG_PAGE) as url, bare_browser() as bare:
        directory.chmod(0o711)
        pairs = bare.run(_both(directory, url, bench))
    return tuple(
        Row(
            figure="web-extension",
            title=f"`{name}` through the extension",
            values=ratios(found),
            unit="×",
            baseline=f"{median(plain for _, plain in found) * 1000:.1f} ms Playwright",
            reach=3.0,
            missed="each command of the driver takes a way through the extension's service worker",
        )
        for name, found in pairs.items()
    )


OPERATIONS: dict[str, dict[str, object]] = {
    "click": {"do": "click", "target": {"role": "button", "name": "Cedar"}},
    "fill": {"do": "fill", "target": {"role": "textbox", "name": "Amber"}, "text": "text"},
    "select": {
        "do": "select",
        "target": {"role": "combobox", "name": "Delta"},
        "options": ["Second"],
    },
    "text": {"do": "text", "target": {"role": "heading"}},
}


async def _both(directory: Path, url: str, bench: Bench) -> dict[str, list[tuple[float, float]]]:
    options = LaunchOptions(program=find_browser(None, os.environ), extensions=[EXTENSION])
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in OPERATIONS}
    async with (
        async_playwright() as playwright,
        launched(playwright, options, directory) as running,
    ):
        listener = ExtensionListener(Pairings(directory / "pairings.json"))
        await listener.start(0)
        through = ExtensionControl(playwright, listener)
        plain = DrivenContext(await running.browser.new_context())
        try:
            await _pair(running.kept, listener)
            for control in (through, plain):
                await control.perform(read_operation({"do": "open", "url": url}))
            for name, body in OPERATIONS.items():
                operation = read_operation(body)
                for _ in range(len(bench.rounds(9)) + 1):
                    found[name].append(
                        (await _spent_s(through, operation), await _spent_s(plain, operation))
                    )
                del found[name][0]  # the first one also loads what the others use
        finally:
            await through.aclose()
            await plain.aclose()
            await listener.aclose()
    return found


async def _spent_s(control: BrowserControl, operation: Operation) -> float:
    begin = time.perf_counter()
    for _ in range(5):
        await control.perform(operation)
    return (time.perf_counter() - begin) / 5


async def _pair(context: BrowserContext, listener: ExtensionListener) -> None:
    """Type the pairing code as a person does."""
    page = await context.new_page()
    await page.goto(f"chrome-extension://{EXTENSION_ID}/pairing.html")
    status = page.get_by_role("status")
    await status.filter(has_text="aired").or_(status.filter(has_text="Connected")).wait_for()
    await page.get_by_label("Port").fill(str(listener.port))
    await page.get_by_label("Pairing code").fill(listener.pairings.new_code())
    await page.get_by_role("button", name="Pair").click()
    await status.filter(has_text="Connected.").wait_for()
    await page.close()


FIGURES = (
    Figure(name="web-start", measure=start),
    Figure(name="web-crowd", measure=crowd),
    Figure(name="web-extension", measure=extension),
)
