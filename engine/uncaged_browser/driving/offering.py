"""Operations that list what a page offers to do, and that call what its scripts register."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uncaged_bundles.records import dataclass
from uncaged_bundles.shapes import ShapeError

from ..actions.page_action import FoundAction, PageAction, actions_of_frame, named_actions
from ..actions.registered import LIST_S, RegisteredAction, call_action, list_actions
from ..elements.scripts import script_in
from ..operations import CallAction, ReadActions
from ..problems import BrowserProblem
from ..view.writing import ORDER

if TYPE_CHECKING:
    from playwright.async_api import Frame, Page

    from .context import DrivenContext

__all__ = ["actions", "call", "shown_frames"]

MAX_FRAMES = 20
MAX_ACTIONS = 500
FRAME_S = 3.0
ATTEMPTS = 3
SHOWN_ORDERS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedActions:
    """What a page offers. frames: by the numbers that the actions have. left_out: sentences."""

    frames: Sequence[Frame]
    found: Sequence[FoundAction]
    registered: Mapping[str, RegisteredAction]
    left_out: Sequence[str]


async def actions(context: DrivenContext, operation: ReadActions) -> dict[str, object]:
    """Return the actions of a page; orders are texts of theirs that give orders."""
    page = context.tabs.page(operation.tab)
    offered = await _settled(page)
    head: dict[str, object] = {"url": page.url, "title": await page.title()}
    if operation.name:
        return {**head, **await _one(page, offered, operation.name)}
    listed = [one.action for one in offered.found[:MAX_ACTIONS]]
    texts = [text for one in listed for text in (one.label, one.description)]
    orders = [text for text in dict.fromkeys(texts) if ORDER.search(text)]
    rest = len(offered.found) - len(listed)
    left_out = [*offered.left_out, *([f"{rest:,} further actions"] if rest > 0 else [])]
    return {
        **head,
        "actions": [one.document() for one in listed],
        **({"leftOut": left_out} if left_out else {}),
        **({"orders": orders[:SHOWN_ORDERS]} if orders else {}),
    }


async def call(context: DrivenContext, operation: CallAction) -> dict[str, object]:
    """Call an action that the page registers."""
    page = context.tabs.page(operation.tab)
    try:
        async with asyncio.timeout(operation.timeout_s):
            result = await call_action(
                page, operation.name, operation.arguments, operation.timeout_s
            )
    except TimeoutError:
        raise BrowserProblem(
            "timeout",
            f"the action {operation.name!r} did not end within {operation.timeout_s:g} s",
        ) from None
    if result.is_gone:
        await page.wait_for_load_state("load", timeout=operation.timeout_s * 1000)
    cut = result.characters > len(result.text)
    return {
        "url": page.url,
        "text": result.text,
        **({"characters": result.characters} if cut else {}),
        **({"left": True} if result.is_gone else {}),
    }


async def _settled(page: Page) -> OfferedActions:
    """Return what a page offers; one that loads another page meanwhile is read again."""
    from playwright.async_api import Error

    for _ in range(ATTEMPTS):
        try:
            return await _offered(page)
        except Error as exc:
            if "context was destroyed" not in exc.message:
                raise
            await page.wait_for_load_state("domcontentloaded")
    raise BrowserProblem("navigation", "the page loads another one again and again")


async def _offered(page: Page) -> OfferedActions:
    from playwright.async_api import Error

    frames, left_out = await shown_frames(page)
    found: list[FoundAction] = []
    for number, frame in enumerate(frames):
        try:
            async with asyncio.timeout(None if number == 0 else FRAME_S):
                forms = await frame.evaluate(script_in("forms.js"), [None, True])
                offers = await frame.evaluate(script_in("offers.js"), None)
            found += actions_of_frame(number, page.url, forms, offers, frame.url)
        except ShapeError as exc:
            if number == 0:
                reason = f"the page's actions cannot be read: {exc}"
                raise BrowserProblem("refused", reason) from None
            left_out.append(f"the frame at {frame.url[:200]}, which cannot be read")
            continue
        except (Error, TimeoutError):
            if number == 0:
                raise
            left_out.append(f"the frame at {frame.url[:200]}, which does not answer")
            continue
        left_out += _cut(forms, offers)
    registered = {one.name: one for one in await _registered(page)}
    found += [
        FoundAction(
            action=PageAction(
                name=f"page:{one.name}",
                kind="page",
                label=one.name,
                description=one.description,
                parameters=one.parameters,
            ),
            frame=0,
            part="page",
            index=index,
        )
        for index, one in enumerate(registered.values())
    ]
    order = {"page": 0, "form": 1, "button": 2, "link": 3, "landmark": 4}
    named = named_actions(found)
    named.sort(key=lambda one: order[one.action.kind])
    return OfferedActions(frames=frames, found=named, registered=registered, left_out=left_out)


async def _registered(page: Page) -> list[RegisteredAction]:
    try:
        async with asyncio.timeout(LIST_S):
            return await list_actions(page)
    except TimeoutError:
        return []


async def shown_frames(page: Page) -> tuple[list[Frame], list[str]]:
    """Return the frames that a person can see, the main one first, and what was left out."""
    shown, left_out = [page.main_frame], []
    others = [frame for frame in page.frames if frame is not page.main_frame]
    for frame in others[:MAX_FRAMES]:
        if frame.parent_frame in shown and (await _element(frame)).get("shown"):
            shown.append(frame)
    if len(others) > MAX_FRAMES:
        left_out.append(f"{len(others) - MAX_FRAMES:,} further frames")
    return shown, left_out


async def _element(frame: Frame) -> Mapping[str, Any]:
    """Return whether a frame's element is shown, and its alternatives; nothing of one that is gone
    or whose page does not answer.
    """
    from playwright.async_api import Error

    try:
        async with asyncio.timeout(FRAME_S):
            element = await frame.frame_element()
            found: Mapping[str, Any] = await element.evaluate(script_in("framed.js"))
            return found
    except (Error, TimeoutError):
        return {}


def _cut(forms: Mapping[str, Any], offers: Mapping[str, Any]) -> list[str]:
    """Return what the scripts of one frame left out, as sentences."""
    more = {"forms": forms.get("more"), **offers.get("more", {})}
    sentences = [
        f"{count:,} further {part}"
        for part, count in more.items()
        if isinstance(count, int) and count > 0
    ]
    elements = offers.get("cut")
    if isinstance(elements, int) and elements:
        sentences.append(f"what is behind the first 20,000 of {elements:,} elements")
    return sentences


async def _one(page: Page, offered: OfferedActions, name: str) -> dict[str, object]:
    """Return one action with what is needed to perform it."""
    wanted = name.casefold()
    chosen = next((one for one in offered.found if one.action.name == name), None)
    chosen = chosen or next((one for one in offered.found if one.action.name == wanted), None)
    if chosen is None:
        from difflib import get_close_matches

        known = [one.action.name for one in offered.found]
        near = get_close_matches(wanted, known, n=3) or known[:5]
        raise BrowserProblem(
            "not-found",
            f"the page offers no action {name[:80]!r}"
            + (f"; near: {', '.join(near)}" if near else ""),
            candidates=near,
        )
    document: dict[str, object] = {"action": chosen.action.document()}
    frame = offered.frames[chosen.frame]
    if chosen.part == "page":
        return document
    document["frame"] = await _chain(page, frame)
    if chosen.part == "forms":
        found = await frame.evaluate(script_in("forms.js"), [chosen.index, True])
        forms = [one for one in found["forms"] if one["number"] == chosen.index]
        if not forms:
            raise BrowserProblem("not-found", f"{name} is gone from the page")
        return {**document, "forms": forms}
    found = await frame.evaluate(script_in("offers.js"), [chosen.part, chosen.index])
    return {**document, "names": found.get("names", [])}


async def _chain(page: Page, frame: Frame) -> list[object]:
    """Return the targets of the frames that a frame is in, the outermost first."""
    chain: list[object] = []
    inner: Frame | None = frame
    while inner is not None and inner is not page.main_frame:
        chain.insert(0, (await _element(inner)).get("names", []))
        inner = inner.parent_frame
    return chain
