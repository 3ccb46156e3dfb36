"""BrowserScope of a flow: the hosts, and the patterns of addresses, that its tabs may be at."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate

from uncaged_bundles import shapes
from uncaged_bundles.records import dataclass

from .addresses import parts_of
from .problems import BrowserProblem

__all__ = ["EVERYWHERE", "BrowserScope"]

HARMLESS = ("about:blank", "")
NO_PAGE = "no page of the web; open an address"
SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserScope:
    """hosts: exact names, or suffixes at a dot: ``shop.test`` takes ``www.shop.test``; a port is
    given as ``shop.test:8080``. None is any. patterns: of whole addresses, with ``*``; none means
    any on these hosts.
    """

    hosts: tuple[str, ...] | None = None
    patterns: tuple[str, ...] = ()

    @classmethod
    def of(cls, hosts: Sequence[str] | None, patterns: Sequence[str] = ()) -> BrowserScope:
        """Return a scope; hosts are compared without regard to case."""
        return cls(
            hosts=None if hosts is None else tuple(host.casefold() for host in hosts),
            patterns=tuple(patterns),
        )

    def document(self) -> dict[str, object]:
        """Return the scope as JSON data."""
        return {
            "hosts": None if self.hosts is None else list(self.hosts),
            "patterns": list(self.patterns),
        }

    @classmethod
    def read(cls, value: object) -> BrowserScope:
        """Return the scope of JSON data; None is everywhere.

        Raises:
            ShapeError: it is malformed.
        """
        if value is None:
            return EVERYWHERE
        path: shapes.Path = ("scope",)
        fields = shapes.mapping(value, path)
        hosts = fields.get("hosts")
        return cls.of(
            None if hosts is None else shapes.texts(hosts, (*path, "hosts")),
            shapes.texts(fields.get("patterns", []), (*path, "patterns")),
        )

    def allows(self, url: str) -> bool:
        """Whether a tab may be at an address."""
        if url in HARMLESS:
            return True
        parts = parts_of(url)
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            return False
        place = (parts.hostname, parts.port)
        if self.hosts is not None and not any(_covers(one, *place) for one in self.hosts):
            return False
        return not self.patterns or any(re.match(translate(one), url) for one in self.patterns)

    def check(self, url: str) -> None:
        """Refuse an address outside the scope.

        Raises:
            BrowserProblem: a tab may not be there.
        """
        if not self.allows(url):
            shown = url[:SHOWN_CHARACTERS]
            raise BrowserProblem(
                "blocked",
                f"Navigation to {shown} blocked: flow is scoped to {self._shown()}"
                if self._shown()
                else f"{shown} is {NO_PAGE}",
            )

    def check_tab(self, url: str) -> None:
        """Refuse the use of an open tab outside the scope. Its address is not said: it may be one
        of the person's.

        Raises:
            BrowserProblem: the tab may not be used.
        """
        if not self.allows(url):
            raise BrowserProblem(
                "blocked",
                f"the tab is at another place; flow is scoped to {self._shown()}"
                if self._shown()
                else f"what the tab shows is {NO_PAGE}",
            )

    def _shown(self) -> str:
        return ", ".join((*(self.hosts or ()), *self.patterns))


EVERYWHERE = BrowserScope()


def _covers(entry: str, host: str, port: int | None) -> bool:
    has_port = ":" in entry and not entry.endswith("]")
    name, _, number = entry.rpartition(":") if has_port else (entry, "", "")
    if number not in ("", "*") and number != str(port or ""):
        return False
    name = name.removeprefix("*.").strip("[]")
    return host == name or host.endswith(f".{name}")
