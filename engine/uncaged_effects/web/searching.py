"""A provider of search knows how to ask and how to read the answer; asking itself, and what it may
reach, is the same for all.
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, TypedDict, cast

from uncaged_engine.services.settings import SearchSettings

from .exchange import Received
from .request import Request

PROVIDERS = {"searxng": "uncaged_effects.web.searxng:SearXNG"}
"""By the word under ``search.use`` in ``config.yaml``."""


class Found(TypedDict):
    title: str
    url: str
    snippet: str


class Provider(Protocol):
    """One service that searches the web."""

    def request(self, query: str) -> Request:
        """What to send for *query*; ``secret:NAME`` may stand in its headers."""

    def results(self, received: Received) -> list[Found]:
        """What was found, best first.

        Raises:
            EnvironmentLacks: the service is not what the settings say; a person mends it and
                resumes.
            WebProblem: kind *search*: this search did not work.
        """


def provider_of(settings: SearchSettings) -> Provider:
    module, _, name = PROVIDERS[settings.use].partition(":")
    return cast("Provider", getattr(import_module(module), name)(settings))
