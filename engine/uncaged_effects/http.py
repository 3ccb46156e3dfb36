"""The effect `http`: one HTTP request; the outcome is its response, whatever the status.

``{"http": {"method", "url", "query"?, "headers"?, "json" | "form" | "text" | "bytes"?,
"timeout_s"?, "followRedirects"?, "idempotent"?}}`` answers ``{"status", "headers", "url", "json" |
"text" | "base64", "truncated"}``. An unsafe request has ``Idempotency-Key: threadId/seq``, so that
a server which supports the header performs it once even if it is sent twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime

from uncaged_bundles.limits import HttpLimits
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.door.bodies import read_body
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.observing import EffectObserver
from uncaged_engine.door.outcomes import Failure, Outcome, TryLater
from uncaged_engine.door.past import PastEffect
from uncaged_engine.services.network import HostRules, read_patterns

from .web.client import CLIENTS, Clients
from .web.content import content_of
from .web.credentials import Credentials
from .web.exchange import HttpResponse
from .web.limits import limits_of
from .web.perform import RequestSpec, past_refusal, perform_request
from .web.request import REPEATABLE, SAFE, HttpBody, HttpRequest, request_of

TOO_MANY = 429
ANSWER = {
    "type": "object",
    "required": ["status", "headers", "url"],
    "properties": {
        "status": {"type": "integer"},
        "headers": {"type": "object"},
        "url": {"type": "string"},
        "text": {"type": "string"},
    },
}
"""JSON Schema of an outcome."""


class HttpHandler(Handler):
    kind = "http"
    answers: Mapping[str, object] = ANSWER
    limits = HttpLimits
    decided_limits = frozenset({"hosts", "secrets"})

    def __init__(self, clients: Clients = CLIENTS) -> None:
        self._clients = clients

    def rule(self, body: object, bundle: Bundle) -> Rule:
        del bundle
        # not from a checked body: this version may refuse a body that an older one sent
        if not isinstance(body, Mapping):
            return "repeat"  # nothing was sent
        method = str(body.get("method", "GET")).upper()
        return "repeat" if method in REPEATABLE or body.get("idempotent") is True else "ask"

    def past_refusal(self, past: PastEffect) -> str | None:
        options = read_body("http", HttpBody, past.body)
        if isinstance(options, Failure):
            return None
        return past_refusal(lambda: policy_of(request_of(options), options, past.limits), past)

    def is_harmless(self, body: object, context: EffectContext) -> bool:
        """Return whether the method is safe: a trial has another idempotency key, so that a server
        would perform an unsafe request a second time.
        """
        del context
        method = body.get("method", "GET") if isinstance(body, Mapping) else "GET"
        return str(method).upper() in SAFE

    def perform(self, body: object, context: EffectContext) -> Outcome:
        options = read_body("http", HttpBody, body)
        if isinstance(options, Failure):
            return options

        def later(response: HttpResponse) -> TryLater | None:
            return later_of(response, context.clock_ms()) if repeatable(options) else None

        return perform_request(
            lambda: spec_of(options, context),
            outcome_of,
            kind=self.kind,
            context=context,
            clients=self._clients,
            later=later,
        )


def policy_of(request: HttpRequest, options: HttpBody, policy: Mapping[str, object]) -> RequestSpec:
    """Return a request with what a policy says about it."""
    return RequestSpec(
        request=request,
        rules=HostRules.of("http", policy),
        limits=limits_of(options.timeout_s, HttpLimits.of(policy)),
    )


def repeatable(options: HttpBody) -> bool:
    """Return whether a request may be sent again after a crash."""
    return options.method in REPEATABLE or options.idempotent


def spec_of(options: HttpBody, context: EffectContext) -> RequestSpec:
    request = request_of(options)
    if request.method not in SAFE and not request.has("idempotency-key"):
        request = request.with_header("Idempotency-Key", context.key)
    if context.observer is not None:
        request = with_trace_context(request, context.observer, context.config.span_hosts)
    return policy_of(request, options, context.bundle.descriptor.policy.limits.get("http", {}))


def with_trace_context(
    request: HttpRequest, observer: EffectObserver, hosts: Sequence[str]
) -> HttpRequest:
    """Return a request with the trace context of its effect, if config names its host and the
    bundle sets none itself.
    """
    if any(pattern.covers(request.target) for pattern in read_patterns(hosts)):
        for name, value in observer.headers().items():
            if not request.has(name):
                request = request.with_header(name, value)
    return request


def later_of(response: HttpResponse, now_ms: int) -> TryLater | None:
    """Return when to try again after a status of overload or of a server error; None for any other
    status.
    """
    if response.status != TOO_MANY and not 500 <= response.status < 600:
        return None
    return TryLater(
        after_s=retry_after_s(response.headers.get("retry-after", ""), now_ms),
        reason=f"HTTP {response.status}",
    )


def retry_after_s(text: str, now_ms: int) -> float:
    """Parse a ``Retry-After`` header, a number of seconds or a date; 0 if it is neither."""
    try:
        requested_s = (
            float(text)
            if text.strip().isdecimal()
            else parsedate_to_datetime(text).timestamp() - now_ms / 1000
        )
    except (ValueError, TypeError):
        return 0.0
    return max(0.0, requested_s)


def outcome_of(response: HttpResponse, credentials: Credentials) -> dict[str, object]:
    return {
        "status": response.status,
        "headers": credentials.redact(response.headers),
        "url": credentials.redact(response.target.url),
        **content_of(response, credentials),
        "truncated": response.truncated,
    }
