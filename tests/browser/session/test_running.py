"""End of a session's process."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from playwright.async_api import async_playwright
from uncaged_browser.session import running, serving
from uncaged_browser.session.address import profile_path
from uncaged_browser.session.messages import ContextSpec
from uncaged_browser.session.server import SessionServer
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine

NAME = "failing"


class Fault(Exception):
    """A fault of the session's own."""


@pytest.fixture
def profiled(store: Store) -> Iterator[Store]:
    """A store whose session's profile is removed after the test."""
    yield store
    shutil.rmtree(profile_path(store, NAME).parent, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.needs("chromium")
def test_a_session_that_fails_leaves_no_proxy(
    profiled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy of a thread's context ends, too: it would keep the process, and so its lock."""
    before = set(threading.enumerate())
    proxies: list[Any] = []

    async def fail(_path: Path, server: SessionServer, _ready: BinaryIO) -> None:
        await server._contexts.open(ContextSpec(name="0" * 26, hosts=("127.0.0.1",), private=True))
        proxies.extend(one for one in threading.enumerate() if "proxy" in one.name)
        raise Fault

    async def run() -> None:
        async with async_playwright() as playwright:
            process = running.BrowserProcess(profiled, NAME, shown=False)
            with Path(os.devnull).open("wb") as ready:
                await process.run(playwright, ready)

    monkeypatch.setattr(serving, "serve", fail)
    with pytest.raises(Fault):
        asyncio.run(run())
    assert len(proxies) > 1, "one of the session, one of the thread"
    assert not {one for one in threading.enumerate() if "proxy" in one.name} - before


def test_a_context_without_a_thread_has_no_status(engine: Engine) -> None:
    """A name that is no thread's id ends no session."""
    assert serving.status_of(engine, "page-1") is None
    assert serving.status_of(engine, "0" * 26) is None
