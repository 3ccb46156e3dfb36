"""The effect `search`: a query to the search provider of the person's ``config.yaml``.

``{"search": {"query", "limit"?, "timeout_s"?}}`` answers
``{"results": [{"title", "url", "snippet"}]}``, best first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from uncaged_bundles import shapes
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.limits import FetchLimits, SearchLimits
from uncaged_bundles.records import dataclass
from uncaged_bundles.urls import Target
from uncaged_engine.door.bodies import Seconds, read_body
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Failure, Outcome
from uncaged_engine.services import secrets
from uncaged_engine.services.network import HostPattern, HostRules
from uncaged_engine.services.settings import SearchSettings

from .web.client import CLIENTS, Clients
from .web.credentials import Credentials
from .web.exchange import HttpResponse
from .web.limits import limits_of
from .web.perform import RequestSpec, perform_request
from .web.provider import Provider, provider_of

FEW, MOST = 10, 100
UNREACHED = frozenset({"dns", "connect", "tls", "policy", "refused-address", "redirects"})

ANSWER = {
    "type": "object",
    "required": ["results"],
    "properties": {
        "results": {
            "type": "array",
            "items": {"type": "object", "required": ["title", "url", "snippet"]},
        }
    },
}
"""JSON Schema of an outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBody:
    query: Annotated[str, shapes.filled]
    limit: Annotated[int, shapes.whole_between(1, MOST)] = FEW
    timeout_s: Seconds = None


class SearchHandler(Handler):
    kind = "search"
    limits = SearchLimits
    answers: Mapping[str, object] = ANSWER
    recovery: Rule = "repeat"

    def __init__(self, clients: Clients = CLIENTS) -> None:
        self._clients = clients

    def perform(self, body: object, context: EffectContext) -> Outcome:
        options = read_body("search", SearchBody, body)
        if isinstance(options, Failure):
            return options
        settings = context.config.search
        if settings is None:
            raise EnvironmentLacks(
                "nothing to search with is configured",
                remedy="add `search: {use: searxng, url: https://ADDRESS}` to config.yaml",
            )
        provider = provider_of(settings)

        def convert(response: HttpResponse, credentials: Credentials) -> object:
            return {"results": credentials.redact(provider.results(response)[: options.limit])}

        outcome = perform_request(
            lambda: spec_of(options, provider, settings),
            convert,
            kind=self.kind,
            context=context,
            clients=self._clients,
        )
        if isinstance(outcome, Failure) and outcome.error["kind"] in UNREACHED:
            raise EnvironmentLacks(
                str(outcome.error["message"]), remedy="start it, or fix search.url in config.yaml"
            )
        return outcome


def spec_of(options: SearchBody, provider: Provider, settings: SearchSettings) -> RequestSpec:
    """Return the request; its host is the one that the person configured, not one of a policy."""
    request = provider.request(options.query.strip())
    key = (settings.key or "").removeprefix(secrets.PREFIX)
    hosts = (exact_pattern(request.target),)
    rules = HostRules(
        kind="search", hosts=hosts, private=True, bound=((key, hosts),) if key else ()
    )
    return RequestSpec(
        request=request, rules=rules, limits=limits_of(options.timeout_s, FetchLimits())
    )


def exact_pattern(target: Target) -> HostPattern:
    return HostPattern(host=target.host, below=False, port=target.port)
