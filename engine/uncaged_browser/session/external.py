"""The person's browser as part of a session: its listener is open only while it is switched on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from uncaged_bundles.errors import DamagedError
from uncaged_bundles.storage.store import Store

from ..relay.control import ExtensionControl
from ..relay.listener import ExtensionListener
from ..relay.pairing import Pairings, pairings_path
from ..relay.panel import serve_page

if TYPE_CHECKING:
    from playwright.async_api import Playwright

__all__ = ["ExternalBrowser"]


class ExternalBrowser:
    """Switch for the extension of the person's browser."""

    def __init__(
        self, playwright: Playwright, store: Store, port: int, serve_port: Callable[[], int]
    ) -> None:
        """Args: port: for the extension. serve_port: returns that of `serve`, for its panel."""
        self._panel = serve_page(serve_port)
        self._playwright = playwright
        self._pairings = Pairings(pairings_path(store))
        self._port = port
        self._listener: ExtensionListener | None = None
        self._control: ExtensionControl | None = None

    @property
    def is_on(self) -> bool:
        """Return whether the listener is open."""
        return self._listener is not None

    @property
    def control(self) -> ExtensionControl | None:
        """Return the control of the person's browser while its extension is connected."""
        connected = self._listener is not None and self._listener.link is not None
        return self._control if connected else None

    async def switch_on(self) -> str:
        """Listen for the extension and return a new pairing code.

        Raises:
            UsageError: the port is taken. DamagedError: the file of pairings cannot be read.
        """
        self._pairings.check()
        if self._listener is None:
            listener = ExtensionListener(self._pairings, panel=self._panel)
            await listener.start(self._port)
            self._listener = listener
            self._control = ExtensionControl(self._playwright, listener)
        return self._pairings.new_code()

    async def switch_off(self) -> None:
        """Let go of the person's tabs and stop listening. Pairings stay."""
        listener, control = self._listener, self._control
        self._listener = self._control = None
        if control is not None:
            await control.aclose()
        if listener is not None:
            await listener.aclose()

    def status(self) -> dict[str, object]:
        """Return whether it is on, its port, whether an extension is connected, how many browsers
        are paired, and the problem of the file of pairings, if there is one.
        """
        problem = ""
        paired = 0
        try:
            paired = len(self._pairings.clients)
        except DamagedError as exc:
            problem = str(exc)
        return {
            "on": self.is_on,
            "port": self._port,
            "connected": self.control is not None,
            "paired": paired,
            **({"problem": problem} if problem else {}),
        }
