"""Protocol of a controlled browser: one method that performs an operation of the table."""

from __future__ import annotations

from typing import Protocol

from .operations import Operation
from .scope import EVERYWHERE, BrowserScope
from .secrets import NO_BOUND_SECRETS, BoundSecrets

__all__ = ["BrowserControl"]


class BrowserControl(Protocol):
    """A browser context with its tabs. Callers do not know whose browser it is.

    No tab, address or element is kept between two calls: each call asks the browser.
    """

    async def perform(
        self,
        operation: Operation,
        secrets: BoundSecrets = NO_BOUND_SECRETS,
        scope: BrowserScope = EVERYWHERE,
    ) -> object:
        """Perform an operation and return its answer as JSON data.

        Args:
            secrets: those that the operation may type. scope: the tabs that the caller may use.
        Raises:
            BrowserProblem: it failed; nothing else is raised.
        """

    async def aclose(self) -> None:
        """Close the context with its tabs."""
