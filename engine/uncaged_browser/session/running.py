"""The browser of a session process."""

from __future__ import annotations

import asyncio
import importlib
import os
from typing import TYPE_CHECKING, BinaryIO

from uncaged_bundles.storage.store import Store
from uncaged_engine.services.settings import load

from ..browsers.installed import find_browser
from ..browsers.launch import LaunchOptions, launched
from .address import profile_path
from .messages import KEPT, ContextSpec
from .proxies import proxied

if TYPE_CHECKING:
    from playwright.async_api import Playwright


class BrowserProcess:
    """One session; its settings are read when it is made."""

    def __init__(self, store: Store, name: str, *, shown: bool) -> None:
        self._store, self._name, self._shown = store, name, shown
        self._settings = load(store).browser
        self._program = find_browser(self._settings.program, os.environ)

    async def run(self, playwright: Playwright, ready: BinaryIO) -> None:
        """Start the browser, listen, and serve until the session ends. What serves is imported
        while the browser starts. ready: the pipe that the starter waits for, which is closed then.
        """
        importing = asyncio.create_task(
            asyncio.to_thread(importlib.import_module, ".serving", __package__)
        )
        address, proxy, _ = proxied(ContextSpec(name=KEPT, hosts=("*",), private=True))
        browser = LaunchOptions(
            program=self._program,
            headless=not self._shown,
            sandbox=self._settings.sandbox,
            proxy=address,
        )
        with proxy:
            async with launched(
                playwright, browser, profile_path(self._store, self._name)
            ) as running:
                await importing
                from .serving import serve_browser

                await serve_browser(
                    playwright,
                    running,
                    ready,
                    store=self._store,
                    name=self._name,
                    shown=self._shown,
                )
