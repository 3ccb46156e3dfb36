"""The http effect sends one request and answers with what came back, whatever its status says.

``{"http": {"method", "url", "query"?, "headers"?, "json" | "form" | "text" | "bytes"?, "timeout_s"?, "followRedirects"?, "idempotent"?}}``
answers ``{"status", "headers", "url", "json" | "text" | "base64", "truncated"}``. A request that changes something carries
``Idempotency-Key: threadId/seq``, so that a server which knows the header performs it once even if it is sent twice.
"""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.validate import Bundle

from ..effects import EffectContext, Rule
from ..outcomes import Answer, Failure, Outcome, Void
from ..web.client import CLIENTS, Clients
from ..web.content import content_of
from ..web.credentials import Credentials
from ..web.exchange import Received, Session
from ..web.limits import limits_of
from ..web.problems import Stopped, WebProblem
from ..web.request import REPEATABLE, SAFE, read_request
from ..web.rules import Rules

KIND = "http"


class HttpHandler:
    kind = KIND
    limits = frozenset({"hosts", "secrets", "private", "maxBytes", "timeout_s"})

    def __init__(self, clients: Clients = CLIENTS) -> None:
        self._clients = clients

    def rule(self, body: object, bundle: Bundle) -> Rule:  # noqa: ARG002 - the protocol's signature
        if not isinstance(body, Mapping):
            return "repeat"  # nothing was sent
        return "repeat" if str(body.get("method", "GET")).upper() in REPEATABLE or body.get("idempotent") is True else "ask"

    def probe(self, body: object, context: EffectContext) -> Outcome | None:  # noqa: ARG002 - the protocol's signature
        return None

    def perform(self, body: object, context: EffectContext) -> Outcome:
        policy = context.bundle.descriptor.policy.limits.get(KIND, {})
        try:
            request = read_request(body)
            rules = Rules.of(KIND, policy)
            limits = limits_of(body if isinstance(body, Mapping) else {}, policy)
        except WebProblem as exc:
            return Failure.of(exc.kind, f"{KIND}: {exc}")
        if request.method not in SAFE and not request.has("idempotency-key"):
            request = request.with_header("Idempotency-Key", context.key)
        credentials = Credentials(rules, context.config, context.environment)
        session = Session(
            rules=rules,
            credentials=credentials,
            limits=limits,
            clients=self._clients,
            cancel=context.cancel,
            environment=context.environment,
        )
        try:
            return Answer(fields={"outcome": outcome_of(session.exchange(request), credentials)})
        except WebProblem as exc:
            return Failure.of(exc.kind, str(credentials.redact(f"{KIND}: {request.method} {request.target.url}: {exc}")))
        except Stopped:
            return Void(word="killed", message=f"killed during a request to {request.target.authority}")
        except EnvironmentLacks as exc:
            raise EnvironmentLacks(str(credentials.redact(str(exc)))) from None


def outcome_of(received: Received, credentials: Credentials) -> dict[str, object]:
    return {
        "status": received.status,
        "headers": credentials.redact(received.headers),
        "url": credentials.redact(received.target.url),
        **content_of(received, credentials),
        "truncated": received.truncated,
    }
