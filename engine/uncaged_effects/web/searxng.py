"""SearXNG, and other services with its ``/search?q=…&format=json``."""

from __future__ import annotations

import json
from collections.abc import Mapping

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.services.network import WebProblem, read_target
from uncaged_engine.services.settings import SearchSettings

from .exchange import HttpResponse
from .provider import SearchResult
from .request import HttpRequest


class SearXNG:
    def __init__(self, settings: SearchSettings) -> None:
        self._settings = settings

    def request(self, query: str) -> HttpRequest:
        headers = [("Accept", "application/json")]
        if self._settings.key is not None:
            headers.append(("Authorization", f"Bearer {self._settings.key}"))
        target = read_target(f"{self._settings.url.rstrip('/')}/search").with_query(
            [("q", query), ("format", "json")]
        )
        return HttpRequest(method="GET", target=target, headers=tuple(headers))

    def results(self, response: HttpResponse) -> list[SearchResult]:
        if response.status != 200:
            raise self._refusal(response.status)
        try:
            listed = json.loads(response.body)["results"]
            return [
                result_of(entry)
                for entry in listed
                if isinstance(entry, Mapping) and isinstance(entry.get("url"), str)
            ]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise EnvironmentLacks(
                f"search.url {self._settings.url} does not answer as SearXNG does",
                remedy="fix it in config.yaml",
            ) from None

    def _refusal(self, status: int) -> Exception:
        url = self._settings.url
        match status:
            case 401:
                return EnvironmentLacks(
                    f"{url} wants a key that it knows",
                    remedy="put `key: secret:NAME` under search in config.yaml",
                )
            case 403:
                return EnvironmentLacks(
                    f"{url} does not answer in JSON",
                    remedy="add `json` to search.formats in its settings.yml",
                )
            case 404:
                return EnvironmentLacks(
                    f"there is no SearXNG at {url}", remedy="fix search.url in config.yaml"
                )
            case _:
                return WebProblem("search", f"the search at {url} answered {status}")


def result_of(entry: Mapping[str, object]) -> SearchResult:
    title, snippet = (" ".join(str(entry.get(key) or "").split()) for key in ("title", "content"))
    return SearchResult(title=title, url=str(entry["url"]), snippet=snippet)
