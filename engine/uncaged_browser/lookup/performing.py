"""Operations of the browser that a lookup is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from uncaged_bundles.errors import NotFoundError, UsageError
from uncaged_engine.services.settings import BrowserSettings

from ..knowledge.index import KnowledgeIndex
from ..problems import BrowserProblem
from .providers import search_address
from .requests import FindPage, SearchWeb
from .resolvers import PageFinder, Perform

__all__ = ["looked_up"]


def looked_up(
    operation: FindPage | SearchWeb,
    settings: BrowserSettings,
    history: Path | None,
    perform: Perform,
) -> dict[str, Any]:
    """Load the page that a lookup means, and return its tab.

    Args:
        history: file of the index with the pages that were visited; None if the caller may not
            know them.
    Raises:
        BrowserProblem: it failed, or nothing was found.
    """
    if isinstance(operation, SearchWeb):
        return _searched(operation, settings, perform)
    index = None if history is None else KnowledgeIndex(history)
    found = PageFinder(settings, index, perform, operation.timeout_s).open(operation.words)
    if operation.expect is None:
        return found
    expected = {"do": "address", "expect": operation.expect.document()}
    return {**found, **perform(expected, operation.timeout_s)}


def _searched(operation: SearchWeb, settings: BrowserSettings, perform: Perform) -> dict[str, Any]:
    try:
        url = search_address(operation.words, settings, operation.provider)
    except (NotFoundError, UsageError) as exc:
        raise BrowserProblem("unsupported", str(exc)) from exc
    at = {} if operation.tab is None else {"tab": operation.tab}
    expect = {} if operation.expect is None else {"expect": operation.expect.document()}
    body = {"do": "navigate", "url": url, "timeout_s": operation.timeout_s, **at, **expect}
    found: dict[str, Any] = perform(body, operation.timeout_s)
    return {**found, "provider": operation.provider or settings.search}
