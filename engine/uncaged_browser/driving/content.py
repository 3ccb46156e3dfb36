"""Operations that read a page: text, HTML, screenshot."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING

from ..elements.scripts import script_in
from ..operations import ReadHtml, ReadText, Screenshot
from ..problems import BrowserProblem
from .elements import element_of
from .offering import shown_frames

if TYPE_CHECKING:
    from playwright.async_api import Page

    from .context import DrivenContext

__all__ = ["html", "screenshot", "text"]

MAX_CHARACTERS = 2_000_000
"""Longest text that is returned; the rest is cut, and the answer says so."""
MAX_PICTURE_BYTES = 16 << 20
FRAME_S = 2.0
CLEAN = """() => {
  const copy = document.documentElement.cloneNode(true);
  for (const one of copy.querySelectorAll('script, style, noscript, template, link, meta, svg'))
    one.remove();
  const walker = document.createTreeWalker(copy, NodeFilter.SHOW_COMMENT);
  const comments = [];
  while (walker.nextNode()) comments.push(walker.currentNode);
  for (const one of comments) one.remove();
  for (const one of copy.querySelectorAll('*'))
    for (const name of one.getAttributeNames())
      if (name === 'style' || name.startsWith('on')) one.removeAttribute(name);
  return copy.outerHTML;
}"""


def _cut(text: str) -> dict[str, object]:
    cut = len(text) > MAX_CHARACTERS
    return {"text": text[:MAX_CHARACTERS], **({"truncated": True} if cut else {})}


async def text(context: DrivenContext, operation: ReadText) -> dict[str, object]:
    """Return the visible text of the page or of an element."""
    page = context.tabs.page(operation.tab)
    if operation.target is None:
        shown = await page.locator("body").inner_text(timeout=operation.timeout_s * 1000)
    else:
        found = await element_of(context, page, operation)
        shown = await found.locator.inner_text(timeout=operation.timeout_s * 1000)
    return {"url": page.url, **_cut(shown)}


async def html(context: DrivenContext, operation: ReadHtml) -> dict[str, object]:
    """Return the page's HTML in one of its forms."""
    page = context.tabs.page(operation.tab)
    match operation.form:
        case "html":
            source = await page.content()
        case "clean":
            source = str(await page.evaluate(CLEAN))
        case "automatic" | "knowledge":
            return await _fragments(page, operation.form)
        case "text":
            source = await page.locator("body").inner_text(timeout=operation.timeout_s * 1000)
    return {"url": page.url, **_cut(source)}


async def _fragments(page: Page, form: str) -> dict[str, object]:
    """Return the reduced HTML of the page and of the frames that are shown."""
    from playwright.async_api import Error

    script = script_in("fragment.js")
    source = str(await page.evaluate(script, form))
    shown, left_out = await shown_frames(page)
    frames: list[dict[str, object]] = []
    for frame in shown[1:]:
        try:
            async with asyncio.timeout(FRAME_S):
                inner = str(await frame.evaluate(script, form))
        except (Error, TimeoutError):
            left_out.append(f"the frame at {frame.url[:200]}, which does not answer")
        else:
            frames.append({"url": frame.url, **_cut(inner)})
    return {
        "url": page.url,
        **_cut(source),
        **({"frames": frames} if frames else {}),
        **({"leftOut": left_out} if left_out else {}),
    }


async def screenshot(context: DrivenContext, operation: Screenshot) -> dict[str, object]:
    """Return a picture of the page or of an element."""
    page = context.tabs.page(operation.tab)
    if operation.target is None:
        picture = await page.screenshot(
            full_page=operation.full, timeout=operation.timeout_s * 1000, mask=context.masked(page)
        )
    else:
        found = await element_of(context, page, operation)
        picture = await found.locator.screenshot(
            timeout=operation.timeout_s * 1000, mask=context.masked(page)
        )
    if len(picture) > MAX_PICTURE_BYTES:
        raise BrowserProblem(
            "refused",
            f"the picture has {len(picture):,} bytes; at most {MAX_PICTURE_BYTES:,} are kept",
        )
    return {"url": page.url, "png": base64.b64encode(picture).decode("ascii")}
