"""Operations that list the operable elements of a page, or its forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..elements.finding import find_element
from ..elements.scripts import script_in
from ..elements.targets import ElementTarget
from ..operations import ReadElements, ReadForms
from ..problems import BrowserProblem
from .elements import element_of

if TYPE_CHECKING:
    from playwright.async_api import Frame, Page

    from .context import DrivenContext

__all__ = ["elements", "forms"]

MAX_TEXT_CHARACTERS = 4_000


async def elements(context: DrivenContext, operation: ReadElements) -> dict[str, object]:
    """Return facts about the operable elements, in the order of the page, or the ways to find one
    element.
    """
    if operation.target is not None:
        return await _named(context, operation)
    wanted = [operation.number, operation.also, operation.inner]
    return await _evaluated(context, operation, "operable.js", wanted)


async def forms(context: DrivenContext, operation: ReadForms) -> dict[str, object]:
    """Return the forms, in the order of the page."""
    return await _evaluated(context, operation, "forms.js", [operation.number, False])


async def _named(context: DrivenContext, operation: ReadElements) -> dict[str, object]:
    """Return the ways to find an element and the frames around it, and its text."""
    page = context.tabs.page(operation.tab)
    found = await element_of(context, page, operation)
    timeout_ms = operation.timeout_s * 1000
    element = await found.locator.element_handle(timeout=timeout_ms)
    names = await element.evaluate(script_in("names.js"))
    text = await found.locator.inner_text(timeout=timeout_ms)
    frames: list[object] = []
    frame = await element.owner_frame()
    while frame is not None and frame.parent_frame is not None:
        holder = await frame.frame_element()
        frames.insert(0, await holder.evaluate(script_in("names.js")))
        frame = frame.parent_frame
    return {
        "url": page.url,
        "alternative": found.index,
        "names": names,
        "frames": frames,
        "text": text[:MAX_TEXT_CHARACTERS],
    }


async def _evaluated(
    context: DrivenContext, operation: ReadElements | ReadForms, script: str, wanted: object
) -> dict[str, object]:
    frame = await _frame(context.tabs.page(operation.tab), operation)
    found = await frame.evaluate(script_in(script), wanted)
    return {"url": frame.url, **found}


async def _frame(page: Page, operation: ReadElements | ReadForms) -> Frame:
    if not operation.frame:
        return page.main_frame
    *outer, last = (tuple(frame) for frame in operation.frame)
    target = ElementTarget(alternatives=last, frames=tuple(outer))
    found = await find_element(page, target, operation.timeout_s)
    element = await found.locator.element_handle(timeout=operation.timeout_s * 1000)
    frame = await element.content_frame()
    if frame is None:
        raise BrowserProblem("not-found", f"{target} is not a frame")
    return frame
