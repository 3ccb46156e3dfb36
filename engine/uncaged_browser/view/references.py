"""References of page views: which element, or which cut part, each one means.

A reference is never used again for another element. It is refused when its element is gone, belongs
to a page that is no longer shown, or has got another name.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ..problems import BrowserProblem
from .tree import ViewNode, plain, read_snapshot

if TYPE_CHECKING:
    from playwright.async_api import JSHandle, Locator, Page

__all__ = ["ViewReferences", "ViewedElement", "ViewedPart"]

FIRST = 1_000
SAME_DOCUMENT = "(one, other) => one === other"
WITHOUT_NAME = frozenset({"generic"})
TIMEOUT_MS = 2_000


@dataclass(frozen=True, slots=True)
class ViewedElement:
    """An element by its reference in the snapshot, and what it was. root: xpath of the part of a
    huge page that the snapshot was of; empty for the whole page.
    """

    snapshot_ref: str
    role: str
    name: str
    root: str = ""


@dataclass(frozen=True, slots=True)
class ViewedPart:
    """Nodes that were cut. skip: parts of a huge page that come before; None for other pages."""

    nodes: Sequence[ViewNode] = ()
    skip: int | None = None


@dataclass(slots=True)
class PageReferences:
    """References of the last views of one document."""

    document: JSHandle
    by_reference: dict[str, ViewedElement | ViewedPart] = field(default_factory=dict)
    by_element: dict[ViewedElement, str] = field(default_factory=dict)


class ViewReferences:
    """References of one browser context."""

    def __init__(self) -> None:
        # a context that takes the place of a lost one does not begin with the same numbers
        self._numbers = itertools.count(FIRST + secrets.randbelow(8 * FIRST))
        self._pages: WeakKeyDictionary[Page, PageReferences] = WeakKeyDictionary()

    async def begin(self, page: Page) -> ViewReferences:
        """Prepare for a view of a page: references of another document are forgotten."""
        document = await page.evaluate_handle("document")
        known = self._pages.get(page)
        if known is None or not await _is_same(known.document, document):
            self._pages[page] = PageReferences(document)
            return self
        known.by_reference = {  # parts are those of one view
            reference: found
            for reference, found in known.by_reference.items()
            if isinstance(found, ViewedElement)
        }
        return self

    def of_element(self, page: Page, node: ViewNode, root: str = "") -> str:
        """Return the reference of an element; the same one as long as the element is the same."""
        known = self._pages[page]
        name = node.name or (node.text if node.role in WITHOUT_NAME else "")
        element = ViewedElement(node.snapshot_ref, node.role, name, root)
        reference = known.by_element.get(element)
        if reference is None:
            reference = f"e{next(self._numbers)}"
            known.by_element[element] = reference
            known.by_reference[reference] = element
        return reference

    def of_part(self, page: Page, part: ViewedPart) -> str:
        """Return the reference of a part that was cut."""
        reference = f"e{next(self._numbers)}"
        self._pages[page].by_reference[reference] = part
        return reference

    def part(self, page: Page, reference: str) -> ViewedPart:
        """Return a part that was cut.

        Raises:
            BrowserProblem: it is of an earlier view.
        """
        known = self._pages.get(page)
        found = None if known is None else known.by_reference.get(reference)
        if not isinstance(found, ViewedPart):
            raise _stale(reference, "no cut part of the current page view has it")
        return found

    async def element(self, page: Page, reference: str) -> Locator:
        """Return the element of a reference.

        Raises:
            BrowserProblem: it is of an earlier view, its element is gone, or has another name.
        """
        from playwright.async_api import Error

        known = self._pages.get(page)
        found = None if known is None else known.by_reference.get(reference)
        if known is None or not isinstance(found, ViewedElement):
            raise _stale(reference, "no element of the current page view has it")
        unchanged = False
        try:
            same = await _is_same(known.document, await page.evaluate_handle("document"))
            unchanged = same and (not found.root or await _is_in_part(page, found))
        except Error:
            same = False
        if not same:
            raise _stale(reference, "the page that it was of is no longer shown")
        locator = page.locator(f"aria-ref={found.snapshot_ref}")
        if await locator.count() != 1:
            raise _stale(reference, f"{_described(found)} is gone from the page")
        if not unchanged or not (found.root or await _is_still(locator, found)):
            raise _stale(reference, f"its element is no longer {_described(found)}")
        return locator


def _described(element: ViewedElement) -> str:
    return f'{element.role} "{element.name[:80]}"' if element.name else element.role


def _stale(reference: str, why: str) -> BrowserProblem:
    return BrowserProblem("not-found", f"reference {reference}: {why}; take a new page view")


async def _is_same(document: JSHandle, other: JSHandle) -> bool:
    """Whether two handles are of one document; a page that was loaded anew has another."""
    from playwright.async_api import Error

    try:
        return bool(await document.evaluate(SAME_DOCUMENT, other))
    except Error:
        return False


async def _is_in_part(page: Page, element: ViewedElement) -> bool:
    """Whether a part of a huge page, where a search of the whole page takes too long, has it."""
    part = page.locator(f"xpath={element.root}")
    nodes = read_snapshot(await part.aria_snapshot(mode="ai", timeout=TIMEOUT_MS))
    return any(
        (one.snapshot_ref, one.role, one.name or one.text)
        == (element.snapshot_ref, element.role, element.name or one.text)
        for node in nodes
        for one in node.within()
    )


async def _is_still(locator: Locator, element: ViewedElement) -> bool:
    """Whether an element has the role and name, or the text, that the view showed."""
    from playwright.async_api import Error

    if not element.name:
        return True
    role: Any = element.role
    try:
        if element.role in WITHOUT_NAME:
            text = await locator.inner_text(timeout=TIMEOUT_MS)
            label = await locator.get_attribute("aria-label", timeout=TIMEOUT_MS) or ""
            return element.name in plain(text) or element.name == plain(label)
        handle = await locator.element_handle(timeout=TIMEOUT_MS)
        frame = await handle.owner_frame()
        if frame is None:
            return False
        named = frame.get_by_role(role, name=element.name, exact=True)
        own = frame.locator(f"aria-ref={element.snapshot_ref}")
        return bool(await own.and_(named).count())
    except Error:
        return False
