"""Operations on elements: click, fill, type, press, select, check, upload, hover, drag, scroll."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..elements.finding import Found, find_element
from ..elements.targets import ElementTarget
from ..operations import (
    Click,
    Drag,
    Fill,
    Hover,
    Press,
    Scroll,
    Select,
    SetChecked,
    Type,
    Upload,
)
from ..problems import BrowserProblem
from ..secrets import name_of_secret
from .promises import check_action

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

    from .context import DrivenContext

__all__ = [
    "check",
    "click",
    "drag",
    "element_of",
    "fill",
    "hover",
    "press",
    "scroll",
    "select",
    "type_text",
    "upload",
]

NUDGE, DRAG_STEPS = 3.0, 8
"""First move of a drag in pixels, and the moves on its way."""
SCROLL_PAUSE_S = 0.1
CHECKED = frozenset({"true", "on", "1", "yes"})
KIND = """element => element.tagName === 'SELECT' ? 'select'
  : element.type === 'checkbox' || element.type === 'radio' ? 'check' : ''"""
SHOWN_LABEL = """element =>
  [...(element.labels || [])].find(label => label.checkVisibility()) || null"""
SCROLL_ALL = """up => {
  const page = document.scrollingElement || document.documentElement;
  const boxes = [...document.querySelectorAll('*')].filter(one => one !== page
    && one.scrollHeight > one.clientHeight + 4 && one.clientHeight > 40
    && /auto|scroll/.test(getComputedStyle(one).overflowY) && one.checkVisibility());
  for (const one of [page, ...boxes])
    one.scrollBy({top: (up ? -0.8 : 0.8) * one.clientHeight, behavior: 'instant'});
}"""
SCROLL = """(area, direction) => {
  const page = area || document.scrollingElement || document.documentElement;
  const [width, height] = area ? [area.clientWidth, area.clientHeight] : [innerWidth, innerHeight];
  const screen = {x: width * 0.9, y: height * 0.9};
  const before = [page.scrollLeft, page.scrollTop];
  const by = {up: [0, -screen.y], down: [0, screen.y], left: [-screen.x, 0], right: [screen.x, 0]};
  if (direction === 'top') page.scrollTo({top: 0, behavior: 'instant'});
  else if (direction === 'bottom') page.scrollTo({top: page.scrollHeight, behavior: 'instant'});
  else page.scrollBy({left: by[direction][0], top: by[direction][1], behavior: 'instant'});
  return {x: Math.round(page.scrollLeft), y: Math.round(page.scrollTop),
          moved: before[0] !== page.scrollLeft || before[1] !== page.scrollTop};
}"""


async def element_of(
    context: DrivenContext,
    page: Page,
    operation: Any,
    *,
    hidden: bool = False,
    unlisted: bool = False,
    key: str = "target",
    timeout_s: float | None = None,
) -> Found:
    """Return the element that an operation names under *key*. An operation that acts may move the
    mouse to what shows the element, as a person does.
    """
    first = getattr(operation, key)[0]
    if first.way == "ref":
        return Found(await context.references.element(page, first.value), 0)
    target = ElementTarget(
        alternatives=tuple(getattr(operation, key)),
        frames=tuple(tuple(frame) for frame in operation.frame),
    )
    limit_s = (operation.find_s or operation.timeout_s) if timeout_s is None else timeout_s
    reveal = operation.effect == "acts"
    return await find_element(
        page, target, limit_s, hidden=hidden, unlisted=unlisted, reveal=reveal
    )


async def click(context: DrivenContext, operation: Click) -> dict[str, object]:
    """Click an element with real mouse events."""
    page = context.tabs.page(operation.tab)
    found = await element_of(context, page, operation)
    await check_action(found, operation.target, operation.facts)
    options: dict[str, Any] = {
        "button": operation.button,
        "click_count": operation.times,
        "timeout": operation.timeout_s * 1000,
    }
    if operation.offset is not None:
        options |= await _position(found.locator, *operation.offset)
    if operation.wait:
        async with context.following(page, operation.timeout_s):
            await found.locator.click(**options)
    else:
        await found.locator.click(**options)
    return await context.after(page, found)


async def _position(element: Locator, x: float, y: float) -> dict[str, Any]:
    """Return the option for a place inside an element; none if the element is smaller by now."""
    box = await element.bounding_box()
    inside = box is not None and 0 <= x < box["width"] and 0 <= y < box["height"]
    return {"position": {"x": x, "y": y}} if inside else {}


async def fill(context: DrivenContext, operation: Fill) -> dict[str, object]:
    """Replace the content of a field. A list gets the option, a check box the state that the text
    names: imported recordings do not tell them apart.
    """
    page = context.tabs.page(operation.tab)
    found = await element_of(context, page, operation)
    text = await context.typed(page, operation.text, found.locator)
    await _set_content(found.locator, text, operation.timeout_s * 1000)
    if operation.submit:
        await found.locator.press("Enter", timeout=operation.timeout_s * 1000)
    return await context.after(page, found)


async def _set_content(field: Locator, text: str, timeout_ms: float) -> None:
    from playwright.async_api import Error, TimeoutError

    try:
        await field.fill(text, timeout=timeout_ms)
    except TimeoutError:
        raise
    except Error:  # it is no field for text
        match await field.evaluate(KIND, timeout=timeout_ms):
            case "select":
                await field.select_option(text, timeout=timeout_ms)
            case "check":
                await field.set_checked(text.casefold() in CHECKED, timeout=timeout_ms)
            case _:
                raise


async def type_text(context: DrivenContext, operation: Type) -> dict[str, object]:
    """Type text by single keys."""
    page = context.tabs.page(operation.tab)
    found = None if operation.target is None else await element_of(context, page, operation)
    if found is None:
        if name_of_secret(operation.text) is not None:
            raise BrowserProblem("blocked", "a secret is typed into a target only")
        await page.keyboard.type(operation.text)
    else:
        text = await context.typed(page, operation.text, found.locator)
        await found.locator.press_sequentially(text, timeout=operation.timeout_s * 1000)
    return await context.after(page, found)


async def press(context: DrivenContext, operation: Press) -> dict[str, object]:
    """Press a key or a combination of keys."""
    page = context.tabs.page(operation.tab)
    found = None if operation.target is None else await element_of(context, page, operation)
    if found is None:
        await page.keyboard.press(operation.key)
    else:
        await found.locator.press(operation.key, timeout=operation.timeout_s * 1000)
    return await context.after(page, found)


async def select(context: DrivenContext, operation: Select) -> dict[str, object]:
    """Select options by label or value."""
    page = context.tabs.page(operation.tab)
    found = await element_of(context, page, operation)
    chosen = await found.locator.select_option(
        list(operation.options), timeout=operation.timeout_s * 1000
    )
    return {**await context.after(page, found), "selected": chosen}


async def check(context: DrivenContext, operation: SetChecked) -> dict[str, object]:
    """Set a check box; one that is drawn by its label is set by a click on the label."""
    page = context.tabs.page(operation.tab)
    found = await element_of(context, page, operation, hidden=True)
    if await found.locator.is_visible():
        await found.locator.set_checked(operation.checked, timeout=operation.timeout_s * 1000)
    elif await found.locator.is_checked() is not operation.checked:
        label = (await found.locator.evaluate_handle(SHOWN_LABEL)).as_element()
        if label is None:
            raise BrowserProblem("not-found", "the check box and its labels are invisible")
        await label.click(timeout=operation.timeout_s * 1000)
    return await context.after(page, found)


async def upload(context: DrivenContext, operation: Upload) -> dict[str, object]:
    """Choose files; the input itself is often invisible."""
    page = context.tabs.page(operation.tab)
    found = await element_of(context, page, operation, hidden=True)
    await found.locator.set_input_files(list(operation.files), timeout=operation.timeout_s * 1000)
    return await context.after(page, found)


async def hover(context: DrivenContext, operation: Hover) -> dict[str, object]:
    """Move the mouse over an element."""
    page = context.tabs.page(operation.tab)
    found = await element_of(context, page, operation)
    await found.locator.hover(timeout=operation.timeout_s * 1000)
    return await context.after(page, found)


async def drag(context: DrivenContext, operation: Drag) -> dict[str, object]:
    """Drag one element onto another."""
    page = context.tabs.page(operation.tab)
    found = await element_of(context, page, operation)
    onto = await element_of(context, page, operation, key="onto")
    if operation.offset is None and operation.onto_offset is None:
        await found.locator.drag_to(onto.locator, timeout=operation.timeout_s * 1000)
    else:
        await found.locator.scroll_into_view_if_needed(timeout=operation.timeout_s * 1000)
        start = await _point_of(found.locator, operation.offset, outside=False)
        end = await _point_of(onto.locator, operation.onto_offset, outside=True)
        await page.mouse.move(*start)
        await page.mouse.down()
        await page.mouse.move(start[0] + NUDGE, start[1] + NUDGE)
        await page.mouse.move(*end, steps=DRAG_STEPS)
        await page.mouse.move(*end)
        await page.mouse.up()
    return await context.after(page, found)


async def _point_of(
    element: Locator, offset: Sequence[float] | None, *, outside: bool
) -> tuple[float, float]:
    """Return a point of an element in the page: its centre, if the element is smaller by now."""
    box = await element.bounding_box()
    if box is None:
        raise BrowserProblem("not-found", "an element of the drag is not visible any more")
    x, y = offset or (box["width"] / 2, box["height"] / 2)
    if not outside and not (0 <= x < box["width"] and 0 <= y < box["height"]):
        x, y = box["width"] / 2, box["height"] / 2
    return box["x"] + x, box["y"] + y


async def scroll(context: DrivenContext, operation: Scroll) -> dict[str, object]:
    """Scroll the page or an area of it, or until an element is visible."""
    page = context.tabs.page(operation.tab)
    if operation.target is None and operation.area is None:
        return dict(
            await page.evaluate(f"direction => ({SCROLL})(null, direction)", operation.direction)
        )
    if operation.target is None:
        area = await element_of(context, page, operation, key="area")
        return dict(await area.locator.evaluate(SCROLL, operation.direction))
    found = await _scrolled_to(context, page, operation)
    await found.locator.scroll_into_view_if_needed(timeout=operation.timeout_s * 1000)
    return await context.after(page, found)


async def _scrolled_to(context: DrivenContext, page: Page, operation: Scroll) -> Found:
    """Return the element, which may come into being only while the page is scrolled."""
    end_s = time.monotonic() + operation.timeout_s
    while True:
        try:
            return await element_of(context, page, operation, hidden=True, timeout_s=0.0)
        except BrowserProblem as exc:
            if exc.kind != "not-found" or time.monotonic() >= end_s:
                raise
        await page.evaluate(SCROLL_ALL, operation.direction == "up")
        await asyncio.sleep(SCROLL_PAUSE_S)
