"""Browsers under control, in tests: one of ours, and one that has the extension."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.async_api import BrowserContext, Playwright, async_playwright, expect
from uncaged_browser.browsers.extension import EXTENSION
from uncaged_browser.browsers.installed import find_browser
from uncaged_browser.browsers.launch import LaunchOptions, launched
from uncaged_browser.control import BrowserControl
from uncaged_browser.driving.context import DrivenContext
from uncaged_browser.operations import read_operation
from uncaged_browser.problems import BrowserProblem
from uncaged_browser.relay.control import ExtensionControl
from uncaged_browser.relay.listener import EXTENSION_ID, ExtensionListener
from uncaged_browser.relay.pairing import Pairings
from uncaged_browser.relay.panel import serve_page
from uncaged_browser.session.messages import KEPT, ContextSpec
from uncaged_browser.session.proxies import proxied

VOICE = Path(__file__).with_name("voice")
"""Extension with a voice that notes each utterance, and ends none."""
KINDS = ("playwright", "extension")
PAIRING_PAGE = f"chrome-extension://{EXTENSION_ID}/pairing.html"
PANEL_PAGE = f"chrome-extension://{EXTENSION_ID}/panel.html"


@dataclass(slots=True, kw_only=True)
class ControlledBrowser:
    """context: the browser's own, past the control. listener: None without the extension."""

    runner: asyncio.Runner
    options: LaunchOptions
    directory: Path
    playwright: Playwright
    context: BrowserContext
    control: BrowserControl
    listener: ExtensionListener | None
    serve_port: int = 9
    """Of the page for the side panel; nothing listens at 9."""

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    def do(self, name: str, /, **body: Any) -> Any:
        """Perform an operation and return its answer."""
        return self.run(self.control.perform(read_operation({"do": name, **body})))

    def problem(self, name: str, /, **body: Any) -> BrowserProblem:
        """Perform an operation that fails and return why."""
        with pytest.raises(BrowserProblem) as caught:
            self.do(name, **body)
        return caught.value

    def processes(self) -> list[psutil.Process]:
        """The browser's processes."""
        return [
            process
            for process in psutil.process_iter(["cmdline"])
            if any(str(self.directory) in word for word in process.info["cmdline"] or ())
        ]

    def show(self, url: str) -> str:
        """Open an address and return its tab."""
        return str(self.do("open", url=url)["tab"])

    def spoken(self) -> list[str]:
        """The utterances that the voice received."""

        async def read() -> list[str]:
            workers = self.context.service_workers
            [voice] = [one for one in workers if one.url.endswith("/voice.js")]
            found: list[str] = await voice.evaluate("spoken")
            return found

        return list(self.run(read()))

    def close_tabs(self) -> None:
        """Close all tabs but an empty one, past the control."""

        async def close() -> None:
            empty = await self.context.new_page()
            for page in self.context.pages:
                if page is not empty:
                    await page.close()

        self.run(close())


@contextmanager
def running_browser(kind: str) -> Iterator[ControlledBrowser]:
    """A browser for the block, paired if it has the extension."""
    directory = Path(tempfile.mkdtemp(prefix="uncaged-test-browser-"))
    directory.chmod(0o711)
    try:
        with asyncio.Runner() as runner:
            browser = _running(runner, kind, directory)
            found = runner.run(browser.__aenter__())
            try:
                yield found
            finally:
                runner.run(browser.__aexit__(None, None, None))
    finally:
        shutil.rmtree(directory)


@asynccontextmanager
async def _running(
    runner: asyncio.Runner, kind: str, directory: Path
) -> AsyncIterator[ControlledBrowser]:
    address, proxy, _ = proxied(ContextSpec(name=KEPT, hosts=("*",), private=True))
    options = LaunchOptions(
        program=find_browser(None, os.environ),
        proxy=address,
        extensions=[VOICE, *([EXTENSION] if kind == "extension" else [])],
    )
    async with AsyncExitStack() as stack:
        stack.enter_context(proxy)
        playwright = await stack.enter_async_context(async_playwright())
        running = await stack.enter_async_context(launched(playwright, options, directory))
        context = running.kept
        found = ControlledBrowser(
            runner=runner,
            options=options,
            directory=directory,
            playwright=playwright,
            context=context,
            control=DrivenContext(context),
            listener=None,
        )
        if kind == "extension":
            listener = found.listener = ExtensionListener(
                Pairings(directory / "pairings.json"), panel=serve_page(lambda: found.serve_port)
            )
            await listener.start(0)
            found.control = ExtensionControl(playwright, listener)
            stack.push_async_callback(_end, found)
            assert await pair(context, listener.pairings.new_code(), listener.port) == "Connected."
        yield found


async def _end(browser: ControlledBrowser) -> None:
    """End the control and the listener that the browser has at the end of the test."""
    await browser.control.aclose()
    if browser.listener is not None:
        await browser.listener.aclose()


@contextmanager
def relaunched(browser: ControlledBrowser) -> Iterator[None]:
    """The browser with the same profile, started again for the block."""
    again = launched(browser.playwright, browser.options, browser.directory)
    running = browser.run(again.__aenter__())
    browser.context = running.kept
    try:
        yield
    finally:
        browser.run(again.__aexit__(None, None, None))


async def pair(context: BrowserContext, code: str, port: int) -> str:
    """Type a pairing code as a person does, and return what the extension's page says then."""
    page = await context.new_page()
    try:
        await page.goto(PAIRING_PAGE)
        status = page.get_by_role("status")
        await status.filter(has_text="aired").or_(status.filter(has_text="Connected")).wait_for()
        await page.get_by_label("Port").fill(str(port))
        await page.get_by_label("Pairing code").fill(code)
        await page.get_by_role("button", name="Pair").click()
        await expect(status).not_to_have_text("Pairing …", timeout=15_000)
        return await status.inner_text()
    finally:
        await page.close()
