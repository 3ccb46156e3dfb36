"""HTTP exchange of one effect: a request and its redirects, each hop checked like the first.

Rule 1: no hop begins before its policy, address and secrets were checked.
Rule 2: confidential headers (Authorization, Cookie, a trace context, a header with a secret) are
not sent to another origin.
Rule 3: one deadline holds for all hops, and one limit for the body that is kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from uncaged_bundles.addresses import classify, literal
from uncaged_bundles.urls import Target
from uncaged_bundles.version import __version__
from uncaged_engine.door.effects import Cancel
from uncaged_engine.services.network import (
    HostRules,
    Route,
    StaleConnection,
    WebProblem,
    proxy_for,
    read_target,
    redirect_target,
)

from .client import Clients
from .credentials import Credentials, UnfilledCredentials
from .decoding import ACCEPTED, Decompressor
from .request import REPEATABLE, TYPES, HttpRequest, header_bytes

if TYPE_CHECKING:
    import httpcore2

MAX_REDIRECTS = 10
REDIRECTS = frozenset({301, 302, 303, 307, 308})
CONFIDENTIAL = frozenset({"authorization", "cookie", "traceparent", "tracestate"})
OF_A_BODY = frozenset({"content-type", "content-encoding", "content-language", "content-location"})
AGENT = f"uncaged-workflow/{__version__}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeLimits:
    """Limits of an exchange. max_bytes: of a decompressed body. total_s: for all hops."""

    max_bytes: int
    total_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """Response of the last hop. headers: by lower-case name. truncated: the body of an error
    response was cut at the limit.
    """

    target: Target
    status: int
    headers: Mapping[str, str]
    body: bytes
    truncated: bool


@dataclass(slots=True, kw_only=True)
class Exchange:
    """State of an exchange over its hops. environment: the caller's, for proxies and certificates.
    has_sent: whether a server may have got a request.
    """

    rules: HostRules
    credentials: Credentials
    limits: ExchangeLimits
    clients: Clients
    cancel: Cancel
    environment: Mapping[str, str]
    has_sent: bool = False

    def send(self, request: HttpRequest) -> HttpResponse:
        """Send *request* and follow its redirects.

        Raises:
            WebProblem: there is no response. RequestCancelled. EnvironmentLacks: a secret has no
                value.
        """
        deadline_s = time.monotonic() + self.limits.total_s
        first = request.target
        request = self._with_query(request)
        for hop in range(MAX_REDIRECTS + 1):
            try:
                response = self._hop(request, deadline_s)
            except WebProblem as exc:
                raise (
                    exc if hop == 0 else redirect_problem(first, f"to {request.target.url}", exc)
                ) from exc
            location = response.headers.get("location")
            if not request.follow or response.status not in REDIRECTS or location is None:
                return response
            try:
                request = follow_redirect(
                    request,
                    response.status,
                    redirect_target(request.target, location),
                    self.credentials,
                )
            except WebProblem as exc:
                raise redirect_problem(first, "to an address that is not requested", exc) from exc
        raise WebProblem(
            "redirects",
            f"redirected more than {MAX_REDIRECTS} times, at last to {request.target.url}",
        )

    def _with_query(self, request: HttpRequest) -> HttpRequest:
        self.rules.check(request.target)
        return fill_query(request, self.credentials)

    def _hop(self, request: HttpRequest, deadline_s: float) -> HttpResponse:
        target = request.target
        self.rules.check(target)
        prepared = prepare(request, self.credentials)
        try:
            return self._send(request, prepared, deadline_s)
        except StaleConnection:
            # the server closed the reused connection; only a repeatable request is sent again
            if request.method not in REPEATABLE:
                raise
        return self._send(request, prepared, deadline_s)

    def _send(
        self, request: HttpRequest, prepared: httpcore2.Request, deadline_s: float
    ) -> HttpResponse:
        with self.clients.borrowed(self._route(request.target), deadline_s, self.cancel) as client:
            self.has_sent = True
            answer = client.send(prepared)
            try:
                return self._receive(request, answer, client.content(prepared, answer))
            finally:
                answer.close()

    def _receive(
        self, request: HttpRequest, answer: httpcore2.Response, content: Iterable[bytes]
    ) -> HttpResponse:
        headers = combine_headers(answer.headers)
        truncated, body = False, b""
        if not (request.follow and answer.status in REDIRECTS and "location" in headers):
            decompressor = Decompressor(headers.get("content-encoding", ""), self.limits.max_bytes)
            for chunk in content:
                decompressor.feed(chunk)
                if decompressor.is_full:
                    break
            truncated, body = decompressor.is_full, decompressor.finish()
        if truncated and 200 <= answer.status < 300:
            raise WebProblem(
                "too-large",
                f"the answer is larger than {self.limits.max_bytes} bytes; maxBytes in the policy of {self.rules.kind!r} sets the limit",
            )
        return HttpResponse(
            target=request.target,
            status=answer.status,
            headers=headers,
            body=body,
            truncated=truncated,
        )

    def _route(self, target: Target) -> Route:
        return Route.of(target.url, self.environment, proxy=self._proxy(target), rules=self.rules)

    def _proxy(self, target: Target) -> str | None:
        """Return the caller's proxy for *target*. It looks names up by itself, so no address can be
        checked here.
        """
        address = literal(target.host)
        if target.host == "localhost" or (
            address is not None and classify(address).reach != "public"
        ):
            return None
        proxy = proxy_for(target.url, self.environment)
        if proxy is not None and self.rules.hosts is None:
            raise WebProblem(
                "policy",
                f'behind a proxy, where addresses cannot be checked, the policy has to name its hosts; add "{target.authority}" to them',
            )
        return proxy


def fill_query(request: HttpRequest, credentials: Credentials) -> HttpRequest:
    """Return the request with its query, and the query's secrets, in its address."""
    pairs = [
        (name, str(credentials.fill_data(value, request.target))) for name, value in request.query
    ]
    return replace(request, target=request.target.with_query(pairs), query=())


