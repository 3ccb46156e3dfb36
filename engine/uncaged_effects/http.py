"""The http effect sends one request and answers with what came back, whatever its status says.

``{"http": {"method", "url", "query"?, "headers"?, "json" | "form" | "text" | "bytes"?,
"timeout_s"?, "followRedirects"?, "idempotent"?}}`` answers ``{"status", "headers", "url", "json" |
"text" | "base64", "truncated"}``. A request that changes something carries
``Idempotency-Key: threadId/seq``, so that a server which knows the header performs it once even if
it is sent twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from uncaged_bundles.limits import HttpLimits
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.door.bodies import read_body
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Failure, Outcome, TryLater
from uncaged_engine.services.network import HostRules

from .web.client import CLIENTS, Clients
from .web.content import content_of
from .web.credentials import Credentials
from .web.errand import Errand, run
from .web.exchange import Received
from .web.limits import limits_of
from .web.request import REPEATABLE, SAFE, HttpBody, request_of

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

    def __init__(self, clients: Clients = CLIENTS) -> None:
        self._clients = clients

    def rule(self, body: object, bundle: Bundle) -> Rule:
        del bundle
        # by itself, not from a checked body: what an older version sent may be refused by this one
        if not isinstance(body, Mapping):
            return "repeat"  # nothing was sent
        method = str(body.get("method", "GET")).upper()
        return "repeat" if method in REPEATABLE or body.get("idempotent") is True else "ask"

    def perform(self, body: object, context: EffectContext) -> Outcome:
        asked = read_body("http", HttpBody, body)
        if isinstance(asked, Failure):
            return asked

        def judge(received: Received) -> TryLater | None:
            return later_of(received, context.clock_ms()) if repeatable(asked) else None

        return run(
            lambda: errand_of(asked, context),
            outcome_of,
            kind=self.kind,
            context=context,
            clients=self._clients,
            judge=judge,
        )


def repeatable(asked: HttpBody) -> bool:
    """Return whether the request may be sent again after a crash."""
    return asked.method in REPEATABLE or asked.idempotent


def errand_of(asked: HttpBody, context: EffectContext) -> Errand:
    policy = context.bundle.descriptor.policy.limits.get("http", {})
    request = request_of(asked)
    if request.method not in SAFE and not request.has("idempotency-key"):
        request = request.with_header("Idempotency-Key", context.key)
    return Errand(
        request=request,
        rules=HostRules.of("http", policy),
        limits=limits_of(asked.timeout_s, HttpLimits.of(policy)),
    )


def later_of(received: Received, now_ms: int) -> TryLater | None:
    """Return what a status of overload or of a server's own failure says about a later try; None
    for any other status.
    """
    if received.status != TOO_MANY and not 500 <= received.status < 600:
        return None
    return TryLater(
        after_s=retry_after_s(received.headers.get("retry-after", ""), now_ms),
        reason=f"HTTP {received.status}",
    )


def retry_after_s(text: str, now_ms: int) -> float:
    """Return the seconds that a ``Retry-After`` header asks for: a number, or the time until a
    date; 0 for anything else.
    """
    try:
        asked_s = (
            float(text)
            if text.strip().isdecimal()
            else parsedate_to_datetime(text).timestamp() - now_ms / 1000
        )
    except (ValueError, TypeError):
        return 0.0
    return max(0.0, asked_s)


def outcome_of(received: Received, credentials: Credentials) -> dict[str, object]:
    return {
        "status": received.status,
        "headers": credentials.redact(received.headers),
        "url": credentials.redact(received.target.url),
        **content_of(received, credentials),
        "truncated": received.truncated,
    }
