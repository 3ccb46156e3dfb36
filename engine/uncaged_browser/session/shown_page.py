"""The page that the default browser session shows, for packs of sites."""

from __future__ import annotations

from collections.abc import Sequence

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.storage.store import Store

from ..problems import BrowserProblem
from ..scope import BrowserScope
from .address import DEFAULT_SESSION, socket_path
from .client import SessionClient, SessionGone

__all__ = ["SessionPage"]

SCHEMES = ("http://", "https://")


class SessionPage:
    """The current tab of a session that runs; nothing is started for it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def url(self) -> str | None:
        """Return the address of the tab; None without a session, a tab, or a page of the web."""
        if not socket_path(self._store, DEFAULT_SESSION).exists():  # no connection is tried
            return None
        try:
            client = SessionClient.connect(self._store, DEFAULT_SESSION)
            if client is None:
                return None
            with client:
                url = client.current_url()
        except (BrowserProblem, SessionGone, UncagedError):  # it ends, or does not answer
            return None
        return url if url is not None and url.startswith(SCHEMES) else None

    def covers(self, url: str, hosts: Sequence[str], patterns: Sequence[str]) -> bool:
        """Whether an address is at one of the hosts and fits one of the patterns."""
        return BrowserScope.of(tuple(hosts) or None, patterns).allows(url)
