"""A running browser with its event loop, and fresh contexts in it."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from uncaged_browser.browsers.installed import find_browser
from uncaged_browser.browsers.launch import LaunchedBrowser, LaunchOptions, launched
from uncaged_browser.driving.context import DrivenContext

if TYPE_CHECKING:
    from playwright.async_api import Playwright

Result = TypeVar("Result")


class BrowserHarness:
    """A browser that a test drives. directory: of its profile."""

    def __init__(
        self,
        runner: asyncio.Runner,
        playwright: Playwright,
        browser: LaunchedBrowser,
        directory: Path,
    ) -> None:
        self.playwright = playwright
        self.browser = browser
        self.directory = directory
        self._runner = runner

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of a coroutine that uses the browser."""
        return self._runner.run(work)

    @asynccontextmanager
    async def context(self) -> AsyncIterator[DrivenContext]:
        """Open a context of its own for the block."""
        context = DrivenContext(await self.browser.browser.new_context())
        try:
            yield context
        finally:
            await context.aclose()


@contextmanager
def running_browser() -> Iterator[BrowserHarness]:
    """Run a browser for the block."""
    from playwright.async_api import async_playwright

    directory = Path(tempfile.mkdtemp(prefix="uncaged-browser-"))
    directory.chmod(0o711)
    program = find_browser(None, os.environ)
    try:
        with asyncio.Runner() as runner:
            manager = async_playwright()
            playwright = runner.run(manager.__aenter__())
            running = launched(playwright, LaunchOptions(program=program), directory)
            try:
                browser = runner.run(running.__aenter__())
                yield BrowserHarness(runner, playwright, browser, directory)
                runner.run(running.__aexit__(None, None, None))
            finally:
                runner.run(manager.__aexit__(None, None, None))
    finally:
        shutil.rmtree(directory)
