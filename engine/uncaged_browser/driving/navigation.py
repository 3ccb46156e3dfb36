"""Operations that load pages: open, navigate, back, forward, reload, follow a link."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ..addresses import parts_of
from ..operations import Back, Follow, Forward, Navigate, Open, Reload
from ..problems import BrowserProblem

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

    from .context import DrivenContext

__all__ = ["back", "follow", "forward", "navigate", "open_tab", "reload"]

SCHEMES = ("http", "https")
LISTED_LINKS = 5
ERROR_PAGE_S = 1.0
FIRST_ERROR_STATUS = 400


def checked_url(url: str) -> str:
    """Return an address that a tab may be given.

    Raises:
        BrowserProblem: it is no address of the web.
    """
    if url == "about:blank":
        return url
    parts = parts_of(url)
    if parts is None:
        raise BrowserProblem("blocked", f"{url[:200]!r} is a malformed address")
    scheme = parts.scheme
    if scheme not in SCHEMES:
        raise BrowserProblem(
            "blocked",
            f"{url[:200]!r} is no address of the web; a flow may load http and https only"
            if scheme
            else f"{url[:200]!r} has no scheme; write https://{url[:200]}",
        )
    return url


async def open_tab(context: DrivenContext, operation: Open) -> dict[str, object]:
    """Open an address in a new tab; the tab is closed again if it cannot be loaded."""
    url = checked_url(operation.url)
    page = await context.tabs.new()
    try:
        status = await _goto(context, page, url, operation.timeout_s)
    except BrowserProblem:
        await page.close()
        raise
    return {**await context.tabs.document(page), **status}


async def navigate(context: DrivenContext, operation: Navigate) -> dict[str, object]:
    """Load an address in a tab."""
    url = checked_url(operation.url)
    if operation.tab is None and context.tabs.current is None:
        page = await context.tabs.new()
    else:
        page = context.tabs.page(operation.tab)
    status = await _goto(context, page, url, operation.timeout_s)
    return {**await context.tabs.document(page), **status}


async def _goto(
    context: DrivenContext, page: Page, url: str, timeout_s: float
) -> dict[str, object]:
    """Load an address; return the status of the reply under ``status`` if it is an error."""
    from playwright.async_api import Error, TimeoutError

    try:
        response = await page.goto(url, timeout=timeout_s * 1000, wait_until="load")
    except TimeoutError:
        raise BrowserProblem(
            "timeout", f"{url[:200]} did not load within {timeout_s:g} s"
        ) from None
    except Error as exc:
        if "net::ERR_" in exc.message and "ERR_ABORTED" not in exc.message:
            # the browser's own page about it comes later, and would interrupt a navigation
            with suppress(Error):
                await page.wait_for_url("chrome-error://**", timeout=ERROR_PAGE_S * 1000)
        raise context.problem(exc, f"{url[:200]} could not be loaded") from None
    if response is None or response.status < FIRST_ERROR_STATUS:
        return {}
    return {"status": response.status}


async def back(context: DrivenContext, operation: Back) -> dict[str, object]:
    """Go back in the history of a tab."""
    return await _step(context, operation, "back")


async def forward(context: DrivenContext, operation: Forward) -> dict[str, object]:
    """Go forward in the history of a tab."""
    return await _step(context, operation, "forward")


async def reload(context: DrivenContext, operation: Reload) -> dict[str, object]:
    """Load the page of a tab again; a crashed page, too."""
    page = context.tabs.page_even_crashed(operation.tab)
    if context.tabs.has_crashed(page):
        page = await context.revive(page, operation.timeout_s)
    else:
        await page.reload(timeout=operation.timeout_s * 1000)
    return await context.tabs.document(page)


async def _step(
    context: DrivenContext, operation: Back | Forward, direction: str
) -> dict[str, object]:
    page = context.tabs.page(operation.tab)
    before = page.url
    go = page.go_back if direction == "back" else page.go_forward
    response = await go(timeout=operation.timeout_s * 1000)
    if response is None and page.url == before:
        raise BrowserProblem("navigation", f"the tab has no page to go {direction} to")
    return await context.tabs.document(page)


async def follow(context: DrivenContext, operation: Follow) -> dict[str, object]:
    """Click a link of the page and wait for the page that it leads to."""
    page = context.tabs.page(operation.tab)
    links = page.get_by_role("link").filter(visible=True)
    link = await _link(links, operation)
    async with context.following(page, operation.timeout_s):
        await link.click(timeout=operation.timeout_s * 1000)
    return await context.tabs.document(context.tabs.page(None))


async def _link(links: Locator, operation: Follow) -> Locator:
    if operation.position is not None:
        count = await links.count()
        if operation.position > count:
            raise BrowserProblem(
                "not-found",
                f"the page has {count} visible links; there is no {operation.position}.",
            )
        return links.nth(operation.position - 1)
    if not operation.words.strip():
        raise BrowserProblem("unsupported", "follow needs words or a position")
    texts = [" ".join(text.split()) for text in await links.all_inner_texts()]
    wanted = operation.words.casefold().split()
    exact = [n for n, text in enumerate(texts) if text.casefold().split() == wanted]
    found = exact or [
        n for n, text in enumerate(texts) if all(word in text.casefold() for word in wanted)
    ]
    if not found:
        raise BrowserProblem("not-found", f"no visible link has the words {operation.words!r}")
    if len(found) > 1:
        candidates = [texts[n] for n in found[:LISTED_LINKS]]
        raise BrowserProblem(
            "ambiguous",
            f"{len(found)} links have the words {operation.words!r}: {'; '.join(candidates)}",
            candidates=candidates,
        )
    return links.nth(found[0])
