"""Bare Playwright and the engine's web flows side by side, on one local page."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import psutil
from uncaged_browser.browsers.installed import find_browser
from uncaged_browser.browsers.launch import LaunchOptions, launched
from uncaged_browser.recording.recording import Recording
from uncaged_browser.session.address import DEFAULT_SESSION, profile_path
from uncaged_browser.session.client import SessionClient
from uncaged_bundles.builders.recipes.recipe import parse_recipe
from uncaged_bundles.builders.recipes.recipe_flow import build_flow
from uncaged_engine.effect_kinds import KNOWN

from .bench import Bench
from .laboratory import Laboratory
from .pages.draw import Draw
from .pages.long_page import WORDS, kind_of, long_case
from .pages.trial import record_case

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

__all__ = ["BareBrowser", "bare_browser", "flow_of", "session_process", "web_laboratory"]

Result = TypeVar("Result")
LONG_PAGE = long_case(Draw(0, 0, 0, Path("/nowhere")))


class BareBrowser:
    """Playwright in this process, without the engine."""

    def __init__(self, runner: asyncio.Runner, browser: Browser) -> None:
        self.browser = browser
        self._runner = runner

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of a coroutine that uses the browser."""
        return self._runner.run(work)

    def record(self, url: str) -> Recording:
        """Record the task of the long page, which is served at *url*."""
        return self.run(record_case(self.browser, LONG_PAGE, url, "long"))

    def step_us(self, url: str, lines: Path | None = None) -> tuple[float, float]:
        """Do the task of the long page by a script; return the microseconds of one action by the
        clock, and by the processor time of this process. lines: a file that gets a flushed line
        for each action, after the heading was compared.
        """
        return self.run(self._script(url, lines))

    async def _script(self, url: str, lines: Path | None) -> tuple[float, float]:
        context = await self.browser.new_context()
        try:
            page = await context.new_page()
            await page.goto(url)
            file = -1 if lines is None else os.open(lines, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            begin, used = time.perf_counter(), time.process_time()
            for number, word in enumerate(WORDS):
                await _act(page, number, word)
                if lines is not None:
                    await _note(page, number, word, file)
            spent_s, used_s = time.perf_counter() - begin, time.process_time() - used
            if lines is not None:
                os.close(file)
            return spent_s / len(WORDS) * 1e6, used_s / len(WORDS) * 1e6
        finally:
            await context.close()


async def _act(page: Page, number: int, word: str) -> None:
    match kind_of(number):
        case "fill":
            await page.get_by_role("textbox", name=word, exact=True).fill("text")
        case "check":
            await page.get_by_role("checkbox", name=word, exact=True).check()
        case "select":
            await page.get_by_role("combobox", name=word, exact=True).select_option("Second")
        case _:
            await page.get_by_role("button", name=word, exact=True).click()


async def _note(page: Page, number: int, word: str, file: int) -> None:
    heading = await page.get_by_role("heading", level=1).inner_text()
    if heading != word:
        raise RuntimeError(f"the heading is {heading!r} after action {number}, not {word!r}")
    line = json.dumps({"step": number, "word": word, "heading": heading, "url": page.url})
    os.write(file, line.encode() + b"\n")
    os.fdatasync(file)


@contextmanager
def bare_browser() -> Iterator[BareBrowser]:
    """Run a browser of this process for the block."""
    from playwright.async_api import async_playwright

    directory = Path(tempfile.mkdtemp(prefix="uncaged-bench-browser-"))
    directory.chmod(0o711)
    options = LaunchOptions(program=find_browser(None, os.environ))
    try:
        with asyncio.Runner() as runner:
            manager = async_playwright()
            playwright = runner.run(manager.__aenter__())
            running = launched(playwright, options, directory)
            try:
                yield BareBrowser(runner, runner.run(running.__aenter__()).browser)
                runner.run(running.__aexit__(None, None, None))
            finally:
                runner.run(manager.__aexit__(None, None, None))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def flow_of(recording: Recording, name: str) -> bytes:
    """Return the source of the web flow of a recording."""
    return build_flow(parse_recipe(recording.to_recipe(name)), KNOWN).source


@contextmanager
def web_laboratory(bench: Bench) -> Iterator[Laboratory]:
    """Return a store; its browser session is ended after the block, and the profile removed."""
    with bench.laboratory() as laboratory:
        store = laboratory.engine.store
        try:
            yield laboratory
        finally:
            client = SessionClient.connect(store, DEFAULT_SESSION)
            if client is not None:
                session = session_process(laboratory)
                with client:
                    client.stop()
                session.wait(30)
            shutil.rmtree(profile_path(store, DEFAULT_SESSION).parent, ignore_errors=True)


def session_process(laboratory: Laboratory) -> psutil.Process:
    """Return the process of the store's browser session."""
    words = ["uncaged_browser.session", str(laboratory.engine.store.root)]
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if command[2:4] == words:
            return process
    raise RuntimeError("the browser session does not run")
