"""SearXNG, and whatever else answers ``/search?q=…&format=json`` as it does."""

from __future__ import annotations

import json
from collections.abc import Mapping

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.services.network import WebProblem, read_target
from uncaged_engine.services.settings import SearchSettings

from .exchange import Received
from .request import Request
from .searching import Found


class SearXNG:
    def __init__(self, settings: SearchSettings) -> None:
        self._settings = settings

    def request(self, query: str) -> Request:
        headers = [("Accept", "application/json")]
        if self._settings.key is not None:
            headers.append(("Authorization", f"Bearer {self._settings.key}"))
        target = read_target(f"{self._settings.url.rstrip('/')}/search").with_query(
            [("q", query), ("format", "json")]
        )
        return Request(method="GET", target=target, headers=tuple(headers))

    def results(self, received: Received) -> list[Found]:
        if received.status != 200:
            raise self._refusal(received.status)
        try:
            listed = json.loads(received.body)["results"]
            return [
                found_of(one)
                for one in listed
                if isinstance(one, Mapping) and isinstance(one.get("url"), str)
            ]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise EnvironmentLacks(
                f"search.url {self._settings.url} does not answer as SearXNG does; mend it in config.yaml, then resume"
            ) from None

    def _refusal(self, status: int) -> Exception:
        url = self._settings.url
        match status:
            case 401:
                return EnvironmentLacks(
                    f"{url} wants a key that it knows; put `key: secret:NAME` under search in config.yaml, then resume"
                )
            case 403:
                return EnvironmentLacks(
                    f"{url} does not answer in JSON; add `json` to search.formats in its settings.yml, then resume"
                )
            case 404:
                return EnvironmentLacks(
                    f"there is no SearXNG at {url}; mend search.url in config.yaml, then resume"
                )
            case _:
                return WebProblem("search", f"the search at {url} answered {status}")


def found_of(one: Mapping[str, object]) -> Found:
    title, snippet = (" ".join(str(one.get(key) or "").split()) for key in ("title", "content"))
    return Found(title=title, url=str(one["url"]), snippet=snippet)