def check_past(request: HttpRequest, rules: HostRules, outcome: object) -> None:
    """Check a request and the address that it was redirected to, and send nothing.

    Args:
        outcome: the answer; its key ``url`` is the address of the last hop.
    Raises:
        WebProblem: as `Exchange.send` before a hop.
    """
    credentials = UnfilledCredentials(rules)
    rules.check(request.target)
    prepare(fill_query(request, credentials), credentials)
    reached = outcome.get("url") if isinstance(outcome, Mapping) else None
    if isinstance(reached, str):
        target = read_target(reached)
        try:
            rules.check(target)
        except WebProblem as exc:
            raise redirect_problem(request.target, f"to {target.url}", exc) from exc


def prepare(request: HttpRequest, credentials: Credentials) -> httpcore2.Request:
    """Return the request of one hop as it is sent, with its secrets."""
    import httpcore2

    target = request.target
    headers = [(b"Host", target.authority.encode()), (b"Accept-Encoding", ACCEPTED.encode())]
    headers += [
        header_bytes(name, credentials.fill_header(value, target))
        for name, value in request.headers
    ]
    usual = {
        "User-Agent": AGENT,
        "Accept": "*/*",
        **({"Content-Type": TYPES[request.body.form]} if request.body is not None else {}),
    }
    headers += [
        header_bytes(name, value) for name, value in usual.items() if not request.has(name.lower())
    ]
    content = request.body.bytes_for(target, credentials) if request.body is not None else None
    if content is not None or request.method in ("POST", "PUT", "PATCH"):
        headers.append((b"Content-Length", b"%d" % len(content or b"")))
    url = httpcore2.URL(
        scheme=target.scheme, host=target.host, port=target.port, target=target.path
    )
    return httpcore2.Request(request.method, url, headers=headers, content=content)


def follow_redirect(
    request: HttpRequest, status: int, target: Target, credentials: Credentials
) -> HttpRequest:
    """Return the request that a redirect asks for."""
    method, body, headers = request.method, request.body, list(request.headers)
    if (status == 303 and method not in ("GET", "HEAD")) or (
        status in (301, 302) and method == "POST"
    ):
        method, body = "GET", None
        headers = [
            (name, value)
            for name, value in headers
            if name.lower() not in OF_A_BODY and name.lower() != "idempotency-key"
        ]
    if target.origin != request.target.origin:
        headers = [
            (name, value) for name, value in headers if may_follow(name, value, target, credentials)
        ]
    return replace(request, method=method, target=target, headers=tuple(headers), body=body)


def redirect_problem(first: Target, where: str, problem: WebProblem) -> WebProblem:
    """Return a problem of a redirect; an invalid address is the server's error here, not the
    bundle's.
    """
    kind = "redirects" if problem.kind == "effect" else problem.kind
    return WebProblem(
        kind, f"redirected from {first.scheme}://{first.authority} {where}: {problem}"
    )


def may_follow(name: str, value: str, target: Target, credentials: Credentials) -> bool:
    """Return whether a header is sent to another origin, too."""
    if credentials.has_secret(value):
        return credentials.may_send(value, target)
    return name.lower() not in CONFIDENTIAL


def combine_headers(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by lower-case name; values of a repeated header are joined."""
    found: dict[str, str] = {}
    for name, value in headers:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found
