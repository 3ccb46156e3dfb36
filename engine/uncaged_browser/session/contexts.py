"""Contexts of a browser session, each with a filtering proxy of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from uncaged_bundles.errors import EnvironmentLacks

from ..control import BrowserControl
from ..driving.context import DrivenContext
from ..operations import Operation
from ..recording.recorder import Recorder
from ..relay.control import ExtensionControl
from ..scope import BrowserScope
from ..secrets import BoundSecrets
from .external import ExternalBrowser
from .guard import RequestGuard
from .messages import KEPT, ContextSpec
from .proxies import Refusals, proxied

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext

__all__ = ["ContextServer", "SessionContexts"]

MAX_CONTEXTS = 100
KEPT_S = 600.0
"""The context of a thread that stopped before its end is kept this long."""
ENDED = (None, "completed", "failed", "killed", "corrupt")


class ContextServer:
    """One context with its proxy. guard: of one for a proof. recorder: of one that is recorded.
    used_s: when it was used last, by the monotonic clock.
    """

    def __init__(
        self,
        control: BrowserControl,
        proxy: ExitStack,
        refused: Refusals,
        guard: RequestGuard | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self.control = control
        self.refused = refused
        self.guard = guard
        self.recorder = recorder
        self.used_s = time.monotonic()
        self._proxy = proxy

    async def perform(
        self, operation: Operation, secrets: BoundSecrets, scope: BrowserScope, *, passes: bool
    ) -> object:
        """Perform an operation; one whose request the guard holds is not waited for.

        Args:
            passes: the guard lets through what it sends.
        """
        self.used_s = time.monotonic()
        work = self.control.perform(operation, secrets, scope)
        if self.guard is None:
            return await work
        if operation.effect != "reads":
            self.guard.begin(acts=operation.effect == "acts", passes=passes)
        performed = asyncio.ensure_future(work)
        arrived = asyncio.ensure_future(self.guard.arrived.wait())
        await asyncio.wait((performed, arrived), return_when=asyncio.FIRST_COMPLETED)
        arrived.cancel()
        if not performed.done():
            performed.add_done_callback(_forget)
            return {}
        return performed.result()

    async def state(self) -> object:
        """Return cookies and storage; None for the person's browser, whose own they are."""
        if not isinstance(self.control, DrivenContext):
            return None
        return await self.control.context.storage_state()

    async def aclose(self) -> None:
        """Close the context, then its proxy, also if the browser is gone."""
        try:
            await self.control.aclose()
        finally:
            await asyncio.to_thread(self._proxy.close)


def _ending() -> EnvironmentLacks:
    return EnvironmentLacks(
        "the browser session is ending", remedy="wait until it has ended", begun=False
    )


def _forget(performed: asyncio.Future[object]) -> None:
    """Take the result of an operation that is not waited for, so that none is reported as lost."""
    if not performed.cancelled():
        performed.exception()


class SessionContexts:
    """The contexts of one browser by name. recorded: a client records the kept one.
    is_recording_ended: another client asked it to end that.
    """

    def __init__(
        self,
        browser: Browser,
        kept: BrowserContext,
        external: ExternalBrowser,
        *,
        shown: bool = False,
    ) -> None:
        """Args: kept: the browser's own context, which stays. shown: whether it has a window."""
        self.external = external
        self.recorded = False
        self.is_recording_ended = False
        self._browser = browser
        self._shown = shown
        self._kept = ContextServer(DrivenContext(kept), ExitStack(), Refusals())
        self._others: dict[str, ContextServer] = {}
        self._lock = asyncio.Lock()
        self._is_ending = False

    @property
    def names(self) -> list[str]:
        """Return the names of the threads that have a context."""
        return sorted(self._others)

    @property
    def shown(self) -> bool:
        """Whether the browser has a window."""
        return self._shown

    def find(self, name: str) -> ContextServer | None:
        """Return an open context. The kept one is that of our browser if it is shown, else that of
        the person's if its extension is connected now, else that of our headless one.
        """
        if name != KEPT:
            return self._others.get(name)
        external = None if self._shown else self.external.control
        return self._kept if external is None else ContextServer(external, ExitStack(), Refusals())

    def current_url(self) -> str | None:
        """Return the address of the kept context's current tab; None without one."""
        kept = self.find(KEPT)
        control = None if kept is None else kept.control
        if isinstance(control, ExtensionControl):
            control = control.context
        page = control.tabs.current if isinstance(control, DrivenContext) else None
        return None if page is None else page.url

    async def open(self, spec: ContextSpec) -> bool:
        """Open a context unless it is open; return whether it is new.

        Raises:
            EnvironmentLacks: too many are open, or the session ends.
        """
        async with self._lock:
            if self._is_ending:
                raise _ending()
            if self.find(spec.name) is not None:
                return False
            if len(self._others) >= MAX_CONTEXTS:
                raise EnvironmentLacks(
                    f"{MAX_CONTEXTS} threads use this browser session",
                    remedy="wait until one of them has ended",
                    begun=False,
                )
            address, proxy, refused = proxied(spec)
            try:
                control, guard, recorder = await self._made(spec, address)
            except BaseException:
                proxy.close()
                raise
            self._others[spec.name] = ContextServer(control, proxy, refused, guard, recorder)
            if self._is_ending:  # since the context was asked for
                await self.close(spec.name)
                raise _ending()
            return True

    async def _made(
        self, spec: ContextSpec, address: str
    ) -> tuple[DrivenContext, RequestGuard | None, Recorder | None]:
        """Make a context with its guard and its recorder, if it has any. address: of its proxy."""
        context = await self._browser.new_context(
            accept_downloads=False,
            storage_state=None if spec.state is None else dict(spec.state),  # type: ignore[arg-type]
            proxy={"server": address, "bypass": "<-loopback>"},
            service_workers="block" if spec.proof else "allow",
        )
        control = DrivenContext(context, spec.scope)
        try:
            guard = RequestGuard() if spec.proof else None
            if guard is not None:
                await guard.watch(context)
            recorder = Recorder(control, spec.name) if spec.recorded else None
            if recorder is not None:
                await recorder.start()
        except BaseException:
            await control.aclose()
            raise
        return control, guard, recorder

    async def close(self, name: str) -> bool:
        """Close the context of a thread; return whether there was one."""
        context = self._others.pop(name, None)
        if context is None:
            return False
        await context.aclose()
        return True

    async def sweep(self, status_of: Callable[[str], str | None]) -> None:
        """Close the contexts whose threads ended, and those that stopped long ago.

        Args:
            status_of: returns the status of a thread by its id; None if it was removed.
        """
        for name in self.names:
            context = self._others.get(name)  # another may be closed while this waits
            if context is None or context.guard is not None:  # a proof's ends with its client
                continue
            status = await asyncio.to_thread(status_of, name)
            if self._others.get(name) is not context or status == "running":
                continue
            if status in ENDED or time.monotonic() - context.used_s > KEPT_S:
                await self.close(name)

    async def aclose(self) -> None:
        """Close the contexts of all threads, and let go of the person's browser; none is opened
        from now on.
        """
        self._is_ending = True
        for name in self.names:
            with suppress(Exception):
                await self.close(name)
        await self.external.switch_off()
