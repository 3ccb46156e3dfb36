"""Loads of pages outside of a caller's scope, which are stopped while an operation of it acts. It
is for contexts that the caller shares, where no proxy limits what is loaded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from ..scope import BrowserScope

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Route

__all__ = ["no_leaving"]

READING = frozenset({"GET", "HEAD"})


@asynccontextmanager
async def no_leaving(context: BrowserContext, scope: BrowserScope) -> AsyncIterator[None]:
    """Stop the pages of a context from loading an address outside of a scope during the block; a
    form's data is not sent there.

    Raises:
        BrowserProblem: one was stopped.
    """
    from playwright.async_api import Error

    stopped: list[str] = []

    async def check(route: Route) -> None:
        request = route.request
        with suppress(Error):  # the page is gone by now
            leaves = request.is_navigation_request() and not scope.allows(request.url)
            # a frame may show another site, but no data is sent there
            is_tab = leaves and request.frame.parent_frame is None
            if is_tab or (leaves and request.method not in READING):
                stopped.append(request.url)
                await route.abort("aborted")  # the page stays as it is
            else:
                await route.fallback()

    await context.route("**/*", check)
    try:
        yield
    finally:
        with suppress(Error):
            await context.unroute("**/*", check)
    if stopped:
        scope.check(stopped[0])
