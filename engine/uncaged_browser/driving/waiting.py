"""Operations that wait, and those of tabs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..operations import Address, Close, Switch, Tabs, WaitFor, Zoom
from ..problems import BrowserProblem
from .elements import element_of
from .tabs import tab_to_show

if TYPE_CHECKING:
    from .context import DrivenContext

__all__ = ["address", "close", "list_tabs", "switch", "wait", "zoom"]

ZOOM = "factor => { document.documentElement.style.zoom = factor; }"
MAX_ZOOM = 5.0


async def list_tabs(context: DrivenContext, operation: Tabs) -> list[dict[str, object]]:
    """Return the open tabs that the caller may use."""
    del operation
    return await context.tabs.documents(context.caller_scope)


async def address(context: DrivenContext, operation: Address) -> dict[str, object]:
    """Return the address and title of a tab."""
    return await context.tabs.document(context.tabs.page(operation.tab))


async def switch(context: DrivenContext, operation: Switch) -> dict[str, object]:
    """Make another tab the current one."""
    found = tab_to_show(await context.tabs.documents(context.caller_scope), operation)
    page = context.tabs.page(str(found["tab"]))
    context.tabs.choose(page)
    await page.bring_to_front()
    return await context.tabs.document(page)


async def close(context: DrivenContext, operation: Close) -> dict[str, object]:
    """Close a tab."""
    page = context.tabs.page_even_crashed(operation.tab)
    id = context.tabs.id_of(page)
    await page.close()
    return {"tab": id, "open": len(context.tabs.pages)}


async def zoom(context: DrivenContext, operation: Zoom) -> dict[str, object]:
    """Zoom the page of a tab."""
    if operation.factor > MAX_ZOOM:
        raise BrowserProblem("unsupported", f"a page is zoomed {MAX_ZOOM:g} times at most")
    page = context.tabs.page(operation.tab)
    await page.evaluate(ZOOM, operation.factor)
    return {"factor": operation.factor}


async def wait(context: DrivenContext, operation: WaitFor) -> dict[str, object]:
    """Wait for a moment of the page or of an element."""
    page = context.tabs.page(operation.tab)
    timeout_ms = operation.timeout_s * 1000
    match operation.until:
        case "load":
            await page.wait_for_load_state("load", timeout=timeout_ms)
        case "idle":
            await page.wait_for_load_state("networkidle", timeout=timeout_ms)
        case "navigation":
            async with context.following(page, operation.timeout_s):
                pass
        case "element" | "attached" | "gone":
            if operation.target is None:
                raise BrowserProblem("unsupported", f'wait for "{operation.until}" needs a target')
            if operation.until != "gone":
                hidden = operation.until == "attached"
                found = await element_of(context, page, operation, hidden=hidden, unlisted=hidden)
                return await context.after(page, found)
            await context.gone(page, operation)
    return await context.tabs.document(context.tabs.page(operation.tab))
