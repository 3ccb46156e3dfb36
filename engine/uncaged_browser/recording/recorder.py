"""Recorder of what a person, or a program in the place of one, does in a browser context."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

from uncaged_bundles import shapes
from uncaged_bundles.errors import UsageError

from ..addresses import without_login
from ..driving.context import DrivenContext
from ..elements.scripts import page_script
from ..elements.targets import ElementName, read_target
from ..operations import Navigate, Open
from .notes import PageState, StepNotes
from .recording import Recording, hosts_seen

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Frame, Page

__all__ = ["Recorder"]

SCRIPT = Path(__file__).with_name("page.js")
STATE = """async () => {
  const drawn = new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  await Promise.race([drawn, new Promise(done => setTimeout(done, 200))]);
  const headings = [...document.querySelectorAll('h1,h2,[role=heading]')];
  return {url: location.href, title: document.title,
    heading: headings.find(one => one.checkVisibility())?.innerText || ''};
}"""
"""Reads a page after the events that are under way."""
ANSWER_S = 3.0
"""A page that does not answer within this time is not waited for."""
SCHEMES = ("http://", "https://")
Alternatives = tuple[ElementName, ...]


class Recordable(Protocol):
    """Control of a browser whose tabs can be recorded."""

    async def connected(self) -> DrivenContext:
        """Return the context of its tabs."""


class Installed(Protocol):
    """A script or binding of a context."""

    async def close(self) -> None: ...


class Recorder:
    """Notes actions in all pages and frames of a context from `start` to `stop`. Passwords are
    never noted.
    """

    def __init__(self, control: Recordable, name: str = "recording") -> None:
        self._recorded = control
        self._driven: DrivenContext | None = None
        self._name = name
        self._notes = StepNotes()
        self._binding = f"note{secrets.token_hex(8)}"
        self._frames: WeakKeyDictionary[Frame, Alternatives] = WeakKeyDictionary()
        self._sessions: list[CDPSession] = []
        self._scripts: list[Installed] = []
        self._pages: list[Page] = []
        self._tasks: set[asyncio.Future[None]] = set()
        self._running = False
        self._url = ""

    async def start(self) -> None:
        """Begin to note, in open pages, too."""
        self._driven = await self._recorded.connected()
        context = self._control.context
        script = page_script(SCRIPT).replace("BINDING", self._binding)
        for part in (
            await context.expose_binding(self._binding, self._receive),
            await context.add_init_script(script),
        ):
            self._scripts.append(part)
        self._running = True
        context.on("page", self._watch)
        for page in context.pages:
            self._watch(page)
            for frame in page.frames:
                await _evaluate(frame, script)
                await self._locate(frame)
        if self._tasks:  # an address that is opened before its page is followed would be lost
            await asyncio.wait(self._tasks, timeout=ANSWER_S)
        current = self._control.tabs.current
        is_empty = current is None or current.url == "about:blank"
        self._url = "" if current is None or is_empty else without_login(current.url)

    @property
    def _control(self) -> DrivenContext:
        if self._driven is None:
            raise UsageError("the recorder is not running")
        return self._driven

    async def stop(self) -> Recording:
        """End the noting and return the recording.

        Raises:
            UsageError: it was not started, or no page was opened.
        """
        if not self._running:
            raise UsageError("the recorder is not running")
        await self._settle()
        self._running = False
        self._control.context.remove_listener("page", self._watch)
        await self._release()
        return self.recording()

    async def settled(self) -> Recording:
        """Return what was noted so far, with the expectation of the last step.

        Raises:
            UsageError: no page was opened.
        """
        await self._settle()
        return self.recording()

    async def _settle(self) -> None:
        page = self._control.tabs.current
        state = None if page is None else await _evaluate(page.main_frame, STATE)
        if page is not None and state is not None:
            self._notes.settle(PageState.of(state), self._tab_of(page))

    def recording(self) -> Recording:
        """Return what was noted so far.

        Raises:
            UsageError: no page was opened.
        """
        if not self._url:
            raise UsageError("no page was opened while the recorder was running")
        steps = tuple(self._notes.steps)
        return Recording(
            name=self._name,
            url=self._url,
            steps=steps,
            left_out=tuple(self._notes.left_out),
            hosts=tuple(hosts_seen(self._url, steps)[1:]),
        )

    async def _release(self) -> None:
        for page in self._pages:
            page.remove_listener("framenavigated", self._locate)
        for task in self._tasks:
            task.cancel()
        works = (
            *(session.detach() for session in self._sessions),
            *(script.close() for script in self._scripts),
        )
        ends = [asyncio.ensure_future(work) for work in works]
        _, waiting = await asyncio.wait(ends, timeout=ANSWER_S)
        for end in waiting:  # each for itself: that of a page that hangs has no answer
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)

    def _receive(self, source: Mapping[str, Any], note: object) -> None:
        """Add a note of a page; notes after the end are ignored."""
        if not self._running or not isinstance(note, dict):
            return
        frame, chain = source["frame"], []
        while frame.parent_frame is not None:
            found = self._frames.get(frame)
            if found is None:
                self._notes.leave(f"{str(note.get('kind'))[:20]} in an unknown frame")
                return
            chain.append(found)
            frame = frame.parent_frame
        self._url = self._url or without_login(frame.url)
        page = source["page"]
        self._notes.add(note, tuple(reversed(chain)), self._tab_of(page), page.url)

    def _tab_of(self, page: Page) -> int:
        return int(self._control.tabs.id_of(page))

    def _watch(self, page: Page) -> None:
        page.on("framenavigated", self._locate)
        self._pages.append(page)
        self._begin(self._follow(page, opened=page.url.startswith(SCHEMES)))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self, page: Page, *, opened: bool) -> None:
        """Note the addresses that a person opens in a page."""
        from playwright.async_api import Error

        with suppress(Error):
            by_page = await page.opener() is not None

            def note(url: str) -> None:
                self._note_address(url, page, opened=by_page)

            follower = PageFollower(note)
            session = await self._control.context.new_cdp_session(page)
            session.on("Page.frameRequestedNavigation", follower.requested)
            session.on("Page.frameNavigated", follower.navigated)
            await session.send("Page.enable")
            self._sessions.append(session)
            if by_page:
                follower.expected = not page.url.startswith(SCHEMES)
            elif not opened:  # it may have been loaded before it was followed
                note(page.url)

    def _note_address(self, url: str, page: Page, *, opened: bool) -> None:
        last = self._notes.steps[-1] if self._notes.steps else None
        if (
            not self._running
            or not url.startswith(SCHEMES)
            or last in (Navigate(url=without_login(url)), Open(url=without_login(url)))
        ):
            return
        self._url = self._url or without_login(url)
        self._notes.navigate(url, self._tab_of(page), opened=opened)

    async def _locate(self, frame: Frame) -> None:
        """Keep the ways to find a frame's element, while it is there to be looked at."""
        from playwright.async_api import Error

        if not self._running or frame.parent_frame is None:
            return
        with suppress(Error, shapes.ShapeError):
            element = await frame.frame_element()
            found = await element.evaluate(
                "(one, key) => window[key](one)", f"{self._binding} frame"
            )
            self._frames[frame] = read_target(found, ("frame",))


class PageFollower:
    """Tells addresses that a person opens from those that a page leads to. expected: the next load
    is caused by a page.
    """

    def __init__(self, opened: Callable[[str], None]) -> None:
        self._opened = opened
        self.expected = False

    def requested(self, event: Mapping[str, Any]) -> None:
        """Take note of a load that a page asks for: by a link, a form or a script."""
        if event.get("disposition", "currentTab") == "currentTab":
            self.expected = True

    def navigated(self, event: Mapping[str, Any]) -> None:
        """Report the address of a load that no page asked for."""
        frame = event["frame"]
        if "parentId" in frame:
            return
        expected, self.expected = self.expected, False
        if not expected:
            self._opened(str(frame["url"]) + str(frame.get("urlFragment", "")))


async def _evaluate(frame: Frame, script: str) -> Any:
    """Return the value of a script in a frame; None if the frame is gone, or its page hangs."""
    from playwright.async_api import Error

    with suppress(Error, TimeoutError):
        async with asyncio.timeout(ANSWER_S):
            return await frame.evaluate(script)
    return None
