"""Badge and title of the extension's button: whether the agent works, and at what."""

from __future__ import annotations

from contextlib import suppress

from ..operations import ShowStatus
from ..problems import BrowserProblem
from .link import ExtensionLink

__all__ = ["AgentBadge"]

CONNECTED = "on"
WORKING = "…"
NAME = "uncaged-workflow"


class AgentBadge:
    """The button as a control shows it: during an operation its name, between two the status that
    an operation set last.
    """

    def __init__(self) -> None:
        self._status = ShowStatus()

    async def work(self, link: ExtensionLink, what: str) -> None:
        """Show that an operation is performed, without waiting for it."""
        await _send(link, WORKING, what)

    async def rest(self, link: ExtensionLink) -> None:
        """Show the status, without waiting for it."""
        await _send(link, *self._shown())

    async def set(self, link: ExtensionLink, status: ShowStatus) -> dict[str, object]:
        """Show a status from now on.

        Raises:
            BrowserProblem: the extension does not show it.
        """
        self._status = status
        badge, title = self._shown()
        await link.call("action.setBadgeText", {"text": badge})
        await link.call("action.setTitle", {"title": f"{NAME} {title}".strip()})
        return {"shown": True}

    def _shown(self) -> tuple[str, str]:
        return WORKING if self._status.busy else CONNECTED, self._status.text


async def _send(link: ExtensionLink, badge: str, title: str) -> None:
    with suppress(BrowserProblem):
        await link.request("action.setBadgeText", {"text": badge})
        await link.request("action.setTitle", {"title": f"{NAME} {title}".strip()})
