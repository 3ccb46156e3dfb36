"""Protocol of search providers: builds a request for a query and reads its response."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, TypedDict, cast

from uncaged_engine.services.settings import SearchSettings

from .exchange import HttpResponse
from .request import HttpRequest

PROVIDERS = {"searxng": "uncaged_effects.web.searxng:SearXNG"}
"""Provider classes by the value of ``search.use`` in ``config.yaml``."""


class SearchResult(TypedDict):
    title: str
    url: str
    snippet: str


class Provider(Protocol):
    """Search service."""

    def request(self, query: str) -> HttpRequest:
        """Return the request for *query*; its headers may contain ``secret:NAME``."""

    def results(self, response: HttpResponse) -> list[SearchResult]:
        """Return the results, best first.

        Raises:
            EnvironmentLacks: the settings do not fit the service; a person fixes them and resumes.
            WebProblem: kind *search*: this search failed.
        """


def provider_of(settings: SearchSettings) -> Provider:
    module, _, name = PROVIDERS[settings.use].partition(":")
    return cast("Provider", getattr(import_module(module), name)(settings))
