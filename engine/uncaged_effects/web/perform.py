"""Performance of an effect that sends a web request: request to outcome, without secrets in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.door.effects import EffectContext
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, TryLater, Void
from uncaged_engine.door.past import PastEffect
from uncaged_engine.services.network import HostRules, RequestCancelled, WebProblem

from .client import Clients
from .credentials import Credentials
from .exchange import Exchange, ExchangeLimits, HttpResponse, check_past
from .request import HttpRequest

REFUSED_KINDS = frozenset({"policy", "refused-address"})
"""Kinds of problems that a policy causes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSpec:
    """Request with the host rules and limits under which it is sent."""

    request: HttpRequest
    rules: HostRules
    limits: ExchangeLimits


def past_refusal(build: Callable[[], RequestSpec], past: PastEffect) -> str | None:
    """Return why a past request is refused by its rules; None if it is not.

    Args:
        build: may raise WebProblem; then the request was not sent either.
    """
    try:
        spec = build()
    except WebProblem:
        return None
    request = spec.request
    try:
        check_past(request, spec.rules, past.outcome)
    except WebProblem as exc:
        if exc.kind in REFUSED_KINDS:
            return f"{past.kind}: {request.method} {request.target.url}: {exc}"
    return None


def perform_request(
    build: Callable[[], RequestSpec],
    convert: Callable[[HttpResponse, Credentials], object],
    *,
    kind: str,
    context: EffectContext,
    clients: Clients,
    later: Callable[[HttpResponse], TryLater | None] = lambda _: None,
) -> Outcome:
    """Build a request, send it, and return its converted response as the outcome.

    Args:
        build: may raise WebProblem, as *convert* may.
        later: returns whether the server asks for a later attempt.
    """
    try:
        spec = build()
    except WebProblem as exc:
        return Failure.of(exc.kind, f"{kind}: {exc}")
    credentials = Credentials(spec.rules, context.config, context.environment)
    exchange = Exchange(
        rules=spec.rules,
        credentials=credentials,
        limits=spec.limits,
        clients=clients,
        cancel=context.cancel,
        environment=context.environment,
    )
    target = spec.request.target
    try:
        response = exchange.send(spec.request)
        return Answer(fields={"outcome": convert(response, credentials)}, later=later(response))
    except WebProblem as exc:
        return Failure.of(
            exc.kind,
            str(credentials.redact(f"{kind}: {spec.request.method} {target.url}: {exc}")),
        )
    except RequestCancelled:
        return Void(
            word="killed",
            message=f"killed during a request to {target.authority}",
            begun=exchange.has_sent,
        )
    except EnvironmentLacks as exc:
        raise EnvironmentLacks(str(credentials.redact(str(exc))), begun=exchange.has_sent) from None
