"""One browser context under control: performs operations, keeps its tabs within a scope, and turns
errors of Playwright into problems.
"""

from __future__ import annotations

import asyncio
import builtins
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    nullcontext,
    suppress,
)
from typing import TYPE_CHECKING, Any

from uncaged_bundles.clean import encodable

from ..elements.finding import Found
from ..elements.targets import ElementTarget
from ..operations import Operation, Switch, Tabs, WaitFor
from ..problems import BrowserProblem
from ..scope import EVERYWHERE, BrowserScope
from ..secrets import NO_BOUND_SECRETS, BoundSecrets, name_of_secret
from ..view.references import ViewReferences
from . import expecting, navigation
from .leaving import no_leaving
from .performers import PERFORMERS
from .tabs import MAX_TABS, ContextTabs

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Dialog, Download, Error, Locator, Page

__all__ = ["DrivenContext"]

MARGIN_S = 5.0
"""Time beyond an operation's own limit after which a page that hangs fails it."""
PAUSE_S = 0.05
NET_ERROR = re.compile(r"net::(ERR_[A-Z_]+)")
BLOCKED = frozenset({"ERR_TUNNEL_CONNECTION_FAILED", "ERR_BLOCKED_BY_CLIENT"})
MAX_REASON = 300


class DrivenContext:
    """A browser context as a `BrowserControl`."""

    def __init__(
        self,
        context: BrowserContext,
        scope: BrowserScope = EVERYWHERE,
        identify: Callable[[Page], Awaitable[str | None]] | None = None,
    ) -> None:
        """Args: identify: as that of `ContextTabs`."""
        self.context = context
        self.tabs = ContextTabs(context, identify)
        self.references = ViewReferences()
        self.scope = scope
        self._secret_fields: list[tuple[Page, Locator]] = []
        self._secret_values: dict[str, str] = {}
        self._secrets = NO_BOUND_SECRETS
        self.caller_scope = EVERYWHERE
        self._lock = asyncio.Lock()
        context.on("dialog", self._dismiss)
        context.on("page", self._watch)
        for page in context.pages:
            page.on("download", self._refuse)

    async def connected(self) -> DrivenContext:
        """Return the context itself; that of the extension is there only once it is connected."""
        return self

    async def perform(
        self,
        operation: Operation,
        secrets: BoundSecrets = NO_BOUND_SECRETS,
        scope: BrowserScope = EVERYWHERE,
    ) -> object:
        """Perform an operation; those of one context run one after the other."""
        from playwright.async_api import Error, TimeoutError

        perform = PERFORMERS[type(operation)]
        async with self._lock:
            self._check_before(operation, scope)
            self._secrets, self.caller_scope = secrets, scope
            try:
                async with asyncio.timeout(operation.timeout_s + MARGIN_S):
                    await self.tabs.settle()
                    async with self._limited(operation, scope):
                        answer = await perform(self, operation)
                    await self._check_after()
                if operation.expect is not None:
                    answer = await self._compared(operation, answer)
                answer = self._within(scope, answer)
            except TimeoutError as exc:
                raise self._late(operation, exc) from None
            except Error as exc:
                raise self.problem(exc, f"{operation.do} failed") from None
            except builtins.TimeoutError:
                raise BrowserProblem(
                    "timeout",
                    f"{operation.do}: the page did not answer within {operation.timeout_s:g} s",
                ) from None
            return encodable(answer)

    def _limited(
        self, operation: Operation, scope: BrowserScope
    ) -> AbstractAsyncContextManager[None]:
        """Return what keeps the pages within the caller's scope while an operation acts; the proxy
        does it for the scope of the context itself.
        """
        if scope in (EVERYWHERE, self.scope) or operation.effect == "reads":
            return nullcontext()
        return no_leaving(self.context, scope)

    async def aclose(self) -> None:
        """Close the context with its tabs."""
        from playwright.async_api import Error

        with suppress(Error):
            await self.context.close()

    async def revive(self, page: Page, timeout_s: float) -> Page:
        """Return a tab that takes the place of one whose page crashed, at the same address.
        Playwright can do nothing more with a crashed page.
        """
        new = await self.context.new_page()
        try:
            await new.goto(page.url, timeout=timeout_s * 1000)
        finally:
            await self.tabs.settle()
            self.tabs.replace(page, new)
            await page.close()
        return new

    async def expel(self, page: Page) -> None:
        """Take a tab that left the scope from the page that it is at."""
        await page.goto("about:blank")

    @property
    def secret_values(self) -> Mapping[str, str]:
        """Return the secrets that were typed into pages of the context: value to name."""
        return self._secret_values

    def masked(self, page: Page) -> list[Locator]:
        """Return what pictures do not show: fields that hold secrets, and elements with a secret as
        text.
        """
        fields = [field for owner, field in self._secret_fields if owner is page]
        texts = [frame.get_by_text(value) for frame in page.frames for value in self._secret_values]
        return [*fields, *texts]

    async def typed(self, page: Page, text: str, field: Locator) -> str:
        """Return what is typed into a field: the text, or the value of the secret that it names;
        the field is left out of pictures from then on.

        Raises:
            BrowserProblem: the secret is not for the page or frame that the field is in.
        """
        name = name_of_secret(text)
        if name is None:
            return text
        element = await field.element_handle()
        frame = await element.owner_frame()
        value = self._secrets.value(name, page.url if frame is None else frame.url)
        self._secret_fields.append((page, field))
        self._secret_values[value] = name
        return value

    async def after(self, page: Page, found: Found | None) -> dict[str, object]:
        """Return the answer of an operation on an element: the address, and the number of the
        alternative that matched.
        """
        return {"url": page.url, **({} if found is None else {"alternative": found.index})}

    async def gone(self, page: Page, operation: WaitFor) -> None:
        """Wait until no visible element is the target of an operation."""
        target = ElementTarget(
            alternatives=tuple(operation.target or ()),
            frames=tuple(tuple(frame) for frame in operation.frame),
        )
        end_s = time.monotonic() + operation.timeout_s
        while await self._is_there(page, target):
            if time.monotonic() >= end_s:
                raise BrowserProblem(
                    "timeout", f"{target} was still there after {operation.timeout_s:g} s"
                )
            await asyncio.sleep(PAUSE_S)

    async def _is_there(self, page: Page, target: ElementTarget) -> bool:
        from ..elements.finding import find_element

        try:
            await find_element(page, target, 0)
        except BrowserProblem as exc:
            return exc.kind == "ambiguous"
        return True

    @asynccontextmanager
    async def following(self, page: Page, timeout_s: float) -> AsyncIterator[None]:
        """Wait after the block for the page that it loads, in this tab or in a new one."""
        moved: asyncio.Future[Page] = asyncio.get_running_loop().create_future()

        def settle(other: Page) -> None:
            if not moved.done():
                moved.set_result(other)

        def navigated(frame: Any) -> None:
            if frame is page.main_frame:
                settle(page)

        page.on("framenavigated", navigated)
        self.context.on("page", settle)
        try:
            yield
            async with asyncio.timeout(timeout_s):
                target = await moved
        except TimeoutError:
            raise BrowserProblem("timeout", f"no page was loaded within {timeout_s:g} s") from None
        finally:
            page.remove_listener("framenavigated", navigated)
            self.context.remove_listener("page", settle)
        await target.wait_for_load_state("load", timeout=timeout_s * 1000)

    def problem(self, exc: Error, what: str) -> BrowserProblem:
        """Return an error of Playwright as a problem."""
        message = exc.message.partition("\nCall log:")[0].strip()
        found = NET_ERROR.search(message)
        if found is not None:
            kind = "blocked" if found[1] in BLOCKED else "navigation"
            return BrowserProblem(kind, f"{what}: {found[1]}")  # type: ignore[arg-type]
        lowered = message.casefold()
        if "download is starting" in lowered:
            return BrowserProblem("blocked", f"{what}: it is a download, and downloads are refused")
        if "crash" in lowered:
            return BrowserProblem("crashed", f"{what}: the page crashed")
        if "has been closed" in lowered or "target closed" in lowered:
            return BrowserProblem("closed", f"{what}: the tab or the browser was closed")
        return BrowserProblem("refused", f"{what}: {message[:MAX_REASON]}")

    def _late(self, operation: Operation, exc: Error) -> BrowserProblem:
        log = exc.message.partition("Call log:")[2].strip().splitlines()
        reason = next((line.strip(" -") for line in reversed(log) if line.strip(" -")), "")
        return BrowserProblem(
            "timeout",
            f"{operation.do} was not possible within {operation.timeout_s:g} s"
            + (f": {reason[:MAX_REASON]}" if reason else ""),
        )

    async def _compared(self, operation: Operation, answer: object) -> object:
        """Return an answer with the differences of the page from the expectation."""
        if operation.expect is None or not isinstance(answer, dict):
            return answer
        async with asyncio.timeout(expecting.WAIT_S + MARGIN_S):
            drift = await expecting.drift_of(lambda: self.tabs.page(None), operation.expect)
            await self._check_after()
        return {**answer, "url": self.tabs.page(None).url, **({"drift": drift} if drift else {})}

    def _check_before(self, operation: Operation, scope: BrowserScope) -> None:
        url = getattr(operation, "url", None)
        if isinstance(url, str):
            navigation.checked_url(url)
            self.scope.check(url)
            scope.check(url)
        elif scope != EVERYWHERE and not isinstance(operation, Tabs | Switch):
            scope.check_tab(self.tabs.page_even_crashed(operation.tab).url)

    def _within(self, scope: BrowserScope, answer: object) -> object:
        """Return the answer of an operation.

        Raises:
            BrowserProblem: it led to a tab that the caller may not use.
        """
        if scope == EVERYWHERE or isinstance(answer, list):
            return answer
        if self.tabs.current is not None:
            scope.check(self.tabs.current.url)
        return answer

    async def _check_after(self) -> None:
        """Empty each tab that left the scope, and report the first."""
        outside = [page for page in self.tabs.pages if not self.scope.allows(page.url)]
        if not outside:
            return
        url = outside[0].url
        for page in outside:
            await self.expel(page)
        self.scope.check(url)

    async def _watch(self, page: Page) -> None:
        """Refuse downloads of a new tab, and the tab if a page opened it beyond the limit."""
        from playwright.async_api import Error

        page.on("download", self._refuse)
        if len(self.tabs.pages) > MAX_TABS:
            with suppress(Error):
                if await page.opener() is not None:  # a person may open as many as they like
                    await page.close()

    async def _refuse(self, download: Download) -> None:
        await download.cancel()

    async def _dismiss(self, dialog: Dialog) -> None:
        from playwright.async_api import Error

        with suppress(Error):
            # the only one whose no keeps the page, which would stop every navigation
            if dialog.type == "beforeunload":
                await dialog.accept()
            else:
                await dialog.dismiss()
