"""Whatever kind of effect needs the web: its request is read, checked and sent in one way, and
comes to an outcome without secrets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.door.effects import EffectContext
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, TryLater, Void
from uncaged_engine.services.network import HostRules, RequestCancelled, WebProblem

from .client import Clients
from .credentials import Credentials
from .exchange import ExchangeLimits, Received, Session
from .request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """A request that was checked, and what it may reach and use up."""

    request: Request
    rules: HostRules
    limits: ExchangeLimits


def run(
    read: Callable[[], Errand],
    make: Callable[[Received, Credentials], object],
    *,
    kind: str,
    context: EffectContext,
    clients: Clients,
    judge: Callable[[Received], TryLater | None] = lambda _: None,
) -> Outcome:
    """Do what *read* says and answer with what *make* makes of it; both may raise WebProblem.

    Args:
        judge: says whether the server only asks for a later try.
    """
    try:
        errand = read()
    except WebProblem as exc:
        return Failure.of(exc.kind, f"{kind}: {exc}")
    credentials = Credentials(errand.rules, context.config, context.environment)
    session = Session(
        rules=errand.rules,
        credentials=credentials,
        limits=errand.limits,
        clients=clients,
        cancel=context.cancel,
        environment=context.environment,
    )
    target = errand.request.target
    try:
        received = session.exchange(errand.request)
        return Answer(fields={"outcome": make(received, credentials)}, later=judge(received))
    except WebProblem as exc:
        return Failure.of(
            exc.kind,
            str(credentials.redact(f"{kind}: {errand.request.method} {target.url}: {exc}")),
        )
    except RequestCancelled:
        return Void(
            word="killed",
            message=f"killed during a request to {target.authority}",
            begun=session.has_sent,
        )
    except EnvironmentLacks as exc:
        raise EnvironmentLacks(str(credentials.redact(str(exc))), begun=session.has_sent) from None
