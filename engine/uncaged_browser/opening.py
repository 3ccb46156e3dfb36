"""Browser for code outside a flow: one of ours, or the person's through the extension."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from uncaged_bundles.errors import EnvironmentLacks

from .browsers.installed import find_browser
from .browsers.launch import LaunchOptions, launched
from .driving.context import DrivenContext
from .operations import Operation
from .relay.control import ExtensionControl
from .relay.listener import ExtensionListener
from .relay.pairing import Pairings
from .scope import EVERYWHERE, BrowserScope
from .secrets import NO_BOUND_SECRETS, BoundSecrets

if TYPE_CHECKING:
    from playwright.async_api import Playwright

__all__ = ["BrowserKind", "OpenedBrowser", "open_browser"]

BrowserKind = Literal["playwright", "extension"]
DEFAULT_PORT = 8811
PAIRINGS = "pairings.json"


class OpenedBrowser:
    """A browser that is closed with its resources. It is a `BrowserControl`."""

    def __init__(
        self, control: DrivenContext | ExtensionControl, resources: AsyncExitStack
    ) -> None:
        self._control = control
        self._resources = resources

    async def perform(
        self,
        operation: Operation,
        secrets: BoundSecrets = NO_BOUND_SECRETS,
        scope: BrowserScope = EVERYWHERE,
    ) -> object:
        """Perform an operation and return its answer as JSON data."""
        return await self._control.perform(operation, secrets, scope)

    async def connected(self) -> DrivenContext:
        """Return the context of the tabs, as a `Recorder` needs it. Its `context` is Playwright's.

        Raises:
            BrowserProblem: the extension is away.
        """
        return await self._control.connected()

    async def aclose(self) -> None:
        """End what was started. The tabs of the person's browser stay open."""
        await self._resources.aclose()


async def open_browser(
    kind: BrowserKind = "playwright",
    *,
    scope: BrowserScope = EVERYWHERE,
    directory: Path | None = None,
    program: str | None = None,
    headless: bool = True,
    sandbox: bool = True,
    port: int = DEFAULT_PORT,
    on_code: Callable[[str, int], None] = lambda _code, _port: None,
    timeout_s: float = 60.0,
) -> OpenedBrowser:
    """Open a browser and return its control.

    Args:
        directory: keeps the profile, or the pairings; None is a temporary one.
        program, headless, sandbox: of a browser of ours.
        port: where the extension connects; 0 takes a free one. on_code: receives the pairing code
            and the port. timeout_s: how long the extension is waited for.
    Raises:
        EnvironmentLacks: there is no browser, or no extension connected in time.
    """
    from playwright.async_api import async_playwright

    async with AsyncExitStack() as resources:
        if directory is None:
            made = tempfile.TemporaryDirectory(prefix="uncaged-browser-")
            directory = Path(resources.enter_context(made))
            directory.chmod(0o711)
        playwright = await resources.enter_async_context(async_playwright())
        control: DrivenContext | ExtensionControl
        if kind == "playwright":
            options = LaunchOptions(
                program=find_browser(program, os.environ), headless=headless, sandbox=sandbox
            )
            running = await resources.enter_async_context(launched(playwright, options, directory))
            control = DrivenContext(running.kept, scope)
        else:
            listener = ExtensionListener(Pairings(directory / PAIRINGS))
            control = await _extension(playwright, listener, scope, port, resources)
            on_code(listener.pairings.new_code(), listener.port)
            if await listener.wait_link(timeout_s) is None:
                raise EnvironmentLacks(
                    f"no extension connected to port {listener.port} within {timeout_s:g} s",
                    remedy="load the extension and type the pairing code (docs/browser.md)",
                )
        return OpenedBrowser(control, resources.pop_all())


async def _extension(
    playwright: Playwright,
    listener: ExtensionListener,
    scope: BrowserScope,
    port: int,
    resources: AsyncExitStack,
) -> ExtensionControl:
    await listener.start(port)
    resources.push_async_callback(listener.aclose)
    control = ExtensionControl(playwright, listener, scope)
    resources.push_async_callback(control.aclose)
    return control
