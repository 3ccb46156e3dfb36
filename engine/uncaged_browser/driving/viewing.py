"""The operation that shows the page view."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from uncaged_engine.services.secrets import PREFIX

from ..operations import ReadView
from ..problems import BrowserProblem
from ..view.references import ViewedPart, ViewReferences
from ..view.tree import ViewNode, plain, read_snapshot
from ..view.writing import MAX_CHARACTERS, ORDER, ViewWriter, characters_for, nodes_with_words
from .elements import element_of

if TYPE_CHECKING:
    from playwright.async_api import Page

    from .context import DrivenContext

__all__ = ["view"]

MAX_ELEMENTS = 6_000
"""The snapshot of a page with more elements takes too long; its parts are viewed one by one."""
PARTS = 30
"""Parts of a huge page that are viewed at once."""
MORE_CHARACTERS = 4 * MAX_CHARACTERS
SIZE = """() => ({elements: document.querySelectorAll('*').length,
  html: document.documentElement.outerHTML.length})"""
HUGE = """([words, skip, most, small]) => {
  const wanted = words.toLowerCase().split(/\\s+/).filter(Boolean), found = [];
  const has = one => {
    const text = (one.textContent + ' ' + (one.getAttribute('aria-label') || '')).toLowerCase();
    return wanted.every(word => text.includes(word));
  };
  const path = one => {
    let steps = '';
    for (; one && one.nodeType === Node.ELEMENT_NODE; one = one.parentElement) {
      let number = 1;
      for (let other = one.previousElementSibling; other; other = other.previousElementSibling)
        if (other.tagName === one.tagName) number++;
      steps = `/*[local-name()='${one.localName}'][${number}]` + steps;
    }
    return steps;
  };
  let left = skip;
  const walk = one => {
    if (found.length > most || ['SCRIPT', 'STYLE', 'TEMPLATE'].includes(one.tagName)) return;
    if (!one.checkVisibility() || (wanted.length && !has(one))) return;
    const inner = one.getElementsByTagName('*').length;
    if (inner > small || (wanted.length && [...one.children].some(has)))
      for (const child of one.children) { walk(child); if (found.length > most) return; }
    else if (left-- <= 0) found.push(path(one));
  };
  walk(document.body);
  return found;
}"""
SMALL_PART = 300
HIDDEN = "•••"
PASSWORDS = "input[type=password]"
VALUES = "fields => fields.map(field => field.value)"


async def hidden_values(context: DrivenContext, page: Page) -> dict[str, str]:
    """Return the values of password fields and the secrets that were typed, each with the text that
    is shown in its place.
    """
    from playwright.async_api import Error

    found: dict[str, str] = {}
    for frame in page.frames:
        with suppress(Error):  # the frame is gone
            values = await frame.locator(PASSWORDS).evaluate_all(VALUES)
            found.update(dict.fromkeys(values, HIDDEN))
    found.update({value: f"{PREFIX}{name}" for value, name in context.secret_values.items()})
    return {plain(value): shown for value, shown in found.items() if value.strip()}


async def view(context: DrivenContext, operation: ReadView) -> dict[str, object]:
    """Return roles, names and states of the page as text; orders are texts that give orders."""
    page = context.tabs.page(operation.tab)
    part = context.references.part(page, operation.more) if operation.more else None
    size = await page.evaluate(SIZE)
    characters = operation.characters or (
        MORE_CHARACTERS if part is not None else characters_for(size["html"])
    )
    if part is None:
        await context.references.begin(page)
    viewer = PageViewer(context.references, page, operation, await hidden_values(context, page))
    if part is not None and part.skip is None:
        text = viewer.write(part.nodes, characters)
    elif operation.target is None and size["elements"] > MAX_ELEMENTS:
        text = await viewer.write_huge(
            0 if part is None or part.skip is None else part.skip, characters
        )
    else:
        root = page.locator("body")
        if operation.target is not None:
            root = (await element_of(context, page, operation)).locator
        snapshot = await root.aria_snapshot(
            mode="ai", timeout=operation.timeout_s * 1000, depth=operation.depth
        )
        nodes = read_snapshot(snapshot)
        if operation.words.strip():
            nodes = nodes_with_words(nodes, operation.words)
            if not nodes:
                raise BrowserProblem("not-found", f"the page has no {operation.words!r}")
        text = viewer.write(nodes, characters)
    title = await page.title()
    orders = [*([title] if ORDER.search(title) else []), *viewer.orders]
    return {"url": page.url, "title": title, "text": text, **({"orders": orders} if orders else {})}


class PageViewer:
    """Writes views of one page. orders: texts that give orders."""

    def __init__(
        self,
        references: ViewReferences,
        page: Page,
        operation: ReadView,
        hidden: Mapping[str, str],
    ) -> None:
        """Args: hidden: values of fields, and the texts that are shown in their places."""
        self.orders: list[str] = []
        self._hidden = hidden
        self._references = references
        self._page = page
        self._operation = operation
        self._root = ""

    def write(self, nodes: Any, characters: int) -> str:
        """Return the text of nodes."""
        writer = ViewWriter(self._reference, self._part)
        for node in nodes:
            for one in node.within() if self._hidden else ():
                one.text = self._hidden.get(one.text, one.text)
        text = writer.write(nodes, characters)
        self.orders.extend(writer.orders)
        return text

    async def write_huge(self, skip: int, characters: int) -> str:
        """Return the text of some parts of a page whose whole snapshot would take too long."""
        words = self._operation.words
        roots = await self._page.evaluate(HUGE, [words, skip, PARTS, SMALL_PART])
        if not roots and words.strip():
            raise BrowserProblem("not-found", f"the page has no {words!r}")
        texts: list[str] = []
        for root in roots[:PARTS]:
            element = self._page.locator(f"xpath={root}")
            nodes = read_snapshot(await element.aria_snapshot(mode="ai"))
            self._root = root
            texts.append(self.write(nodes, max(1, characters // PARTS)))
        self._root = ""
        if len(roots) > PARTS:
            rest = self._references.of_part(self._page, ViewedPart(skip=skip + PARTS))
            texts.append(f"… more parts of a very large page [more={rest}]")
        return "\n".join(filter(None, texts))

    def _reference(self, node: ViewNode) -> str:
        return self._references.of_element(self._page, node, self._root)

    def _part(self, nodes: Any) -> str:
        return self._references.of_part(self._page, ViewedPart(nodes=tuple(nodes)))
