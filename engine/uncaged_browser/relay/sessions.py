"""Protocol sessions of the tabs under control: which session id of the DevTools protocol belongs to
which tab, frame or worker.
"""

from __future__ import annotations

import itertools
from typing import Any

from uncaged_bundles.records import dataclass

__all__ = ["ControlledTab", "ProtocolSessions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledTab:
    """A tab that the debugger is attached to. info: its target, as the protocol describes it."""

    tab: int
    session: str
    info: dict[str, Any]

    @property
    def target(self) -> str:
        """Return the id of its target."""
        return str(self.info["targetId"])


class ProtocolSessions:
    """Sessions by id. A tab has one; its frames and workers have further ones, whose ids the
    browser gives.
    """

    def __init__(self) -> None:
        self.tabs: dict[int, ControlledTab] = {}
        self._children: dict[str, int] = {}
        self._aliases: dict[str, ControlledTab] = {}
        self._numbers = itertools.count(1)

    def add(self, tab: int, info: dict[str, Any]) -> ControlledTab:
        """Add a tab that was attached."""
        session = f"tab-{tab}-{next(self._numbers)}"
        added = self.tabs[tab] = ControlledTab(tab=tab, session=session, info=info)
        return added

    def remove(self, tab: int) -> ControlledTab | None:
        """Remove a tab with all its sessions, and return it."""
        removed = self.tabs.pop(tab, None)
        self._children = {id: owner for id, owner in self._children.items() if owner != tab}
        self._aliases = {id: found for id, found in self._aliases.items() if found.tab != tab}
        return removed

    def add_child(self, session: str, tab: int) -> None:
        """Add the session of a frame or worker of a tab."""
        self._children[session] = tab

    def remove_child(self, session: str) -> None:
        """Remove the session of a frame or worker."""
        self._children.pop(session, None)

    def add_alias(self, found: ControlledTab) -> str:
        """Return a further session id of a tab, which receives no events."""
        session = f"alias-{next(self._numbers)}"
        self._aliases[session] = found
        return session

    def alias(self, session: str) -> ControlledTab | None:
        """Return the tab of a further session id."""
        return self._aliases.get(session)

    def by_target(self, target: object) -> ControlledTab | None:
        """Return the tab with a target id."""
        return next((found for found in self.tabs.values() if found.target == target), None)

    def debuggee(self, session: str) -> dict[str, Any] | None:
        """Return whom the extension's debugger sends a command of a session to."""
        if session in self._children:
            return {"tabId": self._children[session], "sessionId": session}
        found = self._aliases.get(session) or next(
            (one for one in self.tabs.values() if one.session == session), None
        )
        return None if found is None else {"tabId": found.tab}
