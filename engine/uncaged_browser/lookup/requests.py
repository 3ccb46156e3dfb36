"""Operations of the effect that load a page by a name or by a search. They are performed as several
operations of the browser.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..operations import Filled, Navigation, Operation

__all__ = ["LOOKUPS", "FindPage", "SearchWeb"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindPage(Navigation):
    """Open the page that a name means, in a new tab, by the resolvers of config.yaml."""

    do: ClassVar[str] = "find"
    words: Filled


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchWeb(Navigation):
    """Load the results of a search in the current tab. provider: of config.yaml; None is the
    default one.
    """

    do: ClassVar[str] = "search"
    words: Filled
    provider: str | None = None


LOOKUPS: Mapping[str, type[Operation]] = {cls.do: cls for cls in (FindPage, SearchWeb)}
"""These operations by name."""
