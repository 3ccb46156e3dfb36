"""Operations on tabs, and those that load a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from uncaged_bundles import shapes

from .operation import Effect, Filled, Navigation, Operation

__all__ = [
    "Address", "Back", "Close", "Follow", "Forward", "Navigate", "Open", "Reload", "Switch", "Tabs",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Tabs(Operation):
    """List the tabs: ``[{"tab", "url", "title", "current"}]``."""

    do: ClassVar[str] = "tabs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Open(Navigation):
    """Open an address in a new tab, which becomes the current one."""

    do: ClassVar[str] = "open"
    url: Filled


@dataclass(frozen=True, slots=True, kw_only=True)
class Close(Operation):
    """Close a tab."""

    do: ClassVar[str] = "close"
    effect: ClassVar[Effect] = "acts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch(Operation):
    """Make a tab the current one: by its id, or by words of its title or address."""

    do: ClassVar[str] = "switch"
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Navigate(Navigation):
    """Load an address in the current tab, or open one if there is none."""

    do: ClassVar[str] = "navigate"
    url: Filled


@dataclass(frozen=True, slots=True, kw_only=True)
class Back(Navigation):
    do: ClassVar[str] = "back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward(Navigation):
    do: ClassVar[str] = "forward"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload(Navigation):
    do: ClassVar[str] = "reload"


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow(Navigation):
    """Follow a link: by words of its text, or by its position among the visible links, from 1."""

    do: ClassVar[str] = "follow"
    words: str = ""
    position: Annotated[int | None, shapes.positive_whole] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Address(Operation):
    """Return ``{"tab", "url", "title"}`` of a tab."""

    do: ClassVar[str] = "address"
