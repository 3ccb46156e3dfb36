"""The search effect asks the provider that ``config.yaml`` names: a search service is the person's, not the bundle's.

``{"search": {"query", "limit"?, "timeout_s"?}}`` answers ``{"results": [{"title", "url", "snippet"}]}``, best first.
"""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.limits import SearchLimits
from uncaged_bundles.urls import Target
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Failure, Outcome
from uncaged_engine.services import secrets
from uncaged_engine.services.network import HostPattern, HostRules, WebProblem
from uncaged_engine.services.settings import SearchSettings

from .web.client import CLIENTS, Clients
from .web.credentials import Credentials
from .web.errand import Errand, run
from .web.exchange import Received
from .web.limits import limits_of
from .web.searching import Provider, provider_of

KEYS = frozenset({"query", "limit", "timeout_s"})
FEW, MOST = 10, 100
UNREACHED = frozenset({"dns", "connect", "tls", "policy", "refused-address", "redirects"})

ANSWER = {
    "type": "object",
    "required": ["results"],
    "properties": {"results": {"type": "array", "items": {"type": "object", "required": ["title", "url", "snippet"]}}},
}
"""JSON Schema of an outcome."""


class SearchHandler(Handler):
    kind = "search"
    limits = SearchLimits
    answers: Mapping[str, object] = ANSWER
    recovery: Rule = "repeat"

    def __init__(self, clients: Clients = CLIENTS) -> None:
        self._clients = clients

    def perform(self, body: object, context: EffectContext) -> Outcome:
        try:
            query, limit = read_body(body)
        except WebProblem as exc:
            return Failure.of(exc.kind, f"search: {exc}")
        settings = context.config.search
        if settings is None:
            raise EnvironmentLacks(
                "nothing to search with is configured; add `search: {use: searxng, url: https://ADDRESS}` to config.yaml, then resume"
            )
        provider = provider_of(settings)

        def make(received: Received, credentials: Credentials) -> object:
            return {"results": credentials.redact(provider.results(received)[:limit])}

        outcome = run(lambda: errand_of(body, query, provider, settings), make, kind=self.kind, context=context, clients=self._clients)
        if isinstance(outcome, Failure) and outcome.error["kind"] in UNREACHED:
            raise EnvironmentLacks(f"{outcome.error['message']}; start it, or mend search.url in config.yaml, then resume")
        return outcome


def read_body(body: object) -> tuple[str, int]:
    """Raises: WebProblem: kind *effect*."""
    if not isinstance(body, Mapping) or not set(body) <= KEYS:
        raise WebProblem("effect", 'its body is {"query": text}, perhaps with "limit" and "timeout_s"')
    query, limit = body.get("query"), body.get("limit", FEW)
    if not isinstance(query, str) or not query.strip():
        raise WebProblem("effect", f"query must be what to search for, not {query!r}")
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MOST:
        raise WebProblem("effect", f"limit must be a whole number from 1 to {MOST}, not {limit!r}")
    return query.strip(), limit


def errand_of(body: object, query: str, provider: Provider, settings: SearchSettings) -> Errand:
    """The one request of the engine that no bundle's policy names the host of: the person did, in config."""
    request = provider.request(query)
    key = (settings.key or "").removeprefix(secrets.PREFIX)
    hosts = (only(request.target),)
    rules = HostRules(kind="search", hosts=hosts, private=True, bound=((key, hosts),) if key else ())
    return Errand(request=request, rules=rules, limits=limits_of(body, {}))


def only(target: Target) -> HostPattern:
    return HostPattern(host=target.host, below=False, port=target.port)
